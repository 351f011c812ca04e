"""Text from outside: harmless, bounded, and text inside Markdown."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.system.text import (
    ClippedText,
    clean_text,
    clip_block,
    clip_text,
    count_columns,
    escape_markdown,
    find_first_line,
    fit_columns,
    format_code,
    format_code_list,
    format_fence,
    format_line,
    format_link,
    plural,
    replace_unencodable,
    safe_link,
)
from tests.world.hostile import LINKS

_ANY = st.text(st.characters(exclude_categories=()))


@pytest.mark.parametrize(
    ("raw", "visible"),
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
def test_what_misleads_is_made_visible(raw: str, visible: str) -> None:
    assert clean_text(raw) == visible


@given(_ANY)
def test_clean_text_has_nothing_a_terminal_obeys_and_can_be_written(text: str) -> None:
    visible = clean_text(text)
    assert not any(ord(sign) < 32 and sign not in "\n\t" for sign in visible)
    assert "\x7f" not in visible
    assert clean_text(visible) == visible
    visible.encode()


@given(_ANY, st.integers(2, 60))
def test_a_line_is_one_line_within_its_limit(text: str, limit: int) -> None:
    visible = format_line(text, limit)
    assert len(visible) <= limit
    assert visible == " ".join(visible.split())


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


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("plain words, 12.5 %", "plain words, 12.5 %"),
        ("*a* _b_ `c` [d](e) ~f~ |g|", r"\*a\* \_b\_ \`c\` \[d\](e) \~f\~ \|g\|"),
        ("<b>&amp;", "&lt;b&gt;&amp;amp;"),
        ("# head", r"\# head"),
        ("- item", r"\- item"),
        ("1. item", r"1\. item"),
        ("> quote", "&gt; quote"),
        ("two\n\nparagraphs", "two paragraphs"),
        ("see http://x.example", r"see http:\//x.example"),
        ("www.x.example", r"www\.x.example"),
        ("@team and #12 and GH-3", "@\u200bteam and #\u200b12 and GH-\u200b3"),
        ("a\\|b", r"a\\\|b"),
    ],
)
def test_prose(text: str, written: str) -> None:
    assert escape_markdown(text) == written


@given(st.text())
def test_prose_has_no_open_markup_and_one_line(text: str) -> None:
    result = re.sub(r"\\.", "", escape_markdown(text))
    assert not set(result) & set("*_`[]|~<>\n")
    assert "://" not in result


@given(st.text(max_size=80))
def test_a_code_span_cannot_be_left(text: str) -> None:
    result = format_code(text)
    if result.startswith("`"):
        ticks = re.match("`+", result)
        assert ticks
        assert result.endswith(ticks[0])
        inner = result[len(ticks[0]) : -len(ticks[0])]
        assert ticks[0] not in re.findall("`+", inner)
    assert "|" not in result


def test_code_with_bars_and_ticks() -> None:
    assert format_code("a`b") == "``a`b``"
    assert format_code("`a`") == "`` `a` ``"
    assert format_code("a|b<c>") == "<code>a&#124;b&lt;c&gt;</code>"
    assert format_code("") == ""
    assert format_code_list(["a", "b", "c"], 2) == "`a`, `b` and 1 more"


@given(st.text())
def test_a_fence_cannot_be_closed_from_inside(text: str) -> None:
    first, *inner, last = format_fence(text).split("\n")
    assert first == f"{last}text"
    assert all(last not in row for row in inner)


def test_links_are_safe_also_in_tables() -> None:
    assert format_link("a", "https://x.example/b|c") == "[a](<https://x.example/b%7Cc>)"
    assert format_link("a", "javascript:alert(1)") == "a"
    assert format_link("", "https://x.example") == ""


MARK = 60
"""Room for the line that says what was cut."""


@given(st.lists(st.text(max_size=30)), st.integers(min_value=1, max_value=60))
def test_whatever_comes_head_and_tail_stay_and_no_more_than_the_bound(
    pieces: list[str], bound: int
) -> None:
    whole, kept = "".join(pieces), ClippedText(bound)
    for piece in pieces:
        kept.add(piece)
    text = kept.text()
    assert kept.truncated == (len(whole) > bound)
    assert len(text) <= bound + MARK
    if kept.truncated:
        assert text.startswith(whole[: bound // 2])
        assert text.endswith(whole[-(bound - bound // 2) :])
        assert f"[{len(whole) - bound:,} characters cut]" in text
    else:
        assert text == whole


@given(st.text(max_size=200), st.integers(min_value=1, max_value=100))
def test_pieces_and_the_whole_give_the_same(text: str, bound: int) -> None:
    kept = ClippedText(bound)
    for sign in text:
        kept.add(sign)
    assert (kept.text(), kept.truncated) == clip_text(text, bound)
