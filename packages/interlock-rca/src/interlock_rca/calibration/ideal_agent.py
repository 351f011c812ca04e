"""The ideal agent (`stub`), which answers from the truth and nothing else.

It shows what a perfect agent can score, and that the measure itself is right. Numbers of causes
and symptoms are those that earlier cases of the same truth got in the store. What the scenario
does not expect is answered with what says least.
"""

from collections.abc import Callable
from typing import Any

from interlock.carriers.contract import Ask, Reply
from interlock.carriers.function import build_answer
from interlock.engine.case import Case
from interlock.journal.connection import Connection
from interlock.journal.history import list_cases
from interlock.system.errors import StateError
from interlock_rca.calibration.scenario import LabelledCase, Scenario
from interlock_rca.knowledge.cause_writer import BY_REVIEW
from interlock_rca.knowledge.causes import find_rca
from interlock_rca.knowledge.suites import CasePosition, find_position
from interlock_rca.steps import F0, F1, F2, F3, F4, F5, F6, find_family

UNKNOWN_DEFECT = "ti001"
_SEVERITIES = ("critical", "high", "medium", "low")
_DEFAULT_SCORE = 0.5


class IdealAgent:
    """Answers asks of one run of a scenario."""

    def __init__(self, scenario: Scenario, connection: Connection, run_id: int) -> None:
        self._scenario = scenario
        self._connection = connection
        self._cases = {case.id: case for case in scenario.cases}
        self._numbers = {case.case_id: case.case_no for case in list_cases(connection, run_id)}
        self._steps: dict[str, Callable[[Ask, Case, LabelledCase], dict[str, Any]]] = {
            F0: self._answer_recall,
            F1: self._answer_triage,
            F2: self._answer_resolve,
            F3: self._answer_investigate,
            F4: self._answer_correlate,
            F5: self._answer_review,
            F6: self._answer_report,
        }

    def answer(self, ask: Ask) -> Reply | None:
        if ask.case is None or ask.case_id not in self._cases or ask.step not in self._steps:
            raise StateError(f"the stub has no answer for {ask.case_id!r} at {ask.step}")
        return build_answer(ask, self._steps[ask.step](ask, ask.case, self._cases[ask.case_id]))

    def _answer_recall(self, _ask: Ask, _case: Case, label: LabelledCase) -> dict[str, Any]:
        found = label.expected_recall
        if found is None or not found.match:
            sure = found.confidence if found else 0.0
            return {"match": False, "confidence": sure, "reasoning": "as expected: not known"}
        place = self._find_known(label, found.prior_rca_id)
        return {
            "match": True,
            "prior_rca_id": (place.rca_id or 0) if place else 0,
            "symptom_id": (place.symptom_id or 0) if place else 0,
            "confidence": found.confidence,
            "reasoning": "as expected: known",
        }

    def _answer_triage(self, _ask: Ask, _case: Case, label: LabelledCase) -> dict[str, Any]:
        found = label.expected_triage
        if found is None:
            return {
                "symptom_category": "unknown",
                "defect_type_hypothesis": UNKNOWN_DEFECT,
                "candidate_repos": [],
                "skip_investigation": False,
            }
        return {
            "symptom_category": found.symptom_category or "unknown",
            "severity": found.severity if found.severity in _SEVERITIES else "",
            "defect_type_hypothesis": found.defect_type_hypothesis or UNKNOWN_DEFECT,
            "candidate_repos": list(found.candidate_repos),
            "skip_investigation": found.skip_investigation,
            "cascade_suspected": found.cascade_suspected,
        }

    def _answer_resolve(self, _ask: Ask, _case: Case, label: LabelledCase) -> dict[str, Any]:
        found = label.expected_resolve.selected_repos if label.expected_resolve else ()
        return {
            "selected_repos": [
                {"name": repo.name, "reason": repo.reason or "as expected"} for repo in found
            ]
        }

    def _answer_investigate(self, _ask: Ask, case: Case, label: LabelledCase) -> dict[str, Any]:
        last = [label.expected_invest] if label.expected_invest else []
        invests = [*label.first_invests, *last]
        if not invests:
            return {
                "rca_message": f"no cause is expected for {label.id}",
                "defect_type": UNKNOWN_DEFECT,
                "convergence_score": _DEFAULT_SCORE,
                "evidence_refs": [],
            }
        round_ = case.loops.get("investigate", 0) + case.loops.get("reassess", 0)
        found = invests[min(round_, len(invests) - 1)]
        return {
            "rca_message": found.rca_message or f"a cause of {label.test_name or label.id}",
            "defect_type": found.defect_type or UNKNOWN_DEFECT,
            "component": found.component,
            "convergence_score": found.convergence_score,
            "evidence_refs": list(found.evidence_refs),
        }

    def _answer_correlate(self, _ask: Ask, _case: Case, label: LabelledCase) -> dict[str, Any]:
        found = label.expected_correlate
        if found is None:
            return {"is_duplicate": False, "confidence": 0.0}
        place = self._find_known(label, found.linked_rca_id) if found.is_duplicate else None
        return {
            "is_duplicate": found.is_duplicate,
            "linked_rca_id": (place.rca_id or 0) if place else 0,
            "confidence": found.confidence,
            "cross_version_match": found.cross_version_match,
        }

    def _answer_review(self, _ask: Ask, case: Case, label: LabelledCase) -> dict[str, Any]:
        last = [label.expected_review] if label.expected_review else []
        reviews = [*label.first_reviews, *last]
        if not reviews:
            return {"decision": "approve"}
        found = reviews[min(case.loops.get("reassess", 0), len(reviews) - 1)]
        target = find_family(found.loop_target) if found.loop_target else None
        answer = {"decision": found.decision or "approve"}
        return answer | ({"loop_target": target.step} if target else {})

    def _answer_report(self, _ask: Ask, _case: Case, label: LabelledCase) -> dict[str, Any]:
        cause = self._scenario.cause_of(label)
        title = cause.title if cause else ""
        return {"summary": title or label.test_name or label.id}

    def _find_known(self, label: LabelledCase, named: int | str) -> CasePosition | None:
        """Where another case of that truth is: its cause, and the symptom of its own."""
        truth = named if isinstance(named, str) and named in self._scenario.causes else label.rca_id
        for other in self._scenario.cases:
            if not truth or other.rca_id != truth or other.id == label.id:
                continue
            place = find_position(self._connection, self._numbers.get(other.id, 0))
            if place and place.rca_id and self._is_investigated(place.rca_id):
                return place
        return None

    def _is_investigated(self, rca_id: int) -> bool:
        """Whether a cause was investigated; what a review made of a triage is none."""
        cause = find_rca(self._connection, rca_id)
        return cause is not None and cause.attempt != BY_REVIEW
