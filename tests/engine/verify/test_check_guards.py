"""Guards: every value has a rule, every rule its turn, and examples are real."""

import re

import pytest
from tests.engine.circuits import (
    HOPELESS,
    found,
    one_step,
    press,
    serious,
    summary,
)

from interlock.engine.circuit_file import CircuitSource
from interlock.engine.expression import Scope, parse
from interlock.engine.verify import verify

GIVE_UP = "  - {id: give-up, at: ANY, on: [timeout, crash, unreadable], to: abandoned}\n"
STOPS = """\
  - {id: stop, at: approve, on: STOP, to: rejected}
  - {id: halt, at: draft, on: STOP, to: abandoned}
"""


@pytest.mark.parametrize(
    ("change", "subject"),
    [
        (("steps:\n", "steps:\n  spare: {role: author, timeout: 1m}\n"), "spare"),
        (("ends: {", "ends: {forgotten: healthy, "), "forgotten"),
        (("score >= passing", "score > 1"), "good"),
        (("score >= passing", "verdict == 'fail'"), "good"),
        (("score >= passing", "verdict == 'maybe'"), "good"),
        (('when: decision == "approve"', "when: has(decision)"), "revise"),
        (
            ("  - {id: drafted", "  - {id: twin, at: draft, to: review}\n  - {id: drafted"),
            "drafted",
        ),
        (("at: publish, to", "at: publish, on: [], to"), "live"),
    ],
)
def test_unreachable(change: tuple[str, str], subject: str) -> None:
    findings = [each for each in serious(press(change)) if each.id == "circuit.unreachable"]
    assert subject in {each.subject for each in findings}


def test_a_rule_for_a_signal_its_step_never_gives_cannot_fire() -> None:
    written = press(
        ("gate: true, answer: approval", "gate: true, answer: approval, signals: [artifact, STOP]"),
        (HOPELESS, HOPELESS + STOPS),
    )
    assert summary(written) == {("error", "circuit.unreachable", "halt")}


def test_a_rule_that_a_switch_turns_off_is_only_a_warning() -> None:
    off = press(
        ("{passing: 0.8}", "{passing: 0.8, strict: false}"),
        ("score >= passing", "score >= passing and not strict"),
        (
            "  - {id: rework",
            "  - {id: exam, at: review, when: strict, to: abandoned}\n  - {id: rework",
        ),
    )
    assert summary(off) == {("warning", "circuit.unreachable", "exam")}


def test_loop_without_exit() -> None:
    without = press((HOPELESS, ""))
    assert summary(without) == {("error", "circuit.loop-without-exit", "rework")}
    values = found(without, "circuit.loop-without-exit").counter_example
    assert values["verdict"] == "fail" or values["score"] < 0.8
    assert summary(press((HOPELESS, ""), otherwise=True)) == set()


def test_a_guard_on_the_count_of_a_loop_is_an_exit() -> None:
    counted = ("id: hopeless, at: review", "id: hopeless, at: review, when: loops.rework >= 2")
    assert "circuit.loop-without-exit" not in {each.id for each in serious(press(counted))}
    early = ("id: hopeless, at: review", "id: hopeless, at: review, when: loops.rework < 2")
    assert "circuit.loop-without-exit" in {each.id for each in serious(press(early))}


def test_a_loop_without_a_turn_is_a_warning() -> None:
    written = press(("{rework: 2,", "{rework: 0,"))
    assert {(each.level, each.id) for each in serious(written)} == {
        ("warning", "circuit.loop-without-exit")
    }


def test_unhandled_signal() -> None:
    written = press(
        (GIVE_UP, ""),
        (
            "on: [timeout, crash, unreadable], loop: retries, to: AGAIN",
            "on: [timeout, crash], to: abandoned",
        ),
    )
    unhandled = [each for each in serious(written) if each.id == "circuit.unhandled-signal"]
    assert {each.subject for each in unhandled} == {"draft", "review", "publish"}, "not the gate"
    assert unhandled[0].counter_example["signal"] == "unreadable"
    assert "circuit.unhandled-signal" not in {each.id for each in serious(press(otherwise=True))}


GAPS = [
    ("x: {type: integer}", ["x < 3", "x > 3"], {"x": 3}),
    ("x: {type: integer}", ["x < 3", "x >= 3"], None),
    ("x: {type: integer, minimum: 0, maximum: 5}", ["x <= 2", "x >= 4"], {"x": 3}),
    ("x: {type: integer, minimum: 0, maximum: 5}", ["x < 6"], None),
    ("x: {type: number}", ["x <= 2", "x >= 3"], "2 < x < 3"),
    ("x: {type: boolean}", ["x", "not x"], None),
    ("x: {type: string, enum: [p, q, r]}", ["x == 'p'", "x == 'q'"], {"x": "r"}),
    ("x: {type: string, enum: [p, q, r]}", ["x in ['p', 'q']", "x == 'r'"], None),
    ("x: {type: string}", ["x == 'p'", "x == 'q'"], "x != 'p' and x != 'q'"),
    ("x: {type: string}", ["x == ''", "x != ''"], None),
    ("x: {type: array}", ["len(x) == 0", "len(x) > 1"], "len(x) == 1"),
    ("x: {type: array}", ["'p' in x", "len(x) > 1"], "'p' not in x and len(x) < 2"),
    ("x: {type: array, minItems: 1}", ["len(x) > 0"], None),
    ("x: {type: [integer, 'null']}", ["x == null", "x != null and x > 0"], "x != null and x <= 0"),
    ("x: {type: integer}, y: {type: integer}", ["x < y", "x > y"], "x == y"),
    ("x: {type: integer}, y: {type: integer}", ["x < y", "x >= y"], None),
    ("x: {type: number}, y: {type: number}", ["x < y and y < 1", "x >= y", "y >= 1"], None),
    ("x: {type: integer}, y: {type: boolean}", ["x > 1 and y", "x <= 1"], "x > 1 and not y"),
    ("x: {type: object, properties: {z: {type: integer}}, required: [z]}", ["x.z > 1"], "x.z <= 1"),
    ("x: {anyOf: [{type: integer}, {enum: [none]}]}", ["x == 'none'"], "x != 'none'"),
    ("x: {type: integer, exclusiveMinimum: 0}", ["x >= 1"], None),
    ("x: {type: number, exclusiveMinimum: 0}", ["x >= 1"], "x > 0 and x < 1"),
]


def gap_circuit(fields: str, guards: list[str], otherwise: str = "") -> CircuitSource:
    required = re.findall(r"(?:^|}, )(\w): {", fields)
    rules = "\n".join(
        f'  - {{id: r{index}, at: ask, when: "{guard}", to: b}}'
        for index, guard in enumerate(guards)
    )
    shape = f"properties: {{{fields}}}, required: [{', '.join(required)}]"
    return one_step(rules, shape, otherwise=otherwise)


@pytest.mark.parametrize(("fields", "guards", "expected"), GAPS)
def test_gap(fields: str, guards: list[str], expected: object) -> None:
    written = gap_circuit(fields, guards)
    gaps = [each for each in verify(written).findings if each.id == "circuit.gap"]
    assert bool(gaps) == (expected is not None)
    if isinstance(expected, dict):
        assert gaps[0].counter_example == expected
    elif expected is not None:
        assert_holds(str(expected), gaps[0].counter_example)
    if gaps:
        caught = gap_circuit(fields, guards, "otherwise: a")
        assert found(caught, "circuit.gap").level == "note"


def assert_holds(guard: str, values: dict[str, object]) -> None:
    nested = {name: value for name, value in values.items() if "." not in name}
    for name, value in values.items():
        if "." in name:
            outer, inner = name.split(".")
            nested[outer] = {inner: value}
    assert parse(guard).holds(Scope(nested)), (guard, values)


def test_overlap_is_a_note_with_values_and_both_rules() -> None:
    rules = """\
  - {id: low, at: ask, when: x < 5, to: a}
  - {id: high, at: ask, when: x > 3, to: b}
  - {id: rest, at: ask, to: c}"""
    shape = "properties: {x: {type: integer}}, required: [x]"
    written = one_step(rules.replace("x > 3", "x >= 4"), shape)
    finding = found(written, "circuit.overlap")
    assert finding.level == "note"
    assert finding.counter_example == {"values": {"x": 4}, "rules": ["low", "high"]}
    apart = one_step(rules.replace("x > 3", "x >= 5"), shape)
    same_target = one_step(rules.replace("to: b", "to: a"), shape)
    for sound in (apart, same_target):
        assert "circuit.overlap" not in {each.id for each in verify(sound).findings}


def test_too_many_combinations_are_said_to_be_unproven() -> None:
    names = [f"n{number}" for number in range(12)]
    fields = ", ".join(f"{name}: {{type: integer}}" for name in names)
    guard = " and ".join(f"{name} > 5" for name in names)
    shape = f"properties: {{{fields}}}, required: [{', '.join(names)}]"
    rules = f"  - {{id: all, at: ask, when: {guard}, to: b}}\n  - {{id: rest, at: ask, to: c}}"
    written = one_step(rules, shape)
    assert found(written, "circuit.unproven").level == "note"
    assert summary(written) == set(), "a sample is no ground to call something unreachable"
    assert not verify(written).worst_case.exact
    assert "circuit.unproven" not in {each.id for each in verify(press()).findings}
