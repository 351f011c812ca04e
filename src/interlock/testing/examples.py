"""Signals as a prompt shows them: lines and code spans that are meant as an example of one.

Knows placeholders, marks and where a line stands. Refuses to judge: lint says what is wrong.
"""

import re
from collections.abc import Iterator
from typing import Final

import msgspec

from interlock.signals.catalogue import row_of, rows
from interlock.signals.columns import SignalRow
from interlock.signals.grammar import SIGNALS, WORDS, spoken
from interlock.signals.legacy_block import KEYS
from interlock.signals.line_payload import TYPE, read_payload
from interlock.signals.line_rows import PREFIX
from interlock.signals.lookalike import meant_by
from interlock.signals.own_words import units

_PLACEHOLDER: Final = re.compile(
    r"\[[^\[\]\n]+\]|<[^<>\n]+>|\{[^{}\n]+\}|\$\{?\w+\}?|\N{HORIZONTAL ELLIPSIS}|\.\.\."
)
_MARKS: Final = re.compile(r"(?:[ \t>|+*~#-]|\d{1,9}[.)][ \t]|[`_])*")
_SPAN: Final = re.compile(r"(?<!not )(?<!never )`([^`\n]+)`")
_PRINTED: Final = re.compile(rf"{PREFIX}[^`'\"|\n]*")
_STRANGER: Final = re.compile(r"([A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+)(?::[ \t]*(\S.*)?)?\Z")
_ATTEMPT: Final = re.compile(r"[ \t]*(?:[:=]|[-\u2013\u2014])")
_ANY_TYPE: Final = ("TYPE", "SIGNAL_TYPE", "X", "")


class PromptLine(msgspec.Struct, frozen=True):
    """One line of a prompt: whether it is live, and whether it is shown as code."""

    number: int
    text: str
    live: bool
    code: bool


class Example(msgspec.Struct, frozen=True):
    """Something that is meant as a signal. `rows` are those it shows in a legal form."""

    line: PromptLine
    text: str
    word: str
    rows: tuple[SignalRow, ...] = ()
    problem: str = ""


def lines_of(source: str) -> Iterator[PromptLine]:
    """Every line of a source that begins with a newline."""
    number = 1
    for unit in units(source):
        live = unit.kind == "line"
        for text in unit.text.split("\n"):
            indented = text.startswith(("    ", "\t"))
            yield PromptLine(number, text, live, indented if live else unit.kind != "quote")
            number += 1


def examples_in(line: PromptLine) -> Iterator[Example]:
    """The line itself, without its marks, and each code span in it."""
    marks = _MARKS.match(line.text)
    start = marks.end() if marks else 0
    whole = line.text[start:].rstrip(" \t*_|")
    shown = (
        line if not line.text[:start].endswith("`") else msgspec.structs.replace(line, code=True)
    )
    candidates = [] if shown is not line and "`" in whole else [(shown, whole)]
    code = msgspec.structs.replace(line, code=True)
    candidates += [(code, span[1]) for span in _SPAN.finditer(line.text) if not line.code]
    if PREFIX in line.text:
        candidates = [(code, found[0]) for found in _PRINTED.finditer(line.text)]
    for place, text in candidates:
        found = _example(place, text.strip())
        if found:
            yield found


def _example(line: PromptLine, text: str) -> Example | None:
    if text.startswith(PREFIX):
        return _line_example(line, text)
    meant = meant_by(text) if text[:1].isalpha() else None
    if meant is None or row_of("line", text):
        return None
    word, rest = meant
    legal = _legal(text, word)
    if legal or text == word:
        return Example(line, text, word, legal)
    if text.startswith(word) and line.live and line.text.startswith(word):
        return Example(line, text, word, problem="starts a line and is no legal signal")
    attempted = _ATTEMPT.match(rest) or (not rest and not text.startswith(word))
    if line.code and attempted and "\\" not in text:
        return Example(line, text, word, problem="is not spelled as a signal is")
    return None


def _legal(text: str, word: str) -> tuple[SignalRow, ...]:
    """The rows whose grammar the text has once its placeholders are filled in."""
    valued = [row for row in rows("text") if row.word == word and row.name != word]
    found = tuple(row for row in valued if re.search(rf"\b{row.name.partition(': ')[2]}\b", text))
    if valued:
        plain = _PLACEHOLDER.sub(lambda m: valued[0].name.partition(": ")[2], text)
        return found if _said(plain) else ()
    row = _said(_PLACEHOLDER.sub("x", text))
    return (row,) if row else ()


def _said(line: str) -> SignalRow | None:
    found = SIGNALS.anywhere.match("\n" + line)
    return spoken(found).row if found and found.end() == len(line) + 1 else None


def _line_example(line: PromptLine, text: str) -> Example | None:
    kind, _, payload = text.removeprefix(PREFIX).partition(":")
    if not kind[:1].isalpha() or kind in _ANY_TYPE or "\u2550" in text:
        return None
    if TYPE.match(kind) and kind != "CHECKPOINT" and row_of("line", kind) is None:
        return None  # a stranger: see strangers_in
    filled = _PLACEHOLDER.sub("7", payload)
    found = read_payload(kind, filled, 1)
    if isinstance(found, str):
        return Example(line, text, PREFIX, problem=found) if line.code or line.live else None
    row = row_of("line", found.type)
    return Example(line, text, PREFIX, (row,) if row else ())


def strangers_in(line: PromptLine) -> Iterator[tuple[str, bool]]:
    """Names that look like signals and are none, each with whether a placeholder follows."""
    for found in re.finditer(rf"{PREFIX}([A-Z][A-Z0-9_]*)", line.text):
        if found[1] not in _KNOWN and found[1] not in _ANY_TYPE:
            yield found[1], True
    marks = _MARKS.match(line.text)
    whole = line.text[marks.end() if marks else 0 :]
    spans = [] if line.code else [span[1] for span in _SPAN.finditer(line.text)]
    shown = [whole] if line.code or not marks or not marks.end() else []
    for text in (*shown, *spans):
        named = _STRANGER.match(text.strip())
        if named and named[1] not in _KNOWN and not meant_by(text):
            yield named[1], bool(_PLACEHOLDER.match(named[2] or ""))


_KNOWN: Final = frozenset(
    {
        *WORDS,
        *KEYS,
        PREFIX.removesuffix(":"),
        *(row.name.partition(":")[0] for row in rows("line")),
        *(choice for row in rows("line") for field in row.payload for choice in field.choices),
    }
)
