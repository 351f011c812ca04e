"""Suspects: which of some candidates is likeliest to be the culprit of a failure, and why.

Candidates are any strings: class names, paths, coordinates of artefacts. Each sign gives points to
some of them; `POINTS` says how many. Knows no version control: commits are ranked by their paths.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from interlock.rca.analyst.artefact_signs import (
    brought_others,
    contested,
    fetched_for_it,
    named_by_group,
    named_outright,
    worded,
)
from interlock.rca.analyst.candidate import CulpritCandidate, Sign, language, parsed
from interlock.rca.analyst.code_signs import framed, mentioned, named_like
from interlock.rca.analyst.ownership import looks_tested
from interlock.rca.analyst.testimony import Mentions, hear
from interlock.rca.failure import Failure

POINTS = {
    "frame": 9.0,  # in the stack; the innermost of the product in full
    "log frame": 3.0,  # in a stack of the log
    "subject": 5.0,  # the failing test is named after it
    "alike": 2.5,  # words of the test's class
    "words": 2.0,  # words of the test's name and the message
    "mention": 1.5,  # named in the message, word for word
    "package": 0.7,  # beside the test
    "coordinate": 4.0,  # a build tool names it
    "archive": 3.0,  # its file is named
    "names": 2.0,  # names under its group
    "log words": 1.0,  # words of the complaints
    "depended": 1.0,  # fetched as a dependency of what was built
    "last": 1.0,  # and of the module that broke
    "contested": 2.0,  # and the build asked for several versions of it
    "first": 1.0,  # and it was asked for before others of its group
    "managing": 3.0,  # chooses versions, where versions are the trouble
}
MOST_RANKED = 100
_SOFTNESS = 6.0


class RankedSuspect(msgspec.Struct, frozen=True):
    """A candidate with its score, from 0 to 1, and the reasons that weigh most."""

    candidate: str
    score: float
    why: str


def suspects(failure: Failure, candidates: Iterable[str]) -> list[RankedSuspect]:
    """Candidates that something speaks against, likeliest first."""
    return rank(hear(failure), candidates)


def rank_paths(failure: Failure, paths: Sequence[str]) -> list[RankedSuspect]:
    """Paths of a repository, those a failure's frames, names and log point at first."""
    return rank(hear(failure), paths)


def rank(said: Mentions, candidates: Iterable[str]) -> list[RankedSuspect]:
    """The same for testimony that is at hand: one failure against many lists."""
    known = [parsed(text) for text in dict.fromkeys(candidates)]
    points: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for sign, text, share in _signs(said, known):
        points[text][sign] += POINTS[sign] * share
    coordinates = [each for each in known if each.coordinate]
    for look in (contested, brought_others):
        for sign, text, share in list(look(said, coordinates, points)):
            points[text][sign] += POINTS[sign] * share
    spoken = {language(frame.file) for frame in (*said.frames, *said.other_frames)} - {""}
    ranked = [_ranked(text, found, spoken) for text, found in points.items() if any(found.values())]
    ranked.sort(key=lambda one: (-one.score, one.candidate))
    return ranked[:MOST_RANKED]


def _ranked(text: str, found: dict[str, float], spoken: set[str]) -> RankedSuspect:
    total = sum(found.values())
    if looks_tested(text):
        total *= 0.5
    if "/" in text and spoken and language(text) not in {"", *spoken}:
        total *= 0.5
    strongest = sorted(filter(found.get, found), key=lambda sign: (-found[sign], sign))[:3]
    score = 1 - math.exp(-max(0.0, total) / _SOFTNESS)
    return RankedSuspect(text, round(score, 6), ", ".join(strongest))


def _signs(said: Mentions, known: Sequence[CulpritCandidate]) -> Iterator[Sign]:
    """(sign, candidate, share of its points) for all that speaks against somebody."""
    if coordinates := [each for each in known if each.coordinate]:
        yield from named_outright(said, coordinates)
        yield from named_by_group(said, coordinates)
        yield from worded(said, coordinates)
        yield from fetched_for_it(said, coordinates)
    if plain := [each for each in known if not each.coordinate]:
        yield from framed("frame", said.frames, said, plain)
        yield from framed("log frame", said.other_frames, said, plain)
        yield from named_like(said, plain)
        yield from mentioned(said, plain)
