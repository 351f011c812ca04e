"""Checks: every value has a rule, every rule its turn, every name exists, and no way leads around a
gate or round forever. Examples are real.
"""

import re

import pytest

from interlock.engine.circuit_file import CircuitSource, read_circuit
from interlock.engine.expression import Scope, parse_expression
from interlock.engine.verify import verify
from tests.world.circuits import (
    HOPELESS,
    OTHERWISE,
    SOUND,
    changed,
    found,
    one_step,
    press,
    serious,
    summary,
)

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
    assert parse_expression(guard).holds(Scope(nested)), (guard, values)


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


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (("start: draft", "start: drafts"), "press"),
        (("judges: draft", "judges: drat"), "review"),
        (("role: critic", "role: critc"), "review"),
        (("at: publish, to: published", "at: [publish, printer], to: published"), "live"),
        (("to: AGAIN", "to: AGIAN"), "retry"),
        (("loop: retries", "loop: retrys"), "retry"),
        (("at: publish, to: published", "at: publish, to: published, release: door"), "live"),
        (("on: timeout, to: rejected", "on: [timeout, late], to: rejected"), "expired"),
        (("score >= passing", "score >= pasing"), "good"),
        (("score >= passing", "score >= passing.x"), "good"),
        (("score >= passing", "score >= answers.drat.text"), "good"),
        (("score >= passing", "answers.draft.txt"), "good"),
        (("score >= passing", "loops.reworks < 1"), "good"),
        (("score >= passing", "context.name == 'x'"), "good"),
        (("score >= passing", "attempt.x == 1"), "good"),
        (("score >= passing", "score.value >= 1"), "good"),
        (("adds: {title: =text}", "adds: {title: =txt}"), "drafted"),
        (("{passing: 0.8}", "{passing: 0.8, score: 0.5}"), "good"),
        (("{passing: 0.8}", "{passing: 0.8, attempt: 3}"), "attempt"),
    ],
)
def test_unknown_name(change: tuple[str, str], expected: str) -> None:
    findings = [each for each in serious(press(change)) if each.id == "circuit.unknown-name"]
    assert expected in {each.subject for each in findings}
    assert all(each.level == "error" and each.line > 1 and each.fix for each in findings)


@pytest.mark.parametrize(
    "change",
    [
        ("at: publish, to: published", "at: publish, to: published, hold: door, release: door"),
        ("on: timeout, to: rejected", "on: [timeout, rate-limit], to: rejected"),
        ("score >= passing", "score >= passing and case.anything.goes"),
        ("score >= passing", "score >= passing and answers.draft.text != ''"),
        ("score >= passing", "score >= passing and loops.rework < 1"),
        ("score >= passing", "score >= passing and context.title != ''"),
        ("score >= passing", "score >= passing and answer.score < 0.95"),
        ("loop: retries, to", "loop: retries, when: reason != 'disk full', to"),
        ("{passing: 0.8}", "{passing: 0.8, text: 0.5}"),
    ],
)
def test_known_names_are_not_reported(change: tuple[str, str]) -> None:
    ids = {each.id for each in serious(press(change))}
    if "text: 0.5" not in change[1]:
        assert ids == set()
    else:
        assert ids == {"circuit.unknown-name"}, "draft reads `text`, which is now ambiguous"


def test_unknown_name_says_what_was_meant_and_where() -> None:
    finding = found(press(("score >= passing", "scor >= passing")), "circuit.unknown-name")
    assert (finding.file, finding.line) == ("press.yaml", 28)
    assert finding.fix == "did you mean 'score'?"


@pytest.mark.parametrize(
    ("guard", "warned"),
    [
        ("remark == 'x'", True),
        ("has(remark) and remark == 'x'", False),
        ("not has(remark) or remark == 'x'", False),
        ("remark == 'x' and has(remark)", True),
        ("has(remark) or remark == 'x'", True),
        ("len(remark) > 3", True),
        ("rank > 3", True),
        ("rank != null and rank > 3", False),
        ("rank == 3", False),
        ("score > verdict", True),
        ("answers.approve.decision == 'revise'", True),
        ("has(answers.approve.decision) and answers.approve.decision == 'revise'", False),
        ("answers.draft.text == 'x'", False),
        ("has(case.mode) and case.mode == 'x'", False),
    ],
)
def test_unguarded_name(guard: str, warned: bool) -> None:
    written = press(('verdict == "pass" and score >= passing', guard))
    ids = {(each.level, each.id) for each in serious(written)}
    assert (("warning", "circuit.unguarded-name") in ids) == warned
    assert warned or not ids


def test_an_earlier_rule_can_take_what_is_absent() -> None:
    fields = "properties: {x: {type: integer}}"
    reads = "  - {id: big, at: ask, when: x > 3, to: b}\n  - {id: rest, at: ask, to: c}"
    asks = "  - {id: none, at: ask, when: not has(x), to: a}\n"
    assert summary(one_step(reads, fields)) == {("warning", "circuit.unguarded-name", "big")}
    assert summary(one_step(asks + reads, fields)) == set()


def test_additions_can_leave_a_case_stuck_too() -> None:
    written = press(("at: review, to: abandoned", "at: review, to: abandoned, adds: {n: =remark}"))
    assert summary(written) == {("warning", "circuit.unguarded-name", "hopeless")}
    assert "remark" not in found(written, "circuit.unguarded-name").counter_example


def test_otherwise_does_not_hide_a_wrong_name() -> None:
    text = SOUND + OTHERWISE.replace("why: nothing else applies", "adds: {why: =nothing}")
    assert found(read_circuit(text, "x.yaml"), "circuit.unknown-name").subject == "otherwise"


PIT = """\
  - {id: sink, at: pit, on: [artifact, timeout, crash, unreadable], to: AGAIN, loop: rework}
"""
ASIDE = """\
  - {id: aside, at: draft, on: question, to: help, detour: true, loop: rework}
  - {id: helped, at: help, to: BACK}
"""


def test_dead_end() -> None:
    some = "at: [draft, review, publish], on: [timeout, crash, unreadable]"
    written = press(
        ("id: live, at: publish, to: published", "id: live, at: publish, to: pit"),
        ("ends: {published: healthy, ", "ends: {"),
        ("steps:\n", "steps:\n  pit: {role: press, timeout: 1m}\n"),
        ("at: ANY, on: [timeout, crash, unreadable], loop", f"{some}, loop"),
        ("at: ANY, on: [timeout, crash, unreadable], to", f"{some}, to"),
        (HOPELESS, HOPELESS + PIT),
    )
    assert ("error", "circuit.dead-end", "pit") in summary(written)
    assert ("error", "circuit.dead-end", "publish") not in summary(written)


def detoured(*changes: tuple[str, str]) -> CircuitSource:
    text = changed(
        SOUND,
        ("steps:\n", "steps:\n  help: {role: critic, timeout: 1m}\n"),
        ("answer: text, timeout", "answer: text, signals: [artifact, question], timeout"),
        ("  - {id: drafted", ASIDE + "  - {id: drafted"),
        (
            "  - {id: hopeless",
            "  - {id: dry, at: draft, on: question, to: abandoned}\n  - {id: hopeless",
        ),
    )
    return read_circuit(changed(text, *changes), "detour.yaml")


def test_back_needs_a_detour() -> None:
    assert summary(detoured()) == set()
    never = detoured((", detour: true", ""))
    assert ("error", "circuit.dead-end", "helped") in summary(never)
    sometimes = detoured(
        ("id: hopeless, at: review, to: abandoned", "id: hopeless, at: review, to: help")
    )
    assert ("warning", "circuit.dead-end", "helped") in summary(sometimes)


@pytest.mark.parametrize(
    ("change", "rules"),
    [
        (
            ('decision == "revise", loop: rework', 'decision == "revise"'),
            {"drafted", "good", "revise"},
        ),
        (("loop: retries, to: AGAIN", "to: AGAIN"), {"retry"}),
        (('"revise", loop: rework', '"revise", loop: retries'), {"drafted", "good", "revise"}),
        (('"revise", loop: rework, to: draft', '"revise", to: approve'), {"revise"}),
    ],
)
def test_unbounded_loop(change: tuple[str, str], rules: set[str]) -> None:
    finding = found(press(change), "circuit.unbounded-loop")
    assert finding.level == "error"
    assert {hop["rule"] for hop in finding.counter_example} == rules
    steps = [hop["step"] for hop in finding.counter_example]
    assert [hop["to"] for hop in finding.counter_example] == [*steps[1:], steps[0]]


def test_a_detour_and_its_way_back_are_a_loop() -> None:
    written = detoured((", detour: true, loop: rework", ", detour: true"))
    finding = found(written, "circuit.unbounded-loop")
    assert {hop["rule"] for hop in finding.counter_example} == {"aside", "helped"}


def test_otherwise_can_be_a_loop() -> None:
    text = SOUND + "otherwise: draft\n"
    finding = found(read_circuit(text, "x.yaml"), "circuit.unbounded-loop")
    assert "otherwise" in {hop["rule"] for hop in finding.counter_example}


def test_self_review() -> None:
    assert summary(press(("role: critic", "role: author"))) == {
        ("error", "circuit.self-review", "review")
    }


def test_no_timeout() -> None:
    written = press(("role: press, writes: true, timeout: 5m", "role: press, writes: true"))
    assert summary(written) == {("warning", "circuit.no-timeout", "publish")}
