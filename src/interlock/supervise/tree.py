"""The end of an agent with everything it started: SIGTERM, a grace, SIGKILL, and a last look.

Knows processes and time; who belongs to the tree is found anew for every round, so that what forks
meanwhile is caught. What is killed is stopped first, all of it, so that it cannot outrun the round.
"""

import asyncio
import signal
from collections.abc import Callable, Mapping
from typing import Literal, Protocol

import msgspec

from interlock.supervise.census import Process, Seen, look
from interlock.supervise.signals import send

Find = Callable[[], Mapping[Process, Seen]]
_FIRST_PAUSE = 0.002
_LONGEST_PAUSE = 0.1
_PATIENCE = 5.0
_FREEZES = 50


class Clock(Protocol):
    """Time, as an argument."""

    def now(self) -> float: ...

    def call_at(self, when: float, callback: Callable[[], None]) -> Callable[[], None]: ...


class Left(msgspec.Struct, frozen=True, order=True):
    """A process that was there to be ended, and the signal that it took."""

    pid: int
    name: str
    signal: Literal["TERM", "KILL"]


class Felled(msgspec.Struct, frozen=True):
    """What was ended, and what still lives although it was killed: a process that hangs in the
    kernel is told, not hidden."""

    left: tuple[Left, ...] = ()
    remaining: tuple[Left, ...] = ()


async def pause(clock: Clock, seconds: float) -> None:
    over = asyncio.Event()
    cancel = clock.call_at(clock.now() + seconds, over.set)
    try:
        await over.wait()
    finally:
        cancel()


async def fell(find: Find, clock: Clock, grace: float) -> Felled:
    told: dict[Process, Left] = {}
    if not await _ask_to_end(find, clock, grace, told):
        await _kill(find, clock, told)
    remaining = tuple(sorted(told[process] for process in find() if process in told))
    return Felled(tuple(sorted(told.values())), remaining)


async def _ask_to_end(find: Find, clock: Clock, grace: float, told: dict[Process, Left]) -> bool:
    """SIGTERM to each once; True when all are gone before the grace is over."""
    give_up = clock.now() + grace
    while found := find():
        for process, seen in found.items():
            if process not in told:
                told[process] = Left(process.pid, seen.name, "TERM")
                send(process, signal.SIGTERM)
                send(process, signal.SIGCONT)  # one that is stopped would never hear of it
        if not await _vanish(list(found), clock, give_up):
            return not find()
    return True


async def _kill(find: Find, clock: Clock, told: dict[Process, Left]) -> None:
    give_up = clock.now() + _PATIENCE
    while found := _freeze(find):
        for process, seen in found.items():
            told[process] = Left(process.pid, seen.name, "KILL")
            send(process, signal.SIGKILL)
        await _vanish(list(found), clock, give_up)
        if clock.now() >= give_up:
            return


def _freeze(find: Find) -> Mapping[Process, Seen]:
    """Stop all until no new one is born: what is stopped does not fork."""
    found = find()
    frozen: set[Process] = set()
    for _ in range(_FREEZES):
        new = found.keys() - frozen
        if not new:
            break
        for process in sorted(new):
            send(process, signal.SIGSTOP)
        frozen |= new
        found = find()
    return found


async def _vanish(processes: list[Process], clock: Clock, give_up: float) -> bool:
    """Wait until these are gone, looking at them alone: cheaper than looking at everyone."""
    wait = _FIRST_PAUSE
    while any(_lives(process) for process in processes):
        rest = give_up - clock.now()
        if rest <= 0:
            return False
        await pause(clock, min(wait, rest))
        wait = min(wait * 2, _LONGEST_PAUSE)
    return True


def _lives(process: Process) -> bool:
    seen = look(process.pid)
    return seen is not None and seen.process == process and seen.alive
