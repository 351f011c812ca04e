"""Test what must hold on every path through the circuit, whatever anybody answers."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from delivery_tests.briefs import CIRCUIT, GATES
from delivery_tests.world.answer_sampler import AnswerSampler
from interlock.engine.advance import advance, apply, open_case
from interlock.engine.case import OPEN
from interlock.engine.circuit import BACK, FAILURES
from interlock.engine.circuit_file import CircuitSource, read_circuit
from interlock.engine.verify import verify
from interlock.engine.verify.finding import Hop
from interlock.engine.verify.proof import Proof
from interlock.engine.verify.routes import list_step_signals, resolve_target, search
from interlock.runtime.circuits import list_installed_circuits
from interlock.signals.catalogue import list_role_signals, list_signals
from interlock.system.yaml_text import read_yaml

FILE = list_installed_circuits()["delivery"]
REPAIRING = {"REMEDIATE", "HEALTH_CHECK", "HEALTH_AUDIT", "MERGE_FIX", "INFRA_GATE"}
PASSES = {
    "CHECK": "artifact",
    "REVIEW": "REVIEW_PASSED",
    "AUDIT": "AUDIT_PASSED",
    "PROVE": "artifact",
    "MERGE": "artifact",
}


def written() -> CircuitSource:
    return read_circuit(FILE.read_text(encoding="utf-8"), "circuit.yaml")


Spot = tuple[str, tuple[str, ...]]
"""A step, and all steps that open detours return to."""


def ways() -> dict[Spot, list[tuple[Hop, Spot]]]:
    """Yield every move that some answer can cause, with all returns."""
    table = Proof(written()).table
    found: dict[Spot, list[tuple[Hop, Spot]]] = {}
    waiting: list[Spot] = [("PREPARE", ())]
    while waiting:
        spot = step, stack = waiting.pop()
        if spot in found or step in CIRCUIT.ends:
            continue
        found[spot] = []
        for signal in list_step_signals(CIRCUIT, step):
            for rule in table.find_taken(step, signal):
                target = resolve_target(rule, step, stack[-1] if stack else "")
                left = stack[:-1] if rule.to == BACK else stack
                after = (target, (*left, step) if rule.detour else left)
                found[spot].append((Hop(step, signal, rule.id, target), after))
                waiting.append(after)
    return found


WAYS = ways()


@pytest.mark.parametrize("start", ["PREPARE", "IMPLEMENT"])
@pytest.mark.parametrize("step", PASSES)
def test_nothing_completes_without(step: str, start: str) -> None:
    """Test that nothing completes without a step, also after the developer wrote again."""
    without = {
        spot: [way for way in leaving if (way[0].step, way[0].signal) != (step, PASSES[step])]
        for spot, leaving in WAYS.items()
    }
    starts = [spot for spot in WAYS if spot[0] == start]
    assert starts
    for spot in starts:
        assert "COMPLETE" not in {each for each, _ in search([spot], without)}
        assert "COMPLETE" in {each for each, _ in search([spot], WAYS)}


def test_one_rule_alone_completes() -> None:
    into = {hop.rule for leaving in WAYS.values() for hop, _ in leaving if hop.to == "COMPLETE"}
    assert into == {"merged"}


def test_judges_are_others_than_authors_and_programs_judge_what_can_be_checked() -> None:
    steps = CIRCUIT.steps
    assert steps["REVIEW"].judges == steps["AUDIT"].judges == ("IMPLEMENT",)
    assert steps["PROVE"].judges == ("AUDIT",)
    assert steps["HEALTH_AUDIT"].judges == ("REMEDIATE",)
    roles = [steps[name].role for name in ("IMPLEMENT", "REVIEW", "AUDIT", "PROVE")]
    assert len(set(roles)) == len(roles)


@pytest.mark.parametrize(
    "step", [name for name, it in CIRCUIT.steps.items() if it.language == "text"]
)
def test_a_step_takes_all_that_its_role_may_say_and_has_a_row_for_each(step: str) -> None:
    place = CIRCUIT.steps[step]
    assert set(place.signals) == {row.name for row in list_role_signals(place.role)}
    assert all(CIRCUIT.find_rules(step, signal) for signal in CIRCUIT.list_legal_signals(step))


def test_all_nineteen_signals_have_a_row() -> None:
    result = {signal for rule in CIRCUIT.rules for signal in rule.on}
    assert {row.name for row in list_signals("text") if row.roles} <= result


def test_answers_that_cannot_be_used_are_events_of_the_seeds_names() -> None:
    events = {rule.id: rule.tags["event"] for rule in CIRCUIT.rules if "event" in rule.tags}
    assert events == {
        "strike": "unknown_signal_recovery",
        "three-strikes": "agent_signal_failure",
    }


def test_every_step_and_rule_says_why() -> None:
    text = read_yaml(FILE.read_text(encoding="utf-8"), "circuit.yaml").value
    assert [rule["id"] for rule in text["rules"] if not rule.get("why", "").endswith(".")] == []
    assert [name for name, step in text["steps"].items() if not step.get("why")] == []


def test_programs_go_first_then_critics_then_auditors_then_developers() -> None:
    rank = {name: role.priority for name, role in CIRCUIT.roles.items()}
    assert rank["checks"] == rank["merge"] > rank["critic"] > rank["auditor"] > rank["developer"]
    assert CIRCUIT.roles["merge"].slots == 1


def test_gates_wait_for_a_year_and_agents_for_minutes() -> None:
    minutes = {name: (step.timeout or 0) / 60 for name, step in CIRCUIT.steps.items()}
    assert minutes["IMPLEMENT"] == 15
    assert minutes["REVIEW"] == minutes["AUDIT"] == minutes["CONSULT"] == 10
    assert minutes["REMEDIATE"] == minutes["HEALTH_AUDIT"] == 5
    assert all(minutes[gate] == 365 * 24 * 60 for gate in GATES)


def test_verify_finds_nothing_but_rules_that_go_first() -> None:
    report = verify(written())
    assert {finding.id for finding in report.findings} <= {"circuit.overlap"}
    assert report.worst_case.dispatches == CIRCUIT.max_steps
    assert "too many ways" in report.worst_case.reason


PLAYER = AnswerSampler(CIRCUIT, random.Random(0))


@settings(max_examples=300)
@given(st.integers(0, 1 << 32))
def test_the_suite_is_held_exactly_while_it_is_repaired(seed: int) -> None:
    PLAYER.chance = random.Random(seed)
    case, held = open_case(CIRCUIT, "t", {}), False
    while case.status == OPEN:
        signal = PLAYER.make_answer(case.step)
        decision = advance(CIRCUIT, case, signal)
        case = apply(CIRCUIT, case, decision, signal.data)
        held = (held or bool(decision.hold)) and not decision.release
        if case.status == OPEN:
            assert held == bool(REPAIRING & {case.step, *case.stack})
            assert len(case.stack) <= 2
    assert case.end
    assert all(case.loops[name] <= CIRCUIT.loops[name].max for name in case.loops)
    assert signal.name not in FAILURES or case.end == "FAILED"
