"""One line of a failed job's log: its kind, and how much it says by itself."""

import re

import msgspec

from interlock_rca.analyst.line_kinds import (
    LineKind,
    classify_line,
    has_bare_word,
    is_advice,
    is_consequence,
    is_finding,
    is_precise,
)
from interlock_rca.sources.job_log import Statement, Weight

LOOKED_AT = 1_000
"""Characters of a line that are looked at."""
NAMED, _LISTED = 0.8, 0.4
"""A failed test whose reason follows, and one in a list."""
WORD = 0.4
"""A line with a word of failure."""
_STRENGTHS = {LineKind.WORD: WORD, LineKind.ERROR: 0.6}
LEAST = 0.05
"""What advice says."""
_TITLE = re.compile(
    r"\s*([-=_*#~\u2500-\u257f\u23af])\1{2,}\s+(?!\1)\S.*\s\1{2,}(?:\S{1,9}\1+)?\s*$"
)
"""A heading between two rules."""
_ARROW = re.compile(r"\s*(?:[-=]?>|\u2192|\u21b3|[\u2514\u2570][\u2500>]*)\s+\S")
"""Below a complaint it leads to what it comes from."""
_STATUS = re.compile(r"(?:> Task )?\W*\S+ (?:FAILED|FAILURE|ERROR|failed)\W*$")
"""That something failed, and no word of why."""


class BlockLine(msgspec.Struct):
    """A line of a block."""

    number: int
    text: str
    kind: LineKind
    named: bool = False
    strength: float = 0.0
    test: str = ""
    """The failed test it names."""
    path: str = ""
    """The same with its group."""


def classify(raw: str, text: str, statement: Statement | None) -> LineKind:
    """The kind of a line, with what a tool is known to say by it."""
    kind = classify_line(raw)
    if kind > LineKind.HEADLINE and _TITLE.match(text):
        return LineKind.HEADLINE
    if kind == LineKind.PLAIN and is_finding(text):
        kind = LineKind.WORD
    elif kind == LineKind.WORD and not has_bare_word(text):
        kind = LineKind.PLAIN
    is_known = statement is not None and (
        (statement.weight == Weight.COMPLAINT and not statement.is_count)
        or statement.kind == "coverage"
    )
    return LineKind.ERROR if is_known and kind in (LineKind.PLAIN, LineKind.WORD) else kind


def is_led_to(text: str) -> bool:
    """Whether a line shows what the one above comes from."""
    return bool(_ARROW.match(text))


def is_wrapper(statement: Statement | None, text: str) -> bool:
    """Whether a build tool says that what it called has failed."""
    if statement is None or statement.weight != Weight.TOOL:
        return False
    return statement.kind != "coverage" and not is_finding(text)


def rate(line: BlockLine, text: str, *, is_listed: bool, is_wrapping: bool) -> float:
    """How much a complaint says by itself."""
    text = text[:LOOKED_AT]
    if is_advice(text):
        return LEAST
    if line.named:
        return _LISTED if is_listed else NAMED
    strength = _STRENGTHS[line.kind]
    if _ARROW.match(text):
        return strength
    if is_wrapping:
        strength -= 0.2
    elif is_precise(text):
        strength += 0.15
    elif not has_bare_word(text) or _STATUS.match(text):
        strength -= 0.2  # marked as an error, but says nothing of one
    strength -= 0.3 if is_consequence(text) else 0.0
    return max(strength, LEAST)
