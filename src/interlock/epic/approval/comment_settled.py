"""Whether something is said to be settled, and what: a fault that is named again, or `it`.

Knows that a word about one thing settles no other: what is done must be what was wrong. Refuses to
know what counts as wrong.
"""

import re
from collections.abc import Iterable
from typing import Final

from interlock.epic.approval.comment_past import SETTLED

_PARTS: Final = re.compile(r"[,:()\x03]| (?:and|but|while|because|since) ")
_ALL: Final = re.compile(
    r"\b(?:they|these|those|all|everything|both|(?:the|my|your|our) (?:issues?|points?|concerns?"
    r"|comments?|problems?|changes|requests?|remarks?))(?: (?:i|we) [a-z]+| that)?\s*$"
)
_ONE: Final = re.compile(r"(?:^|\b(?:it|that|this|now|which|i see))\s*$")
_LITTLE: Final = frozenset(
    [
        "the",
        "are",
        "was",
        "were",
        "has",
        "have",
        "been",
        "now",
        "all",
        "not",
        "this",
        "that",
        "and",
        "you",
        "with",
        "for",
        "please",
        "done",
        "fixed",
        "green",
        "added",
        "there",
        "from",
        "last",
        "resolved",
        "addressed",
        "answered",
        "passing",
        "also",
        "but",
        "yesterday",
        "still",
    ]
)


def parts_of(text: str) -> list[str]:
    """A sentence cut where another thing may be spoken of."""
    return _PARTS.split(text)


def reach(text: str) -> str:
    """How far back a settled word reaches by itself: `all`, the `last` thing, or only its own."""
    for part in parts_of(text):
        hit = SETTLED.search(part)
        if hit and (_ALL.search(part[: hit.start()]) or hit[0].startswith("all ")):
            return "all"
        if hit and (_ONE.search(part[: hit.start()]) or hit[0].startswith(("it's", "that"))):
            return "last"
    return ""


def names_in(text: str) -> frozenset[str]:
    """The words of a text that name things, without their plural, and its numbers."""
    found = re.findall(r"[a-z][a-z-]{2,}|\d+", text)
    return frozenset(word.rstrip("s") for word in found if word not in _LITTLE)


def settled_names(text: str) -> list[frozenset[str]]:
    """What a text says is settled: the names of each such thing."""
    hits = [(part, SETTLED.search(part)) for part in parts_of(text)]
    named = [names_in(part[: hit.start()]) for part, hit in hits if hit]
    return [names for names in named if names]


def is_settled_within(faulty: Iterable[int], parts: list[str]) -> bool:
    """Whether a sentence settles each faulty part of itself, there or further on."""
    places = [*faulty]
    return bool(places) and all(_settles(parts[at], parts[at:]) for at in places)


def _settles(fault: str, later: list[str]) -> bool:
    if SETTLED.search(fault):
        return True
    names = names_in(fault)
    return any(
        reach(part) or any(each <= names for each in settled_names(part)) for part in later[1:]
    )
