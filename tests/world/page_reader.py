"""A page as a browser would meet it: tags that nest, ids, links, handlers, and the text shown."""

import re
from html.parser import HTMLParser

VOID = {"meta", "link", "br", "hr", "img", "input", "source", "wbr"}


class Page(HTMLParser):
    """Reads a whole page; a tag that closes another one than the last opened is an error."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str]]] = []
        self.ids: list[str] = []
        self.parts: list[str] = []
        self.inside: dict[str, str] = {}
        self.feed(html)
        self.close()
        assert self.open == []
        self.text = "".join(self.parts)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._met(tag, attrs)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._met(tag, attrs)

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag
        self.parts.append(
            " " if tag in ("td", "th", "li", "p", "div", "span", "b", "small", "h4") else ""
        )

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] in ("style", "script", "title"):
            self.inside[self.open[-1]] = self.inside.get(self.open[-1], "") + data
        self.parts.append(data)

    def _met(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        result = {name: value or "" for name, value in attrs}
        self.tags.append((tag, result))
        if "id" in result:
            self.ids.append(result["id"])

    def all(self, tag: str) -> list[dict[str, str]]:
        return [attrs for name, attrs in self.tags if name == tag]

    def with_class(self, word: str) -> list[dict[str, str]]:
        return [attrs for _, attrs in self.tags if word in attrs.get("class", "").split()]

    def with_attribute(self, name: str) -> list[dict[str, str]]:
        return [attrs for _, attrs in self.tags if name in attrs]


_LINK = re.compile(r"https?://[^\s\"'<>]+|#[a-z]+[A-Za-z0-9-]*")


def assert_page_inert(read: Page) -> None:
    """Nothing runs, loads or leads anywhere but by our own script and by plain web links."""
    assert len(read.all("script")) == len(read.all("style")) == 1
    for tag, attrs in read.tags:
        assert tag not in ("img", "iframe", "object", "embed", "base", "link", "foreignobject")
        assert not [name for name in attrs if name.startswith("on") or name == "style"]
        for name in ("href", "src", "action", "formaction", "xlink:href"):
            assert _LINK.fullmatch(attrs.get(name, "#causes")), attrs[name]
    assert "javascript:" not in " ".join(attrs.get("href", "") for _, attrs in read.tags)


def assert_page_sound(read: Page) -> None:
    assert len(read.ids) == len(set(read.ids))
    targets = {a["href"][1:] for a in read.all("a") if a["href"].startswith("#")}
    targets |= {a["data-copy"] for a in read.with_attribute("data-copy")}
    targets |= {a["aria-labelledby"] for a in read.with_attribute("aria-labelledby")}
    assert targets <= set(read.ids)
