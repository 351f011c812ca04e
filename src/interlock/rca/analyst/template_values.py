"""Which words of log lines are values: what shows only when lines are compared with each other.

The second half of template mining: judges words that stand in one place of otherwise equal lines.
Knows no numbers of templates and keeps nothing.
"""

import re
from collections import Counter
from collections.abc import Collection

from interlock.rca.analyst.line_words import VALUE

Words = tuple[str, ...]

_HAPPENED = re.compile(r".*(?:ed|ing)\W*$")
_STATE = re.compile(r"[A-Z_]{2,}\W*$")
"""A participle or a state says what happened; other such words are other messages."""
_SET = re.compile(r"\w[:.]?\w+=<\*>")
"""Another thing that is set is another message."""
_NAME = re.compile(r".*\w[._@/\\-]\w")
_NOUN = re.compile(
    r"(?:user|host|hostname|name|device|file|driver|service|module|interface|process|job|task|node"
    r"|server|client|domain|queue|topic|table|key|id)[:=]?$",
    re.IGNORECASE,
)
"""What a name follows."""
_TOLD = re.compile(r"[^<]*[A-Za-z]{2}[^<]*$")
_ENOUGH_FIRST_WORDS, _ENOUGH_WORDS, _ENOUGH_NAMES, _ENOUGH_BESIDE_VALUE = 12, 5, 3, 2
_MOST_COMPARED = 100
"""How many lines of one length and first or last word are compared with each other."""


def vary_together(group: list[Words]) -> list[Words]:
    """Lines with values where several words vary at once among lines of one length."""
    compared = rest = group[:_MOST_COMPARED]
    found = []
    while len(rest) >= _ENOUGH_WORDS:
        pattern, rest = _joint(rest[0], compared), rest[1:]
        if pattern:
            found.append(pattern)
            rest = [line for line in rest if not fits(line, pattern)]
    return found


def tells(line: Words) -> bool:
    """Whether enough of a line with values is told to know it by that."""
    told = sum(map(bool, map(_TOLD.match, line)))
    return told >= max(_ENOUGH_BESIDE_VALUE, line.count(VALUE))


def _joint(line: Words, group: list[Words]) -> Words | None:
    """The line with values where it differs from many others that are otherwise the same."""
    told = {at for at, word in enumerate(line) if _TOLD.match(word)}
    differs = Counter(places for other in group if len(places := _apart(line, other)) > 1)
    for places, times in differs.most_common(2):
        if times < _ENOUGH_WORDS - 1 or len(told.difference(places)) < max(3, len(places)):
            continue
        same = [other for other in group if set(_apart(line, other)) <= set(places)]
        if all(
            varies({o[at] for o in same}, line[at - 1] if at else None, alone=False)
            for at in places
        ):
            return tuple(VALUE if at in places else word for at, word in enumerate(line))
    return None


def _apart(one: Words, two: Words) -> tuple[int, ...]:
    return tuple(at for at, (a, b) in enumerate(zip(one, two, strict=True)) if a != b)


def fits(line: Words, pattern: Words) -> bool:
    """Whether a line has the words of a pattern of its length, values aside."""
    return all(b in (a, VALUE) for a, b in zip(line, pattern, strict=True))


def merged(pattern: Words) -> Words:
    """Values that meet become one."""
    pairs = zip(("", *pattern), pattern, strict=False)
    return tuple(word for before, word in pairs if word != VALUE or before != VALUE)


def with_value(pattern: Words, at: int) -> Words:
    """The pattern with a value at one place; values that meet become one."""
    before, after = pattern[:at], pattern[at + 1 :]
    if before[-1:] == (VALUE,):
        before = before[:-1]
    return (*before, VALUE, *(after[1:] if after[:1] == (VALUE,) else after))


def varies(seen: Collection[str], before: str | None, *, alone: bool = True) -> bool:
    """Whether words seen in one place are values. The first word of a line hardly ever is one."""
    half = len(seen) / 2
    if sum(map(bool, map(_SET.search, seen))) > half:
        return False
    if before is not None and any(VALUE in word for word in seen):
        return len(seen) >= _ENOUGH_BESIDE_VALUE
    if sum(bool(_HAPPENED.match(word) or (alone and _STATE.match(word))) for word in seen) > half:
        return False
    if sum(map(bool, map(_NAME.match, seen))) > half:
        return len(seen) >= _ENOUGH_NAMES
    if before is None:
        return len(seen) >= _ENOUGH_FIRST_WORDS
    return len(seen) >= (_ENOUGH_NAMES if _NOUN.match(before) else _ENOUGH_WORDS)
