"""Recorded runs decided again: what a case would have come to, and whether that is right.

A case comes to the cause that its last word names: one that was investigated, recalled, linked, or
put right by a reviewer.
"""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from interlock.engine.case import Decision
from interlock.engine.circuit import ARTIFACT, Circuit
from interlock.engine.replay import RecordedDecisions
from interlock.journal.connection import Connection
from interlock.journal.history import list_cases
from interlock.journal.runs import find_run
from interlock_calibrate.benchmark import Judgement
from interlock_rca.calibration.marks import RcaCaseResult, is_solved, use_scenario_words
from interlock_rca.calibration.scenario import Scenario
from interlock_rca.effects import find_effect
from interlock_rca.knowledge.causes import list_causes
from interlock_rca.steps import F1, F3, LINKED


class FindingText(msgspec.Struct, frozen=True):
    """What is known of a cause, and the true cause of the case that it was found for."""

    defect_type: str = ""
    component: str = ""
    message: str = ""
    truth: str = ""


def make_judge(
    scenario: Scenario, connection: Connection, circuit: Circuit
) -> Callable[[str, RecordedDecisions], Judgement]:
    """What a case comes to by these decisions; causes in the store are read now."""
    labels = scenario.case_by_id
    truths = {
        case.case_no: labels[case.case_id].rca_id
        for case in list_cases(connection, find_run(connection).run_id)
        if case.case_id in labels
    }
    known = {
        each.rca.rca_id: FindingText(
            each.rca.defect_type,
            each.rca.component,
            each.rca.description,
            truths.get(each.rca.case_no, ""),
        )
        for each in list_causes(connection, archived=True)
    }

    def judge(case_id: str, decided: RecordedDecisions) -> Judgement:
        label = labels[case_id]
        result = make_result(case_id, decided, circuit, known)
        solved = is_solved(scenario, label, use_scenario_words(scenario, label, result))
        recalled = _find_recalled(decided, circuit, known)
        misled = recalled is not None and (not label.rca_id or recalled.truth != label.rca_id)
        return Judgement(solved, misled)

    return judge


def _find_recalled(
    decided: RecordedDecisions, circuit: Circuit, known: Mapping[int, FindingText]
) -> FindingText | None:
    """The cause that the case was recalled to, if it was."""
    for decision, data in decided:
        if find_effect(circuit, decision.rule) == "recall":
            return known.get(data.get("prior_rca_id", 0), FindingText())
    return None


def make_result(
    case_id: str, decided: RecordedDecisions, circuit: Circuit, known: Mapping[int, FindingText]
) -> RcaCaseResult:
    """What the case came to on this way."""
    finding = FindingText()
    category = ""
    for decision, data in decided:
        if decision.signal not in (ARTIFACT, LINKED):
            continue
        finding = _update_finding(finding, decision, data, circuit, known)
        if decision.step == F1:
            category = str(data.get("claimed_category", data["symptom_category"]))
        if decision.step == F3 and "defect_type" in decision.adds:
            defect_type = str(decision.adds["defect_type"])
            finding = msgspec.structs.replace(finding, defect_type=defect_type)
    return RcaCaseResult(
        case_id=case_id,
        actual_defect_type=finding.defect_type,
        actual_component=finding.component,
        actual_rca_message=finding.message,
        actual_category=category,
    )


def _update_finding(
    finding: FindingText,
    decision: Decision,
    data: Mapping[str, Any],
    circuit: Circuit,
    known: Mapping[int, FindingText],
) -> FindingText:
    """What is known of the cause after one more decision."""
    match find_effect(circuit, decision.rule):
        case "link":
            return known.get(data.get("linked_rca_id", 0), finding)
        case "recall":
            return known.get(data.get("prior_rca_id", 0), finding)
        case "triage" if data["skip_investigation"]:
            return FindingText(data["defect_type_hypothesis"])
        case "triage":
            return FindingText()
        case "investigate":
            return FindingText(data["defect_type"], data.get("component", ""), data["rca_message"])
        case "review" if data.get("decision") == "overturn":
            override = data.get("human_override", {})
            return FindingText(
                override.get("defect_type") or finding.defect_type,
                finding.component,
                override.get("rca_message") or finding.message,
            )
    return finding
