"""The built-in analyst's answers to F1 to F4 and F6.

Takes facts that others looked up; decides only how sure it is and what to say. Every number comes
with its reasons.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from interlock.system.text import plural, shorten
from interlock_rca.analyst.chances import CulpritLead
from interlock_rca.analyst.stack import StackLocation
from interlock_rca.analyst.triage import is_failed_check
from interlock_rca.records import Failure, Suspect

SURE_KIND_SCORE = 0.6
"""The confidence at which an environment failure or a flake skips the investigation."""
SAME_COMMIT_CONFIDENCE = 0.9
SAME_LOOK_LIKENESS = 0.85
SAME_SYMPTOM_LIKENESS = 0.3
"""The least likeness of two findings that share a cause because they share a suspect."""
MAX_SWEEP = 50
"""The most files of a commit that joins findings: a larger one is near to anything, so they must
also look the same."""
_NO_LEAD = 0.35
_MOST_SURE = 0.97
CLEAR_SUSPECT = 0.5
"""The chance from which a commit is called the suspect: likelier than all others together."""
_FAINT = 0.02
"""Leads below this chance are not named."""
_MOST_SUSPECTS = 5
SEARCH_LIMITS = (
    "Looked at, as far as it could be found: the lines of the stack and who wrote them; the "
    "failing test's source, what it imports and calls, and the code it came with; names and words "
    "of the message and of the changes; renamed and removed files; changed dependencies, settings "
    "and submodules. Not looked at: what the code does when it runs, data, services, submodules "
    "that are not checked out, and repositories that were not named."
)
"""The limits of the search for suspects."""
_HEAD = 200


class FaultKind(msgspec.Struct, frozen=True, kw_only=True):
    """The kind of a failure, its confidence, and the reason."""

    category: str
    code: str
    confidence: float
    why: str


class RepoCandidate(msgspec.Struct, frozen=True, kw_only=True):
    """A repository to look in, and the reason."""

    repo: str
    score: float
    why: str
    paths: tuple[str, ...] = ()


class SuiteCause(msgspec.Struct, frozen=True, kw_only=True):
    """An earlier root cause of the same suite."""

    rca_id: int
    title: str
    likeness: float
    suspects: tuple[Suspect, ...]
    """Suspects, likeliest first."""
    score: float
    versions: tuple[str, ...] = ()
    is_same_kind: bool = False
    """True if its failures and this one share an error type or a place."""


def build_triage_answer(
    kind: FaultKind, where: Sequence[RepoCandidate], *, cascade: int, skew: str, failure: Failure
) -> dict[str, Any]:
    """Return the answer to F1; `cascade` counts the siblings that one broken set-up failed."""
    skips = kind.category in ("infra", "flake") and kind.confidence >= SURE_KIND_SCORE
    notes = [f"{kind.category}: {kind.why} (confidence {kind.confidence:.2f})"]
    if cascade:
        notes.append(f"{cascade} siblings fail in the same set-up")
    if skew:
        notes.append(f"clock skew: {skew}")
    if failure.log_truncated:
        notes.append("its log was cut")
    if not (failure.message or failure.stack or failure.log):
        notes.append("the report says nothing but that it failed")
    return {
        "symptom_category": kind.category if skips or kind.category not in _SKIPPED else "unknown",
        "severity": _choose_severity(kind.category, cascade),
        "defect_type_hypothesis": kind.code,
        "candidate_repos": [candidate.repo for candidate in where],
        "skip_investigation": skips,
        "clock_skew_suspected": bool(skew),
        "cascade_suspected": bool(cascade),
        "data_quality_notes": "; ".join(notes),
        "confidence": round(kind.confidence, 3),
    }


_SKIPPED = ("infra", "flake")


def _choose_severity(category: str, cascade: int) -> str:
    if category == "flake":
        return "low"
    return "high" if cascade or category == "product" else "medium"


def build_resolve_answer(
    where: Sequence[RepoCandidate], known: Sequence[str], tried: set[str]
) -> dict[str, Any]:
    """Return the answer to F2. On repetition, repositories searched in vain go last."""
    fresh = [candidate for candidate in where if candidate.repo not in tried]
    chosen = fresh or list(where)
    if chosen:
        best = chosen[0].score
        chosen = [candidate for candidate in chosen if candidate.score >= 0.8 * best][:2]
    else:
        chosen = [
            RepoCandidate(repo=name, score=0, why="nothing points anywhere") for name in known[:1]
        ]
    return {
        "selected_repos": [
            {
                "name": candidate.repo,
                "focus_paths": list(candidate.paths[:5]),
                "reason": candidate.why,
            }
            for candidate in chosen
        ],
        "cross_ref_strategy": "what changed since the last green run, beside the stack and the log",
    }


class RepositorySearch(msgspec.Struct, frozen=True, kw_only=True):
    """The search of one repository for the culprit of a failure."""

    repo: str
    leads: Sequence[CulpritLead] = ()
    """Leads, likeliest first."""
    spots: Sequence[StackLocation] = ()
    looked_at: int = 0
    """The number of its commits that may be new."""
    urls: Mapping[str, str] = {}
    """Web addresses of commits."""
    sizes: Mapping[str, tuple[int, int]] = {}
    """Added and removed lines of commits."""
    history: str = ""
    """What the memory of results says about the test."""
    is_bounded: bool = True
    """True if a passing commit bounds these, so the culprit must be among them."""
    is_exhausted: bool = True
    """True if no other place is likelier."""


def build_investigate_answer(
    failure: Failure, search: RepositorySearch, kind: FaultKind
) -> dict[str, Any]:
    """Return the answer to F3 for one repository."""
    repo, spots = search.repo, search.spots
    suspects = _choose_suspects(search.leads)
    best = suspects[0] if suspects else None
    spot = _find_break(failure, spots)
    refs = [f"{repo}@{lead.commit.hash}" for lead in suspects[:2]]
    places = list(dict.fromkeys([*([spot] if spot else []), *spots]))[:2]
    refs += [f"{repo}:{place.path}:{place.line}" for place in places if place.line]
    return {
        "launch_id": failure.launch,
        "case_ids": [failure.item_id] if failure.item_id else [],
        "rca_message": _format_message(failure, search, suspects, spot),
        "defect_type": kind.code,
        "component": _name_component(repo, best, spot),
        "convergence_score": _compute_convergence(best, kind, search.is_exhausted),
        "is_exhausted": search.is_exhausted,
        "evidence_refs": refs,
        "suspects": [
            _describe_suspect(
                lead,
                search.urls.get(lead.commit.hash, ""),
                search.sizes.get(lead.commit.hash, (0, 0)),
            )
            for lead in suspects
        ],
    }


def _find_break(failure: Failure, spots: Sequence[StackLocation]) -> StackLocation | None:
    """Return where it broke: a failed check in a test is the product's, anything else breaks where
    the stack is innermost."""
    if not spots or is_failed_check(failure):
        return next(iter(spots), None)
    return min(spots, key=lambda spot: spot.depth)


def _compute_convergence(best: CulpritLead | None, kind: FaultKind, is_exhausted: bool) -> float:
    """Return the confidence in the finding by its kind or its suspect: a product may clearly be
    broken by an unclear commit. While another place is likelier, only a sure suspect ends the
    search."""
    known = kind.confidence if is_exhausted and kind.category != "unknown" else 0.0
    score = known + (1 - known) * best.score if best else 0.0
    return round(max(_NO_LEAD, min(_MOST_SURE, score)), 3)


def _choose_suspects(found: Sequence[CulpritLead]) -> list[CulpritLead]:
    """Return the leads worth naming, without commits that alter no behaviour unless something else
    ties them to the failure."""
    able = [
        lead
        for lead in found
        if not lead.is_inert and lead.score >= _FAINT and (lead.is_tied or len(found) == 1)
    ]
    return able[:_MOST_SUSPECTS]


def _format_message(
    failure: Failure,
    search: RepositorySearch,
    suspects: Sequence[CulpritLead],
    spot: StackLocation | None,
) -> str:
    repo, looked_at, is_bounded = search.repo, search.looked_at, search.is_bounded
    bare = f"{failure.test_name or failure.id} failed, and its report says no more"
    headline = " ".join((failure.message or failure.type or bare).split())
    is_whole = len(headline) <= _HEAD
    parts = [f"{headline.rstrip('.')}." if is_whole else shorten(headline, _HEAD)]
    if spot:
        inside = f" in {spot.function}" if spot.function else ""
        parts.append(f"It shows{inside} at {spot.path}:{spot.line}.")
    which = (
        f"the one commit of {repo}" if looked_at == 1 else f"the {looked_at:,} commits of {repo}"
    )
    if suspects:
        first = suspects[0]
        commit = first.commit
        if first.score >= CLEAR_SUSPECT:
            word = "Suspect" if is_bounded else f"The likeliest, at {first.score:.2f}"
        elif looked_at == 1:
            word = f"The one commit of {repo} that may have brought it, with little against it"
        else:
            word = f"None of {which} stands out; the likeliest, at {first.score:.2f}"
        reasons = "; ".join(first.why) or f"it changed {first.path}"
        parts.append(
            f'{word}: {repo} {commit.hash[:12]} "{commit.subject}" by {commit.author}, '
            f"{commit.at[:10]}: {reasons}."
        )
    elif looked_at:
        # An empty search says nothing about places it did not look at.
        parts.append(f"No suspect was found among {which} that may have brought it.")
        parts.append(SEARCH_LIMITS)
    if looked_at and not is_bounded:
        parts.append(
            f"It is not known which commit of {repo} last passed: only the newest "
            f"{plural(looked_at, 'commit')} were looked at, and the culprit may be older."
        )
    if not (suspects or looked_at or search.history):
        parts.append("No history is known that could have brought it.")
    if search.history:
        parts.append(f"History: {search.history}.")
    return " ".join(parts)


def _name_component(repo: str, best: CulpritLead | None, spot: StackLocation | None) -> str:
    path = best.path if best else spot.path if spot else ""
    folder = path.rpartition("/")[0]
    return f"{repo}/{folder}" if folder else repo


def _describe_suspect(lead: CulpritLead, url: str, size: tuple[int, int]) -> dict[str, Any]:
    commit = lead.commit
    return {
        "repo": lead.repo,
        "commit": commit.hash,
        "subject": commit.subject,
        "author": commit.author,
        "at": commit.at,
        "files": [change.path for change in commit.files[:20]],
        "added": size[0],
        "removed": size[1],
        "score": lead.score,
        "why": "; ".join(lead.why),
        "url": url,
        "touched": len(commit.files) + commit.more,
        "near": lead.is_near,
    }


def build_correlate_answer(
    suspects: Sequence[Suspect], score: float, others: Sequence[SuiteCause], sure: float
) -> dict[str, Any]:
    """Return the answer to F4: the earliest cause with the same suspect, if other evidence supports
    it, or one that looks the same. `score` is the finding's confidence; `sure` is the confidence at
    which suspects without chances count."""
    found: list[tuple[float, str, SuiteCause]] = []
    for prior in others:
        reason = _find_common_cause(suspects, score, prior, sure)
        if reason:
            found.append((SAME_COMMIT_CONFIDENCE, reason, prior))
        elif prior.likeness >= SAME_LOOK_LIKENESS:
            found.append((prior.likeness, "they look the same", prior))
    if not found:
        reason = "no other cause of this suite looks the same, or is like it and has its suspect"
        return {"is_duplicate": False, "confidence": 0.0, "reasoning": reason}
    best = max(found, key=lambda match: match[0])
    confidence, why, prior = best
    return {
        "is_duplicate": True,
        "linked_rca_id": prior.rca_id,
        "confidence": round(confidence, 3),
        "reasoning": f"root cause {prior.rca_id} ({prior.title}): {why}",
        "cross_version_match": len(prior.versions) > 1,
        "affected_versions": list(prior.versions),
    }


def _find_common_cause(
    suspects: Sequence[Suspect], score: float, prior: SuiteCause, sure: float
) -> str:
    """Return why two findings with the same first suspect share a cause, or "". They must look
    alike, or each must point at the commit by itself. A commit that touched everything joins
    nothing."""
    if not suspects or not prior.suspects or suspects[0].commit != prior.suspects[0].commit:
        return ""
    mine, theirs = suspects[0], prior.suspects[0]
    if max(mine.touched, theirs.touched) > MAX_SWEEP:
        return ""
    same = f"both come from commit {mine.commit[:12]}"
    is_alike = prior.is_same_kind or prior.likeness >= SAME_SYMPTOM_LIKENESS
    if is_alike and len(suspects) == len(prior.suspects) == 1:
        return f"{same}, the only suspect of both, and show alike"
    clear = [
        each.score >= CLEAR_SUSPECT if each.score else found >= sure
        for each, found in ((mine, score), (theirs, prior.score))
    ]
    if not all(clear):
        return ""
    if is_alike:
        return f"{same}, and show alike"
    return f"{same}, and each points at it by itself" if mine.near and theirs.near else ""


class ReportedFinding(msgspec.Struct, frozen=True, kw_only=True):
    """The contents of a case's report."""

    message: str
    defect_type: str
    component: str = ""
    evidence: Sequence[str] = ()
    versions: Sequence[str] = ()
    tests: int = 1
    """The number of tests that fail for this reason."""


def build_report_answer(
    failure: Failure, finding: ReportedFinding, severity: str
) -> dict[str, Any]:
    """Return the answer to F6: a draft for the tracker."""
    more = finding.tests - 1
    also = f"\n\n{more} more tests fail for the same reason." if more > 0 else ""
    return {
        "case_id": failure.id,
        "test_name": failure.test_name,
        "summary": shorten(" ".join(finding.message.split()), _HEAD),
        "description": f"{finding.message}{also}",
        "defect_type": finding.defect_type,
        "priority": severity or "medium",
        "component": finding.component,
        "components": [finding.component] if finding.component else [],
        "evidence_refs": list(finding.evidence),
        "affected_versions": list(finding.versions),
    }
