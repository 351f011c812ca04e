"""Where functions and classes begin and end in a source file, by its layout alone.

No language is parsed. A heading is recognised by its shape, and what it heads ends where the
indentation comes back: that holds for every language that people lay out in the usual way.
"""

import re
from collections.abc import Sequence
from functools import lru_cache

import msgspec

_NO_NAME = (
    "if|for|while|switch|catch|return|else|elif|do|try|with|when|match|unless|until|foreach|using|"
    "lock|synchronized|sizeof|typeof|new|throw|raise|await|yield|assert|print|and|or|not|in|is|super"
)
_KEYWORD = (  # def name, func (receiver) name, function name, fn name, sub name
    r"(?:[\w.()<>@]+ +)*?(?:def|func|function|fn|fun|sub|defp?)\b[ *]*(?:\([^)]*\) *)?"
    r"(?:[\w$]+[.:])*(?P<keyword>[\w$?!]+)"
)
_TYPE = (  # class Name, struct Name, impl Name, type Name struct
    r"(?:[\w.()<>@]+ +)*?(?:class|struct|interface|trait|enum|impl|module|record|object|namespace)"
    r"(?:<[^>]*>)? +(?:[\w:.]+(?:::|\.))?(?P<type>[\w$]+)"
    r"|type +(?P<go>\w+)(?:\[[^\]]*\])? +(?:struct|interface|func)\b"
)
_VALUE = (  # name = function, name: function, const name = (…) =>
    r"(?:export +)?(?:default +)?(?:const|let|var)? *(?:[\w$]+\.)*(?P<value>[^\W\d][\w$]*) *[:=] *"
    r"(?:async +)?(?:function\b|\([^)]*\) *(?::[^=]+)?=>|[\w$]+ *=>)"
)
_METHOD = (  # public static Type name(…), and name(…) { in a class
    r"(?:(?:@\w+(?:\([^)]*\))? +)?(?:[\w$<>\[\],.?&*:~]+ +)*[*&]?(?:[\w$<>]+::)?"
    r"(?P<method>~?[\w$]+)) *\([^;{}]*(?:[{,(]|\)[^;=]*\{?|throws [\w., ]+\{?) *$"
)
_HEADINGS = (_KEYWORD, _TYPE, _VALUE, _METHOD)
_HEADING = re.compile(rf"^(?P<indent>[ \t]*)(?!(?:{_NO_NAME})\b)(?:{'|'.join(_HEADINGS)})")
_CLOSES = re.compile(
    r"[\])}]|end\b|else\b|elif\b|except\b|finally\b|rescue\b|ensure\b|catch\b|[{]\s*$"
)
_PROSE = re.compile(r"\s*(?:\*|//|#|--|/\*|>>>|\"\"\")")
_COMMENT = re.compile(r"\s*(?:\*|//|#|--|/\*)")
_IDENTIFIER = re.compile(r"[^\W\d][\w$]*")
_KINDS = {"type": True, "go": True}
_UNNAMED = ("def", "func", "function", "fn", "fun", "sub", "lambda")
"""What begins a function without a name is not its name."""
_HINT = re.compile(
    r"\b(?:def|func|function|fn|fun|sub|defp|class|struct|interface|trait|enum|impl|module|record"
    r"|object|namespace|type)\b|=>|[{,()]$|\bthrows\b"
)
MAX_SOURCE = 400_000
_MOST_KEPT = 600
_LONGEST_LINE = 400


class Definition(msgspec.Struct, frozen=True):
    """A function or a class, by its lines; counted from 1."""

    name: str
    first: int
    last: int
    is_type: bool = False


@lru_cache(maxsize=_MOST_KEPT)
def find_definitions(source: str) -> tuple[Definition, ...]:
    """The functions and classes of a source file, in the order they begin."""
    lines = [line[:_LONGEST_LINE].rstrip() for line in source[:MAX_SOURCE].split("\n")]
    found: list[Definition] = []
    opened: list[tuple[int, str, int, bool]] = []  # indent, name, first line, whether it is a type
    quoted = _find_quoted_lines(lines)
    for number, line in enumerate(lines, start=1):
        if not line or line.isspace() or number in quoted:
            continue
        indent = _measure_indent(line)
        closes = _CLOSES.match(line.lstrip())
        while opened and indent <= opened[-1][0]:
            if closes and indent == opened[-1][0]:
                break
            _, name, first, is_type = opened.pop()
            found.append(Definition(name, first, number - 1, is_type))
        # Most lines are no headings, and most of those can be told quickly.
        may_head = not closes and _HINT.search(line) and not _PROSE.match(line)
        heading = _HEADING.match(line) if may_head else None
        group = heading.lastgroup or "" if heading else ""
        if heading and heading[group] in _UNNAMED:
            continue
        if heading and (group != "method" or _heads_method(line, heading)):
            opened.append((indent, heading[group].lstrip("~"), number, group in _KINDS))
    for _, name, first, is_type in opened:
        found.append(Definition(name, first, len(lines), is_type))
    sound = [each for each in found if each.last > each.first or "=" in lines[each.first - 1]]
    return tuple(sorted(sound, key=lambda each: (each.first, -each.last)))


def _heads_method(line: str, heading: re.Match[str]) -> bool:
    """Whether it is a method's heading and no call: it opens a block of its own, not one inside of
    its brackets, or has more before its name than spaces."""
    opens = line.endswith("{") and line.count("(") == line.count(")")
    return opens or bool(line[: heading.start("method")].strip())


def _find_quoted_lines(lines: Sequence[str]) -> frozenset[int]:
    """Lines inside of texts that run over several: their indentation means nothing."""
    found: set[int] = set()
    for mark in ("`", '"""', "'''"):
        odd = [
            number
            for number, line in enumerate(lines, start=1)
            if mark in line and line.count(mark) % 2 and not _COMMENT.match(line)
        ]
        if len(odd) % 2 == 0:  # else one of them is no such mark, and nobody knows which
            for first, last in zip(odd[::2], odd[1::2], strict=True):
                found.update(range(first + 1, last + 1))
    return frozenset(found)


def find_enclosing(definitions: Sequence[Definition], first: int, last: int) -> list[Definition]:
    """The innermost definitions that the lines lie in, or that lie in them."""
    touching = [each for each in definitions if each.first <= last and first <= each.last]
    functions = [each for each in touching if not each.is_type]
    return [
        each
        for each in functions
        if not any(
            other is not each
            and each.first <= other.first
            and other.last <= each.last
            and other.first <= last
            and first <= other.last
            and (other.first <= first and last <= other.last)
            for other in functions
        )
    ]


def list_identifiers(text: str) -> frozenset[str]:
    """All names in a text, of whatever alphabet."""
    return frozenset(_IDENTIFIER.findall(text))


def _measure_indent(line: str) -> int:
    return len(line) - len(line.lstrip())
