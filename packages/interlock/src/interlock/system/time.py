"""Read and write moments and durations, as sources write them and as people read them.

A moment is seconds since 1970 inside; outside it is RFC 3339 in UTC (`2026-02-16T12:00:00Z`). An
invalid time is None or "".
"""

import re
import time
from datetime import UTC, datetime, timedelta
from datetime import time as time_of_day
from typing import Any, Final, NamedTuple

from interlock.system.errors import UsageError
from interlock.system.text import format_line

_LONGEST: Final = 64
_MICROSECONDS: Final = 10**13
"""Numbers from here on are microseconds; smaller ones are milliseconds."""
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_DURATION: Final = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)(ms|s|m|h|d)?")
_UNITS: Final = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400}
_SHORT: Final = 10
"""Seconds below which tenths are shown."""


class Day(NamedTuple):
    """A day's name, its beginning and its end."""

    name: str
    begins: float
    ends: float


def find_local_day(at: float) -> Day:
    """Return the day around a moment, from midnight to midnight in the local time zone."""
    today = datetime.fromtimestamp(at).astimezone().date()
    begins, ends = (
        datetime.combine(day, time_of_day()).astimezone().timestamp()
        for day in (today, today + timedelta(days=1))
    )
    return Day(today.isoformat(), begins, ends)


def format_time(at: float) -> str:
    """Return a moment in the user's time zone, to the second."""
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(at))


def format_clock_time(at: float, now: float) -> str:
    """Return a moment's hour and minute, with the date unless it is today."""
    then, today = time.localtime(at), time.localtime(now)
    same_day = then[:3] == today[:3]
    return time.strftime("%H:%M" if same_day else "%Y-%m-%d %H:%M", then)


def format_timestamp(at: float | None) -> str:
    """Return a moment in RFC 3339, to the second, in UTC."""
    try:
        return "" if at is None else _format_moment(datetime.fromtimestamp(int(at), UTC))
    except (ValueError, OverflowError, OSError):
        return ""


def parse_time(text: str) -> datetime | None:
    """Return a time written in RFC 3339, in UTC if it has no offset; None if it is invalid."""
    if len(text) > _LONGEST:
        return None
    try:
        found = datetime.fromisoformat(text.strip())
        return (found if found.tzinfo else found.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def parse_timestamp(text: str) -> float | None:
    """Return the seconds since 1970 of a time in RFC 3339; None if it is invalid."""
    found = parse_time(text)
    return None if found is None else found.timestamp()


def format_utc_time(text: str) -> str:
    """Return a time in RFC 3339 in UTC for people; a text that is not a time is shown as it
    came."""
    found = parse_time(text)
    return f"{found:%Y-%m-%d %H:%M} UTC" if found else format_line(text, 40)


def format_day(text: str) -> str:
    found = parse_time(text)
    return f"{found:%Y-%m-%d}" if found else format_line(text, 40)


def format_elapsed(start: str, end: str) -> str:
    """Return the time between two moments for people; empty if it is unknown."""
    started, ended = parse_time(start), parse_time(end)
    if started is None or ended is None or ended < started:
        return ""
    return format_duration(ended - started)


def format_duration(length: timedelta | float | None) -> str:
    """Return a length of time (a number is seconds) in its two largest units: `2 h 5 m`."""
    if length is None:
        return ""
    exact = length.total_seconds() if isinstance(length, timedelta) else length
    if exact < 0:
        return f"minus {format_duration(-exact)}"
    if exact < _SHORT:
        return f"{round(exact, 1):g} s"
    seconds = round(exact)
    parts = (
        (seconds // 86400, "d"),
        (seconds // 3600 % 24, "h"),
        (seconds // 60 % 60, "m"),
        (seconds % 60, "s"),
    )
    return " ".join([f"{number} {unit}" for number, unit in parts if number][:2])


def format_age(seconds: float) -> str:
    """Return a length of time in its largest unit, as short as a table needs it."""
    seconds = max(0, round(seconds))
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds // size} {unit}"
    return f"{seconds} s"


def parse_duration(text: str | float) -> float:
    """Return the seconds that `90s`, `10m`, `2h`, `7d` or a number of seconds means."""
    found = _DURATION.fullmatch(str(text))
    seconds = float(found[1]) * _UNITS[found[2] or "s"] if found else 0.0
    if seconds <= 0:
        raise UsageError(f"{text!r} is not a duration; write 90s, 10m, 2h or 7d")
    return seconds


def format_rfc3339(value: Any) -> str:
    """Return a source's moment (RFC 3339, epoch milliseconds or microseconds) as RFC 3339 in
    UTC."""
    found = _parse_moment(value)
    return "" if found is None else _format_moment(found)


def add_seconds(start: str, seconds: float) -> str:
    """Return the moment that many seconds after an RFC 3339 one; "" if there is no start."""
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
    return parse_time(text)


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
