"""A clock that moves only when a test says so, and a way to let a loop work under it."""

import asyncio
import heapq
from collections.abc import Callable, Coroutine, Iterable
from itertools import count
from typing import Any, TypeVar

T = TypeVar("T")
START = 1_000_000.0


class FakeClock:
    """A Clock. `reads` counts how often it was asked, which tells a busy loop from one at rest."""

    def __init__(self, now: float = START) -> None:
        self.time = now
        self.reads = 0
        self._timers: list[tuple[float, int, Callable[[], None]]] = []
        self._cancelled: set[int] = set()
        self._numbers = count()

    def now(self) -> float:
        self.reads += 1
        return self.time

    def call_at(self, when: float, callback: Callable[[], None]) -> Callable[[], None]:
        number = next(self._numbers)
        heapq.heappush(self._timers, (when, number, callback))
        return lambda: self._cancelled.add(number)

    def forget_timers(self) -> None:
        """What a new process does not know of."""
        self._timers = []

    def advance(self) -> bool:
        """Move to the next timer and let it ring; False if there is none."""
        while self._timers:
            when, number, callback = heapq.heappop(self._timers)
            if number not in self._cancelled:
                self.time = max(self.time, when)
                callback()
                return True
        return False


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
