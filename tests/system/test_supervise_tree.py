"""Trees of processes are ended; what cannot be is told."""

import os
import signal
import subprocess
from collections.abc import Callable

from interlock.system.clock import SystemClock
from interlock.system.process_table import Process, SeenProcess, read_process
from interlock.system.process_tree import KillReport, Relatives, Survivor, kill_tree


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


def bury(process: Process) -> int:
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
    assert (bury(meek), bury(stubborn)) == (-15, -9)


async def test_one_that_is_born_meanwhile_ends_too() -> None:
    first, second = trapping("echo; exec sleep 300"), trapping()
    felled = await kill_tree(
        await alive(first), lambda stop: alive(first, second), SystemClock(), grace=0.05
    )
    assert [left.pid for left in felled.left] == [first.pid, second.pid]
    assert (bury(first), bury(second)) == (-15, -9)


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
    assert CHILDREN.pop(process.pid).wait(timeout=5) == -9
