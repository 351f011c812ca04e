"""What still stands in the text of a test case whose XML is broken.

Knows how the tags of a report look to somebody who only reads. Gives results, never certainty;
looks at a bounded number of tags, so that hostile text costs no more than honest text.
"""

import html
import re
from collections.abc import Mapping
from typing import Final, NamedTuple

_MOST_TAGS: Final = 20
_LONGEST_TAG: Final = 1 << 16
_LONGEST_TEXT: Final = 1 << 18
_TAG: Final = re.compile(rb"<(?:[\w.-]+:)?(failure|error|skipped)(?=[\s/>])")
_CASE: Final = re.compile(rb"<(?:[\w.-]+:)?testcase(?=[\s/>])")
_REST: Final = re.compile(rb"""(?:[^>"']|"[^"]*+"|'[^']*+')*+>""")
_NAME: Final = r"(?<![\w:.-])([\w:.-]{1,100}+)\s{0,20}+=\s{0,20}+"
_ATTRIBUTE: Final = re.compile(_NAME + r"""(?:"([^"]*+)"|'([^']*+)')""")
_OPEN_ATTRIBUTE: Final = re.compile(_NAME + r"""["']([^"']*+)\Z""")
_CLOSING: Final = re.compile(r"</(?:[\w.-]+:)?(?:failure|error|testcase)\b")
_CDATA: Final = re.compile(r"<!\[CDATA\[(.*?)(?:\]\]>|\Z)", re.DOTALL)
NEXT: Final = re.compile(rb"<(/?)(?:[\w.-]+:)?(testcase|testsuites?)(?=[\s/>])")
"""Where a reader that lost its way can go on."""


class SalvagedResult(NamedTuple):
    """A tag that says how a test went: failure, error or skipped."""

    kind: str
    attributes: Mapping[str, str]
    text: str


def case_attributes(raw: bytes) -> dict[str, str] | None:
    """The attributes of the first `testcase` tag in the text, or None if there is none."""
    tag = _CASE.search(raw)
    return None if tag is None else _tag(raw, tag.end())[0]


def results(raw: bytes) -> list[SalvagedResult]:
    """The results that stand in the text, in their order."""
    found: list[SalvagedResult] = []
    tag = _TAG.search(raw)
    while tag and len(found) < _MOST_TAGS:
        attributes, end = _tag(raw, tag.end())
        text = ""
        if not raw[max(0, end - 2) : end].startswith(b"/"):
            text = _text(raw[end : end + _LONGEST_TEXT])
        found.append(SalvagedResult(tag[1].decode(), attributes, text))
        tag = _TAG.search(raw, end)
    return found


def _tag(raw: bytes, at: int) -> tuple[dict[str, str], int]:
    """The attributes of a tag, and where it ends; quotes may be missing, the end may be too."""
    window = raw[at : at + _LONGEST_TAG]
    whole = _REST.match(window)
    end = whole.end() if whole else window.find(b">") + 1 or len(window)
    text = window[:end].decode("utf-8", "replace")
    named = {each[1]: html.unescape(each[2] or each[3] or "") for each in _ATTRIBUTE.finditer(text)}
    if whole is None and (last := _OPEN_ATTRIBUTE.search(text)):
        named.setdefault(last[1], html.unescape(last[2]))
    return named, at + end


def _text(raw: bytes) -> str:
    text = raw.decode("utf-8", "replace")
    closing = _CLOSING.search(text)
    text = text[: closing.start()] if closing else text
    parts = _CDATA.split(text)  # every second part was inside CDATA, and is meant as it stands
    return "".join(
        part if number % 2 else html.unescape(part) for number, part in enumerate(parts)
    ).strip()
