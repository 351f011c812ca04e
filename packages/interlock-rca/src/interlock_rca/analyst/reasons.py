"""Why a commit is suspected, in words: each fact once, and all about one file in one sentence."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

FILE_TRAITS: Mapping[str, str] = {
    "frame": "is in the stack",
    "log frame": "is in a stack of the log",
    "subject": "is what the test is named after",
    "alike": "is named like the test",
    "words": "shares words with the test or the message",
    "mention": "has the name of something in the failure",
    "package": "lies beside the test",
}
"""What a file has to do with the failure, as it follows "which"."""
NAMED = "is named by the failure"
"""Of a file whose whole name the failure says, or a place in it."""
_NAMED_AFTER = "is what the test's file is named after"
_USED = "is used by the test's file"
_VAGUE = FILE_TRAITS["words"]
"""Said only of a file of which nothing else is."""
_COVERED = {
    _NAMED_AFTER: ("subject", "alike", "package"),
    FILE_TRAITS["subject"]: ("alike", "package"),
}
"""What need not be said of a file of which something more exact is said."""
_ORIGIN = "changed what came with it"
_SAME_FACT = (
    # Lines that came with the test are in functions that were changed with it.
    ("took back", _ORIGIN),
    # Both are words that the test and the change have in common.
    ("parts of the name", "words of the test"),
)
"""Kinds of clues that tell of the same: of each group only what weighs most is told."""
_BY_WORDS = frozenset({"words of the message", "words of the test", "parts of the name"})
"""Clues that are told last: words in common convince nobody who could be told of a place."""


class CommitClue(NamedTuple):
    """A clue for or against a commit: its kind, its value from 0 to 1, and its words, if it is
    worth telling."""

    kind: str
    value: float
    why: str = ""
    path: str = ""
    """The file that it is about, if that has a part in the words."""
    traits: tuple[str, ...] = ()
    """What that file has to do with the failure, as it follows "which"."""


def build_subject_clue(value: float, why: str, path: str) -> CommitClue:
    """Of a change of the file that the test's file is named after."""
    return CommitClue("subject", value, why, path, (_NAMED_AFTER,))


def build_use_clue(kind: str, value: float, why: str, path: str, through: str = "") -> CommitClue:
    """Of a change of a file that the test's file uses, perhaps through another."""
    return CommitClue(
        kind, value, why, path, (f"{_USED}, through {through}" if through else _USED,)
    )


def build_origin_clue(value: float, path: str, function: str) -> CommitClue:
    """Of a change of what the commit that wrote the failing test changed, too: a function, or a
    file if it is not known in which function."""
    told = "was changed by the commit that wrote the failing test"
    if not function:
        return CommitClue(_ORIGIN, value, f"it changed {path}", path, (told,))
    why = f"it changed {function} in {path}, as did the commit that wrote the failing test"
    return CommitClue(_ORIGIN, value, why)


def tell_clues(clues: Iterable[CommitClue], weights: Mapping[str, float]) -> Iterator[str]:
    """The reasons, those that weigh most first; words in common come after all places, and what
    speaks against the commit comes last."""
    told = [clue for clue in clues if clue.why]
    told.sort(key=lambda clue: -weights[clue.kind] * clue.value)
    for group in _SAME_FACT:
        first = next((clue for clue in told if clue.kind in group), None)
        told = [clue for clue in told if clue is first or clue.kind not in group]
    told.sort(key=lambda clue: (weights[clue.kind] < 0, clue.kind in _BY_WORDS))
    shown = {clue.path for clue in told if clue.path and not clue.traits}
    reasons = dict.fromkeys(
        _tell_file(clue, told, is_shown=clue.path in shown) if clue.traits else clue.why
        for clue in told
    )
    yield from filter(None, reasons)


def _tell_file(clue: CommitClue, told: Sequence[CommitClue], *, is_shown: bool) -> str:
    """All that the clues say about one file; `is_shown` if another clue tells of a line of it in
    the stack."""
    same = [each for each in told if each.path == clue.path and each.traits]
    traits = dict.fromkeys(trait for each in same for trait in each.traits)
    covered = {FILE_TRAITS[kind] for trait in traits for kind in _COVERED.get(trait, ())}
    if is_shown:
        covered |= {FILE_TRAITS["frame"], FILE_TRAITS["log frame"]}
    if len(traits) > 1 or is_shown:
        covered.add(_VAGUE)
    if _NAMED_AFTER in traits and _USED in traits:
        covered.add(_USED)
    left = [
        f"{trait} and uses" if trait == _NAMED_AFTER and _USED in traits else trait
        for trait in traits
        if trait not in covered
    ]
    *first, last = left or [""]
    said = f"{', '.join(first)} and {last}" if first else last
    if not said:
        return "" if is_shown else clue.why
    return f"{clue.why}, which {said}"
