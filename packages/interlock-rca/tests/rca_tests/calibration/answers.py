"""Results for tests: what a perfect agent leaves behind, and one that is often wrong."""

import random
from collections.abc import Iterator

import msgspec

from interlock_calibrate.benchmark import StepCost
from interlock_rca.calibration.marks import RcaCaseResult
from interlock_rca.calibration.scenario import LabelledCase, Scenario

PRICE = {"F0": 750, "F1": 1490, "F2": 900, "F3": 1560, "F4": 870, "F5": 680, "F6": 890}


def perfect(scenario: Scenario) -> tuple[RcaCaseResult, ...]:
    """Every label, as an agent that reads them would answer."""
    stored: dict[str, RcaCaseResult] = {}
    return tuple(_answer(scenario, case, stored) for case in scenario.cases)


def _answer(
    scenario: Scenario, case: LabelledCase, stored: dict[str, RcaCaseResult]
) -> RcaCaseResult:
    triage, invest = case.expected_triage, case.expected_invest
    repos = (
        [repo.name for repo in case.expected_resolve.selected_repos]
        if (case.expected_resolve and "F2" in case.expected_path)
        else []
    )
    if triage and len(triage.candidate_repos) == 1 and not repos:
        repos = [*triage.candidate_repos]
    result = RcaCaseResult(
        case_id=case.id,
        test_name=case.test_name,
        version=case.version,
        job=case.job,
        actual_path=case.expected_path,
        actual_recall_hit=case.expect_recall_hit,
        actual_skip=case.expect_skip,
        actual_cascade=case.expect_cascade,
        actual_loops=case.expected_loops,
        actual_category=triage.symptom_category if triage else "",
        actual_defect_type=triage.defect_type_hypothesis if triage else "",
        actual_selected_repos=tuple(repos),
        prompt_tokens_total=sum(PRICE[step] for step in case.expected_path),
        artifact_tokens_total=60 * len(case.expected_path),
        step_count=len(case.expected_path),
        wall_clock_ms=400 * len(case.expected_path),
        steps=tuple(_costs(case)),
    )
    if invest:
        number = stored[case.rca_id].actual_rca_id if case.rca_id in stored else len(stored) + 1
        result = msgspec.structs.replace(
            result,
            actual_defect_type=invest.defect_type,
            actual_rca_message=invest.rca_message,
            actual_component=invest.component,
            actual_convergence=invest.convergence_score,
            actual_evidence_refs=invest.evidence_refs,
            actual_rca_id=number,
        )
        stored.setdefault(case.rca_id, result)
    elif case.expect_recall_hit:
        known = stored[case.rca_id]
        result = msgspec.structs.replace(
            result,
            actual_defect_type=known.actual_defect_type,
            actual_rca_message=known.actual_rca_message,
            actual_component=known.actual_component,
            actual_convergence=known.actual_convergence,
            actual_rca_id=known.actual_rca_id,
        )
    return result


def _costs(case: LabelledCase) -> Iterator[StepCost]:
    for step in case.expected_path:
        yield StepCost(step=step, prompt_tokens=PRICE[step], artifact_tokens=60, wall_clock_ms=400)


def mistaken(scenario: Scenario, share: float, seed: int = 1) -> tuple[RcaCaseResult, ...]:
    """The same with about so many answers wrong, and surer of the right ones."""
    chance = random.Random(seed)
    return tuple(
        _wrong(result, chance) if chance.random() < share else result
        for result in perfect(scenario)
    )


def _wrong(result: RcaCaseResult, chance: random.Random) -> RcaCaseResult:
    return msgspec.structs.replace(
        result,
        actual_defect_type=chance.choice(["pb001", "ab001", "si001", "ti001"]),
        actual_category="unknown",
        actual_rca_message="Something went wrong somewhere.",
        actual_component="elsewhere",
        actual_convergence=round(chance.uniform(0.3, 0.8), 2) if result.actual_convergence else 0.0,
        actual_evidence_refs=("elsewhere:a.py:b",) if result.actual_evidence_refs else (),
        actual_rca_id=0,
        actual_recall_hit=False,
        actual_path=("F0", "F1", "F2", "F3", "F4", "F5", "F6"),
    )
