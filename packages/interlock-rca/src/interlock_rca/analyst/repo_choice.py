"""Which repositories a failure points at, by its stack, its changes and what they are for."""

import re
from collections.abc import Iterable, Mapping, Sequence

from interlock.system.file_kinds import is_document
from interlock.system.file_kinds import is_test as is_test_file
from interlock_rca.analyst.answers import CLEAR_SUSPECT, FaultKind, RepoCandidate
from interlock_rca.analyst.chances import CulpritLead
from interlock_rca.analyst.names import detect_language
from interlock_rca.analyst.stack import StackLocation, extract_message
from interlock_rca.analyst.triage import is_failed_check
from interlock_rca.records import Failure, Repo
from interlock_rca.sources.git.roles import INFRASTRUCTURE, MIXED, TESTS

_MISSING = re.compile(
    r"(?:[Nn]o such file or directory|cannot find the (?:file|path) specified)\W{1,4}"
    r"(?:open |stat )?['\"]?((?:/|[A-Z]:[\\/])[^'\"\n:*?]{3,300})"
)
_LOOKED_AT = 20_000
_MOST_MISSING = 5
_NOT_THERE = 0.75
_BROKE_THERE = 0.75
_SURE_LEAD = 0.7
UNSURE = "ti001"
"""The code of what must be investigated by people."""
_NEW_LINE = 0.6
_UNTIED = 0.5
_FITS = 0.1
_CALLED_ALIKE = 0.35
_SHORTEST_WORD = 3


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


def judge_by_leads(
    kind: FaultKind,
    leads: Sequence[CulpritLead],
    roles: Mapping[str, str],
    *,
    is_searched: bool = True,
) -> FaultKind:
    """The kind, with what the suspects add: a commit that changed nothing but tests broke them, and
    not the product; one that changed the product's code, its settings or its dependencies did break
    that. Which commit of the product it was need not be known for that. `roles` are those of the
    repositories; where commits were searched and none can alter anything, a product that is only
    thought to be broken is in doubt. Tests that are only thought to be broken are not if a commit
    of the product stands out."""
    is_guess = kind.category == "automation" and kind.confidence < _SURE_LEAD
    if kind.category not in ("product", "unknown") and not is_guess:
        return kind
    if (
        is_searched
        and not is_guess
        and kind.confidence < _SURE_LEAD
        and all(lead.is_inert for lead in leads)
    ):
        why = "nothing that alters behaviour changed"
        return FaultKind(category="unknown", code=UNSURE, confidence=kind.confidence, why=why)
    chances = {"product": 0.0, "automation": 0.0}
    first: dict[str, CulpritLead] = {}
    for lead in leads:
        blamed = _find_blamed(lead, roles.get(lead.repo, ""))
        if blamed and lead.is_tied:
            chances[blamed] += lead.score
            first.setdefault(blamed, lead)
    if chances["automation"] >= _SURE_LEAD:
        commit = first["automation"].commit.hash[:12]
        why = f"{commit} changed tests alone"
        return FaultKind(category="automation", code="ab001", confidence=_BROKE_THERE, why=why)
    if kind.category != "product" and chances["product"] >= CLEAR_SUSPECT:
        lead = first["product"]
        why = f"{lead.commit.hash[:12]} changed {lead.path}"
        chance = min(_SURE_LEAD, chances["product"])
        return FaultKind(category="product", code="pb001", confidence=chance, why=why)
    return kind


def _find_blamed(lead: CulpritLead, role: str) -> str:
    """What a commit broke, if it is the culprit: the product or the tests; empty if that cannot be
    told."""
    code = [change.path for change in lead.commit.files if not is_document(change.path)]
    if code and (role == TESTS or all(map(is_test_file, code))):
        return "automation"
    if role == INFRASTRUCTURE or not (detect_language(lead.path) or lead.is_named):
        return ""
    return "product"


def choose_by_stack(
    repo: Repo, spots: Sequence[StackLocation], category: str, sureness: float
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
        repo=repo.name,
        score=strength * _weigh_purpose(repo, category, sureness),
        why=why,
        paths=paths,
    )


def choose_by_purpose(repo: Repo, category: str) -> RepoCandidate | None:
    """A repository that is for what failed, where no stack leads anywhere else."""
    if category not in list_uses(repo):
        return None
    return RepoCandidate(repo=repo.name, score=_FITS, why=f"it is for: {repo.purpose or repo.name}")


def choose_by_changes(
    repo: Repo, leads: Sequence[CulpritLead], category: str, sureness: float
) -> RepoCandidate | None:
    """A repository in which something changed that the failure points at: as likely as its commits
    are together, among those of all repositories."""
    own = [lead for lead in leads if lead.repo == repo.name]
    if not own:
        return None
    found = [lead for lead in own if lead.is_tied] or own
    best = found[0]
    chance = min(1.0, sum(lead.score for lead in found))
    # That something changed at all says little where nothing ties it to the failure.
    weight = _weigh_purpose(repo, category, sureness) * (1.0 if best.is_tied else _UNTIED)
    reason = f": {best.why[0]}" if best.why else ""
    why = f'{best.commit.hash[:12]} "{best.commit.subject}"{reason}'
    paths = tuple(dict.fromkeys(lead.path for lead in found[:5]))
    return RepoCandidate(repo=repo.name, score=chance * weight, why=why, paths=paths)


def choose_by_name(
    repo: Repo, others: Iterable[Repo], failure: Failure, category: str, sureness: float
) -> RepoCandidate | None:
    """A repository that is called like what the test is about, by a word that no other one's name
    has."""
    usual = {word for other in others if other.name != repo.name for word in _split(other.name)}
    said = _split(f"{failure.test_name} {failure.class_name} {failure.file}")
    own = {
        word
        for word in _split(repo.name) - usual
        if len(word) >= _SHORTEST_WORD and not is_test_file(f"{word}/x")
    }
    if not own & said:
        return None
    why = f"the test is about {', '.join(sorted(own & said))}"
    return RepoCandidate(
        repo=repo.name, score=_CALLED_ALIKE * _weigh_purpose(repo, category, sureness), why=why
    )


def _split(text: str) -> set[str]:
    return {word.casefold() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\w", text)}


def rank_repos(places: Sequence[RepoCandidate | None]) -> list[RepoCandidate]:
    """The best candidate of each repository, the likeliest first."""
    found: dict[str, RepoCandidate] = {}
    for place in places:
        if place and (place.repo not in found or place.score > found[place.repo].score):
            found[place.repo] = place
    return sorted(found.values(), key=lambda place: (-place.score, place.repo))


def _weigh_purpose(repo: Repo, category: str, sureness: float) -> float:
    """How likely the kind, as far as it is known, lets a repository be: one that is not for it is
    as likely as the kind is wrong, beside one that is."""
    if category not in ("product", "automation", "infra") or category in list_uses(repo):
        return 1.0
    return min(1.0, (1 - sureness) / max(sureness, 0.01))
