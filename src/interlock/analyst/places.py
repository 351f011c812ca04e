"""Places to look: which repositories a failure points at, by its stack and by what they are for.

A repository's purpose is the user's own words; only words for tests and for environments are known
here. Everything else is product.
"""

import re
from collections.abc import Sequence

from interlock.analyst.answers import Where
from interlock.analyst.culprit import Lead, Spot
from interlock.apps.rca.launch import Repo

_TESTS = re.compile(r"\b(?:tests?|testing|qa|e2e|automation|acceptance|specs?)\b", re.IGNORECASE)
_SETTINGS = re.compile(
    r"\b(?:config\w*|deploy\w*|infra\w*|environments?|ci|cd|pipelines?|helm|ansible|terraform"
    r"|manifests?|provision\w*|ops|cluster)\b",
    re.IGNORECASE,
)
_FITTING = 1.0
_UNFITTING = 0.35


def use_of(repo: Repo) -> str:
    """What a repository is for: `automation`, `infra` or `product`."""
    said = f"{repo.name.replace('-', ' ').replace('_', ' ')} {repo.purpose}"
    purpose = repo.purpose or said
    if _TESTS.search(purpose) or (_TESTS.search(said) and not repo.purpose):
        return "automation"
    return "infra" if _SETTINGS.search(purpose) else "product"


def by_stack(repo: Repo, spots: Sequence[Spot], category: str) -> Where | None:
    """A repository that holds places of the stack."""
    product = [spot for spot in spots if not spot.is_test]
    if not spots:
        return None
    strength = min(1.0, 0.6 + 0.2 * len(product)) if product else 0.4
    shown = (product or spots)[0]
    why = f"the stack leads to {shown.path}:{shown.line}"
    paths = tuple(dict.fromkeys(spot.path for spot in product or spots))
    return Where(repo=repo.name, score=strength * _fit(repo, category), why=why, paths=paths)


def by_changes(repo: Repo, found: Sequence[Lead], category: str) -> Where | None:
    """A repository in which something changed that the failure points at."""
    if not found:
        return None
    best = found[0]
    why = f'{best.commit.hash[:12]} "{best.commit.subject}": {best.why[0]}'
    paths = tuple(dict.fromkeys(lead.path for lead in found[:5]))
    return Where(repo=repo.name, score=best.score * _fit(repo, category), why=why, paths=paths)


def best_of(places: Sequence[Where | None]) -> list[Where]:
    """Of each repository what speaks for it most, the likeliest first."""
    found: dict[str, Where] = {}
    for place in places:
        if place and (place.repo not in found or place.score > found[place.repo].score):
            found[place.repo] = place
    return sorted(found.values(), key=lambda place: (-place.score, place.repo))


def _fit(repo: Repo, category: str) -> float:
    if category not in ("product", "automation", "infra"):
        return _FITTING
    return _FITTING if use_of(repo) == category else _UNFITTING
