"""The processes of this machine: who they are, whose they are, and one look for all who ask."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import psutil
import pytest

from interlock.carriers.cli.ownership import TAGS
from interlock.system import process_table as room
from interlock.system.process_table import (
    Process,
    ProcessSnapshot,
    ProcessTable,
    SeenProcess,
    find_ancestors,
    find_descendants,
    find_relatives,
    is_running,
    list_processes,
    read_process,
)

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


TAG = "w:1:1:a"
LEADER = Process(10, 10)


def person(pid: int, parent: int, *tags: str, session: int = 0, state: str = "S") -> SeenProcess:
    return SeenProcess(Process(pid, pid), parent, session or pid, state, 0.0, "x", tags)


def people(*seen: SeenProcess) -> ProcessTable:
    return {each.process.pid: each for each in seen}


def kin(*seen: SeenProcess, known: tuple[Process, ...] = ()) -> list[int]:
    return sorted(process.pid for process in find_relatives(people(*seen), TAG, LEADER, known))


AGENT = person(10, 1, TAG)


def test_by_tag_wherever_they_went() -> None:
    others = [person(11, 10, TAG), person(12, 1, TAG), person(13, 1, "w:1:1:ab"), person(14, 1)]
    assert kin(AGENT, *others) == [10, 11, 12]


def test_by_a_tag_above() -> None:
    assert kin(AGENT, person(11, 1, TAG, "w:2:1:inner")) == [10, 11]


def test_by_descent_without_a_tag() -> None:
    assert kin(AGENT, person(11, 10), person(12, 11), person(13, 12)) == [10, 11, 12, 13]


def test_by_session_while_its_leader_is_there_also_dead() -> None:
    child = person(11, 1, session=10)
    assert kin(AGENT, child) == [10, 11]
    assert kin(person(10, 1, state="Z"), child) == [11]
    assert kin(child) == [], "nobody knows whose session it is now"


def test_a_session_of_one_who_got_the_number_of_the_leader() -> None:
    stranger = SeenProcess(Process(10, 99), 1, 10, "S", 0.0, "x")
    assert kin(stranger, person(11, 10, session=10)) == []


def test_who_was_known_stays_known_but_not_his_number() -> None:
    known = (Process(11, 11), Process(12, 5))
    assert kin(person(11, 1), person(12, 1), known=known) == [11]


def test_circles_end() -> None:
    """A census is no moment: parents may change while it is taken."""
    census = people(person(10, 12, TAG), person(11, 10), person(12, 11))
    assert len(find_descendants(census, census.values())) == 3
    assert len(find_ancestors(census, 10)) == 3


def test_the_line_above() -> None:
    census = people(person(1, 0), person(5, 1), person(6, 5), person(7, 5))
    assert find_ancestors(census, 6) == {Process(6, 6), Process(5, 5), Process(1, 1)}
    assert find_ancestors(census, 99) == set()


def born() -> "subprocess.Popen[bytes]":
    return subprocess.Popen(["sleep", "300"])


async def test_who_ask_together_get_the_same() -> None:
    lookout = ProcessSnapshot(TAGS)
    first, second = await asyncio.gather(lookout.take(), lookout.take())
    assert first is second
    assert await lookout.take() is not first


async def test_a_look_begins_after_the_question() -> None:
    lookout = ProcessSnapshot(TAGS)
    await lookout.take()
    child = born()
    assert child.pid in await lookout.take()
    child.kill()
    child.wait()
    assert child.pid not in await lookout.take()


async def test_one_who_gives_up_does_not_spoil_it_for_others() -> None:
    lookout = ProcessSnapshot(TAGS)
    hasty, patient = (asyncio.create_task(lookout.take()) for _ in range(2))
    await asyncio.sleep(0)
    hasty.cancel()
    assert await patient
