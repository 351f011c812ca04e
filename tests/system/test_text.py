"""Texts from outside: harmless, bounded, and still readable."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.world.findings import LINKS

from interlock.system.text import (
    clean_text,
    clip_block,
    count_columns,
    find_first_line,
    fit_columns,
    format_line,
    plural,
    replace_unencodable,
    safe_link,
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


def test_counting() -> None:
    assert plural(1, "cause") == "1 cause"
    assert plural(12_345, "launch", "launches") == "12,345 launches"


def test_what_utf8_cannot_hold_is_replaced() -> None:
    assert replace_unencodable("a\ud800b") == "a?b"


@pytest.mark.parametrize("trap", [each for each in LINKS if "user:secret@" not in each])
def test_traps_are_no_links(trap: str) -> None:
    assert safe_link(trap) == ""


def test_a_link_loses_its_credentials() -> None:
    assert safe_link("https://user:secret@host.example/x?y=1#z") == "https://host.example/x?y=1#z"
    assert safe_link("https://good.example@evil.example/") == "https://evil.example/"


def test_good_links_stay() -> None:
    good = "http://host.example:8080/a/b?c=d%20e&f=|g"
    assert safe_link(good) == good
    assert safe_link("HTTPS://Host.example/") == "https://Host.example/"
    assert safe_link("https://host.example/" + "x" * 3000) == ""


@given(st.text())
def test_whatever_passes_is_http_without_quotes_or_blanks(text: str) -> None:
    for link in (safe_link(text), safe_link(f"https://{text}")):
        assert not link or link.startswith(("http://", "https://"))
        assert not set(link) & set(" \t\n\"'<>\\`")
