"""Deadlines of open dispatches: one timer for all of them."""

import heapq
from collections.abc import Callable

from interlock.agents.carrier import Clock


class Deadlines:
    """When each open dispatch runs out of time. Dropped ones are forgotten when they surface."""

    def __init__(self, clock: Clock, ring: Callable[[], None]) -> None:
        self._clock = clock
        self._ring = ring
        self._due: dict[int, float] = {}
        self._heap: list[tuple[float, int]] = []
        self._set_for = float("inf")
        self._rung = False
        self._cancel: Callable[[], None] = lambda: None

    def add(self, when: float, dispatch_id: int) -> None:
        self._due[dispatch_id] = when
        heapq.heappush(self._heap, (when, dispatch_id))
        if len(self._heap) > 2 * len(self._due) + 1000:
            self._heap = sorted((when, dispatch_id) for dispatch_id, when in self._due.items())
        if when < self._set_for:
            self._set(when)

    def drop(self, dispatch_id: int) -> None:
        self._due.pop(dispatch_id, None)

    def passed(self, now: float) -> list[int]:
        """The dispatches whose time is over, earliest first; the timer is set for the next."""
        if now < self._set_for:
            if self._rung:
                self._set(self._set_for)
            return []
        over: list[int] = []
        while self._heap and (self._heap[0][0] <= now or self._heap[0][1] not in self._due):
            _, dispatch_id = heapq.heappop(self._heap)
            if dispatch_id in self._due:
                del self._due[dispatch_id]
                over.append(dispatch_id)
        self._set(self._heap[0][0] if self._heap else float("inf"))
        return over

    def close(self) -> None:
        self._cancel()

    def _set(self, when: float) -> None:
        self._cancel()
        self._set_for = when
        self._rung = False
        if when != float("inf"):
            self._cancel = self._clock.call_at(when, self._rings)
        else:
            self._cancel = lambda: None

    def _rings(self) -> None:
        """A wall clock that was set back can make the timer ring too early."""
        self._rung = True
        self._ring()
