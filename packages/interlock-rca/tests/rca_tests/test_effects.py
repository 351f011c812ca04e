"""From a decision to its effects: the rule that was taken decides what is written."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from interlock.engine.advance import advance
from interlock.engine.case import Case, Signal
from interlock.engine.circuit import ARTIFACT, CRASH, TIMEOUT, UNREADABLE
from interlock.runtime.circuits import find_circuit
from interlock.system.errors import CircuitError
from interlock_rca.effects import (
    Closed,
    Correlated,
    Effect,
    Investigated,
    Recalled,
    Reviewed,
    SentBack,
    Triaged,
    check_effects,
    list_effects,
    make_title,
)
from interlock_rca.steps import F0, F1, F2, F3, F4, F5, F6, LINKED
from interlock_rca.taxonomy import TAXONOMY

CIRCUIT = find_circuit("rca", Path()).open().circuit
TRIAGE: dict[str, Any] = {
    "symptom_category": "product",
    "severity": "high",
    "defect_type_hypothesis": "pb001",
    "candidate_repos": ["hull", "sail"],
    "skip_investigation": False,
    "clock_skew_suspected": True,
    "data_quality_notes": "log is cut",
}
FINDING: dict[str, Any] = {
    "rca_message": "Keel.weigh() counts\nthe anchor twice",
    "defect_type": "pb001",
    "component": "hull",
    "convergence_score": 0.9,
    "evidence_refs": ["hull:keel.py:3"],
    "evidence": [{"ref": "hull:keel.py:3", "verdict": "found", "why": "", "url": ""}],
}
DUPLICATE = {"is_duplicate": True, "linked_rca_id": 4, "affected_versions": ["2"], "reasoning": "-"}


def after(
    step: str, data: Mapping[str, Any], signal: str = ARTIFACT, **standing: Any
) -> tuple[str, tuple[Effect, ...]]:
    """The rule that is taken, and what it writes."""
    case = Case("C1", step, visits={step: 2}, **standing)
    decision = advance(CIRCUIT, case, Signal(signal, data))
    effects = list_effects(CIRCUIT, case, decision, data, "ann", TAXONOMY)
    return decision.rule, effects


def recall(confidence: float, *, match: bool = True) -> dict[str, Any]:
    return {
        "match": match,
        "confidence": confidence,
        "prior_rca_id": 7,
        "symptom_id": 3,
        "is_regression": True,
        "reasoning": "-",
    }


@pytest.mark.parametrize(
    ("data", "rule"),
    [
        (recall(0.79), "H3"),
        (recall(0.41), "H3"),
        (recall(0.39), "H2-weak"),
        (recall(0.99, match=False), "H2"),
    ],
)
def test_a_recall_that_is_not_sure_enough_links_nothing(data: dict[str, Any], rule: str) -> None:
    assert after(F0, data) == (rule, ())


def test_a_sure_recall_links() -> None:
    assert after(F0, recall(0.8)) == ("H1", (Recalled(symptom_id=3, rca_id=7, regression=True),))


def test_a_recall_that_names_nothing_links_nothing_by_number() -> None:
    rule, effects = after(F0, {"match": True, "confidence": 0.9, "reasoning": "-"})
    assert (rule, effects) == ("H1", (Recalled(symptom_id=0, rca_id=0, regression=False),))


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({"symptom_category": "infra"}, "H4"),
        ({"symptom_category": "flake"}, "H5"),
        ({"skip_investigation": True}, "H18"),
        ({"candidate_repos": ["hull"]}, "H7"),
        ({}, "H6"),
    ],
)
def test_every_triage_is_written(change: dict[str, Any], rule: str) -> None:
    data = TRIAGE | change
    expected = Triaged(
        category=data["symptom_category"],
        severity="high",
        hypothesis="pb001",
        candidate_repos=tuple(data["candidate_repos"]),
        skip=data["skip_investigation"],
        clock_skew=True,
        cascade=False,
        notes="log is cut",
    )
    assert after(F1, data) == (rule, (expected,))


def test_choosing_repositories_writes_nothing() -> None:
    assert after(F2, {"selected_repos": [{"name": "hull", "reason": "-"}]}) == ("H8", ())


def test_a_look_into_one_of_several_repositories_writes_no_root_cause() -> None:
    data = FINDING | {"repos_left": 1, "findings": [FINDING]}
    assert after(F3, data) == ("H8-next", ())


@pytest.mark.parametrize(
    ("change", "loops", "rule"),
    [
        ({}, {}, "H9"),
        ({"convergence_score": 0.7}, {}, "H9"),
        ({"convergence_score": 0.5, "evidence_refs": []}, {}, "H10a"),
        ({"convergence_score": 0.5, "is_exhausted": True}, {}, "H10b"),
        ({"convergence_score": 0.69}, {}, "H10"),
        ({"repos_left": 3, "findings": [FINDING]}, {"repos": 8}, "H9"),
    ],
)
def test_an_investigation_writes_a_root_cause_of_its_attempt(
    change: dict[str, Any], loops: dict[str, int], rule: str
) -> None:
    data = FINDING | change
    expected = Investigated(
        attempt=2,
        title="Keel.weigh() counts the anchor twice",
        description="Keel.weigh() counts\nthe anchor twice",
        defect_type="pb001",
        category="product",
        component="hull",
        convergence_score=data["convergence_score"],
        evidence=tuple(FINDING["evidence"]),
    )
    assert after(F3, data, loops=loops) == (rule, (expected,))


def test_when_all_looks_are_spent_the_cause_is_to_be_investigated() -> None:
    data = FINDING | {"convergence_score": 0.3}
    rule, (effect,) = after(F3, data, loops={"investigate": 2}, answers={F1: TRIAGE})
    assert rule == "H11"
    assert isinstance(effect, Investigated)
    assert (effect.defect_type, effect.category) == ("ti001", "unknown")


@pytest.mark.parametrize(
    ("data", "rule"),
    [
        (DUPLICATE | {"confidence": 0.75}, "H15b"),
        (DUPLICATE | {"confidence": 0.95, "is_duplicate": False}, "H15b"),
    ],
)
def test_a_duplicate_that_is_not_sure_enough_links_nothing(data: Any, rule: str) -> None:
    assert after(F4, data) == (rule, ())


def test_a_sure_duplicate_links() -> None:
    linked = Correlated(rca_id=4, confidence=0.8, affected_versions=("2",))
    assert after(F4, DUPLICATE | {"confidence": 0.8}) == ("H15", (linked,))


@pytest.mark.parametrize("step", [F2, F3])
def test_a_member_of_a_family_shares_its_root_cause(step: str) -> None:
    data = {"representative": "C0", "linked_rca_id": 4, "confidence": 0.9}
    linked = Correlated(rca_id=4, confidence=0.9, affected_versions=())
    assert after(step, data, LINKED) == ("linked", (linked,))


def test_approval_and_overturn_are_written_with_who_said_so() -> None:
    approve = {"decision": "approve"}
    assert after(F5, approve) == ("H12", (Reviewed(decision="approve", by="ann"),))
    words = {"defect_type": "ab001", "rca_message": "the test reads an old name"}
    overturn = {"decision": "overturn", "human_override": words}
    result = Reviewed(
        decision="overturn",
        by="ann",
        defect_type="ab001",
        category="automation",
        description="the test reads an old name",
    )
    assert after(F5, overturn) == ("H14", (result,))


@pytest.mark.parametrize("override", [{}, {"human_override": {}}])
def test_an_overturn_without_words_is_one_all_the_same(override: dict[str, Any]) -> None:
    result = Reviewed(decision="overturn", by="ann")
    assert after(F5, {"decision": "overturn", **override}) == ("H14", (result,))


@pytest.mark.parametrize(
    ("target", "rule", "status"),
    [
        ({"loop_target": F1}, "H13-F1", "open"),
        ({"loop_target": F2}, "H13", "triaged"),
        ({"loop_target": ""}, "H13", "triaged"),
        ({}, "H13", "triaged"),
        ({"loop_target": F3}, "H13-F3", "triaged"),
    ],
)
def test_whoever_is_sent_back_has_the_status_of_before(
    target: dict[str, str], rule: str, status: str
) -> None:
    data = {"decision": "reassess", **target}
    assert after(F5, data, answers={F1: TRIAGE}) == (rule, (SentBack(status=status),))


@pytest.mark.parametrize("target", [F1, F2, F3])
def test_a_case_that_was_never_triaged_is_not_called_so(target: str) -> None:
    _, effects = after(F5, {"decision": "reassess", "loop_target": target}, answers={F0: recall(1)})
    assert effects == (SentBack(status="open"),)


def test_sent_back_once_too_often_changes_nothing_more() -> None:
    assert after(F5, {"decision": "reassess"}, loops={"reassess": 3}) == ("H13-spent", ())


def test_a_report_closes_and_its_draft_is_kept() -> None:
    assert after(F6, {"summary": "s"}) == ("H16", (Closed(draft={"summary": "s"}),))
    assert after(F6, {}) == ("H16", (Closed(draft={}),))


@pytest.mark.parametrize("signal", [TIMEOUT, CRASH, UNREADABLE])
@pytest.mark.parametrize("step", [F0, F1, F2, F3, F4, F5, F6])
def test_a_failure_of_an_agent_writes_nothing(step: str, signal: str) -> None:
    for loops in ({}, {"retry": 2}):
        assert after(step, {"reason": "gone"}, signal, loops=loops)[1] == ()


def test_an_effect_that_nobody_knows_is_refused() -> None:
    check_effects(CIRCUIT)
    first, *others = CIRCUIT.rules
    wrong = replace(CIRCUIT, rules=(replace(first, tags={"effect": "recal"}), *others))
    with pytest.raises(CircuitError, match="rule 'H1' has the effect 'recal'; use one of recall"):
        check_effects(wrong)


def test_a_title_is_one_short_line() -> None:
    assert make_title("a\n  b\tc") == "a b c"
    assert make_title("x" * 80) == "x" * 80
    assert make_title("word " * 40) == f"{('word ' * 40)[:79].rstrip()}…"
