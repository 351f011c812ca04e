"""Child processes: signals, lines, exits, and the end of a whole tree."""

import asyncio
import os
import signal
import subprocess
from collections.abc import Callable
from itertools import pairwise

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.system import process_tree
from interlock.system.clock import SystemClock
from interlock.system.process_table import Process, SeenProcess, read_process
from interlock.system.process_tree import (
    KillReport,
    LineSplitter,
    OutputLine,
    ProcessExit,
    Relatives,
    Survivor,
    kill_tree,
    send_signal,
)


def child() -> "subprocess.Popen[bytes]":
    return subprocess.Popen(["sleep", "300"])


def test_it_arrives() -> None:
    process = child()
    seen = read_process(process.pid)
    assert seen is not None
    assert send_signal(seen.process, signal.SIGTERM)
    assert process.wait() == -signal.SIGTERM
    assert not send_signal(seen.process, signal.SIGTERM), "it is gone"


def test_a_reused_number_is_somebody_else() -> None:
    process = child()
    seen = read_process(process.pid)
    assert seen is not None
    before = Process(process.pid, seen.process.started - 1)
    assert not send_signal(before, signal.SIGKILL)
    assert not process_tree._send_by_psutil(before, signal.SIGKILL)
    assert process.poll() is None
    process.kill()
    process.wait()


def test_psutil_does_the_same() -> None:
    process = child()
    met = Process(process.pid, psutil.Process(process.pid).create_time())
    assert process_tree._send_by_psutil(met, signal.SIGTERM)
    assert process.wait() == -signal.SIGTERM


@pytest.mark.parametrize("pid", [0, -1, 2**31 - 1])
def test_numbers_of_nobody(pid: int) -> None:
    assert not send_signal(Process(pid, 1), signal.SIGKILL)


def test_a_group() -> None:
    process = subprocess.Popen(["sleep", "300"], start_new_session=True)
    process_tree.kill_group(process.pid, signal.SIGTERM)
    assert process.wait() == -signal.SIGTERM
    process_tree.kill_group(process.pid, signal.SIGTERM)


STREAM = st.lists(
    st.sampled_from([b"\n", b"\r", b"\r\n", b"\0", b"a", b"\xff", b"\x1b[0m", b"x" * 20])
    | st.binary(max_size=12)
).map(b"".join)


def all_lines(chunks: list[bytes], longest: int = 1_000) -> list[OutputLine]:
    lines = LineSplitter(longest)
    found = [line for chunk in chunks for line in lines.feed(chunk)] + lines.end()
    assert lines.count == len(found)
    assert lines.cut == sum(line.cut for line in found)
    assert lines.end() == []
    return found


def cut_at(stream: bytes, places: list[int]) -> list[bytes]:
    marks = [0, *sorted(place % (len(stream) + 1) for place in places), len(stream)]
    return [stream[a:b] for a, b in pairwise(marks)]


@given(STREAM, st.lists(st.integers(0, 200)), st.integers(1, 30))
def test_chunks_do_not_matter(stream: bytes, places: list[int], longest: int) -> None:
    assert all_lines(cut_at(stream, places), longest) == all_lines([stream], longest)


@given(STREAM)
def test_with_room_they_are_the_lines_of_the_stream(stream: bytes) -> None:
    *whole, rest = stream.split(b"\n")
    expected = [OutputLine(text.removesuffix(b"\r")) for text in whole]
    expected += [OutputLine(rest.removesuffix(b"\r"), half=True)] if rest else []
    assert all_lines([stream]) == expected


@given(STREAM, st.lists(st.integers(0, 200)), st.integers(1, 30))
def test_none_is_longer_than_the_limit_and_a_cut_one_says_so(
    stream: bytes, places: list[int], longest: int
) -> None:
    *whole, rest = stream.split(b"\n")
    texts = [*whole, *([rest] if rest else [])]
    for line, text in zip(all_lines(cut_at(stream, places), longest), texts, strict=True):
        assert line.cut == (len(text) > longest)
        assert line.text == (text[:longest] if line.cut else text.removesuffix(b"\r"))


@given(st.binary(max_size=50), st.booleans())
def test_late_ones_are_marked(stream: bytes, late: bool) -> None:
    lines = LineSplitter()
    assert all(line.late is late for line in lines.feed(stream, late) + lines.end(late))


def test_a_line_without_an_end_is_not_kept() -> None:
    lines = LineSplitter(longest=10)
    for _ in range(1_000):
        assert lines.feed(b"x" * 1_000) == []
    assert len(lines._held) == 10
    assert lines.feed(b"x\nnext\n") == [OutputLine(b"x" * 10, cut=True), OutputLine(b"next")]


def born(*argv: str, stdin: int = subprocess.DEVNULL) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(argv, stdin=stdin)


@pytest.mark.parametrize("handles", [True, False], ids=["handle", "thread"])
@pytest.mark.parametrize(("command", "code"), [("exit 3", 3), ("kill -9 $$", -9), ("true", 0)])
async def test_exit(handles: bool, command: str, code: int) -> None:
    output = asyncio.Event()
    child = born("sh", "-c", f"read x; {command}", stdin=subprocess.PIPE)
    exits = ProcessExit(child, output.set, handles)
    assert not exits.has_exited
    assert child.stdin is not None
    child.stdin.close()
    await asyncio.wait_for(output.wait(), 120)
    assert exits.has_exited
    assert exits.reap() == code


async def test_the_dead_keep_their_number_until_they_are_buried() -> None:
    output = asyncio.Event()
    child = born("true")
    exits = ProcessExit(child, output.set, handles=True)
    await asyncio.wait_for(output.wait(), 120)
    assert child.returncode is None
    exits.reap()
    assert child.returncode == 0


async def test_one_that_lives_has_no_code_yet() -> None:
    child = born("sleep", "300")
    exits = ProcessExit(child, lambda: None)
    assert exits.reap() is None
    child.kill()
    assert exits.reap() == -9


class HastyClock:
    """A second passes whenever somebody looks; who waits, waits no longer."""

    def __init__(self) -> None:
        self._time = 0.0

    def now(self) -> float:
        self._time += 1
        return self._time

    def call_at(self, when: float, callback: Callable[[], None]) -> Callable[[], None]:
        self._time = when
        callback()
        return lambda: None


def trapping(command: str = "trap '' TERM; echo; while :; do sleep 300; done") -> Process:
    child = subprocess.Popen(["sh", "-c", command], stdout=subprocess.PIPE, start_new_session=True)
    assert child.stdout is not None
    child.stdout.readline()
    child.stdout.close()
    CHILDREN[child.pid] = child
    seen = read_process(child.pid)
    assert seen is not None
    return seen.process


GHOST = SeenProcess(Process(os.getpid(), -1), 1, 1, "D", 0.0, "ghost")
CHILDREN: dict[int, "subprocess.Popen[bytes]"] = {}


def reap(process: Process) -> int:
    os.killpg(process.pid, signal.SIGKILL)
    return CHILDREN.pop(process.pid).wait()


async def alive(*processes: Process) -> dict[Process, SeenProcess]:
    found = (read_process(process.pid) for process in processes)
    return {seen.process: seen for seen in found if seen is not None and seen.alive}


async def test_term_first_then_kill_after_the_grace() -> None:
    meek, stubborn = trapping("echo; exec sleep 300"), trapping()
    kin = await alive(meek, stubborn)
    felled = await kill_tree(kin, lambda stop: alive(meek, stubborn), SystemClock(), grace=0.05)
    assert {(left.pid, left.signal) for left in felled.left} == {
        (meek.pid, "TERM"),
        (stubborn.pid, "KILL"),
    }
    assert felled.remaining == ()
    assert (reap(meek), reap(stubborn)) == (-15, -9)


async def test_one_that_is_born_meanwhile_ends_too() -> None:
    first, second = trapping("echo; exec sleep 300"), trapping()
    felled = await kill_tree(
        await alive(first), lambda stop: alive(first, second), SystemClock(), grace=0.05
    )
    assert [left.pid for left in felled.left] == [first.pid, second.pid]
    assert (reap(first), reap(second)) == (-15, -9)


async def test_one_that_cannot_be_killed_is_told() -> None:
    """It is always found, and no signal reaches it, like one that hangs in the kernel."""

    async def find(stop: bool) -> Relatives:
        return {GHOST.process: GHOST}

    felled = await kill_tree(await find(False), find, HastyClock(), grace=3)
    left = Survivor(os.getpid(), "ghost", "KILL")
    assert felled == KillReport((left,), (left,))


async def test_a_group_that_forks_away_from_every_look_ends_at_one_stroke() -> None:
    process = trapping()
    looks = iter([GHOST])

    async def find(stop: bool) -> Relatives:
        """Whoever is found is gone already, and somebody else runs on in the group."""
        return {seen.process: seen for seen in looks}

    await kill_tree({GHOST.process: GHOST}, find, HastyClock(), grace=0, group=process.pid)
    assert CHILDREN.pop(process.pid).wait(timeout=120) == -9
