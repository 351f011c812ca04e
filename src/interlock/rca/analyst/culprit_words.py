"""Words by which a failure and a change may know each other.

Knows the vocabulary of assertions, which every failure shares, and where a test begins in its
source. Refuses to know commits.
"""

import re
from collections.abc import Iterable, Sequence

import msgspec

from interlock.rca.analyst.naming import COMMON_WORDS

_NOISE_TEXT = """assert asserts assertion assertions assertionerror equal equals strictly strict
deep deeply expect expects expected received actual got tobe toequal object objects true false none
null undefined nan function func self this return returns value values type types typeerror
valueerror keyerror runtimeerror attributeerror error errors throw throws raise raises raised called
call instance string str int bool list dict array length more than with that from into have been
must when then where what which will would could only same differ differs different contains include
import describe test tests await async const class void public static final
skipping identical leading trailing characters diff show full
"""
_NOISE = frozenset(_NOISE_TEXT.split()) | COMMON_WORDS
_WORD = re.compile(r"[A-Za-z_]\w*")
_PIECE = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_QUOTED = re.compile(r"'([^'\n]{6,80})'|\"([^\"\n]{6,80})\"|`([^`\n]{6,80})`")
_MISSED = re.compile(
    r"name '(\w+)' is not defined|has no (?:attribute|member) '(\w+)'|cannot import name '(\w+)'"
    r"|unexpected keyword argument '(\w+)'|(\w+) is not (?:defined|a function)\b"
    r"|undefined (?:method|local variable or method) [`'](\w+)'|undefined: (\w+)"
)
_BEGINS = re.compile(
    r"\s*(?:(?:async )?def test|(?:it|test|specify|scenario)(?:\.\w+)*\s*\(|fn \w|func Test|@Test\b"
    r"|(?:public |private )?(?:static )?void \w+\(|fun `?\w|(?:it|test|specify) ['\"])"
)
_FUNCTION = re.compile(r"\s*(?:async )?def \w|\s*(?:export )?(?:async )?function\b")
_MOST_LINES = 60
_STATEMENT = 3
"""A statement is told by its first line; so many more may belong to it, or all it has brackets
around."""
_MOST_ROWS = 200
_NAMED_ROW = re.compile(r"\[(.+)\]$", re.DOTALL)
_COUNTED = re.compile(r"[A-Za-z_]+\d+|None|True|False|")
"""What stands in a test's name for a value that has no short form."""


def stems(words: Iterable[str]) -> frozenset[str]:
    """The words that tell something, whatever their case and number."""
    plain = (word.lower().strip("_") for word in words)
    return frozenset(
        word.removesuffix("s") for word in plain if len(word) > 3 and word not in _NOISE
    )


def parts(words: Iterable[str]) -> frozenset[str]:
    """What names are made of, as stems."""
    return stems(piece for word in words for piece in _PIECE.findall(word))


def spoken(text: str) -> frozenset[str]:
    """The words of a message."""
    return stems(_WORD.findall(text[:4_000]))


def quoted(text: str) -> list[str]:
    """What a message quotes, the longest first: values that were met or missed."""
    found = {next(filter(None, groups)) for groups in _QUOTED.findall(text[:4_000])}
    telling = {each for each in found if re.search(r"[A-Za-z]{3}", each)}
    return sorted(telling, key=lambda each: (-len(each), each))[:10]


def missed(text: str) -> list[str]:
    """The names that a message says are not there."""
    found = [next(filter(None, groups)) for groups in _MISSED.findall(text[:4_000])]
    return list(dict.fromkeys(found))[:10]


class ChangeText(msgspec.Struct, frozen=True):
    """The part of a test's source that was reached: its lines, and the words in them. `rows` are
    lines above it that hold the values it was run with."""

    first: int
    last: int
    words: frozenset[str]
    rows: tuple[int, ...] = ()


def body_of(source: bytes | None, line: int, test_name: str = "") -> ChangeText:
    """The test or function whose source holds that line, from where it begins to there."""
    lines = (source or b"").decode("utf-8", "replace").split("\n")
    if not 0 < line <= len(lines):
        return ChangeText(line, line, frozenset())
    first, last = _beginning(lines, line - 1), _ending(lines, line)
    text = "\n".join(each[:500] for each in lines[first:last])
    return ChangeText(first + 1, last, stems(_WORD.findall(text)), _rows(lines, first, test_name))


def _beginning(lines: Sequence[str], at: int) -> int:
    """Where the test begins, or the function that the line is in."""
    first = at
    while first > max(0, at + 1 - _MOST_LINES) and not _BEGINS.match(lines[first]):
        if _FUNCTION.match(lines[first]) and _indent(lines[first]) < _indent(lines[at]):
            break
        first -= 1
    return first


def _ending(lines: Sequence[str], line: int) -> int:
    last, left = line, _opened(lines[line - 1])
    while last < min(len(lines), line + _MOST_LINES) and (
        left > 0 or (last < line + _STATEMENT and lines[last].strip())
    ):
        left += _opened(lines[last])
        last += 1
    return last


def _rows(lines: Sequence[str], first: int, test_name: str) -> tuple[int, ...]:
    """Lines of the decorators above a test that hold all values its name tells."""
    named = _NAMED_ROW.search(test_name)
    told = [each for each in named[1].split("-") if not _COUNTED.fullmatch(each)] if named else []
    found: list[int] = []
    for at in range(first - 1, max(-1, first - 1 - _MOST_ROWS), -1):
        if not lines[at].strip() or not told:
            break
        if all(each in lines[at] for each in told):
            found.append(at + 1)
    return tuple(found)


def _opened(line: str) -> int:
    """How many brackets it opens and leaves open."""
    return sum(map(line.count, "([{")) - sum(map(line.count, ")]}"))


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())
