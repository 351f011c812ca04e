"""The words of a failure that a change may share: of its message, its quotes, its test's source.

Words that every failure uses (the vocabulary of assertions) are left out. Words may be of any
alphabet.
"""

import re
from collections.abc import Iterable, Sequence

import msgspec

from interlock_rca.analyst.names import COMMON_WORDS, split_camel_case, split_unspaced

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
_WORD = re.compile(r"[^\W\d]\w*")
_ADDRESS = re.compile(r"\w+://[^\s'\"`<>)]+")
_QUOTED = re.compile(
    r"'([^'\n]{6,80})'|\"([^\"\n]{6,80})\"|`([^`\n]{6,80})`|\u201c([^\u201d\n]{4,80})\u201d|\u00ab([^\u00bb\n]{4,80})\u00bb"
)
_MISSED = re.compile(
    r"name '(\w+)' is not defined|has no (?:attribute|member|exported member) '(\w+)'"
    r"|cannot import name '(\w+)'|unexpected keyword argument '(\w+)'"
    r"|(\w+) is not (?:defined|a function|a constructor)\b"
    r"|undefined (?:method|local variable or method) [`'](\w+)'|undefined: (?:\w+\.)*(\w+)"
    r"|has no field or method (\w+)|symbol:\s+(?:method|variable|class) (\w+)"
    r"|cannot find (?:function|method|value|type|struct|macro)[^`\n]*`(\w+)`"
    r"|no method named `(\w+)`"
    r"|does not contain a definition for '(\w+)'|The name '(\w+)' does not exist"
    r"|Property '(\w+)' does not exist|no member named '(\w+)'|'(\w+)' was not declared"
    r"|[Nn]o (?:such )?(?:column|table|relation|field|key|option|attribute|property|parameter)"
    r"(?: named| called)?:? ['\"`]?(\w+)|KeyError: ['\"](\w+)['\"]"
    r"|does not provide an export named '(\w+)'|not provided? (?:an )?implementation of '?(\w+)"
)
_BEGINS = re.compile(
    r"\s*(?:(?:async )?def test|(?:it|test|specify|scenario)(?:\.\w+)*\s*\(|fn \w|func Test|@Test\b"
    r"|(?:public |private )?(?:static )?void \w+\(|fun `?\w|(?:it|test|specify) ['\"])"
)
_DEFINITION = re.compile(r"\s*(?:async )?def \w|\s*(?:export )?(?:async )?function\b")
_MOST_LINES = 60
_STATEMENT = 3
"""A trace names the first line of a statement; so many more may belong to it, or all that its
brackets hold."""
_MOST_ROWS = 200
_NAMED_ROW = re.compile(r"\[(.+)\]$", re.DOTALL)
_COUNTED = re.compile(r"[A-Za-z_]+\d+|None|True|False|")
"""What stands in a test's name for a value that has no short form."""


def stem_words(words: Iterable[str]) -> frozenset[str]:
    """The words that mean something, whatever their case and number."""
    plain = (word.casefold().strip("_") for word in words)
    return frozenset(
        stem
        for word in plain
        if word not in _NOISE
        for stem in (split_unspaced(word) if not word.isascii() else (_strip_plural(word),))
        if len(stem) > 3 or (len(stem) > 1 and not stem.isascii())
    )


def _strip_plural(word: str) -> str:
    return word if word.endswith("ss") else word.removesuffix("s")


def split_into_stems(words: Iterable[str]) -> frozenset[str]:
    """What names are made of, as stems."""
    return stem_words(piece for word in words for piece in split_camel_case(word))


def extract_message_words(text: str) -> frozenset[str]:
    """The words of a message."""
    return stem_words(_WORD.findall(text[:4_000]))


def find_quotes(text: str) -> list[str]:
    """What a message quotes, the longest first: values that were met or missed."""
    found = {next(filter(None, groups)) for groups in _QUOTED.findall(text[:4_000])}
    telling = {quote for quote in found if re.search(r"[^\W\d_]{3}", quote)}
    return sorted(telling, key=lambda quote: (-len(quote), quote))[:10]


def find_missing_names(text: str) -> list[str]:
    """The names that a message says are not there."""
    found = [next(filter(None, groups)) for groups in _MISSED.findall(text[:4_000])]
    return list(dict.fromkeys(found))[:10]


def list_words(text: str) -> frozenset[str]:
    """All names and words of a text, as they are written; without those of addresses, which are
    made of other people's."""
    return frozenset(_WORD.findall(_ADDRESS.sub(" ", text)))


class SourceExcerpt(msgspec.Struct, frozen=True):
    """The part of a test's source that was reached: its lines, and the words in them. `rows` are
    lines above it that hold the values it was run with."""

    first: int
    last: int
    words: frozenset[str]
    rows: tuple[int, ...] = ()


def find_excerpt(source: bytes | None, line: int, test_name: str = "") -> SourceExcerpt:
    """The test or function whose source holds that line, from where it begins to there."""
    lines = (source or b"").decode("utf-8", "replace").split("\n")
    if not 0 < line <= len(lines):
        return SourceExcerpt(line, line, frozenset())
    first, last = _find_start(lines, line - 1), _find_end(lines, line)
    text = "\n".join(row[:500] for row in lines[first:last])
    return SourceExcerpt(
        first + 1, last, stem_words(_WORD.findall(text)), _find_value_rows(lines, first, test_name)
    )


def _find_start(lines: Sequence[str], at: int) -> int:
    """Where the test begins, or the function that the line is in."""
    first = at
    while first > max(0, at + 1 - _MOST_LINES) and not _BEGINS.match(lines[first]):
        if _DEFINITION.match(lines[first]) and _measure_indent(lines[first]) < _measure_indent(
            lines[at]
        ):
            break
        first -= 1
    return first


def _find_end(lines: Sequence[str], line: int) -> int:
    last, left = line, _count_open_brackets(lines[line - 1])
    while last < min(len(lines), line + _MOST_LINES) and (
        left > 0 or (last < line + _STATEMENT and lines[last].strip())
    ):
        left += _count_open_brackets(lines[last])
        last += 1
    return last


def _find_value_rows(lines: Sequence[str], first: int, test_name: str) -> tuple[int, ...]:
    """Lines of the decorators above a test that hold all values in its name."""
    named = _NAMED_ROW.search(test_name)
    values = (
        [value for value in named[1].split("-") if not _COUNTED.fullmatch(value)] if named else []
    )
    found: list[int] = []
    for at in range(first - 1, max(-1, first - 1 - _MOST_ROWS), -1):
        if not lines[at].strip() or not values:
            break
        if all(value in lines[at] for value in values):
            found.append(at + 1)
    return tuple(found)


def _count_open_brackets(line: str) -> int:
    """How many brackets it opens and leaves open."""
    return sum(map(line.count, "([{")) - sum(map(line.count, ")]}"))


def _measure_indent(line: str) -> int:
    return len(line) - len(line.lstrip())
