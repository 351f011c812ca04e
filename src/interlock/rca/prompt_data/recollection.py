"""What earlier steps, people and analyses said, made ready for a prompt.

Finds the answers of the case by family, and the words that rules and reviewers added to its
context. All of it is somebody else's words: every string leaves here harmless.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from interlock.rca.prompt_data.clocks import days_between
from interlock.rca.prompt_data.subject import Subject
from interlock.rca.records import PriorCause, SymptomInfo
from interlock.rca.steps import FAMILIES, find_family
from interlock.runtime.fence import MISSING

_WORDS_OF_REVIEW: Final = ("comment", "note", "reason")


def prior(about: Subject) -> dict[str, Any]:
    """The earlier artifacts, what they mean for this step, and the additions of the rules."""
    said = _answers(about)
    context = about.case.context
    found: dict[str, Any] = {each.name: _object(about, said.get(each.name)) for each in FAMILIES}
    triage, finding = _of(said, "triage"), _of(said, "investigate")
    score = finding.get("convergence_score")
    return {
        **found,
        "symptom_category": about.taxonomy.category(_text(triage, "symptom_category")) or MISSING,
        "defect_type_hypothesis": _code(about, triage, "defect_type_hypothesis") or MISSING,
        "cross_ref_strategy": about.line(_text(_of(said, "resolve"), "cross_ref_strategy")),
        "convergence_score": score if isinstance(score, int | float) else MISSING,
        "loop_iteration": about.case.loops.get("investigate", 0),
        "attempt": about.case.attempt,
        "recall_match": _of(said, "recall").get("match") is True,
        "recall_candidate": _object(about, context.get("recall_candidate")),
        **_chosen_repos(about, _of(said, "resolve")),
        "findings": _rows(_tidy(about, context.get("findings"))),
        "evidence": _evidence(about, finding),
        "against": _listed(_tidy(about, finding.get("contradicting_evidence"))),
        "defect_type": _code(about, context, "defect_type"),
        "human_override": _object(about, context.get("human_override")),
        "clock_skew": about.line(context["clock_skew"]) if "clock_skew" in context else "",
        "review_note": _review_note(about, _of(said, "review")),
        "final_defect_type": _final(about, said),
    }


def history(about: Subject) -> dict[str, Any]:
    known = about.history
    symptoms = [_symptom(about, each) for each in known.symptoms[: about.limits.symptoms]]
    return {
        "symptom": symptoms[0] if symptoms else None,
        "symptoms": symptoms,
        "prior_rcas": [_rca(about, each) for each in known.prior_rcas[: about.limits.rcas]],
        "failure_count": known.failure_count,
        "last_seen": about.line(known.last_seen),
        "is_dormant_reactivation": any(each.is_dormant_reactivation for each in known.symptoms),
        "symptoms_total": len(known.symptoms),
        "prior_rcas_total": len(known.prior_rcas),
    }


def digest(about: Subject) -> dict[str, Any]:
    """The root causes known in this suite: the newest, and how many there are."""
    known = about.history.digest
    shown = known[max(0, len(known) - about.limits.digest) :]
    return {"rcas": [_rca(about, each) for each in shown], "total": len(known)}


def _answers(about: Subject) -> dict[str, Any]:
    found = ((find_family(step), answer) for step, answer in about.case.answers.items())
    return {family.name: answer for family, answer in found if family}


def _of(said: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    answer = said.get(name)
    return answer if isinstance(answer, Mapping) else {}


def _text(answer: Mapping[str, Any], name: str) -> str:
    value = answer.get(name)
    return value if isinstance(value, str) else ""


def _code(about: Subject, answer: Any, name: str) -> str:
    """The defect code in that place, if it is one of the taxonomy."""
    return about.taxonomy.code(_text(answer, name)) or "" if isinstance(answer, Mapping) else ""


def _tidy(about: Subject, value: Any) -> Any:
    return about.fence.tidy(value, about.limits.words)


def _object(about: Subject, value: Any) -> dict[str, Any] | None:
    """What was said, if it is an object and says something."""
    return _tidy(about, {**value}) if isinstance(value, Mapping) and value else None


def _rows(value: Any) -> list[dict[str, Any]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value] if value else []


def _chosen_repos(about: Subject, resolve: Mapping[str, Any]) -> dict[str, Any]:
    """Which repositories were chosen, and the one that this asking is about."""
    chosen = about.case.context.get("selected_repos") or resolve.get("selected_repos")
    selected = _rows(_tidy(about, chosen))
    repo = _tidy(about, about.case.context.get("repo"))
    if not isinstance(repo, dict) or not repo:
        repo = selected[0] if len(selected) == 1 else None
    left = about.case.context.get("repos_left")
    paths = repo.get("focus_paths") if repo else None
    return {
        "selected_repos": selected,
        "repo": _completed(about, repo) if repo else None,
        "selected_repo": repo.get("name", MISSING) if repo else MISSING,
        "focus_paths": paths if isinstance(paths, list) else [],
        "repos_left": len(left) if isinstance(left, Sequence) and not isinstance(left, str) else 0,
    }


def _completed(about: Subject, repo: dict[str, Any]) -> dict[str, Any]:
    """What was said of a repository, and what is known of the one with that name."""
    known = next((it for it in about.repos if about.line(it.name) == repo.get("name")), None)
    if known is None:
        return {**repo, "known": False}
    facts = {"path": known.path, "purpose": known.purpose, "branch": known.branch}
    said = {name: value for name, value in repo.items() if value}
    return {"name": "", **about.lines(facts), "url": about.line(known.url), **said}


def _evidence(about: Subject, finding: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Each reference with the machine's verdict; unchecked where there is none."""
    checked = finding.get("evidence")
    if isinstance(checked, Sequence) and not isinstance(checked, str) and checked:
        found = [each for each in checked if isinstance(each, Mapping)]
        names = ("verdict", "ref", "why")
        return [{name: about.line(_text(each, name)) for name in names} for each in found[:30]]
    refs = finding.get("evidence_refs")
    plain = refs if isinstance(refs, Sequence) and not isinstance(refs, str) else ()
    return [
        {"verdict": "unchecked", "ref": about.line(each), "why": MISSING} for each in plain[:30]
    ]


def _review_note(about: Subject, review: Mapping[str, Any]) -> str:
    found = about.case.context.get("review_note")
    words = (_text(review, name) for name in _WORDS_OF_REVIEW)
    said = found if isinstance(found, str) and found else next((each for each in words if each), "")
    return about.fence.line(said, about.limits.words) if said else ""


def _final(about: Subject, said: Mapping[str, Any]) -> str:
    """The defect code as it stands: a human's goes before a rule's, a rule's before an agent's."""
    places = (
        (about.case.context.get("human_override"), "defect_type"),
        (about.case.context, "defect_type"),
        (said.get("investigate"), "defect_type"),
        (_recalled(about, _of(said, "recall")), "defect_type"),
        (said.get("triage"), "defect_type_hypothesis"),
    )
    found = (_code(about, answer, name) for answer, name in places)
    return next((code for code in found if code), MISSING)


def _recalled(about: Subject, recall: Mapping[str, Any]) -> dict[str, str]:
    """The root cause that recall recognised, if it is one of those that were shown."""
    known = {it.rca_id: it.defect_type for it in about.history.prior_rcas}
    found = recall.get("prior_rca_id") if recall.get("match") is True else None
    return {"defect_type": known[found]} if isinstance(found, int) and found in known else {}


def _symptom(about: Subject, it: SymptomInfo) -> dict[str, Any]:
    pairs = list(it.environment.items())[: about.limits.attributes]
    return {
        "symptom_id": it.symptom_id,
        **about.lines({"name": it.name, "status": it.status, "component": it.component}),
        "occurrence_count": it.occurrence_count,
        **about.lines({"first_seen": it.first_seen, "last_seen": it.last_seen}),
        "affected_versions": [about.line(each) for each in it.affected_versions[:20]],
        "environment": [f"{about.line(key)}={about.line(value)}" for key, value in sorted(pairs)],
        "rca_ids": list(it.rca_ids[:20]),
        "similarity": MISSING if it.similarity is None else round(it.similarity, 2),
        "is_dormant_reactivation": it.is_dormant_reactivation,
        "error_pattern": about.line(it.error_pattern),
    }


def _rca(about: Subject, it: PriorCause) -> dict[str, Any]:
    days = it.days_since_resolved
    if days is None:
        days = days_between(it.resolved_at, about.now)
    return {
        "rca_id": it.rca_id,
        **about.lines(
            {
                "title": it.title,
                "defect_type": it.defect_type,
                "component": it.component,
                "status": it.status,
                "jira_link": it.jira_link,
            }
        ),
        "affected_versions": [about.line(each) for each in it.affected_versions[:20]],
        **about.lines({"resolved_at": it.resolved_at, "verified_at": it.verified_at}),
        "days_since_resolved": MISSING if days is None else days,
        "cases": it.cases,
        "description": about.line(it.description),
    }
