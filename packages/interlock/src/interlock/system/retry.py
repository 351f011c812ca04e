"""Decide whether a request is worth another try, and after how long.

Nothing here waits: the caller does, on its own clock, so that a test or a run decides how time
passes.
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
        """Seconds the server asks to wait; None if it does not say."""


class RetrySchedule(msgspec.Struct, frozen=True):
    """The delays between tries of a request."""

    delays: tuple[float, ...]
    longest: float = 120.0
    """A server that asks for a longer wait is given up."""

    def find_wait(self, failures: int, wanted: float | None = None) -> float | None:
        """Return the seconds until the next try after that many failures; None if there is none.

        `wanted` is the server's own wish, and replaces the delay.
        """
        if failures > len(self.delays):
            return None
        wait = self.delays[failures - 1] if wanted is None else wanted
        return wait if wait <= self.longest else None


def is_transient(status: int) -> bool:
    """Return True if a refusal with this HTTP status may pass by itself."""
    return status in _LATER or status >= _FIRST_SERVER_ERROR


def read_retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds the server asks to wait: a number, or a date compared with its clock."""
    value = headers.get("retry-after", "").strip()
    if value.isascii() and value.isdigit() and len(value) < 10:
        return float(value)
    try:
        until = parsedate_to_datetime(value)
        return max(0.0, (until - parsedate_to_datetime(headers["date"])).total_seconds())
    except (ValueError, TypeError, KeyError, OverflowError):
        return None
