"""When a rate limit ends, from the sentence in which an agent says so.

Knows the ways it is said: a moment since the epoch, a span ("in 3 hours 5 minutes"), a date with a
time, or a time of day alone, which is the next one to come. Refuses to know the present time and
the local zone: both are arguments.
"""

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final

Zones = Callable[[str], tzinfo | None]
"""A time zone by its name; the empty name is the machine's own."""
_JUST_NOW: Final = 120.0
"""A time of day that has just passed is the one that was meant: texts tell no seconds."""
_LONGEST: Final = 366 * 86_400.0
_EPOCH: Final = re.compile(r"\|(\d{10})\b")
_SPAN: Final = re.compile(
    r"\b(?:in|after)\s+(?=\d)((?:\d+(?:\.\d+)?\s*[a-z]+[\s,]*(?:and\s+)?){1,5})", re.IGNORECASE
)
_PART: Final = re.compile(r"(\d+(?:\.\d+)?)\s*([a-z]+)", re.IGNORECASE)
_UNITS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0, "w": 604_800.0}
_MONTHS: Final = "jan feb mar apr may jun jul aug sep oct nov dec".split()  # noqa: SIM905
_TIME: Final = re.compile(
    r"\b(?:resets?|again)\s+(?:(?:at|on)\s+)?"
    r"(?:(?P<month>[a-z]{3})[a-z]*\s+(?P<day>\d{1,2})(?:st|nd|rd|th)?,?\s+(?:at\s+)?"
    r"(?:(?P<year>20\d\d),?\s+(?:at\s+)?)?)?"
    r"(?P<hour>\d{1,2})(?::(?P<minute>\d\d))?\s*(?P<half>[ap]\.?m\b\.?)?"
    r"(?:\s*\((?P<zone>[A-Za-z_]+(?:/[A-Za-z_+-]+)*)\))?",
    re.IGNORECASE,
)


def reset_time(text: str, now: float, zones: Zones) -> float | None:
    """Seconds since the epoch; None if the text does not say, or says what cannot be."""
    text = text[:10_000]
    found = _epoch(text) or _after(text, now) or _at(text, now, zones)
    return found if found is not None and now - _JUST_NOW <= found <= now + _LONGEST else None


def _epoch(text: str) -> float | None:
    found = _EPOCH.search(text)
    return float(found[1]) if found else None


def _after(text: str, now: float) -> float | None:
    found = _SPAN.search(text)
    parts = _PART.findall(found[1]) if found else []
    seconds = sum(float(number) * _unit(name) for number, name in parts)
    return now + seconds if seconds else None


def _unit(name: str) -> float:
    name = name.lower()
    return _UNITS["ms"] if name.startswith(("ms", "milli")) else _UNITS.get(name[0], 0.0)


def _at(text: str, now: float, zones: Zones) -> float | None:
    for found in _TIME.finditer(text):
        zone = zones(found["zone"] or "")
        if zone is not None and (found["half"] or found["minute"]):
            return _moment(found, datetime.fromtimestamp(now, UTC).astimezone(zone))
    return None


def _moment(found: "re.Match[str]", now: datetime) -> float | None:
    hour = int(found["hour"])
    if found["half"]:
        hour = hour % 12 + (12 if found["half"][0] in "pP" else 0)
    try:
        moment = now.replace(hour=hour, minute=int(found["minute"] or 0), second=0, microsecond=0)
        if found["month"]:
            month = _MONTHS.index(found["month"].lower()) + 1
            year = int(found["year"] or now.year)
            moment = moment.replace(year=year, month=month, day=int(found["day"]))
            soon = found["year"] or moment >= now - timedelta(days=1)
            return (moment if soon else moment.replace(year=year + 1)).timestamp()
    except ValueError:
        return None
    if (now - moment).total_seconds() > _JUST_NOW:
        moment += timedelta(days=1)
    return moment.timestamp()
