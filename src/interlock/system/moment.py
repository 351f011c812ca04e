"""When something was, as sources write it: epoch milliseconds or microseconds, or ISO 8601.

Everything becomes RFC 3339 in UTC. A time without a zone is taken as UTC; what is no time is "".
"""

from datetime import UTC, datetime, timedelta
from typing import Any, Final

_MICROSECONDS: Final = 10**13
"""From here on a number counts microseconds; below it, milliseconds."""
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def rfc3339(value: Any) -> str:
    """The same moment as RFC 3339 in UTC, or "" if this is none."""
    found = _moment(value)
    return "" if found is None else _written(found)


def after(start: str, seconds: float) -> str:
    """The moment that many seconds after an RFC 3339 one; "" if there is no start."""
    found = _moment(start)
    if found is None or not 0 <= seconds < 10**9:
        return ""
    try:
        return _written(found + timedelta(seconds=seconds))
    except OverflowError:
        return ""


def _moment(value: Any) -> datetime | None:
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, int | float):
        return _of_number(value)
    text = str(value).strip()
    if text.isascii() and text.isdigit() and len(text) >= 11:
        return _of_number(int(text))
    try:
        found = datetime.fromisoformat(text)
        found = found if found.tzinfo else found.replace(tzinfo=UTC)
        return found.astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def _of_number(value: float) -> datetime | None:
    micros = value if value >= _MICROSECONDS else value * 1000
    try:
        return _EPOCH + timedelta(microseconds=int(micros)) if micros > 0 else None
    except (OverflowError, ValueError):
        return None


def _written(moment: datetime) -> str:
    spec = "microseconds" if moment.microsecond % 1000 else "milliseconds"
    text = moment.isoformat(timespec=spec if moment.microsecond else "seconds")
    return text.replace("+00:00", "Z")
