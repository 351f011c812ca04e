"""How many requests each caller may send: a bucket per token or address that fills up again."""

import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

_MOST_CALLERS: Final = 10_000
BURST_SECONDS: Final = 10.0
"""A caller who was quiet may send as much at once as in so many seconds."""


class RateLimiter:
    """Counts the requests of each caller."""

    def __init__(self, rate: float, clock: Callable[[], float] = time.monotonic) -> None:
        """`rate` requests per second in the long run; 0 means as many as they like."""
        self._rate = rate
        self._burst = max(1.0, rate * BURST_SECONDS)
        self._clock = clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, caller: str, cost: float = 1.0) -> float:
        """Count a request of that caller; seconds for which they must wait, 0 if it may go on."""
        if not self._rate:
            return 0.0
        now = self._clock()
        left, at = self._buckets.pop(caller, (self._burst, now))
        left = min(self._burst, left + (now - at) * self._rate)
        missing = min(cost, self._burst) - left
        self._buckets[caller] = (left if missing > 0 else left - cost, now)
        if len(self._buckets) > _MOST_CALLERS:
            self._buckets.popitem(last=False)
        return missing / self._rate if missing > 0 else 0.0
