"""Chances: how likely each commit is the culprit, beside all others and beside nobody.

Commits of all repositories are weighed together: a repository's only new commit is not suspected
for being alone. What other families of failures of the run point at counts, too.
"""

import math
from collections.abc import Mapping, Sequence

import msgspec

from interlock_rca.analyst.scoring import compute_chances, load_model, sum_odds
from interlock_rca.sources.git.history import Commit

_LEAST_TIE = 1.0
"""What the clues for a commit must count together to tie it to the failure."""
_SHARED_CAUSE = 0.5
"""The chance that two families of failures of one run have one cause, before anything is known."""
_MOST_SHARED_ODDS = 3.0
"""What all others say together counts so much at most: they are not independent of each other."""

BY_NAME = (
    "dependency",
    "submodule",
    "named by the failure",
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
    is_inert: bool = False
    """Whether it can alter nothing, as far as its diff tells, and nothing else ties it."""
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
        weights = load_model("culprit").weights
        spoken = {name: value for name, value in self.clues.items() if weights.get(name, 0.0) > 0}
        return sum_odds(load_model("culprit"), spoken) >= _LEAST_TIE

    @property
    def is_named(self) -> bool:
        """Whether the failure names something that it changed, code or not."""
        return any(kind in self.clues for kind in BY_NAME)


def rank_leads(leads: Sequence[CulpritLead]) -> list[CulpritLead]:
    """Return the leads with their chances beside each other and beside nobody, likeliest first."""
    chances = compute_chances([lead.odds for lead in leads], load_model("culprit").nobody)
    found = [
        msgspec.structs.replace(lead, score=round(chance, 4))
        for lead, chance in zip(leads, chances, strict=True)
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
    return rank_leads(found)
