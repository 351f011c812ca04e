"""Texts from outside: harmless, bounded, and still readable."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.system.text import (
    clean_text,
    clip_block,
    count_columns,
    find_first_line,
    fit_columns,
    format_day,
    format_elapsed,
    format_line,
    format_time,
    parse_time,
    plural,
    replace_unencodable,
)

_ANY = st.text(st.characters(exclude_categories=()))


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("\x1b[1;31mred\x1b[0m", "red"),
        ("\x1b]8;;https://x.example\x07a\x1b]8;;\x07", "a"),
        ("a\x00b\x07", "a\\x00b\\x07"),
        ("\u202eabc", "\\u202eabc"),
        ("zero\u200bwidth", "zero\\u200bwidth"),
        ("\ud800", "\\ud800"),
        ("a\r\nb\rc", "a\nb\nc"),
        ("tab\tstays", "tab\tstays"),
        ("👩‍💻 漢字 é", "👩‍💻 漢字 é"),
    ],
)
def test_what_misleads_is_made_visible(raw: str, shown: str) -> None:
    assert clean_text(raw) == shown


@given(_ANY)
def test_clean_text_has_nothing_a_terminal_obeys_and_can_be_written(text: str) -> None:
    shown = clean_text(text)
    assert not any(ord(sign) < 32 and sign not in "\n\t" for sign in shown)
    assert "\x7f" not in shown
    assert clean_text(shown) == shown
    shown.encode()


@given(_ANY, st.integers(2, 60))
def test_a_line_is_one_line_within_its_limit(text: str, limit: int) -> None:
    shown = format_line(text, limit)
    assert len(shown) <= limit
    assert shown == " ".join(shown.split())


@given(_ANY, st.integers(0, 60))
def test_fitted_text_fits(text: str, width: int) -> None:
    assert count_columns(fit_columns(clean_text(text), width)) <= width


def test_wide_signs_take_two_columns_and_marks_none() -> None:
    assert [count_columns(text) for text in ("abc", "漢字", "e\u0301", "")] == [3, 4, 1, 0]
    assert fit_columns("漢字漢字", 5) == "漢字…"
    assert fit_columns("abcdef", 4) == "abc…"


def test_a_cut_block_says_how_much_is_missing() -> None:
    assert clip_block("abcdef", 4) == ("abcd", 2)
    assert clip_block("abc", 4) == ("abc", 0)


def test_the_first_line_that_says_something() -> None:
    assert find_first_line("\n  \n second\nthird") == "second"
    assert find_first_line(" \n ") == ""


def test_times_are_shown_in_utc_and_odd_ones_as_they_came() -> None:
    assert format_time("2031-03-04T01:30:00+02:00") == "2031-03-03 23:30 UTC"
    assert format_time("2031-03-04T01:30:00") == "2031-03-04 01:30 UTC"
    assert format_time("yesterday\x1b[31m") == "yesterday"
    assert format_day("2031-03-04T23:30:00Z") == "2031-03-04"
    assert parse_time("0001-01-01T00:00:00+14:00") is None
    assert parse_time("") is None


@pytest.mark.parametrize(
    ("start", "end", "said"),
    [
        ("2031-03-04T02:00:00Z", "2031-03-04T03:58:31Z", "1 h 58 m"),
        ("2031-03-04T02:00:00Z", "2031-03-04T02:00:00Z", "0 s"),
        ("2031-03-04T02:00:00Z", "2031-03-07T02:00:05Z", "3 d 5 s"),
        ("2031-03-04T02:00:00Z", "2031-03-04T01:00:00Z", ""),
        ("", "2031-03-04T01:00:00Z", ""),
    ],
)
def test_how_long_it_took(start: str, end: str, said: str) -> None:
    assert format_elapsed(start, end) == said


def test_counting() -> None:
    assert plural(1, "cause") == "1 cause"
    assert plural(12_345, "launch", "launches") == "12,345 launches"


def test_what_utf8_cannot_hold_is_replaced() -> None:
    assert replace_unencodable("a\ud800b") == "a?b"
