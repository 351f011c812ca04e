"""The real clock of a running event loop. Tests bring their own."""

import asyncio
import time
from collections.abc import Callable


class RealClock:
    """Wall time, and callbacks on the running event loop."""

    def now(self) -> float:
        return time.time()

    def call_at(self, when: float, callback: Callable[[], None]) -> Callable[[], None]:
        delay = max(0.0, when - time.time())
        return asyncio.get_running_loop().call_later(delay, callback).cancel
