"""Provide time as an argument: the protocol of a clock, and the clock of a running event loop."""

import asyncio
import time
from collections.abc import Callable
from typing import Protocol


class Clock(Protocol):
    """A source of time and of timed callbacks."""

    def now(self) -> float:
        """Return the seconds since the epoch."""

    def call_at(self, when: float, callback: Callable[[], None]) -> Callable[[], None]:
        """Call `callback` at that time, unless the returned function is called first."""


class SystemClock:
    """Read wall time, and call back on the running event loop.

    The clock starts with the machine's time and then runs on its own: setting the machine's clock
    during a run neither expires its dispatches nor delays them.
    """

    def __init__(self) -> None:
        self._offset = time.time() - time.monotonic()

    def now(self) -> float:
        return self._offset + time.monotonic()

    def call_at(self, when: float, callback: Callable[[], None]) -> Callable[[], None]:
        delay = max(0.0, when - self.now())
        return asyncio.get_running_loop().call_later(delay, callback).cancel


async def pause(clock: Clock, seconds: float) -> None:
    """Wait that long on the clock; a cancelled wait leaves no timer behind."""
    over = asyncio.Event()
    cancel = clock.call_at(clock.now() + seconds, over.set)
    try:
        await over.wait()
    finally:
        cancel()
