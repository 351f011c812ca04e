"""Chances: how likely each commit is the culprit, beside all others and beside nobody.

Every clue has a value, and `WEIGHTS` says what it counts. The weights were fitted on regressions of
many projects, so that the chance is true: see docs/analyst.md. Commits of all repositories are
weighed together: that one is the only new commit of its repository says nothing for it.
"""

import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType

import msgspec

from interlock_rca.sources.git.history import Commit

WEIGHTS: Mapping[str, float] = MappingProxyType(
    {
        # The stack
        "wrote the break": 1.85,
        "wrote a line": 0.45,
        "beside the stack": 0.69,
        # The test, and the code it is about
        "named alike": 1.05,
        "subject": 1.0,
        "likeness": 2.18,
        "took back": 3.49,
        "changed what came with it": 1.46,
        "used by the test": 0.88,
        "used two steps away": 0.71,
        "not used": -0.72,
        "called at once": 1.34,
        "called by the test": 0.86,
        "called further away": 0.76,
        # Words
        "words of the message": 0.44,
        "words of the log": 0.44,
        "words of the test": 0.86,
        "parts of the name": 1.28,
        "quoted": 0.82,
        # What the failure names
        "named by the failure": 2.0,
        "uses the missing name": 1.0,
        "took the name away": 1.9,
        "took the file away": 3.0,
        "dependency": 2.9,
        "submodule": 2.5,
        # Its own tests. Undone fixes change no test and few files: what that would make of the
        # first, of the third and of breadth is bounded by undoings hidden in other commits.
        "changed the failing test": 0.8,
        "changed other tests": -2.11,
        "brought tests along": -0.4,
        # What speaks against it
        "alters no behaviour": -3.03,
        "changed no code": -2.69,
        "another language": -1.5,
        "breadth": -3.79,
    }
)
"""What a clue of value 1 counts, in the logarithm of the odds."""
NOBODY = 0.16
"""The same for "none of these commits"."""
_SLOPE, _SHIFT = 0.7, 0.95
"""From the first lead's share to its chance, in the logarithm of the odds: fitted on projects that
the weights were not fitted on, where the first of many weak leads was right more often than its
share."""
_LEAST_TIE = 0.3
"""What the clues for a commit must count together to tie it to the failure."""
_SHARED_CAUSE = 0.5
"""The chance that two families of failures of one run have one cause, before anything is known."""
_MOST_SHARED_ODDS = 3.0
"""What all others say together counts so much at most: they are not independent of each other."""

PLACED = (
    "wrote the break",
    "wrote a line",
    "beside the stack",
    "called at once",
    "called by the test",
    "took the name away",
    "took the file away",
    "dependency",
    "changed the failing test",
)


BY_NAME = (
    "dependency",
    "submodule",
    "named by the failure",
    "took the name away",
    "took the file away",
    "uses the missing name",
)
"""Clues that the failure names something that was changed."""


class CulpritLead(msgspec.Struct, frozen=True):
    """A commit that may be the culprit; the score is the chance that it is."""

    repo: str
    commit: Commit
    score: float
    why: tuple[str, ...]
    path: str
    """The file that incriminates it most."""
    is_placed: bool = False
    """Whether something ties it to the failure beyond words: a place, a call, a dependency."""
    clues: Mapping[str, float] = {}
    """The values of its clues."""
    odds: float = 0.0
    """The logarithm of what its clues say together."""
    is_near: bool = False
    """Whether it touched something that the failure itself points at, by its stack, its names or
    what its test uses."""

    @property
    def is_tied(self) -> bool:
        """Whether anything speaks for it, beyond that it is in the range."""
        weighed = (WEIGHTS[kind] * value for kind, value in self.clues.items())
        return sum(each for each in weighed if each > 0) >= _LEAST_TIE

    @property
    def is_named(self) -> bool:
        """Whether the failure names something that it changed, code or not."""
        return any(kind in self.clues for kind in BY_NAME)

    @property
    def is_inert(self) -> bool:
        """Whether it can alter nothing, as far as its diff tells, and nothing else ties it."""
        return "alters no behaviour" in self.clues and not self.is_placed


def compute_chances(leads: Sequence[CulpritLead]) -> list[CulpritLead]:
    """Chances from odds: beside each other, and beside nobody."""
    most = max([NOBODY, *(lead.odds for lead in leads)])
    whole = math.exp(NOBODY - most) + sum(math.exp(lead.odds - most) for lead in leads)
    shares = [math.exp(lead.odds - most) / whole for lead in leads]
    first = max(range(len(leads)), key=shares.__getitem__, default=0)
    if leads and leads[first].is_tied and shares[first] < 1:
        odds = _SLOPE * math.log(shares[first] / (1 - shares[first])) + _SHIFT
        chance = 1 / (1 + math.exp(-odds))
        rest = (1 - chance) / (1 - shares[first])
        shares = [chance if at == first else share * rest for at, share in enumerate(shares)]
        # What only comes second must not be made to come first.
        shares = [min(share, chance) for share in shares]
    found = [
        msgspec.structs.replace(lead, score=round(share, 4))
        for lead, share in zip(leads, shares, strict=True)
    ]
    return sorted(found, key=lambda lead: (-lead.score, -lead.odds))


def weigh_with_others(
    leads: Sequence[CulpritLead], others: Sequence[Sequence[CulpritLead]]
) -> list[CulpritLead]:
    """The leads of one failure beside those of others of the same run, each found by itself: one
    commit often breaks many tests in many ways. Only what a failure itself points at, too, gains
    by that, or a commit that broke one thing would be blamed for everything."""
    opinions = [
        ({(lead.repo, lead.commit.hash): lead.score for lead in other}, 1 + len(other))
        for other in others
        if other
    ]
    found: list[CulpritLead] = []
    for lead in leads:
        said = [
            (chances.get((lead.repo, lead.commit.hash), 0.0), many) for chances, many in opinions
        ]
        # How much likelier the other's evidence is if this commit broke that one, too.
        odds = sum(
            math.log(1 - _SHARED_CAUSE + _SHARED_CAUSE * chance * many) for chance, many in said
        )
        count = sum(
            bool(other) and other[0].commit.hash == lead.commit.hash and other[0].score > 1 / many
            for other, (_, many) in zip(filter(None, others), said, strict=True)
        )
        if not lead.is_near or odds <= 0 or lead.is_inert:
            found.append(lead)
            continue
        told = "another failure points" if count == 1 else f"{count} other failures point"
        found.append(
            msgspec.structs.replace(
                lead,
                odds=lead.odds + min(odds, _MOST_SHARED_ODDS),
                why=(*lead.why, f"{told} at it too") if count else lead.why,
            )
        )
    return compute_chances(found)
