"""Processes as they are: compared with what /proc and psutil say of real ones."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import psutil
import pytest

from interlock.agents.cli.tag import TAGS
from interlock.system import process_table as room
from interlock.system.process_table import Process, is_running, list_processes, read_process

NAME = "a) R 1 (b\nc"


@contextmanager
def sleeper(**environment: str) -> Iterator["subprocess.Popen[bytes]"]:
    """A process that waits without an exec: in the middle of one, /proc shows no environment."""
    process = subprocess.Popen(
        ["sh", "-c", "echo; read -r _"],
        env={"PATH": os.environ["PATH"], **environment},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert process.stdout is not None
    process.stdout.readline()
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def test_a_process_with_its_tags() -> None:
    with sleeper(INTERLOCK_TAG="w:1:1:a", INTERLOCK_TAGS_ABOVE="v:1:1:b u:1:1:c") as process:
        seen = list_processes(TAGS)[process.pid]
    assert seen.parent == os.getpid()
    assert seen.session == os.getsid(0)
    assert seen.tags == ("v:1:1:b", "u:1:1:c", "w:1:1:a")
    assert seen.alive


@pytest.mark.parametrize(
    "name", ["XINTERLOCK_TAG", "INTERLOCK_TAGS", "interlock_tag", "INTERLOCK_TA"]
)
def test_other_variables_are_no_tags(name: str) -> None:
    with sleeper(**{name: "w:1:1:a"}) as process:
        assert list_processes(TAGS)[process.pid].tags == ()


def test_a_tag_inside_a_value_is_none() -> None:
    with sleeper(NOTE="see INTERLOCK_TAG=w:1:1:a\nINTERLOCK_TAG=w:1:1:a") as process:
        assert list_processes(TAGS)[process.pid].tags == ()


def test_a_tag_that_is_no_text() -> None:
    environment = {b"PATH": os.environb[b"PATH"], b"INTERLOCK_TAG": b"\xff:1:1:a"}
    process = subprocess.Popen(["sleep", "300"], env=environment)
    try:
        seen = read_process(process.pid, TAGS)
        assert seen is not None
        assert seen.tags in ((), ("\ufffd:1:1:a",))
    finally:
        process.kill()
        process.wait()


def test_a_name_that_looks_like_fields() -> None:
    """The name in /proc/PID/stat stands in brackets and may hold some."""
    code = (
        "import pathlib, sys, time; pathlib.Path('/proc/self/comm').write_text(sys.argv[1]);"
        "print(flush=True); time.sleep(300)"
    )
    process = subprocess.Popen([sys.executable, "-c", code, NAME], stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        process.stdout.readline()
        seen = read_process(process.pid)
        assert seen is not None
        assert (seen.name, seen.parent, seen.alive) == (NAME, os.getpid(), True)
    finally:
        process.kill()
        process.communicate()


def test_the_dead_and_the_stopped() -> None:
    with sleeper() as process:
        os.kill(process.pid, signal.SIGSTOP)
        os.waitpid(process.pid, os.WUNTRACED)
        stopped = read_process(process.pid)
        assert stopped is not None
        assert (stopped.state, stopped.alive) == ("T", True)
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        corpse = read_process(process.pid, TAGS)
        assert corpse is not None
        assert not corpse.alive
        process.wait()
        assert read_process(process.pid) is None


def test_is_there_goes_by_start_as_well() -> None:
    me = read_process(os.getpid())
    assert me is not None
    assert is_running(os.getpid(), str(me.process.started))
    assert not is_running(os.getpid(), "1")
    assert not is_running(2**31 - 1, "1")
    assert not is_running(2**70, "1")


def test_psutil_sees_the_same() -> None:
    with sleeper(INTERLOCK_TAG="w:1:1:a") as process:
        here = read_process(process.pid, TAGS)
        there = room._read_psutil(process.pid, names=TAGS, anyone=False)
        assert here is not None
        assert there is not None
        assert (here.tags, here.parent, here.owner) == (there.tags, there.parent, there.owner)
        assert there.process == Process(process.pid, psutil.Process(process.pid).create_time())
        assert there.alive
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        corpse = room._read_psutil(process.pid, names=TAGS, anyone=False)
        assert corpse is not None
        assert not corpse.alive
        process.wait()
        assert room._read_psutil(process.pid, names=TAGS, anyone=False) is None
