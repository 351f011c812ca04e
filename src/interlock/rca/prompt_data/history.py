"""What earlier steps, people and analyses said, and the blocks in which a prompt shows its data.

Answers are found by step family, with what rules and reviewers added. A table says which family
shows which block and how much of the room it may claim; what one block does not need, others get.
All of it is somebody else's words: every string leaves here harmless, each block in its fence.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import msgspec

from interlock.rca.prompt_data.groups import days_between
from interlock.rca.prompt_data.subject import Subject
from interlock.rca.records import PriorCause, SymptomInfo
from interlock.rca.steps import FAMILIES, find_family
from interlock.runtime.fence import MISSING, FencedText, outline

_WORDS_OF_REVIEW: Final = ("comment", "note", "reason")


def prior(about: Subject) -> dict[str, Any]:
    """The earlier artifacts, what they mean for this step, and the additions of the rules."""
    answers = _answers(about)
    context = about.case.context
    found: dict[str, Any] = {each.name: _object(about, answers.get(each.name)) for each in FAMILIES}
    triage, finding = _of(answers, "triage"), _of(answers, "investigate")
    score = finding.get("convergence_score")
    return {
        **found,
        "symptom_category": about.taxonomy.category(_text(triage, "symptom_category")) or MISSING,
        "defect_type_hypothesis": _code(about, triage, "defect_type_hypothesis") or MISSING,
        "cross_ref_strategy": about.line(_text(_of(answers, "resolve"), "cross_ref_strategy")),
        "convergence_score": score if isinstance(score, int | float) else MISSING,
        "loop_iteration": about.case.loops.get("investigate", 0),
        "attempt": about.case.attempt,
        "recall_match": _of(answers, "recall").get("match") is True,
        "recall_candidate": _object(about, context.get("recall_candidate")),
        **_chosen_repos(about, _of(answers, "resolve")),
        "findings": _rows(_tidy(about, context.get("findings"))),
        "evidence": _evidence(about, finding),
        "against": _listed(_tidy(about, finding.get("contradicting_evidence"))),
        "defect_type": _code(about, context, "defect_type"),
        "human_override": _object(about, context.get("human_override")),
        "clock_skew": about.line(context["clock_skew"]) if "clock_skew" in context else "",
        "review_note": _review_note(about, _of(answers, "review")),
        "final_defect_type": _final(about, answers),
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


def _of(answers: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    answer = answers.get(name)
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
    given = {name: value for name, value in repo.items() if value}
    return {"name": "", **about.lines(facts), "url": about.line(known.url), **given}


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
    note = found if isinstance(found, str) and found else next((each for each in words if each), "")
    return about.fence.line(note, about.limits.words) if note else ""


def _final(about: Subject, answers: Mapping[str, Any]) -> str:
    """The defect code as it stands: a human's goes before a rule's, a rule's before an agent's."""
    places = (
        (about.case.context.get("human_override"), "defect_type"),
        (about.case.context, "defect_type"),
        (answers.get("investigate"), "defect_type"),
        (_recalled(about, _of(answers, "recall")), "defect_type"),
        (answers.get("triage"), "defect_type_hypothesis"),
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


Groups = Mapping[str, Any]
_FENCE_LINES: Final = 120


class PromptBlock(msgspec.Struct, frozen=True):
    """A kind of block. `weight` is its claim to room, `head` how much of the room its beginning
    gets when it is cut, `text` makes its content; None leaves the block away."""

    name: str
    title: str
    families: str
    weight: int
    head: float
    text: Callable[[Subject, Groups], str | None]


def _failure(about: Subject, groups: Groups) -> str:
    given = groups["identity"]
    shown = {name: given[name] for name in ("case_id", "item_id", "job_id")}
    facts = {**groups["failure"]}
    for name in ("start", "end", "duration", "stats", "log_truncated", "auto_analyzed"):
        facts.pop(name)
    if facts["issue_type"] == MISSING:
        facts.pop("issue_comment")
    asked = ("name", "type", "parent_path")
    known = {name: value for name, value in facts.items() if name in asked or _is_known(value)}
    if known.get("short_name") == known["name"]:
        known.pop("short_name")
    return outline({**shown, **known})


def _launch(about: Subject, groups: Groups) -> str:
    shown = {"launch_id": groups["identity"]["launch_id"], **groups["envelope"], **groups["git"]}
    for name in ("start", "end", "duration"):
        shown.pop(name)
    asked = ("launch_id", "version", "branch", "commit")
    known = {name: value for name, value in shown.items() if name in asked or _is_known(value)}
    known["tests of its job"] = groups["failure"]["stats"]
    attributes = [f"{it['key']} = {it['value']} ({it['of']})" for it in groups["env"]["attributes"]]
    more = groups["env"]["total"] - len(attributes)
    if more:
        attributes.append(f"... and {more} more")
    return outline({**known, "attributes": attributes})


def _times(about: Subject, groups: Groups) -> str:
    stamps = {**groups["timestamps"]}
    for name in ("clock_skew_warning", "clock_skew_unchecked", "clock_plane_note"):
        stamps.pop(name)
    return outline(stamps)


def _siblings(about: Subject, groups: Groups) -> str | None:
    found = groups["siblings"]
    if not found["total"]:
        return None
    lines = outline([_known(each) for each in found["list"]])
    more = found["left_out"]
    return f"{lines}\n... and {more} more" if more else lines


def _repos(about: Subject, groups: Groups) -> str:
    found = groups["workspace"]
    more = found["total"] - len(found["repos"])
    lines = outline([_known(each) for each in found["repos"]])
    return f"{lines}\n... and {more} more" if more else lines


def _symptoms(about: Subject, groups: Groups) -> str | None:
    found = groups["history"]["symptoms"]
    return "\n\n".join(outline(each) for each in found) if found else None


def _rcas(about: Subject, groups: Groups) -> str | None:
    found = groups["history"]["prior_rcas"]
    return "\n\n".join(outline(_known(each)) for each in found) if found else None


def _digest(about: Subject, groups: Groups) -> str | None:
    found = groups["digest"]
    if not found["rcas"]:
        return None
    lines = outline([_known(each) for each in found["rcas"]])
    more = found["total"] - len(found["rcas"])
    return f"{more} earlier ones left out\n{lines}" if more else lines


def _prior(name: str) -> Callable[[Subject, Groups], str | None]:
    def text(about: Subject, groups: Groups) -> str | None:
        found = groups["prior"][name]
        return outline(_known(found) if isinstance(found, dict) else found) if found else None

    return text


def _finding(about: Subject, groups: Groups) -> str | None:
    """The finding without what has a block of its own."""
    found = {**(groups["prior"]["investigate"] or {})}
    for name in ("evidence", "evidence_refs", "contradicting_evidence"):
        found.pop(name, None)
    return outline(_known(found)) if found else None


def _previous(about: Subject, groups: Groups) -> str | None:
    """The last investigation, unless it is one of the findings that are shown anyway."""
    prior = groups["prior"]
    return None if prior["findings"] or not prior["investigate"] else outline(prior["investigate"])


def _review(about: Subject, groups: Groups) -> str | None:
    prior = groups["prior"]
    words = {"review": prior["review"], "note": prior["review_note"]}
    if prior["human_override"]:
        words["human_override"] = prior["human_override"]
    known = {name: value for name, value in words.items() if value}
    return outline(known) if known else None


def _urls(about: Subject, groups: Groups) -> str | None:
    found = _known(groups["urls"])
    return outline(found) if found else None


def _known(facts: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in facts.items() if _is_known(value)}


def _is_known(value: Any) -> bool:
    return value not in (None, "", MISSING, [], {})


_TABLE: Final = (
    PromptBlock("failure", "the failed test", "F0 F1 F2 F3 F4 F5 F6", 4, 1, _failure),
    PromptBlock(
        "message", "error message", "F0 F1 F2 F3 F4 F5 F6", 6, 0.7, lambda s, _: s.failure.message
    ),
    PromptBlock("stack", "stack", "F1 F2 F3", 6, 0.5, lambda s, _: s.failure.stack),
    PromptBlock("log", "log", "F0 F1 F3", 10, 0.4, lambda s, _: s.failure.log),
    PromptBlock("launch", "launch and environment", "F0 F1 F2 F3 F4 F5 F6", 4, 1, _launch),
    PromptBlock("times", "times", "F0 F1 F3 F4 F5", 2, 1, _times),
    PromptBlock("siblings", "other failures of this launch", "F1 F3 F4 F6", 4, 1, _siblings),
    PromptBlock("repos", "repositories", "F1 F2 F3", 5, 1, _repos),
    PromptBlock("symptoms", "symptoms seen before", "F0 F4 F5", 6, 1, _symptoms),
    PromptBlock("rcas", "root causes found before", "F0 F3 F4 F5 F6", 4, 1, _rcas),
    PromptBlock("digest", "root causes known in this suite", "F4 F6", 6, 1, _digest),
    PromptBlock(
        "recall_candidate", "an uncertain match", "F1 F3", 2, 1, _prior("recall_candidate")
    ),
    PromptBlock("recall", "recall", "F5 F6", 3, 1, _prior("recall")),
    PromptBlock("triage", "triage", "F1 F2 F3 F5 F6", 3, 1, _prior("triage")),
    PromptBlock("resolve", "chosen repositories", "F3 F5", 3, 1, _prior("selected_repos")),
    PromptBlock("repo", "the repository of this pass", "F3", 3, 1, _prior("repo")),
    PromptBlock("findings", "what other repositories showed", "F3 F4 F5", 5, 1, _prior("findings")),
    PromptBlock("previous", "the previous investigation", "F2 F3", 5, 1, _previous),
    PromptBlock("investigate", "the finding", "F4 F5 F6", 6, 1, _finding),
    PromptBlock(
        "evidence", "evidence, as checked by machine", "F4 F5 F6", 4, 1, _prior("evidence")
    ),
    PromptBlock("against", "what speaks against it", "F5", 3, 1, _prior("against")),
    PromptBlock("correlate", "comparison with other cases", "F5 F6", 3, 1, _prior("correlate")),
    PromptBlock("review", "the reviewer's words", "F1 F2 F3 F4 F5 F6", 3, 1, _review),
    PromptBlock("urls", "addresses", "F3 F5 F6", 2, 1, _urls),
)
BLOCKS: Final = {block.name: block for block in _TABLE}
"""Every block, in the order in which they claim room."""


def fill_blocks(about: Subject, groups: Groups, room: int) -> dict[str, FencedText]:
    """The blocks of the subject's family, none longer than its share of that many characters."""
    texts = {
        block.name: text
        for block in _TABLE
        if about.family.short in block.families and (text := block.text(about, groups)) is not None
    }
    needs = {name: len(text) for name, text in texts.items()}
    shares = share_out(needs, room - _FENCE_LINES * len(texts))
    return {
        name: about.fence.block(BLOCKS[name].title, text, shares[name], BLOCKS[name].head)
        for name, text in texts.items()
    }


def share_out(needs: Mapping[str, int], room: int) -> dict[str, int]:
    """Room for each block: what it needs, or its share by weight of what the modest ones left."""
    shares: dict[str, int] = {}
    weights = sum(BLOCKS[name].weight for name in needs)
    for name in sorted(needs, key=lambda name: (needs[name] / BLOCKS[name].weight, name)):
        shares[name] = max(0, min(needs[name], room * BLOCKS[name].weight // weights))
        room -= shares[name]
        weights -= BLOCKS[name].weight
    return shares
