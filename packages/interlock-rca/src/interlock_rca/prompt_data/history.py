"""Present what earlier steps, people and analyses said, and the blocks of a prompt's data.

Answers are found by step family, with the additions of rules and reviewers. A table says which
family shows which block, and its share of the room; unused room goes to other blocks. All of it is
others' words: every string leaves here harmless, each block in its fence.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import msgspec

from interlock.runtime.fence import MISSING, FencedText, format_outline
from interlock_rca.prompt_data.groups import count_days
from interlock_rca.prompt_data.subject import PromptSubject
from interlock_rca.records import PriorCause, SymptomInfo
from interlock_rca.steps import FAMILIES, find_family

_WORDS_OF_REVIEW: Final = ("comment", "note", "reason")


def build_prior(subject: PromptSubject) -> dict[str, Any]:
    """Return the earlier artifacts, their meaning for this step, and the additions of the rules."""
    answers = _find_answers(subject)
    context = subject.case.context
    found: dict[str, Any] = {
        each.name: _tidy_object(subject, answers.get(each.name)) for each in FAMILIES
    }
    triage, finding = _get_answer(answers, "triage"), _get_answer(answers, "investigate")
    score = finding.get("convergence_score")
    return {
        **found,
        "symptom_category": subject.taxonomy.find_category(_get_text(triage, "symptom_category"))
        or MISSING,
        "defect_type_hypothesis": _get_code(subject, triage, "defect_type_hypothesis") or MISSING,
        "cross_ref_strategy": subject.format_line(
            _get_text(_get_answer(answers, "resolve"), "cross_ref_strategy")
        ),
        "convergence_score": score if isinstance(score, int | float) else MISSING,
        "loop_iteration": subject.case.loops.get("investigate", 0),
        "attempt": subject.case.attempt,
        "recall_match": _get_answer(answers, "recall").get("match") is True,
        "recall_candidate": _tidy_object(subject, context.get("recall_candidate")),
        **_build_chosen_repos(subject, _get_answer(answers, "resolve")),
        "findings": _filter_objects(_tidy_value(subject, context.get("findings"))),
        "evidence": _build_evidence(subject, finding),
        "against": _to_list(_tidy_value(subject, finding.get("contradicting_evidence"))),
        "defect_type": _get_code(subject, context, "defect_type"),
        "human_override": _tidy_object(subject, context.get("human_override")),
        "clock_skew": subject.format_line(context["clock_skew"]) if "clock_skew" in context else "",
        "review_note": _find_review_note(subject, _get_answer(answers, "review")),
        "final_defect_type": _find_final_code(subject, answers),
    }


def build_history(subject: PromptSubject) -> dict[str, Any]:
    known = subject.history
    symptoms = [_build_symptom(subject, each) for each in known.symptoms[: subject.limits.symptoms]]
    return {
        "symptom": symptoms[0] if symptoms else None,
        "symptoms": symptoms,
        "prior_rcas": [
            _build_cause(subject, each) for each in known.prior_rcas[: subject.limits.rcas]
        ],
        "failure_count": known.failure_count,
        "last_seen": subject.format_line(known.last_seen),
        "is_dormant_reactivation": any(each.is_dormant_reactivation for each in known.symptoms),
        "symptoms_total": len(known.symptoms),
        "prior_rcas_total": len(known.prior_rcas),
    }


def build_digest(subject: PromptSubject) -> dict[str, Any]:
    """Return the newest root causes known in this suite, and their total."""
    known = subject.history.digest
    kept = known[max(0, len(known) - subject.limits.digest) :]
    return {"rcas": [_build_cause(subject, each) for each in kept], "total": len(known)}


def _find_answers(subject: PromptSubject) -> dict[str, Any]:
    found = ((find_family(step), answer) for step, answer in subject.case.answers.items())
    return {family.name: answer for family, answer in found if family}


def _get_answer(answers: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    answer = answers.get(name)
    return answer if isinstance(answer, Mapping) else {}


def _get_text(answer: Mapping[str, Any], name: str) -> str:
    value = answer.get(name)
    return value if isinstance(value, str) else ""


def _get_code(subject: PromptSubject, answer: Any, name: str) -> str:
    """Return the defect code in a field, if the taxonomy has it."""
    return (
        subject.taxonomy.find_code(_get_text(answer, name)) or ""
        if isinstance(answer, Mapping)
        else ""
    )


def _tidy_value(subject: PromptSubject, value: Any) -> Any:
    return subject.fence.clean_value(value, subject.limits.words)


def _tidy_object(subject: PromptSubject, value: Any) -> dict[str, Any] | None:
    """Return a nonempty object with harmless strings, or None."""
    return _tidy_value(subject, {**value}) if isinstance(value, Mapping) and value else None


def _filter_objects(value: Any) -> list[dict[str, Any]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def _to_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value] if value else []


def _build_chosen_repos(subject: PromptSubject, resolve: Mapping[str, Any]) -> dict[str, Any]:
    """Return the chosen repositories, and the one that this dispatch is about."""
    chosen = subject.case.context.get("selected_repos") or resolve.get("selected_repos")
    selected = _filter_objects(_tidy_value(subject, chosen))
    repo = _tidy_value(subject, subject.case.context.get("repo"))
    if not isinstance(repo, dict) or not repo:
        repo = selected[0] if len(selected) == 1 else None
    left = subject.case.context.get("repos_left")
    paths = repo.get("focus_paths") if repo else None
    return {
        "selected_repos": selected,
        "repo": _complete_repo(subject, repo) if repo else None,
        "selected_repo": repo.get("name", MISSING) if repo else MISSING,
        "focus_paths": paths if isinstance(paths, list) else [],
        "repos_left": len(left) if isinstance(left, Sequence) and not isinstance(left, str) else 0,
    }


def _complete_repo(subject: PromptSubject, repo: dict[str, Any]) -> dict[str, Any]:
    """Return an answer's repository, completed from the known one of that name."""
    known = next(
        (it for it in subject.repos if subject.format_line(it.name) == repo.get("name")), None
    )
    if known is None:
        return {**repo, "known": False}
    facts = {"path": known.path, "purpose": known.purpose, "branch": known.branch}
    given = {name: value for name, value in repo.items() if value}
    return {
        "name": "",
        **subject.format_lines(facts),
        "url": subject.format_line(known.url),
        **given,
    }


def _build_evidence(subject: PromptSubject, finding: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return each reference with the machine's verdict; unchecked without one."""
    checked = finding.get("evidence")
    if isinstance(checked, Sequence) and not isinstance(checked, str) and checked:
        found = [each for each in checked if isinstance(each, Mapping)]
        names = ("verdict", "ref", "why")
        return [
            {name: subject.format_line(_get_text(each, name)) for name in names}
            for each in found[:30]
        ]
    refs = finding.get("evidence_refs")
    plain = refs if isinstance(refs, Sequence) and not isinstance(refs, str) else ()
    return [
        {"verdict": "unchecked", "ref": subject.format_line(each), "why": MISSING}
        for each in plain[:30]
    ]


def _find_review_note(subject: PromptSubject, review: Mapping[str, Any]) -> str:
    found = subject.case.context.get("review_note")
    words = (_get_text(review, name) for name in _WORDS_OF_REVIEW)
    note = found if isinstance(found, str) and found else next((each for each in words if each), "")
    return subject.fence.format_line(note, subject.limits.words) if note else ""


def _find_final_code(subject: PromptSubject, answers: Mapping[str, Any]) -> str:
    """Return the current defect code: a human's, else a rule's, else an agent's."""
    places = (
        (subject.case.context.get("human_override"), "defect_type"),
        (subject.case.context, "defect_type"),
        (answers.get("investigate"), "defect_type"),
        (_find_recalled_cause(subject, _get_answer(answers, "recall")), "defect_type"),
        (answers.get("triage"), "defect_type_hypothesis"),
    )
    found = (_get_code(subject, answer, name) for answer, name in places)
    return next((code for code in found if code), MISSING)


def _find_recalled_cause(subject: PromptSubject, recall: Mapping[str, Any]) -> dict[str, str]:
    """Return the root cause that recall recognized, if it was one of those shown."""
    known = {it.rca_id: it.defect_type for it in subject.history.prior_rcas}
    found = recall.get("prior_rca_id") if recall.get("match") is True else None
    return {"defect_type": known[found]} if isinstance(found, int) and found in known else {}


def _build_symptom(subject: PromptSubject, it: SymptomInfo) -> dict[str, Any]:
    pairs = list(it.environment.items())[: subject.limits.attributes]
    return {
        "symptom_id": it.symptom_id,
        **subject.format_lines({"name": it.name, "status": it.status, "component": it.component}),
        "occurrence_count": it.occurrence_count,
        **subject.format_lines({"first_seen": it.first_seen, "last_seen": it.last_seen}),
        "affected_versions": [subject.format_line(each) for each in it.affected_versions[:20]],
        "environment": [
            f"{subject.format_line(key)}={subject.format_line(value)}"
            for key, value in sorted(pairs)
        ],
        "rca_ids": list(it.rca_ids[:20]),
        "similarity": MISSING if it.similarity is None else round(it.similarity, 2),
        "is_dormant_reactivation": it.is_dormant_reactivation,
        "error_pattern": subject.format_line(it.error_pattern),
    }


def _build_cause(subject: PromptSubject, it: PriorCause) -> dict[str, Any]:
    days = it.days_since_resolved
    if days is None:
        days = count_days(it.resolved_at, subject.now)
    return {
        "rca_id": it.rca_id,
        **subject.format_lines(
            {
                "title": it.title,
                "defect_type": it.defect_type,
                "component": it.component,
                "status": it.status,
                "jira_link": it.jira_link,
            }
        ),
        "affected_versions": [subject.format_line(each) for each in it.affected_versions[:20]],
        **subject.format_lines({"resolved_at": it.resolved_at, "verified_at": it.verified_at}),
        "days_since_resolved": MISSING if days is None else days,
        "cases": it.cases,
        "description": subject.format_line(it.description),
    }


Groups = Mapping[str, Any]
_FENCE_LINES: Final = 120


class PromptBlock(msgspec.Struct, frozen=True):
    """A kind of block. `weight` is its claim to room, `head` the share that its beginning gets when
    it is cut, `text` makes its content; None omits the block."""

    name: str
    title: str
    families: str
    weight: int
    head: float
    text: Callable[[PromptSubject, Groups], str | None]


def _format_failure(subject: PromptSubject, groups: Groups) -> str:
    given = groups["identity"]
    kept = {name: given[name] for name in ("case_id", "item_id", "job_id")}
    facts = {**groups["failure"]}
    for name in ("start", "end", "duration", "stats", "log_truncated", "auto_analyzed"):
        facts.pop(name)
    if facts["issue_type"] == MISSING:
        facts.pop("issue_comment")
    asked = ("name", "type", "parent_path")
    known = {name: value for name, value in facts.items() if name in asked or _is_known(value)}
    if known.get("short_name") == known["name"]:
        known.pop("short_name")
    return format_outline({**kept, **known})


def _format_launch(subject: PromptSubject, groups: Groups) -> str:
    kept = {"launch_id": groups["identity"]["launch_id"], **groups["envelope"], **groups["git"]}
    for name in ("start", "end", "duration"):
        kept.pop(name)
    asked = ("launch_id", "version", "branch", "commit")
    known = {name: value for name, value in kept.items() if name in asked or _is_known(value)}
    known["tests of its job"] = groups["failure"]["stats"]
    attributes = [f"{it['key']} = {it['value']} ({it['of']})" for it in groups["env"]["attributes"]]
    more = groups["env"]["total"] - len(attributes)
    if more:
        attributes.append(f"... and {more} more")
    return format_outline({**known, "attributes": attributes})


def _format_times(subject: PromptSubject, groups: Groups) -> str:
    stamps = {**groups["timestamps"]}
    for name in ("clock_skew_warning", "clock_skew_unchecked", "clock_plane_note"):
        stamps.pop(name)
    return format_outline(stamps)


def _format_siblings(subject: PromptSubject, groups: Groups) -> str | None:
    found = groups["siblings"]
    if not found["total"]:
        return None
    lines = format_outline([_drop_unknown(each) for each in found["list"]])
    more = found["left_out"]
    return f"{lines}\n... and {more} more" if more else lines


def _format_repos(subject: PromptSubject, groups: Groups) -> str:
    found = groups["workspace"]
    more = found["total"] - len(found["repos"])
    lines = format_outline([_drop_unknown(each) for each in found["repos"]])
    return f"{lines}\n... and {more} more" if more else lines


def _format_symptoms(subject: PromptSubject, groups: Groups) -> str | None:
    found = groups["history"]["symptoms"]
    return "\n\n".join(format_outline(each) for each in found) if found else None


def _format_causes(subject: PromptSubject, groups: Groups) -> str | None:
    found = groups["history"]["prior_rcas"]
    return "\n\n".join(format_outline(_drop_unknown(each)) for each in found) if found else None


def _format_digest(subject: PromptSubject, groups: Groups) -> str | None:
    found = groups["digest"]
    if not found["rcas"]:
        return None
    lines = format_outline([_drop_unknown(each) for each in found["rcas"]])
    more = found["total"] - len(found["rcas"])
    return f"{more} earlier ones left out\n{lines}" if more else lines


def _make_prior_formatter(name: str) -> Callable[[PromptSubject, Groups], str | None]:
    def text(subject: PromptSubject, groups: Groups) -> str | None:
        found = groups["prior"][name]
        return (
            format_outline(_drop_unknown(found) if isinstance(found, dict) else found)
            if found
            else None
        )

    return text


def _format_finding(subject: PromptSubject, groups: Groups) -> str | None:
    """Return the finding without the parts that have blocks of their own."""
    found = {**(groups["prior"]["investigate"] or {})}
    for name in ("evidence", "evidence_refs", "contradicting_evidence"):
        found.pop(name, None)
    return format_outline(_drop_unknown(found)) if found else None


def _format_previous(subject: PromptSubject, groups: Groups) -> str | None:
    """Return the last investigation, unless it is among the findings that are shown anyway."""
    prior = groups["prior"]
    return (
        None
        if prior["findings"] or not prior["investigate"]
        else format_outline(prior["investigate"])
    )


def _format_review(subject: PromptSubject, groups: Groups) -> str | None:
    prior = groups["prior"]
    words = {"review": prior["review"], "note": prior["review_note"]}
    if prior["human_override"]:
        words["human_override"] = prior["human_override"]
    known = {name: value for name, value in words.items() if value}
    return format_outline(known) if known else None


def _format_urls(subject: PromptSubject, groups: Groups) -> str | None:
    found = _drop_unknown(groups["urls"])
    return format_outline(found) if found else None


def _drop_unknown(facts: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in facts.items() if _is_known(value)}


def _is_known(value: Any) -> bool:
    return value not in (None, "", MISSING, [], {})


_TABLE: Final = (
    PromptBlock("failure", "the failed test", "F0 F1 F2 F3 F4 F5 F6", 4, 1, _format_failure),
    PromptBlock(
        "message", "error message", "F0 F1 F2 F3 F4 F5 F6", 6, 0.7, lambda s, _: s.failure.message
    ),
    PromptBlock("stack", "stack", "F1 F2 F3", 6, 0.5, lambda s, _: s.failure.stack),
    PromptBlock("log", "log", "F0 F1 F3", 10, 0.4, lambda s, _: s.failure.log),
    PromptBlock("launch", "launch and environment", "F0 F1 F2 F3 F4 F5 F6", 4, 1, _format_launch),
    PromptBlock("times", "times", "F0 F1 F3 F4 F5", 2, 1, _format_times),
    PromptBlock("siblings", "other failures of this launch", "F1 F3 F4 F6", 4, 1, _format_siblings),
    PromptBlock("repos", "repositories", "F1 F2 F3", 5, 1, _format_repos),
    PromptBlock("symptoms", "symptoms seen before", "F0 F4 F5", 6, 1, _format_symptoms),
    PromptBlock("rcas", "root causes found before", "F0 F3 F4 F5 F6", 4, 1, _format_causes),
    PromptBlock("digest", "root causes known in this suite", "F4 F6", 6, 1, _format_digest),
    PromptBlock(
        "recall_candidate",
        "an uncertain match",
        "F1 F3",
        2,
        1,
        _make_prior_formatter("recall_candidate"),
    ),
    PromptBlock("recall", "recall", "F5 F6", 3, 1, _make_prior_formatter("recall")),
    PromptBlock("triage", "triage", "F1 F2 F3 F5 F6", 3, 1, _make_prior_formatter("triage")),
    PromptBlock(
        "resolve", "chosen repositories", "F3 F5", 3, 1, _make_prior_formatter("selected_repos")
    ),
    PromptBlock("repo", "the repository of this pass", "F3", 3, 1, _make_prior_formatter("repo")),
    PromptBlock(
        "findings",
        "what other repositories showed",
        "F3 F4 F5",
        5,
        1,
        _make_prior_formatter("findings"),
    ),
    PromptBlock("previous", "the previous investigation", "F2 F3", 5, 1, _format_previous),
    PromptBlock("investigate", "the finding", "F4 F5 F6", 6, 1, _format_finding),
    PromptBlock(
        "evidence",
        "evidence, as checked by machine",
        "F4 F5 F6",
        4,
        1,
        _make_prior_formatter("evidence"),
    ),
    PromptBlock(
        "reproduction",
        "what running the test showed",
        "F5 F6",
        3,
        1,
        lambda subject, _groups: subject.history.reproduction or None,
    ),
    PromptBlock("against", "what speaks against it", "F5", 3, 1, _make_prior_formatter("against")),
    PromptBlock(
        "correlate",
        "comparison with other cases",
        "F5 F6",
        3,
        1,
        _make_prior_formatter("correlate"),
    ),
    PromptBlock("review", "the reviewer's words", "F1 F2 F3 F4 F5 F6", 3, 1, _format_review),
    PromptBlock("urls", "addresses", "F3 F5 F6", 2, 1, _format_urls),
)
BLOCKS: Final = {block.name: block for block in _TABLE}
"""Every block, in the order in which they claim room."""


def fill_blocks(subject: PromptSubject, groups: Groups, room: int) -> dict[str, FencedText]:
    """Return the blocks of the subject's family, none longer than its share of that many
    characters."""
    texts = {
        block.name: text
        for block in _TABLE
        if subject.family.short in block.families
        and (text := block.text(subject, groups)) is not None
    }
    needs = {name: len(text) for name, text in texts.items()}
    shares = divide_room(needs, room - _FENCE_LINES * len(texts))
    return {
        name: subject.fence.enclose(BLOCKS[name].title, text, shares[name], BLOCKS[name].head)
        for name, text in texts.items()
    }


def divide_room(needs: Mapping[str, int], room: int) -> dict[str, int]:
    """Return room for each block: what it needs, or its weighted share of what smaller ones
    left."""
    shares: dict[str, int] = {}
    weights = sum(BLOCKS[name].weight for name in needs)
    for name in sorted(needs, key=lambda name: (needs[name] / BLOCKS[name].weight, name)):
        shares[name] = max(0, min(needs[name], room * BLOCKS[name].weight // weights))
        room -= shares[name]
        weights -= BLOCKS[name].weight
    return shares
