"""Which repositories a failure points at, by its stack, its changes and what they are for."""

import re
from collections.abc import Sequence

from interlock.rca.analyst.answers import FaultKind, RepoCandidate
from interlock.rca.analyst.culprits import CulpritLead
from interlock.rca.analyst.names import detect_language
from interlock.rca.analyst.stack import StackLocation, extract_message
from interlock.rca.analyst.triage import is_failed_check
from interlock.rca.records import Failure, Repo
from interlock.rca.sources.git.roles import INFRASTRUCTURE, MIXED, TESTS
from interlock.system.file_kinds import is_document
from interlock.system.file_kinds import is_test as is_test_file

_MISSING = re.compile(
    r"(?:[Nn]o such file or directory|cannot find the (?:file|path) specified)\W{1,4}"
    r"(?:open |stat )?['\"]?((?:/|[A-Z]:[\\/])[^'\"\n:*?]{3,300})"
)
_LOOKED_AT = 20_000
_MOST_MISSING = 5
_NOT_THERE = 0.75
_BROKE_THERE = 0.75
_SURE_LEAD = 0.7
_NEW_LINE = 0.6
_FITTING = 1.0
_UNFITTING = 0.35


_USES = {
    TESTS: ("automation",),
    INFRASTRUCTURE: ("infra",),
    MIXED: ("product", "automation"),
}


def list_uses(repo: Repo) -> tuple[str, ...]:
    """The kinds of faults that a repository may hold: one without a role is a product."""
    return _USES.get(repo.role, ("product",))


def judge_by_location(
    kind: FaultKind, failure: Failure, innermost: tuple[Repo, StackLocation] | None
) -> FaultKind:
    """The kind, with what the place adds where it broke: code of the tests that breaks by itself is
    at fault itself; a check that fails there says nothing."""
    if innermost is None or kind.category not in ("product", "automation", "unknown"):
        return kind
    repo, spot = innermost
    if repo.role == TESTS and not is_failed_check(failure):
        why = f"it breaks inside the tests, at {repo.name}:{spot.path}:{spot.line}"
        return FaultKind(category="automation", code="ab001", confidence=_BROKE_THERE, why=why)
    return kind


def judge_by_new_line(kind: FaultKind, spot: StackLocation, commit: str) -> FaultKind:
    """The kind, if the line that failed was written by that commit since the last green run."""
    if not commit:
        return kind
    category, code = ("automation", "ab001") if spot.is_test else ("product", "pb001")
    why = f"{commit[:12]} wrote the line that failed, {spot.path}:{spot.line}"
    return FaultKind(category=category, code=code, confidence=_NEW_LINE, why=why)


def find_missing_files(failure: Failure) -> list[str]:
    """The files that were not where they were looked for, as the failure's words name them."""
    return list(dict.fromkeys(_MISSING.findall(extract_message(failure)[:_LOOKED_AT])))[
        :_MOST_MISSING
    ]


def judge_by_missing_file(path: str) -> FaultKind:
    """The kind, if a file was missing that the tested revision does have."""
    why = f"{path} is in the repository, but it was not there where the tests ran"
    return FaultKind(category="infra", code="si001", confidence=_NOT_THERE, why=why)


def judge_by_lead(kind: FaultKind, lead: CulpritLead | None, role: str = "") -> FaultKind:
    """The kind, with what a sure suspect adds: a commit that changed nothing but tests broke them,
    and not the product; one that changed the product's code, its settings or its dependencies did
    break that. `role` is that of the repository."""
    if lead is None or lead.score < _SURE_LEAD or kind.category not in ("product", "unknown"):
        return kind
    code = [change.path for change in lead.commit.files if not is_document(change.path)]
    if code and all(map(is_test_file, code)):
        why = f"{lead.commit.hash[:12]} changed tests alone"
        return FaultKind(category="automation", code="ab001", confidence=_BROKE_THERE, why=why)
    is_code = bool(detect_language(lead.path)) or lead.is_named
    if kind.category == "unknown" and is_code and role not in (TESTS, INFRASTRUCTURE):
        why = f"{lead.commit.hash[:12]} changed {lead.path}"
        return FaultKind(category="product", code="pb001", confidence=_SURE_LEAD, why=why)
    return kind


def choose_by_stack(
    repo: Repo, spots: Sequence[StackLocation], category: str
) -> RepoCandidate | None:
    """A repository that holds places of the stack."""
    product = [spot for spot in spots if not spot.is_test]
    if not spots:
        return None
    strength = min(1.0, 0.6 + 0.2 * len(product)) if product else 0.4
    first = (product or spots)[0]
    why = f"the stack leads to {first.path}:{first.line}"
    paths = tuple(dict.fromkeys(spot.path for spot in product or spots))
    return RepoCandidate(
        repo=repo.name, score=strength * _weigh_purpose(repo, category), why=why, paths=paths
    )


def choose_by_purpose(repo: Repo, category: str) -> RepoCandidate | None:
    """A repository that is for what failed, where no stack leads anywhere else."""
    if category not in list_uses(repo):
        return None
    return RepoCandidate(repo=repo.name, score=0.3, why=f"it is for: {repo.purpose or repo.name}")


def choose_by_changes(
    repo: Repo, found: Sequence[CulpritLead], category: str
) -> RepoCandidate | None:
    """A repository in which something changed that the failure points at."""
    if not found:
        return None
    best = found[0]
    reason = f": {best.why[0]}" if best.why else ""
    why = f'{best.commit.hash[:12]} "{best.commit.subject}"{reason}'
    paths = tuple(dict.fromkeys(lead.path for lead in found[:5]))
    return RepoCandidate(
        repo=repo.name, score=best.score * _weigh_purpose(repo, category), why=why, paths=paths
    )


def rank_repos(places: Sequence[RepoCandidate | None]) -> list[RepoCandidate]:
    """The best candidate of each repository, the likeliest first."""
    found: dict[str, RepoCandidate] = {}
    for place in places:
        if place and (place.repo not in found or place.score > found[place.repo].score):
            found[place.repo] = place
    return sorted(found.values(), key=lambda place: (-place.score, place.repo))


def _weigh_purpose(repo: Repo, category: str) -> float:
    if category not in ("product", "automation", "infra"):
        return _FITTING
    return _FITTING if category in list_uses(repo) else _UNFITTING
