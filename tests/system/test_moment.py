"""Times as sources write them."""

from typing import Any

import pytest

from interlock.system.time import add_seconds, format_rfc3339


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (1_760_000_000_000, "2025-10-09T08:53:20Z"),
        (1_760_000_000_250, "2025-10-09T08:53:20.250Z"),
        (1_760_000_000_000_001, "2025-10-09T08:53:20.000001Z"),
        ("1760000000000", "2025-10-09T08:53:20Z"),
        ("2025-10-09T08:53:20.285955Z", "2025-10-09T08:53:20.285955Z"),
        ("2025-10-09T10:53:20+02:00", "2025-10-09T08:53:20Z"),
        ("2025-10-09T08:53:20", "2025-10-09T08:53:20Z"),
        ("Thu Oct 09 2025", ""),
        ("", ""),
        (None, ""),
        (True, ""),
        (-5, ""),
        (10**30, ""),
        (float("nan"), ""),
        ("9999-12-31T23:59:59-10:00", ""),
        ({"epoch": 1}, ""),
    ],
)
def test_every_form_becomes_rfc_3339_in_utc_and_nonsense_nothing(value: Any, written: str) -> None:
    assert format_rfc3339(value) == written


@pytest.mark.parametrize(
    ("start", "seconds", "end"),
    [
        ("2025-10-09T08:53:20Z", 1.5, "2025-10-09T08:53:21.500Z"),
        ("", 1.5, ""),
        ("2025-10-09T08:53:20Z", -1, ""),
        ("2025-10-09T08:53:20Z", float("inf"), ""),
        ("9999-12-31T23:59:59Z", 10, ""),
    ],
)
def test_an_end_is_a_start_and_seconds(start: str, seconds: float, end: str) -> None:
    assert add_seconds(start, seconds) == end
