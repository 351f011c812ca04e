"""Moments and durations, read and written."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.system.errors import UsageError
from interlock.system.time import (
    add_seconds,
    format_age,
    format_day,
    format_duration,
    format_elapsed,
    format_rfc3339,
    format_timestamp,
    format_utc_time,
    parse_duration,
    parse_time,
    parse_timestamp,
)


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


@pytest.mark.parametrize(
    ("text", "utc"),
    [
        ("2024-05-03T10:00:00Z", datetime(2024, 5, 3, 10, tzinfo=UTC)),
        ("2024-05-03T10:00:00", datetime(2024, 5, 3, 10, tzinfo=UTC)),
        ("2024-05-03T12:00:00+02:00", datetime(2024, 5, 3, 10, tzinfo=UTC)),
        ("2024-05-03T10:00:00.000Z", datetime(2024, 5, 3, 10, tzinfo=UTC)),
        ("", None),
        ("soon", None),
        ("0001-01-01T00:00:00+14:00", None),
        ("1" * 70, None),
    ],
)
def test_a_moment(text: str, utc: datetime | None) -> None:
    assert parse_time(text) == utc


def test_times_are_shown_in_utc_and_odd_ones_as_they_came() -> None:
    assert format_utc_time("2031-03-04T01:30:00+02:00") == "2031-03-03 23:30 UTC"
    assert format_utc_time("2031-03-04T01:30:00") == "2031-03-04 01:30 UTC"
    assert format_utc_time("yesterday\x1b[31m") == "yesterday"
    assert format_day("2031-03-04T23:30:00Z") == "2031-03-04"
    assert parse_time("0001-01-01T00:00:00+14:00") is None
    assert parse_time("") is None


@pytest.mark.parametrize(
    ("start", "end", "result"),
    [
        ("2031-03-04T02:00:00Z", "2031-03-04T03:58:31Z", "1 h 58 m"),
        ("2031-03-04T02:00:00Z", "2031-03-04T02:00:00Z", "0 s"),
        ("2031-03-04T02:00:00Z", "2031-03-07T02:00:05Z", "3 d 5 s"),
        ("2031-03-04T02:00:00Z", "2031-03-04T01:00:00Z", ""),
        ("", "2031-03-04T01:00:00Z", ""),
    ],
)
def test_how_long_it_took(start: str, end: str, result: str) -> None:
    assert format_elapsed(start, end) == result


@pytest.mark.parametrize(
    ("length", "words"),
    [
        (None, ""),
        (0, "0 s"),
        (0.94, "0.9 s"),
        (9.96, "10 s"),
        (12.3, "12 s"),
        (59.6, "1 m"),
        (110, "1 m 50 s"),
        (7_300, "2 h 1 m"),
        (86_405, "1 d 5 s"),
        (-90, "minus 1 m 30 s"),
        (timedelta(days=1, hours=2, minutes=3), "1 d 2 h"),
    ],
)
def test_a_duration_in_its_two_largest_units(length: timedelta | float | None, words: str) -> None:
    assert format_duration(length) == words


@given(st.timedeltas(timedelta(0), timedelta(days=400)))
def test_a_duration_is_as_exact_as_its_units(duration: timedelta) -> None:
    units = {"d": 86_400, "h": 3_600, "m": 60, "s": 1}
    words = format_duration(duration).split(" ")
    seconds = sum(float(n) * units[u] for n, u in zip(words[::2], words[1::2], strict=True))
    finest = units[words[-1]]
    assert abs(seconds - duration.total_seconds()) <= max(finest, duration.total_seconds() / 20)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90s", 90), ("1.5m", 90), ("2h", 7200), ("7d", 604800), ("250ms", 0.25), (3, 3)],
)
def test_durations_as_settings_write_them(text: str | float, seconds: float) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "0", "-1s", "1w", "soon", "1 s", "1e3", "\u0663s"])
def test_what_is_no_duration(text: str) -> None:
    with pytest.raises(UsageError, match="is not a duration; write 90s, 10m, 2h or 7d"):
        parse_duration(text)


@pytest.mark.parametrize(
    ("at", "text"),
    [(None, ""), (0.0, "1970-01-01T00:00:00Z"), (1_760_000_000.9, "2025-10-09T08:53:20Z")],
)
def test_a_timestamp_is_whole_seconds_in_utc(at: float | None, text: str) -> None:
    assert format_timestamp(at) == text
    assert parse_timestamp(text) == (None if at is None else int(at))


@pytest.mark.parametrize("at", [1e30, float("nan"), float("inf")])
def test_a_number_that_is_no_moment_gives_no_timestamp(at: float) -> None:
    assert format_timestamp(at) == ""


def test_machines_get_iso_times_or_nothing() -> None:
    assert format_rfc3339("2031-03-04T02:00:00+02:00") == "2031-03-04T00:00:00Z"
    assert format_rfc3339("soon") == ""


@pytest.mark.parametrize(
    ("seconds", "visible"),
    [(-4, "0 s"), (59.4, "59 s"), (61, "1 min"), (3600, "1 h"), (90061, "1 d")],
)
def test_an_age_in_its_largest_unit(seconds: float, visible: str) -> None:
    assert format_age(seconds) == visible
