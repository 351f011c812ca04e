"""Time, as an argument: what a clock does, and the clock of a running event loop."""

import asyncio
import time
from collections.abc import Callable
from typing import Protocol


class Clock(Protocol):
    """Time, as an argument."""

    def now(self) -> float:
        """Seconds since the epoch."""

    def call_at(self, when: float, callback: Callable[[], None]) -> Callable[[], None]:
        """Call back at that time, unless the returned function is called first."""


class SystemClock:
    """Wall time, and callbacks on the running event loop. It starts with the machine's time and
    goes on by itself: setting the machine's clock while a run works neither times its dispatches
    out nor keeps them waiting."""

    def __init__(self) -> None:
        self._offset = time.time() - time.monotonic()

    def now(self) -> float:
        return self._offset + time.monotonic()

    def call_at(self, when: float, callback: Callable[[], None]) -> Callable[[], None]:
        delay = max(0.0, when - self.now())
        return asyncio.get_running_loop().call_later(delay, callback).cancel
