"""Capture: what an agent made of each case, read from the journal and the store of a run.

Follows the ancestor's rules of what counts as what, so that results are comparable; which rules
depends on the edition. Reads only, and never the truth: a result is the same whatever the labels
say.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from interlock.engine.case import ENDED, OPEN, Decision
from interlock.engine.circuit import ARTIFACT, FAILURES, Circuit
from interlock.journal.connection import Connection
from interlock.journal.history import list_dispatches
from interlock_calibrate.benchmark import BYTES_PER_TOKEN, CaptureMode, StepCost
from interlock_rca.calibration.marks import RcaCaseResult, read_metrics
from interlock_rca.calibration.scenario import LabelledCase, Scenario
from interlock_rca.effects import find_effect
from interlock_rca.knowledge.cause_writer import BY_REVIEW
from interlock_rca.knowledge.causes import Rca, list_causes
from interlock_rca.knowledge.suites import SuiteCase, list_suite_cases
from interlock_rca.steps import F0, F1, F2, F3, F4, F5, F6, LINKED, get_family


class Visit(msgspec.Struct, frozen=True):
    """One asking that came to a decision."""

    decision: Decision
    data: Mapping[str, Any]
    prompt_bytes: int
    answer_bytes: int
    sent_at: float
    answered_at: float
    tokens: int
    money: float

    @property
    def failed(self) -> bool:
        """Nothing usable came back."""
        return self.decision.signal in FAILURES


def list_visits(connection: Connection, case_no: int) -> list[Visit]:
    """The decided dispatches of a case, in order."""
    return [
        Visit(
            decision=each.decision,
            data=each.answer,
            prompt_bytes=len(each.prompt.encode()),
            answer_bytes=each.answer_bytes,
            sent_at=each.sent_at,
            answered_at=each.answered_at or each.sent_at,
            tokens=each.usage.tokens,
            money=each.usage.money,
        )
        for each in list_dispatches(connection, case_no=case_no, texts=True)
        if each.decision is not None
    ]


RECALL_HIT_THRESHOLD = 0.80
"""A constant of the measure: an agent's own threshold does not change what counts as a hit."""
_SKIPPED_CATEGORIES = ("infra", "flake")


class CapturedCase(msgspec.Struct, frozen=True):
    """All that a run tells of one case."""

    label: LabelledCase
    case: SuiteCase
    visits: Sequence[Visit]

    def list_answers(self, step: str) -> list[Mapping[str, Any]]:
        """What was said at a step, in order, and not refused."""
        return [
            each.data
            for each in self.visits
            if each.decision.step == step and each.decision.signal == ARTIFACT
        ]

    @property
    def linked_to(self) -> str:
        """The case that was investigated for it; empty if none was."""
        links = [each.data for each in self.visits if each.decision.signal == LINKED]
        return str(links[-1]["representative"]) if links else ""

    def is_spared(self, visit: Visit) -> bool:
        """Whether nobody was asked: a member of a family is reviewed and reported with the case
        that was investigated for it."""
        return bool(self.linked_to) and visit.decision.step in (F5, F6) and not visit.tokens


def capture(
    scenario: Scenario, connection: Connection, run_id: int, circuit: Circuit, mode: CaptureMode
) -> tuple[RcaCaseResult, ...]:
    """The results of a run, in the scenario's order."""
    cases = {case.case_id: case for case in list_suite_cases(connection, run_id)}
    captured = [
        CapturedCase(label, cases[label.id], list_visits(connection, cases[label.id].case_no))
        for label in scenario.cases
        if label.id in cases
    ]
    claims = _collect_claims(captured)
    names = {case.case_no: case.case_id for case in cases.values()}
    owners = {
        each.rca.rca_id: names.get(each.rca.case_no, "")
        for each in list_causes(connection, archived=True)
    }
    later = read_metrics().find_edition(mode.edition or read_metrics().default).by_later_rules
    results = {
        each.label.id: _make_result(each, circuit, claims, owners, mode, later=later)
        for each in captured
    }
    return tuple(_add_representative(each, results, later=later) for each in captured)


def _collect_claims(captured: Sequence[CapturedCase]) -> dict[tuple[int, int], float]:
    """How sure each investigation said it was, before anything was lowered."""
    return {
        (each.case.case_no, visit.decision.attempt): float(
            visit.data.get("claimed_score", visit.data["convergence_score"])
        )
        for each in captured
        for visit in each.visits
        if visit.decision.step == F3 and visit.decision.signal == ARTIFACT
    }


def _make_result(
    captured: CapturedCase,
    circuit: Circuit,
    claims: Mapping[tuple[int, int], float],
    owners: Mapping[int, str],
    mode: CaptureMode,
    *,
    later: bool,
) -> RcaCaseResult:
    asked = [visit for visit in captured.visits if visit.decision.signal == ARTIFACT]
    costs = tuple(_make_cost(visit, mode) for visit in asked if not captured.is_spared(visit))
    result = RcaCaseResult(
        case_id=captured.label.id,
        test_name=captured.label.test_name,
        version=captured.label.version,
        job=captured.label.job,
        store_case_id=captured.case.case_no,
        prompt_tokens_total=sum(cost.prompt_tokens for cost in costs),
        artifact_tokens_total=sum(cost.artifact_tokens for cost in costs),
        wall_clock_ms=sum(cost.wall_clock_ms for cost in costs),
        pipeline_error=_describe_error(captured, circuit),
        steps=costs,
    )
    if result.pipeline_error:
        return result
    path = _find_path(captured.visits, circuit)
    return msgspec.structs.replace(
        result,
        **{**_read_triage(captured, later=later), **_find_cause(captured, claims)},
        actual_path=path,
        actual_loops=sum(
            each.decision.step == F3 and each.decision.to == F2 for each in captured.visits
        ),
        actual_recall_hit=_is_recall_hit(captured),
        actual_recall_case=_find_recalled_case(captured, owners),
        actual_evidence_refs=_find_evidence(captured),
        step_count=len(path),
    )


def _describe_error(captured: CapturedCase, circuit: Circuit) -> str:
    """Why the case came to no end that is healthy."""
    case = captured.case
    if case.engine_status == OPEN:
        return f"not finished: it stands at {get_family(case.step).short}"
    if case.engine_status == ENDED and circuit.ends.get(case.end, False):
        return ""
    failures = [str(each.data.get("reason", "")) for each in captured.visits if each.failed]
    why = case.reason or (failures[-1] if failures else "")
    return f"{case.end or case.engine_status}: {why}".removesuffix(": ")


def _find_path(visits: Sequence[Visit], circuit: Circuit) -> tuple[str, ...]:
    """The steps as the ancestor would have gone them: one look into all repositories, no
    repetition of what failed, no step that another case went for it, and no review of a
    duplicate."""
    path: list[str] = []
    for visit in visits:
        decision = visit.decision
        effect = find_effect(circuit, decision.rule)
        # An investigation without an effect only goes on to the next repository.
        if decision.signal != ARTIFACT or (decision.step == F3 and not effect):
            continue
        path.append(get_family(decision.step).short)
        if decision.step == F4 and effect == "link":
            break
    return tuple(path)


def _is_recall_hit(captured: CapturedCase) -> bool:
    answers = captured.list_answers(F0)
    return (
        bool(answers)
        and bool(answers[-1]["match"])
        and answers[-1]["confidence"] >= RECALL_HIT_THRESHOLD
    )


def _find_recalled_case(captured: CapturedCase, owners: Mapping[int, str]) -> str:
    answers = captured.list_answers(F0)
    named = answers[-1].get("prior_rca_id", 0) if answers and answers[-1]["match"] else 0
    return owners.get(named, "")


def _read_triage(captured: CapturedCase, *, later: bool) -> dict[str, Any]:
    """Category, skip, cascade, repositories, and the defect type of what is not investigated."""
    triages = captured.list_answers(F1)
    if not triages:
        return {}
    triage = triages[-1]
    skip = bool(triage["skip_investigation"])
    if later:
        skip = skip or triage["symptom_category"] in _SKIPPED_CATEGORIES
    kept = skip or later
    return {
        "actual_category": triage.get("claimed_category", triage["symptom_category"]),
        "actual_skip": skip,
        "actual_cascade": bool(triage.get("cascade_suspected", False)),
        "actual_selected_repos": _find_selected_repos(captured, later=later),
        **({"actual_defect_type": triage["defect_type_hypothesis"]} if kept else {}),
    }


def _find_selected_repos(captured: CapturedCase, *, later: bool) -> tuple[str, ...]:
    """A single candidate counts as selected; what F2 selects comes to it, each once."""
    found: dict[str, None] = {}
    for visit in captured.visits:
        decision, data = visit.decision, visit.data
        if decision.signal != ARTIFACT:
            continue
        if decision.step == F1 and len(data["candidate_repos"]) == 1:
            found |= dict.fromkeys(data["candidate_repos"])
        if decision.step == F2:
            chosen = dict.fromkeys(repo["name"] for repo in data["selected_repos"])
            found = chosen if later else found | chosen
    return tuple(found)


def _find_cause(captured: CapturedCase, claims: Mapping[tuple[int, int], float]) -> dict[str, Any]:
    """What the linked cause says, whoever's it is."""
    cause = captured.case.rca
    if cause is None or _is_made_of_triage(captured.case, cause):
        return {}
    sure = claims.get((cause.case_no, cause.attempt), cause.convergence_score or 0.0)
    return {
        "actual_rca_id": cause.rca_id,
        "actual_defect_type": cause.defect_type,
        "actual_rca_message": cause.description,
        "actual_component": cause.component,
        "actual_convergence": sure,
    }


def _is_made_of_triage(case: SuiteCase, cause: Rca) -> bool:
    """A review that agrees with a triage keeps it as a cause: nobody investigated one."""
    own = cause.case_no == case.case_no and cause.attempt == BY_REVIEW
    return own and case.decision != "overturn"


def _find_evidence(captured: CapturedCase) -> tuple[str, ...]:
    answers = captured.list_answers(F3)
    return tuple(answers[-1]["evidence_refs"]) if answers else ()


def _add_representative(
    captured: CapturedCase, results: Mapping[str, RcaCaseResult], *, later: bool
) -> RcaCaseResult:
    """A member of a family has the evidence and the repositories of the one that was investigated
    for it; by the later rules its path, too."""
    result, other = results[captured.label.id], results.get(captured.linked_to)
    if other is None or result.pipeline_error:
        return result
    own = msgspec.structs.replace(
        result,
        actual_evidence_refs=other.actual_evidence_refs,
        actual_selected_repos=other.actual_selected_repos,
    )
    return msgspec.structs.replace(own, actual_path=other.actual_path) if later else own


def _make_cost(visit: Visit, mode: CaptureMode) -> StepCost:
    wall = max(0, round((visit.answered_at - visit.sent_at) * 1000))
    step = get_family(visit.decision.step).short
    if not mode.prompted:
        return StepCost(step=step, wall_clock_ms=wall)
    asked = visit.prompt_bytes // BYTES_PER_TOKEN
    answered = visit.answer_bytes // BYTES_PER_TOKEN
    if mode.billed and visit.tokens:
        asked = max(visit.tokens - answered, 0)
    elif visit.tokens >= asked:
        answered = visit.tokens - asked
    return StepCost(
        step=step,
        prompt_tokens=asked,
        artifact_tokens=answered,
        wall_clock_ms=wall,
        money=visit.money if mode.billed and visit.money else None,
    )
