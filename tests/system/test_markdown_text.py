"""Markdown: text from outside stays text."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.system.text import (
    escape_markdown,
    format_code,
    format_code_list,
    format_fence,
    format_link,
)


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
    said = re.sub(r"\\.", "", escape_markdown(text))
    assert not set(said) & set("*_`[]|~<>\n")
    assert "://" not in said


@given(st.text(max_size=80))
def test_a_code_span_cannot_be_left(text: str) -> None:
    said = format_code(text)
    if said.startswith("`"):
        ticks = re.match("`+", said)
        assert ticks
        assert said.endswith(ticks[0])
        inner = said[len(ticks[0]) : -len(ticks[0])]
        assert ticks[0] not in re.findall("`+", inner)
    assert "|" not in said


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
