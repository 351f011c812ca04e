"""Names: what does not exist, and what may not be there when it is read."""

import pytest
from tests.engine.circuits import (
    OTHERWISE,
    SOUND,
    found,
    one_step,
    press,
    serious,
    summary,
)

from interlock.engine.circuit_file import read_circuit


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
