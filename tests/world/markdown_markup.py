"""Markdown as a reader takes it: which markup a text has, after everything was parsed."""

import re
from collections.abc import Iterator

from markdown_it import MarkdownIt
from markdown_it.token import Token

_OURS = re.compile(r"<details><summary>[^<]*</summary>|</details>|</?code>|<br>|\s")
_LINK = re.compile(r"https?://[^\s\"'<>]+")


def assert_inert(text: str) -> None:
    """No HTML but ours, no picture, only web links, whole tables, nothing left open."""
    tokens = list(_all(_parser().parse(text)))
    kinds = [token.type for token in tokens]
    assert "image" not in kinds
    for token in tokens:
        if token.type in ("html_block", "html_inline"):
            assert _OURS.sub("", token.content) == "", token.content
        if token.type == "link_open":
            assert _LINK.fullmatch(str(token.attrs["href"])), token.attrs
    html = [token.content for token in tokens if token.type == "html_block"]
    assert sum("<details>" in part for part in html) == sum("</details>" in part for part in html)
    _assert_whole_tables(text)


def _assert_whole_tables(text: str) -> None:
    """Every row that begins like one has the bars of its head; readers would cut or fill it."""
    width = 0
    for row in re.sub(r"^(`{3,})text\n.*?^\1$", "", text, flags=re.MULTILINE | re.DOTALL).split(
        "\n"
    ):
        bars = len(re.findall(r"(?<!\\)(?:\\\\)*\|", row)) if row.startswith("|") else 0
        assert not (bars and width) or bars == width, row
        width = bars


def _parser() -> MarkdownIt:
    return MarkdownIt("commonmark", {"html": True}).enable("table")


def _all(tokens: list[Token]) -> Iterator[Token]:
    for token in tokens:
        yield token
        yield from _all(token.children or [])
