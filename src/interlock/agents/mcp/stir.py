"""A bell for all who wait: it rings when something has changed, or when somebody's time is up.

Knows waiting alone, under a clock that is an argument.
"""

import asyncio
from typing import Any

from interlock.agents.carrier import Clock


class WakeEvent:
    """Any number wait; one ring wakes them all, and each looks for itself."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._waiters: list[asyncio.Future[None]] = []

    async def wait(self, until: float) -> None:
        """Return when it rings, or at that time."""
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        cancel = self._clock.call_at(until, lambda: resolve(waiter, None))
        self._waiters.append(waiter)
        try:
            await waiter
        finally:
            cancel()
            self._waiters.remove(waiter)

    def ring(self) -> None:
        for waiter in self._waiters:
            resolve(waiter, None)


def resolve(waiting: "asyncio.Future[Any]", value: object) -> None:
    """Give it its value, unless it has one or nobody waits any more."""
    if not waiting.done():
        waiting.set_result(value)
