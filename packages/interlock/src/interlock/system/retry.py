"""When a request is worth trying again, and after how long.

Nothing here waits: the caller does, on its own clock, so that a test or a run decides how time
passes. (stamina always sleeps by itself; see docs/decisions.md.)
"""

from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Final

import msgspec

_LATER: Final = (408, 429)
_FIRST_SERVER_ERROR: Final = 500


class TransientError(Exception):
    """A request failed and may succeed later. The reason continues a sentence about the server."""

    def __init__(self, reason: str, status: int = 0, wait_s: float | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.status = status
        self.wait_s = wait_s
        """How long the server asks to wait; None if it does not say."""


class RetrySchedule(msgspec.Struct, frozen=True):
    """How often a request is tried again, after which delays."""

    delays: tuple[float, ...]
    longest: float = 120.0
    """A server that asks to wait longer than this is given up."""

    def find_wait(self, failures: int, wanted: float | None = None) -> float | None:
        """Seconds until the next try after so many failures; None if there is none.

        `wanted` is what the server asked for, and counts instead of the delay.
        """
        if failures > len(self.delays):
            return None
        wait = self.delays[failures - 1] if wanted is None else wanted
        return wait if wait <= self.longest else None


def is_transient(status: int) -> bool:
    """Whether a refusal with this HTTP status may pass by itself."""
    return status in _LATER or status >= _FIRST_SERVER_ERROR


def read_retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds to wait, as the server says: a number, or a date compared with its own clock."""
    value = headers.get("retry-after", "").strip()
    if value.isascii() and value.isdigit() and len(value) < 10:
        return float(value)
    try:
        until = parsedate_to_datetime(value)
        return max(0.0, (until - parsedate_to_datetime(headers["date"])).total_seconds())
    except (ValueError, TypeError, KeyError, OverflowError):
        return None
