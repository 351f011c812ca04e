"""Capture: what an agent made of each case, read from the journal and the store of a run.

Knows the ancestor's rules of what counts as what, so that results are comparable: `later` are the
rules that its authors used in the end. Reads only, and never the truth: a result is the same
whatever the labels say.

Visits: every dispatch of a case that was decided, with its answer, its size and its time.

Reads the journal as it is; refuses to know what an answer is worth.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from sqlalchemy import Connection

from interlock.calibrate.campaign import BYTES_PER_TOKEN
from interlock.engine.case import ENDED, OPEN, Decision
from interlock.engine.circuit import ARTIFACT, FAILURES, Circuit
from interlock.journal.history import list_dispatches
from interlock.rca.calibration.marks import CaseResult, StepCost
from interlock.rca.calibration.scenario import LabelledCase, Scenario
from interlock.rca.knowledge.cause_writer import BY_REVIEW
from interlock.rca.knowledge.causes import Rca
from interlock.rca.knowledge.suites import SuiteCase, suite_cases
from interlock.rca.steps import F0, F1, F2, F3, F4, F5, F6, LINKED, family_of


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


def visits_of(connection: Connection, case_no: int) -> list[Visit]:
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


RECALL_HIT = 0.80
"""A constant of the measure: an agent's own threshold does not change what counts as a hit."""
_ANOTHER_REPO = "H8-next"
_DUPLICATE = "H15"
_EFFORTLESS = ("infra", "flake")


class CaptureMode(msgspec.Struct, frozen=True):
    """How a run was done, as far as it matters for what is captured."""

    prompted: bool = True
    """Whether prompts were read; tokens of those that were not are not counted."""
    billed: bool = False
    """Whether carriers said what answers cost; else bytes are counted."""
    later: bool = False
    """Whether the later rules of the ancestor count."""


class CapturedCase(msgspec.Struct, frozen=True):
    """All that a run tells of one case."""

    label: LabelledCase
    case: SuiteCase
    visits: Sequence[Visit]

    def answers(self, step: str) -> list[Mapping[str, Any]]:
        """What was said at a step, in order, and not refused."""
        return [
            each.data
            for each in self.visits
            if each.decision.step == step and each.decision.signal == ARTIFACT
        ]

    @property
    def linked_to(self) -> str:
        """The case that was investigated for it; empty if none was."""
        said = [each.data for each in self.visits if each.decision.signal == LINKED]
        return str(said[-1]["representative"]) if said else ""

    def spared(self, visit: Visit) -> bool:
        """Whether nobody was asked: a member of a family is reviewed and reported with the case
        that was investigated for it."""
        return bool(self.linked_to) and visit.decision.step in (F5, F6) and not visit.tokens


def capture(
    connection: Connection, run_id: int, scenario: Scenario, circuit: Circuit, manner: CaptureMode
) -> tuple[CaseResult, ...]:
    """The results of a run, in the scenario's order."""
    cases = {case.case_id: case for case in suite_cases(connection, run_id)}
    told = [
        CapturedCase(label, cases[label.id], visits_of(connection, cases[label.id].case_no))
        for label in scenario.cases
        if label.id in cases
    ]
    claims = _claims(told)
    found = {each.label.id: _result(each, circuit, claims, manner) for each in told}
    return tuple(_with_stand_in(each, found, manner) for each in told)


def _claims(told: Sequence[CapturedCase]) -> dict[tuple[int, int], float]:
    """How sure each investigation said it was, before anything was lowered."""
    return {
        (each.case.case_no, visit.decision.attempt): float(
            visit.data.get("claimed_score", visit.data["convergence_score"])
        )
        for each in told
        for visit in each.visits
        if visit.decision.step == F3 and visit.decision.signal == ARTIFACT
    }


def _result(
    told: CapturedCase,
    circuit: Circuit,
    claims: Mapping[tuple[int, int], float],
    manner: CaptureMode,
) -> CaseResult:
    asked = [visit for visit in told.visits if visit.decision.signal == ARTIFACT]
    costs = tuple(_cost(visit, manner) for visit in asked if not told.spared(visit))
    result = CaseResult(
        case_id=told.label.id,
        test_name=told.label.test_name,
        version=told.label.version,
        job=told.label.job,
        store_case_id=told.case.case_no,
        prompt_tokens_total=sum(cost.prompt_tokens for cost in costs),
        artifact_tokens_total=sum(cost.artifact_tokens for cost in costs),
        wall_clock_ms=sum(cost.wall_clock_ms for cost in costs),
        pipeline_error=_error(told, circuit),
        steps=costs,
    )
    if result.pipeline_error:
        return result
    path = _path(told.visits)
    return msgspec.structs.replace(
        result,
        **{**_triaged(told, manner), **_caused(told, claims)},
        actual_path=path,
        actual_loops=sum(
            each.decision.step == F3 and each.decision.to == F2 for each in told.visits
        ),
        actual_recall_hit=_recall_hit(told),
        actual_evidence_refs=_evidence(told),
        step_count=len(path),
    )


def _error(told: CapturedCase, circuit: Circuit) -> str:
    """Why the case came to no end that is healthy."""
    case = told.case
    if case.engine_status == OPEN:
        return f"not finished: it stands at {family_of(case.step).short}"
    if case.engine_status == ENDED and circuit.ends.get(case.end, False):
        return ""
    failures = [str(each.data.get("reason", "")) for each in told.visits if each.failed]
    why = case.reason or (failures[-1] if failures else "")
    return f"{case.end or case.engine_status}: {why}".removesuffix(": ")


def _path(visits: Sequence[Visit]) -> tuple[str, ...]:
    """The steps as the ancestor would have gone them: one look into all repositories, no
    repetition of what failed, no step that another case went for it, and no review of a
    duplicate."""
    path: list[str] = []
    for visit in visits:
        decision = visit.decision
        if decision.signal != ARTIFACT or decision.rule == _ANOTHER_REPO:
            continue
        path.append(family_of(decision.step).short)
        if decision.step == F4 and decision.rule == _DUPLICATE:
            break
    return tuple(path)


def _recall_hit(told: CapturedCase) -> bool:
    said = told.answers(F0)
    return bool(said) and bool(said[-1]["match"]) and said[-1]["confidence"] >= RECALL_HIT


def _triaged(told: CapturedCase, manner: CaptureMode) -> dict[str, Any]:
    """Category, skip, cascade, repositories, and the defect type of what is not investigated."""
    triages = told.answers(F1)
    if not triages:
        return {}
    said = triages[-1]
    skip = bool(said["skip_investigation"])
    if manner.later:
        skip = skip or said["symptom_category"] in _EFFORTLESS
    kept = skip or manner.later
    return {
        "actual_category": said.get("claimed_category", said["symptom_category"]),
        "actual_skip": skip,
        "actual_cascade": bool(said.get("cascade_suspected", False)),
        "actual_selected_repos": _repos(told, manner),
        **({"actual_defect_type": said["defect_type_hypothesis"]} if kept else {}),
    }


def _repos(told: CapturedCase, manner: CaptureMode) -> tuple[str, ...]:
    """A single candidate counts as selected; what F2 selects comes to it, each once."""
    found: dict[str, None] = {}
    for visit in told.visits:
        decision, data = visit.decision, visit.data
        if decision.signal != ARTIFACT:
            continue
        if decision.step == F1 and len(data["candidate_repos"]) == 1:
            found |= dict.fromkeys(data["candidate_repos"])
        if decision.step == F2:
            chosen = dict.fromkeys(repo["name"] for repo in data["selected_repos"])
            found = chosen if manner.later else found | chosen
    return tuple(found)


def _caused(told: CapturedCase, claims: Mapping[tuple[int, int], float]) -> dict[str, Any]:
    """What the linked cause says, whoever's it is."""
    cause = told.case.rca
    if cause is None or _made_of_triage(told.case, cause):
        return {}
    sure = claims.get((cause.case_no, cause.attempt), cause.convergence_score or 0.0)
    return {
        "actual_rca_id": cause.rca_id,
        "actual_defect_type": cause.defect_type,
        "actual_rca_message": cause.description,
        "actual_component": cause.component,
        "actual_convergence": sure,
    }


def _made_of_triage(case: SuiteCase, cause: Rca) -> bool:
    """A review that agrees with a triage keeps it as a cause: nobody investigated one."""
    own = cause.case_no == case.case_no and cause.attempt == BY_REVIEW
    return own and case.decision != "overturn"


def _evidence(told: CapturedCase) -> tuple[str, ...]:
    said = told.answers(F3)
    return tuple(said[-1]["evidence_refs"]) if said else ()


def _with_stand_in(
    told: CapturedCase, found: Mapping[str, CaseResult], manner: CaptureMode
) -> CaseResult:
    """A member of a family has the evidence and the repositories of the one that was investigated
    for it; by the later rules its path, too."""
    result, other = found[told.label.id], found.get(told.linked_to)
    if other is None or result.pipeline_error:
        return result
    own = msgspec.structs.replace(
        result,
        actual_evidence_refs=other.actual_evidence_refs,
        actual_selected_repos=other.actual_selected_repos,
    )
    return msgspec.structs.replace(own, actual_path=other.actual_path) if manner.later else own


def _cost(visit: Visit, manner: CaptureMode) -> StepCost:
    wall = max(0, round((visit.answered_at - visit.sent_at) * 1000))
    step = family_of(visit.decision.step).short
    if not manner.prompted:
        return StepCost(step=step, wall_clock_ms=wall)
    asked = visit.prompt_bytes // BYTES_PER_TOKEN
    answered = visit.answer_bytes // BYTES_PER_TOKEN
    if manner.billed and visit.tokens:
        asked = max(visit.tokens - answered, 0)
    elif visit.tokens >= asked:
        answered = visit.tokens - asked
    return StepCost(
        step=step,
        prompt_tokens=asked,
        artifact_tokens=answered,
        wall_clock_ms=wall,
        money=visit.money if manner.billed and visit.money else None,
    )
