"""The clock that moves only when a test says so, and a way to let a loop work under it."""

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from typing import Any, TypeVar

from interlock.testing.kit import ManualClock

T = TypeVar("T")
START = 1_000_000.0


class FakeClock(ManualClock):
    """A manual clock that starts where our tests expect it."""

    def __init__(self, now: float = START) -> None:
        super().__init__(now)


async def drive(
    work: Coroutine[Any, Any, T], clock: FakeClock, at_rest: Iterable[Callable[[], None]] = ()
) -> T:
    """Let the work run; when it only waits, do the next thing of `at_rest`, or let time pass."""
    task = asyncio.create_task(work)
    things = iter(at_rest)
    try:
        while not task.done():
            await _rest(task, clock)
            thing = None if task.done() else next(things, None)
            if thing is not None:
                thing()
            elif not task.done():
                assert clock.advance(), "it waits, and nothing will ever happen"
        return task.result()
    finally:
        task.cancel()


async def _rest(task: "asyncio.Task[T]", clock: FakeClock) -> None:
    seen = -1
    while clock.reads != seen and not task.done():
        seen = clock.reads
        for _ in range(4):
            await asyncio.sleep(0)
