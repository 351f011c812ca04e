"""When a limit ends, as agents say it."""

from datetime import UTC, datetime, timedelta, timezone, tzinfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.carriers.cli.outcome import parse_reset_time

NOW = datetime(2026, 3, 10, 9, 0, 30, tzinfo=UTC)
EAST = timezone(timedelta(hours=2))


def zones(name: str) -> tzinfo | None:
    return {"": UTC, "UTC": UTC, "Europe/East": EAST}.get(name)


def at(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


TOLD = {
    "You've hit your session limit · resets 9:49am (UTC)": at("2026-03-10 09:49"),
    "resets 3pm (UTC)": at("2026-03-10 15:00"),
    "resets 3pm (Europe/East)": at("2026-03-10 13:00"),
    "resets 12am": at("2026-03-11 00:00"),
    "resets 12pm": at("2026-03-10 12:00"),
    "You've hit your usage limit. Upgrade, or try again at 9:24 AM.": at("2026-03-10 09:24"),
    "try again at 8:24 AM.": at("2026-03-11 08:24"),
    "try again at 9:00 AM.": at("2026-03-10 09:00"),
    "try again at Mar 14th, 2026 9:24 AM.": at("2026-03-14 09:24"),
    "resets Mar 14, 3pm (UTC)": at("2026-03-14 15:00"),
    "resets Jan 2, 3pm (UTC)": at("2027-01-02 15:00"),
    "resets at 14:30": at("2026-03-10 14:30"),
    "Please retry in 37.5s.": NOW.timestamp() + 37.5,
    "try again in 3 days 2 hours 5 minutes.": NOW.timestamp() + 3 * 86400 + 2 * 3600 + 300,
    "Your quota will reset after 3h20m5s.": NOW.timestamp() + 3 * 3600 + 20 * 60 + 5,
    "retry after 1500ms": NOW.timestamp() + 1.5,
    "usage limit reached|1773140000": 1773140000.0,
}

UNTOLD = [
    "",
    "You've hit your limit.",
    "try again later",
    "resets 3pm (Nowhere/Land)",
    "try again at 99:99",
    "try again at 10",
    "resets Mar 40, 3pm",
    "resets Foo 4, 3pm",
    "try again in 9999999 days",
    "limit reached|1000000000",
    "in a file after 3 lines of nonsense",
]


@pytest.mark.parametrize(("text", "when"), TOLD.items(), ids=TOLD)
def test_what_is_told(text: str, when: float) -> None:
    assert parse_reset_time(text, NOW.timestamp(), zones) == when


@pytest.mark.parametrize("text", UNTOLD)
def test_what_is_not_told(text: str) -> None:
    assert parse_reset_time(text, NOW.timestamp(), zones) is None


WORDS = ("resets", "again", "at", "in", "3", "9:49", "am", "(UTC)", "Mar", "14", "2026", "|hours")


@given(st.lists(st.sampled_from(WORDS), max_size=12), st.text(max_size=30))
def test_it_is_never_in_the_past_nor_far_away(words: list[str], noise: str) -> None:
    now = NOW.timestamp()
    found = parse_reset_time(" ".join(words) + noise, now, zones)
    assert found is None or now - 120 <= found <= now + 366 * 86400
