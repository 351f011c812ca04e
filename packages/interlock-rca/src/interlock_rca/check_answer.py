"""Check an agent's answer by machine before a rule sees it.

Corrects words by the taxonomy, refuses empty messages, and limits the score of a finding without
evidence. A function checks evidence. Changes are listed in the answer's notes; a refused answer is
refused once, then accepted with a note.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from interlock.engine.case import Case
from interlock_rca.records import Evidence
from interlock_rca.steps import F1, F3, F5
from interlock_rca.taxonomy import UNKNOWN, Taxonomy

MAX_SCORE_WITHOUT_EVIDENCE = 0.5
"""The highest score of a finding that no existing evidence supports."""
_UNSURE = "ti001"
_SHOWN = 80
"""The most characters of an unknown word that are repeated."""
_OURS = ("repos_left", "findings", "evidence", "claimed_score", "repo", "notes")
"""Fields of an investigation that only Interlock writes."""
_CLAIMED = "claimed_category"
"""The original word of a triage that was read as another; only Interlock writes it."""
_EMPTY_WORDS = """
a an and are be because been broke broken bug but by case cause caused code could crash crashed
defect did does due error errors exception fail failed failing fails failure failures fault for
from had has have in incorrect is issue it its maybe not occurred of on or possible possibly
probably problem product reason root some somehow something test tests that the there this to
unable unclear unexpected unknown was were when with wrong
"""
_SAYS_NOTHING = frozenset(_EMPTY_WORDS.split())

EvidenceCheck = Callable[[Sequence[str]], Sequence[Evidence]]
"""Looks references up where they point; those that cannot be looked up stay unchecked."""


class CheckedAnswer(NamedTuple):
    """An answer as the rules will see it, or the reason why it is refused."""

    data: Mapping[str, Any]
    refused: str = ""


def check_answer(
    case: Case, data: Mapping[str, Any], check: EvidenceCheck, taxonomy: Taxonomy
) -> CheckedAnswer:
    """Check the answer to the case's current step, and return it corrected or refused."""
    again = bool(case.complaint)
    match case.step:
        case step if step == F1:
            return _check_triage(data, again, taxonomy)
        case step if step == F3:
            return _check_investigation(case, data, check, again, taxonomy)
        case step if step == F5:
            return _check_review(data, taxonomy)
    return CheckedAnswer(data)


def _check_triage(data: Mapping[str, Any], again: bool, taxonomy: Taxonomy) -> CheckedAnswer:
    code, note = _check_code(data["defect_type_hypothesis"], again, taxonomy)
    if code is None:
        return CheckedAnswer(data, note)
    word = data["symptom_category"]
    category = taxonomy.find_category(word)
    notes = [data.get("data_quality_notes", ""), note]
    if why := taxonomy.explain_word(word):
        notes.append(f"category {word[:_SHOWN]!r} read as {category or UNKNOWN}: {why}")
    note_text = "; ".join(each for each in notes if each)
    return CheckedAnswer(
        {
            **{name: value for name, value in data.items() if name != _CLAIMED},
            "symptom_category": category or UNKNOWN,
            "defect_type_hypothesis": code,
            **({_CLAIMED: word} if word.strip().lower() != (category or UNKNOWN) else {}),
            **({"data_quality_notes": note_text} if note_text else {}),
        }
    )


def _check_investigation(
    case: Case, data: Mapping[str, Any], check: EvidenceCheck, again: bool, taxonomy: Taxonomy
) -> CheckedAnswer:
    given = {name: value for name, value in data.items() if name not in _OURS}
    code, note = _check_code(data["defect_type"], again, taxonomy)
    if code is None:
        return CheckedAnswer(data, note)
    notes = [note]
    if is_vague(data["rca_message"]):
        if not again:
            return CheckedAnswer(
                data,
                "rca_message says nothing that can be checked; name the component, "
                "what happens in it, and the values that show it.",
            )
        notes.append("the message names nothing that can be checked")
    evidence = tuple(check(data["evidence_refs"]))
    score, why = _cap_score(data["convergence_score"], evidence)
    notes.append(why)
    found = {
        **given,
        "defect_type": code,
        "convergence_score": score,
        **({"claimed_score": data["convergence_score"]} if why else {}),
        "evidence": [msgspec.to_builtins(each) for each in evidence],
        "notes": [each for each in notes if each],
    }
    return CheckedAnswer(_merge_findings(case, found))


def list_remarks(step: str, data: Mapping[str, Any]) -> list[str]:
    """Return the changes made to an answer, or to the last of several findings."""
    if step == F1 and _CLAIMED in data:
        return [f"category {data[_CLAIMED][:_SHOWN]!r} was read as {data['symptom_category']}"]
    if step == F3:
        return list((data.get("findings") or [data])[-1].get("notes", ()))
    return []


def _cap_score(score: float, evidence: Sequence[Evidence]) -> tuple[float, str]:
    if any(each.verdict != "missing" for each in evidence) or score <= MAX_SCORE_WITHOUT_EVIDENCE:
        return score, ""
    why = "none of its evidence is there" if evidence else "it cites no evidence"
    return (
        MAX_SCORE_WITHOUT_EVIDENCE,
        f"score {score:g} lowered to {MAX_SCORE_WITHOUT_EVIDENCE:g}: {why}",
    )


def _merge_findings(case: Case, found: dict[str, Any]) -> dict[str, Any]:
    """Merge the findings of all repositories so far: the surest one speaks, all evidence counts."""
    repos = list_selected_repos(case.context)
    before = list(case.context.get("findings", ()))
    if len(repos) < 2:
        return found
    here = {**found, "repo": repos[min(len(before), len(repos) - 1)]["name"]}
    findings = [*before, here]
    best = max(findings, key=lambda each: each["convergence_score"])
    return {
        **best,
        "evidence_refs": list(
            dict.fromkeys(ref for each in findings for ref in each["evidence_refs"])
        ),
        "evidence": list(
            {one["ref"]: one for each in findings for one in each["evidence"]}.values()
        ),
        "findings": findings,
        "repos_left": max(0, len(repos) - len(findings)),
    }


def list_selected_repos(context: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the repositories that triage or resolve selected, each once."""
    found: dict[str, dict[str, Any]] = {}
    for each in context.get("selected_repos", ()):
        repo = {"name": each, "reason": "only candidate from triage"}
        repo = repo if isinstance(each, str) else each
        found.setdefault(repo["name"], repo)
    return list(found.values())


def _check_review(data: Mapping[str, Any], taxonomy: Taxonomy) -> CheckedAnswer:
    override = data.get("human_override", {})
    word = override.get("defect_type", "")
    code = taxonomy.find_code(word) if word else ""
    if code is None:
        return CheckedAnswer(data, _format_unknown_code(word, taxonomy))
    if not code or code == word:
        return CheckedAnswer(data)
    return CheckedAnswer({**data, "human_override": {**override, "defect_type": code}})


def _check_code(word: str, again: bool, taxonomy: Taxonomy) -> tuple[str | None, str]:
    """Return the code that a word stands for; an unknown word gives None and, the first time, a
    complaint."""
    code = taxonomy.find_code(word)
    if code is not None:
        return code, ""
    if again:
        return _UNSURE, f"{word[:_SHOWN]!r} is not a defect code; {_UNSURE} was written instead"
    return None, _format_unknown_code(word, taxonomy)


def _format_unknown_code(word: str, taxonomy: Taxonomy) -> str:
    return f"{word[:_SHOWN]!r} is not a defect code; use one of {', '.join(taxonomy.codes)}."


def is_vague(message: str) -> bool:
    """Return True if a message consists only of words that fit any failure."""
    words = re.findall(r"[^\W_]+", message.lower())
    return all(word in _SAYS_NOTHING for word in words)
