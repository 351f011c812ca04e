"""Time: the clock of a running event loop, and moments as sources write them.

The clock starts with the machine's time and goes on by itself: setting the machine's clock while a
run works neither times its dispatches out nor keeps them waiting. Moments (epoch milliseconds or
microseconds, ISO 8601) become RFC 3339 in UTC; what is no time is "".
"""

import asyncio
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from datetime import time as time_of_day
from typing import Any, Final, NamedTuple


class Day(NamedTuple):
    """A day by its name, and from when to when it goes."""

    name: str
    begins: float
    ends: float


class SystemClock:
    """Wall time, and callbacks on the running event loop."""

    def __init__(self) -> None:
        self._ahead = time.time() - time.monotonic()

    def now(self) -> float:
        return self._ahead + time.monotonic()

    def call_at(self, when: float, callback: Callable[[], None]) -> Callable[[], None]:
        delay = max(0.0, when - self.now())
        return asyncio.get_running_loop().call_later(delay, callback).cancel


def format_time(at: float) -> str:
    """A moment in the user's own time, to the second."""
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(at))


def find_local_day(at: float) -> Day:
    """The day around a moment, from midnight to midnight where this machine is."""
    today = datetime.fromtimestamp(at).astimezone().date()
    begins, ends = (
        datetime.combine(each, time_of_day()).astimezone().timestamp()
        for each in (today, today + timedelta(days=1))
    )
    return Day(today.isoformat(), begins, ends)


def format_clock_time(at: float, now: float) -> str:
    """A moment as people say it: the hour if it is today, else the day too."""
    then, today = time.localtime(at), time.localtime(now)
    same_day = then[:3] == today[:3]
    return time.strftime("%H:%M" if same_day else "%Y-%m-%d %H:%M", then)


_MICROSECONDS: Final = 10**13
"""From here on a number counts microseconds; below it, milliseconds."""
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def format_rfc3339(value: Any) -> str:
    """The same moment as RFC 3339 in UTC, or "" if this is none."""
    found = _parse_moment(value)
    return "" if found is None else _format_moment(found)


def add_seconds(start: str, seconds: float) -> str:
    """The moment that many seconds after an RFC 3339 one; "" if there is no start."""
    found = _parse_moment(start)
    if found is None or not 0 <= seconds < 10**9:
        return ""
    try:
        return _format_moment(found + timedelta(seconds=seconds))
    except OverflowError:
        return ""


def _parse_moment(value: Any) -> datetime | None:
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, int | float):
        return _parse_number(value)
    text = str(value).strip()
    if text.isascii() and text.isdigit() and len(text) >= 11:
        return _parse_number(int(text))
    try:
        found = datetime.fromisoformat(text)
        found = found if found.tzinfo else found.replace(tzinfo=UTC)
        return found.astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def _parse_number(value: float) -> datetime | None:
    micros = value if value >= _MICROSECONDS else value * 1000
    try:
        return _EPOCH + timedelta(microseconds=int(micros)) if micros > 0 else None
    except (OverflowError, ValueError):
        return None


def _format_moment(moment: datetime) -> str:
    spec = "microseconds" if moment.microsecond % 1000 else "milliseconds"
    text = moment.isoformat(timespec=spec if moment.microsecond else "seconds")
    return text.replace("+00:00", "Z")
