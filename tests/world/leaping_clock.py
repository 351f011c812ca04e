"""A real clock that can leap: what is due by then rings at once, before the loop turns again."""

import asyncio
from collections.abc import Callable

from interlock.system.clock import SystemClock


class LeapClock(SystemClock):
    def __init__(self) -> None:
        super().__init__()
        self._ahead_by = 0.0
        self._timers: dict[object, tuple[float, Callable[[], None]]] = {}

    def now(self) -> float:
        return super().now() + self._ahead_by

    def call_at(self, when: float, callback: Callable[[], None]) -> Callable[[], None]:
        key = object()
        self._timers[key] = (when, callback)
        delay = max(0.0, when - self.now())
        handle = asyncio.get_running_loop().call_later(delay, self._ring, key)

        def cancel() -> None:
            handle.cancel()
            self._timers.pop(key, None)

        return cancel

    def leap(self, seconds: float) -> None:
        self._ahead_by += seconds
        for key, (when, _) in list(self._timers.items()):
            if when <= self.now():
                self._ring(key)

    def _ring(self, key: object) -> None:
        found = self._timers.pop(key, None)
        if found is not None:
            found[1]()
