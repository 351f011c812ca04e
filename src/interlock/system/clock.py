"""The real clock of a running event loop. Tests bring their own.

It starts with the machine's time and goes on by itself: setting the machine's clock while a run
works neither times its dispatches out nor keeps them waiting.
"""

import asyncio
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from datetime import time as time_of_day

from interlock.runtime.purse import Day


class SystemClock:
    """Wall time, and callbacks on the running event loop."""

    def __init__(self) -> None:
        self._ahead = time.time() - time.monotonic()

    def now(self) -> float:
        return self._ahead + time.monotonic()

    def call_at(self, when: float, callback: Callable[[], None]) -> Callable[[], None]:
        delay = max(0.0, when - self.now())
        return asyncio.get_running_loop().call_later(delay, callback).cancel


def local_day(at: float) -> Day:
    """The day around a moment, from midnight to midnight where this machine is."""
    today = datetime.fromtimestamp(at).astimezone().date()
    begins, ends = (
        datetime.combine(each, time_of_day()).astimezone().timestamp()
        for each in (today, today + timedelta(days=1))
    )
    return Day(today.isoformat(), begins, ends)
