"""Words by which a failure and a change may know each other.

Knows the vocabulary of assertions, which every failure shares, and where a test begins in its
source. Refuses to know commits.
"""

import re
from collections.abc import Iterable

import msgspec

from interlock.analyst.naming import COMMON_WORDS

_NOISE_TEXT = """assert asserts assertion assertions assertionerror equal equals strictly strict
deep deeply expect expects expected received actual got tobe toequal object objects true false none
null undefined nan function func self this return returns value values type types typeerror
valueerror keyerror runtimeerror attributeerror error errors throw throws raise raises raised called
call instance string str int bool list dict array length more than with that from into have been
must when then where what which will would could only same differ differs different contains include
import describe test tests await async const class void public static final
"""
_NOISE = frozenset(_NOISE_TEXT.split()) | COMMON_WORDS
_WORD = re.compile(r"[A-Za-z_]\w*")
_QUOTED = re.compile(r"'([^'\n]{6,80})'|\"([^\"\n]{6,80})\"|`([^`\n]{6,80})`")
_BEGINS = re.compile(
    r"\s*(?:(?:async )?def test|(?:it|test|specify|scenario)(?:\.\w+)*\s*\(|fn \w|func Test|@Test\b"
    r"|(?:public |private )?(?:static )?void \w+\(|fun `?\w|(?:it|test|specify) ['\"])"
)
_MOST_LINES = 60
_STATEMENT = 3
"""A statement is told by its first line; so many more may belong to it."""


def stems(words: Iterable[str]) -> frozenset[str]:
    """The words that tell something, whatever their case and number."""
    plain = (word.lower().strip("_") for word in words)
    return frozenset(
        word.removesuffix("s") for word in plain if len(word) > 3 and word not in _NOISE
    )


def spoken(text: str) -> frozenset[str]:
    """The words of a message."""
    return stems(_WORD.findall(text[:4_000]))


def quoted(text: str) -> list[str]:
    """What a message quotes, the longest first: values that were met or missed."""
    found = {next(filter(None, groups)) for groups in _QUOTED.findall(text[:4_000])}
    telling = {each for each in found if re.search(r"[A-Za-z]{3}", each)}
    return sorted(telling, key=lambda each: (-len(each), each))[:10]


class Body(msgspec.Struct, frozen=True):
    """The part of a test's source that was reached: its lines, and the words in them."""

    first: int
    last: int
    words: frozenset[str]


def body_of(source: bytes | None, line: int) -> Body:
    """The test whose source holds that line, from where it begins to there."""
    lines = (source or b"").decode("utf-8", "replace").split("\n")
    if not 0 < line <= len(lines):
        return Body(line, line, frozenset())
    first = line - 1
    while first > max(0, line - _MOST_LINES) and not _BEGINS.match(lines[first]):
        first -= 1
    last = line
    while last < min(len(lines), line + _STATEMENT) and lines[last].strip():
        last += 1
    text = "\n".join(each[:500] for each in lines[first:last])
    return Body(first + 1, last, stems(_WORD.findall(text)))
