"""The end of an agent with everything it started: SIGTERM, a grace, SIGKILL, and a last look.

Knows processes and time; who belongs to the tree is found anew for every round, so that what forks
meanwhile is caught. What is killed is stopped first, all of it, so that it cannot outrun the round.
"""

import asyncio
import signal
from collections.abc import Awaitable, Callable, Mapping
from typing import Literal, Protocol

import msgspec

from interlock.agents.cli.health import plain
from interlock.system.census import Process, SeenProcess, look
from interlock.system.signals import send, send_group

Kin = Mapping[Process, SeenProcess]
Find = Callable[[bool], Awaitable[Kin]]
"""Looks for all who are alive; with True it also stops each in the moment it is seen."""
_FIRST_PAUSE = 0.002
_LONGEST_PAUSE = 0.1
_PATIENCE = 5.0
_FREEZES = 50


class Clock(Protocol):
    """Time, as an argument."""

    def now(self) -> float: ...

    def call_at(self, when: float, callback: Callable[[], None]) -> Callable[[], None]: ...


class Survivor(msgspec.Struct, frozen=True, order=True):
    """A process that was there to be ended, and the signal that it took."""

    pid: int
    name: str
    signal: Literal["TERM", "KILL"]


class KillReport(msgspec.Struct, frozen=True):
    """What was ended, and what still lives although it was killed: a process that hangs in the
    kernel is told, not hidden."""

    left: tuple[Survivor, ...] = ()
    remaining: tuple[Survivor, ...] = ()


async def fell(
    kin: Kin, find: Find, clock: Clock, grace: float, group: int | None = None
) -> KillReport:
    """End all of `kin` and whatever else `find` finds, until it finds nobody, twice.

    The process group, whose number must still be taken, is killed at one stroke: those of it who
    fork faster than anybody can look do not get away.
    """
    told: dict[Process, Survivor] = {}
    rest = await _ask_to_end(kin, find, clock, clock.now() + grace, told)
    if rest:
        if group is not None:
            send_group(group, signal.SIGKILL)
        rest = await _kill(rest, find, clock, told)
    remaining = tuple(sorted(_left(seen, "KILL") for seen in rest.values()))
    return KillReport(tuple(sorted(told.values())), remaining)


async def _ask_to_end(
    kin: Kin, find: Find, clock: Clock, give_up: float, told: dict[Process, Survivor]
) -> Kin:
    """SIGTERM to each once; who is still there when the grace is over."""
    while kin:
        for process, seen in kin.items():
            if process not in told:
                told[process] = _left(seen, "TERM")
                send(process, signal.SIGTERM)
                send(process, signal.SIGCONT)  # one that is stopped would never hear of it
        await _vanish(kin, clock, give_up)
        kin = await find(False) or await find(False)
        if clock.now() >= give_up:
            break
    return kin


async def _kill(kin: Kin, find: Find, clock: Clock, told: dict[Process, Survivor]) -> Kin:
    give_up = clock.now() + _PATIENCE
    while kin:
        for process, seen in (await _freeze(kin, find)).items():
            told[process] = _left(seen, "KILL")
            send(process, signal.SIGKILL)
        await _vanish(kin, clock, give_up)
        kin = await find(True) or await find(True)
        if clock.now() >= give_up:
            break
    return kin


async def _freeze(kin: Kin, find: Find) -> Kin:
    """Stop all until no new one is born: what is stopped does not fork."""
    frozen: set[Process] = set()
    for _ in range(_FREEZES):
        new = kin.keys() - frozen
        if not new:
            break
        for process in sorted(new):
            send(process, signal.SIGSTOP)
        frozen |= new
        kin = {**kin, **await find(True)}
    return kin


async def _vanish(kin: Kin, clock: Clock, give_up: float) -> None:
    """Wait until these are gone, looking at them alone: cheaper than looking at everyone."""
    wait = _FIRST_PAUSE
    while any(_lives(process) for process in kin):
        rest = give_up - clock.now()
        if rest <= 0:
            return
        await _pause(clock, min(wait, rest))
        wait = min(wait * 2, _LONGEST_PAUSE)


async def _pause(clock: Clock, seconds: float) -> None:
    over = asyncio.Event()
    cancel = clock.call_at(clock.now() + seconds, over.set)
    try:
        await over.wait()
    finally:
        cancel()


def _left(seen: SeenProcess, number: Literal["TERM", "KILL"]) -> Survivor:
    return Survivor(seen.process.pid, plain(seen.name), number)


def _lives(process: Process) -> bool:
    seen = look(process.pid)
    return seen is not None and seen.process == process and seen.alive
