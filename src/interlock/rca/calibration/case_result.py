"""What an agent made of one case: what a calibration run writes down, and all that is scored.

Knows the fields. Refuses to know the truth, except for its words: a code that our taxonomy calls
by another name is told in the scenario's own word, so that results are read as they are.
"""

from collections.abc import Iterable

import msgspec

from interlock.rca.calibration.scenario import LabelledCase, Scenario
from interlock.rca.taxonomy import TAXONOMY


class StepCost(msgspec.Struct, frozen=True, kw_only=True):
    """One visit of a step. `money` is what a carrier told; None lets the price list decide."""

    step: str
    prompt_tokens: int = 0
    artifact_tokens: int = 0
    wall_clock_ms: int = 0
    money: float | None = None


class CaseResult(msgspec.Struct, frozen=True, kw_only=True):
    case_id: str
    test_name: str = ""
    version: str = ""
    job: str = ""
    store_case_id: int = 0
    actual_defect_type: str = ""
    actual_category: str = ""
    actual_rca_message: str = ""
    actual_component: str = ""
    actual_path: tuple[str, ...] = ()
    """Short step names, F0 to F6, in the order of their visits."""
    actual_recall_hit: bool = False
    actual_skip: bool = False
    actual_cascade: bool = False
    actual_loops: int = 0
    """How often F3 sent the case back to F2."""
    actual_evidence_refs: tuple[str, ...] = ()
    actual_selected_repos: tuple[str, ...] = ()
    """Each repository once."""
    actual_rca_id: int = 0
    """The cause in the store; 0 if there is none."""
    actual_convergence: float = 0.0
    """How sure the agent was; 0 if it did not say."""
    rp_issue_type: str = ""
    rp_auto_analyzed: bool = False
    prompt_tokens_total: int = 0
    artifact_tokens_total: int = 0
    step_count: int = 0
    wall_clock_ms: int = 0
    pipeline_error: str = ""
    """Why the case did not come to an end; empty if it did."""
    steps: tuple[StepCost, ...] = ()


def aligned(scenario: Scenario, results: Iterable[CaseResult]) -> tuple[CaseResult, ...]:
    """One result for each scored case, in the scenario's order and words.

    A case without a result counts as one that failed; results of anything else are left out.
    """
    by_id = {result.case_id: result for result in results}
    return tuple(
        in_words_of(scenario, case, by_id.get(case.id) or _missing(case)) for case in scenario.cases
    )


def _missing(case: LabelledCase) -> CaseResult:
    return CaseResult(
        case_id=case.id,
        test_name=case.test_name,
        version=case.version,
        job=case.job,
        pipeline_error="there is no result",
    )


def in_words_of(scenario: Scenario, case: LabelledCase, result: CaseResult) -> CaseResult:
    """The result with the scenario's own words where ours mean the same."""
    cause = scenario.cause_of(case)
    code, category = result.actual_defect_type, result.actual_category
    if cause and _same(TAXONOMY.code(code), TAXONOMY.code(cause.defect_type)):
        code = cause.defect_type
    label = case.expected_triage.symptom_category if case.expected_triage else ""
    if _same(TAXONOMY.category(category), TAXONOMY.category(label)) and _named(category, label):
        category = label
    return msgspec.structs.replace(result, actual_defect_type=code, actual_category=category)


def _same(one: str | None, other: str | None) -> bool:
    return one is not None and one == other


def _named(one: str, other: str) -> bool:
    """Words of the surface all read as unknown: they are not each other's names."""
    return not {one.strip().lower(), other.strip().lower()} & TAXONOMY.surfaces.keys()
