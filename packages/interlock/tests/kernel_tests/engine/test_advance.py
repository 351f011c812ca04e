"""The engine: a table of its habits, and laws over circuits nobody thought of."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.engine.advance import MAX_DETOURS, advance, apply, open_case
from interlock.engine.case import ENDED, OPEN, STUCK, Case, PassedRule, Signal
from interlock.engine.circuit import Circuit
from interlock.engine.circuit_file import CircuitSource, read_circuit
from interlock.engine.verify import verify
from interlock.engine.verify.cells import OutcomeTable
from interlock.engine.verify.domains import place_values
from interlock.system.errors import StateError
from tests.world.circuits import one_step, press
from tests.world.generated_circuits import ANSWER_GUARDS, circuits, signals

Answer = tuple[str, dict[str, Any]]
GOOD = {"score": 0.9, "verdict": "pass", "doubts": [], "rank": None}
BAD = {**GOOD, "verdict": "fail"}
STOPPERS = {
    "circuit.unknown-name",
    "circuit.unguarded-name",
    "circuit.dead-end",
    "circuit.loop-without-exit",
    "circuit.unhandled-signal",
    "circuit.gap",
}


def play(circuit: Circuit, *answers: Answer) -> Case:
    case = open_case(circuit, "c", {})
    for name, data in answers:
        decision = advance(circuit, case, Signal(name, data))
        case = apply(circuit, case, decision, data)
    return case


def walk(circuit: Circuit, data: st.DataObject, longest: int = 60) -> list[Case]:
    cases = [open_case(circuit, "c", {})]
    while cases[-1].status == OPEN and len(cases) < longest:
        signal = data.draw(signals(circuit, cases[-1].step))
        decision = advance(circuit, cases[-1], signal)
        cases.append(apply(circuit, cases[-1], decision, signal.data))
    return cases


def test_first_match_wins_and_what_was_passed_over_is_kept() -> None:
    circuit = press().circuit
    case = play(circuit, ("artifact", {"text": "t"}))
    decision = advance(circuit, case, Signal("artifact", BAD))
    assert (decision.rule, decision.to, decision.loop) == ("rework", "draft", "rework")
    assert decision.passed == (PassedRule("good", "false"),)
    assert decision.read == {"verdict": "fail", "score": 0.9, "passing": 0.8}


def test_a_spent_loop_is_passed_over() -> None:
    rounds: list[Answer] = [("artifact", {"text": "t"}), ("artifact", BAD)] * 2
    circuit = press().circuit
    case = play(circuit, *rounds, ("artifact", {"text": "t"}))
    decision = advance(circuit, case, Signal("artifact", BAD))
    assert decision.rule == "hopeless"
    assert PassedRule("rework", "spent") in decision.passed
    assert apply(circuit, case, decision, BAD).end == "abandoned"


def test_a_loop_counted_per_step_starts_anew_at_the_next_step() -> None:
    lost = ("timeout", {"reason": "slow"})
    case = play(press().circuit, lost, lost, ("artifact", {"text": "t"}), lost, lost)
    assert (case.step, case.loops) == ("review", {"retries": 2})
    assert play(press().circuit, lost, lost, lost).end == "abandoned"


def test_no_answer_is_not_kept_as_an_answer() -> None:
    case = play(press().circuit, ("artifact", {"text": "t"}), ("crash", {"reason": "boom"}))
    assert case.answers == {"draft": {"text": "t"}}
    assert case.context == {"title": "t"}
    assert case.attempt == 2


DETOUR = """\
circuit: aside
start: work
ends: [done]
steps:
  work: {role: a, signals: [artifact, ask]}
  help: {role: b, signals: [artifact, ask]}
rules:
  - {id: ask, at: ANY, on: ask, to: help, detour: true}
  - {id: back, at: help, to: BACK}
  - {id: done, at: work, to: done}
"""


def test_a_detour_remembers_where_it_came_from() -> None:
    circuit = read_circuit(DETOUR).circuit
    ask: Answer = ("ask", {})
    go: Answer = ("artifact", {})
    deep = play(circuit, ask, ask, ask)
    assert (deep.step, deep.stack) == ("help", ("work", "help", "help"))
    assert play(circuit, ask, ask, ask, go, go, go).step == "work"
    assert play(circuit, ask, go, go).end == "done"
    too_deep = play(circuit, *[ask] * (MAX_DETOURS + 1))
    assert (too_deep.status, "detours deep" in too_deep.reason) == (STUCK, True)


@pytest.mark.parametrize(
    ("rules", "answer", "status", "reason"),
    [
        ("  - {id: r, at: ask, when: x > 1, to: b}", {"x": 1}, STUCK, "no rule at ask takes"),
        ("  - {id: r, at: ask, when: x > 1, to: b}", {"x": "2"}, STUCK, "compares unlike things"),
        ("  - {id: r, at: ask, when: x > 1, to: b}", {}, STUCK, "'x' is not there to be read"),
        ("  - {id: r, at: ask, to: BACK}", {}, STUCK, "no detour led here"),
        ("  - {id: r, at: ask, to: nowhere}", {}, STUCK, "which is not a step"),
        ("  - {id: r, at: ask, when: x > 1, to: b}", {"x": 2}, ENDED, ""),
    ],
)
def test_stuck_says_why(rules: str, answer: dict[str, Any], status: str, reason: str) -> None:
    case = play(one_step(rules, "properties: {}").circuit, ("artifact", answer))
    assert case.status == status
    assert reason in case.reason


def test_otherwise_takes_the_rest_and_adds() -> None:
    written = one_step(
        "  - {id: r, at: ask, when: x > 1, to: b}",
        "properties: {}",
        otherwise="otherwise: {to: c, adds: {seen: =x, kind: rest}}",
    )
    case = play(written.circuit, ("artifact", {"x": 0}))
    assert (case.end, case.context) == ("c", {"seen": 0, "kind": "rest"})


def test_otherwise_that_cannot_add_is_stuck_and_says_so() -> None:
    written = one_step("", "properties: {}", otherwise="otherwise: {to: c, adds: {seen: =x}}")
    case = play(written.circuit, ("artifact", {}))
    assert case.reason.startswith("rule otherwise: 'x' is not there")


def test_a_rule_without_target_adds_and_goes_on() -> None:
    rules = "  - {id: note, at: ask, adds: {seen: 1}}\n  - {id: go, at: ask, to: b}"
    circuit = one_step(rules, "properties: {}").circuit
    decision = advance(circuit, open_case(circuit, "c", {}), Signal("artifact"))
    assert (decision.noted, decision.rule, decision.adds) == (("note",), "go", {"seen": 1})


def test_a_threshold_cannot_be_overruled_by_an_answer() -> None:
    circuit = press().circuit
    case = play(circuit, ("artifact", {"text": "t"}))
    decision = advance(circuit, case, Signal("artifact", {**GOOD, "score": 0.1, "passing": 0.0}))
    assert decision.rule == "rework"


@given(circuits(), st.data())
def test_no_walk_passes_a_limit(written: CircuitSource, data: st.DataObject) -> None:
    circuit = written.circuit
    for case in walk(circuit, data):
        assert case.moves <= circuit.max_steps
        assert case.moves == sum(case.visits.values())
        assert len(case.stack) <= MAX_DETOURS + 1
        if case.status != STUCK:
            assert all(count <= circuit.loops[name].max for name, count in case.loops.items())


@given(circuits(), st.data())
def test_no_walk_is_longer_than_the_worst_case(written: CircuitSource, data: st.DataObject) -> None:
    worst = verify(written).worst_case
    assert walk(written.circuit, data)[-1].moves <= worst.dispatches <= written.circuit.max_steps


@given(circuits(), st.data())
def test_the_same_case_and_signal_give_the_same_decision(
    written: CircuitSource, data: st.DataObject
) -> None:
    case = [each for each in walk(written.circuit, data) if each.status == OPEN][-1]
    signal = data.draw(signals(written.circuit, case.step))
    decision = advance(written.circuit, case, signal)
    assert advance(written.circuit, case, signal) == decision
    noisy = Signal(signal.name, {**signal.data, "noise": [1, 2]})
    again = advance(written.circuit, case, noisy)
    assert (again.rule, again.to, again.read) == (decision.rule, decision.to, decision.read)


@given(circuits(), st.data())
def test_a_case_that_is_over_refuses_signals(written: CircuitSource, data: st.DataObject) -> None:
    case = walk(written.circuit, data)[-1]
    if case.status != OPEN:
        with pytest.raises(StateError, match="no signal moves it any more"):
            advance(written.circuit, case, Signal("artifact", {"x": 1, "y": True}))


@given(circuits(), st.data())
def test_what_verify_lets_pass_is_stuck_only_by_its_limits(
    written: CircuitSource, data: st.DataObject
) -> None:
    report = verify(written)
    stoppers = [each for each in report.findings if each.id in STOPPERS and each.level != "note"]
    case = walk(written.circuit, data)[-1]
    if case.status == STUCK and not stoppers:
        assert case.reason.startswith("max_steps") or "detours deep" in case.reason
        if case.reason.startswith("max_steps"):
            assert report.worst_case.reason, "an uncut worst case never meets max_steps"


@given(circuits(ANSWER_GUARDS))
def test_an_exact_worst_case_can_be_walked(written: CircuitSource) -> None:
    """Where guards read nothing but the answer, its path is a real one."""
    circuit = written.circuit
    worst = verify(written).worst_case
    table = OutcomeTable(circuit)
    case = open_case(circuit, "c", {})
    for hop in worst.path if worst.exact else ():
        spent = [
            name for name, loop in circuit.loops.items() if case.loops.get(name, 0) >= loop.max
        ]
        cell = table.cells[hop.step, hop.signal]
        taking = [
            region
            for region in cell.regions
            if (rule := table.choose_rule(cell, region, spent)) and rule.id == hop.rule
        ]
        data = {"x": 0, "y": False, **place_values(taking[0].values).get("answer", {})}
        case = apply(circuit, case, advance(circuit, case, Signal(hop.signal, data)), data)
        assert case.step == hop.to
    assert not worst.exact or case.moves == worst.dispatches


def test_a_complaint_lasts_until_the_next_usable_answer() -> None:
    text = "circuit: c\nstart: s\nends: [e]\nloops: {l: 2}\nsteps: {s: {role: r}, t: {role: r}}\n"
    text += "rules: [{at: s, to: t}, {at: t, to: e}, {at: ANY, on: unreadable, loop: l, to: AGAIN}]"
    circuit = read_circuit(text).circuit
    case = open_case(circuit, "C", {})
    seen = []
    for signal in (
        Signal("unreadable", {"reason": "No braces."}),
        Signal("artifact", {"reason": "mine"}),
        Signal("unreadable", {"reason": "Too long."}),
    ):
        case = apply(circuit, case, advance(circuit, case, signal), signal.data)
        seen.append((case.step, case.complaint))
    assert seen == [("s", "No braces."), ("t", ""), ("t", "Too long.")]
