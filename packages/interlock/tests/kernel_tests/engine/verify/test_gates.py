"""Gates before outside writes: only what a human approved may pass, whatever else is answered."""

import pytest

from interlock.engine.circuit_file import CircuitSource, read_circuit
from interlock.engine.verify import verify
from tests.world.circuits import SOUND, changed, found, press, serious, summary

IGNORED = ("error", "circuit.gate-ignored", "publish")
APPROVED = 'when: decision == "approve", to: publish'


def test_ungated_write() -> None:
    written = press(("score >= passing, to: approve", "score >= passing, to: publish"))
    finding = found(written, "circuit.ungated-write")
    assert (finding.level, finding.subject) == ("error", "publish")
    assert [hop["step"] for hop in finding.counter_example] == ["draft", "review"]


@pytest.mark.parametrize("rule", ["expired", "otherwise"])
def test_an_approval_that_nobody_gave_is_none(rule: str) -> None:
    written = (
        press(("on: timeout, to: rejected", "on: timeout, to: publish"))
        if rule == "expired"
        else read_circuit(
            changed(
                SOUND,
                ("  - {id: refused, at: approve, to: rejected}\n", ""),
                ("on: timeout, to: rejected", "on: timeout, to: abandoned"),
                ("rejected: healthy, ", ""),
            )
            + "otherwise: publish\n",
            "x.yaml",
        )
    )
    finding = found(written, "circuit.ungated-write")
    assert rule in {hop["rule"] for hop in finding.counter_example}


@pytest.mark.parametrize(
    ("guard", "answers"),
    [
        ("", "whatever the human answers"),
        ('when: decision == "reject", ', "for decision = 'reject'"),
        ('when: decision != "approve", ', "for decision = 'revise'"),
        ('when: decision != "reject", ', "for decision = 'revise'"),
        ("when: \"decision in ['approve', 'reject']\", ", "for decision = 'reject'"),
        ('when: decision == "approve" or context.title == "x", ', "whatever the human answers"),
        ("when: has(comment), ", "whatever the human answers"),
        ('when: context.title == "x", ', "whatever the human answers"),
        ("when: has(decision), ", "whatever the human answers"),
    ],
)
def test_a_gate_whose_answer_is_ignored_is_none(guard: str, answers: str) -> None:
    written = press((APPROVED, f"{guard}to: publish"))
    finding = found(written, "circuit.gate-ignored")
    assert (finding.level, finding.subject) == ("error", "publish")
    assert f"rule 'approved' at the gate 'approve' lets a case go there {answers}: " in (
        finding.message
    )
    assert [hop["step"] for hop in finding.counter_example] == ["draft", "review", "approve"]


@pytest.mark.parametrize(
    "guard",
    [
        'decision == "approve"',
        'decision == "approve" and context.title != ""',
        'decision not in ["reject", "revise"]',
        'has(decision) and not (decision == "reject" or decision == "revise")',
    ],
)
def test_a_gate_that_only_an_approval_passes_is_one(guard: str) -> None:
    written = press((APPROVED, f"when: '{guard}', to: publish"))
    assert "circuit.gate-ignored" not in {each.id for each in serious(written)}


def test_a_refusal_that_goes_on_once_its_loop_is_spent_passes_the_gate() -> None:
    written = press(
        ("id: refused, at: approve, to: rejected", "id: refused, at: approve, to: publish")
    )
    finding = found(written, "circuit.gate-ignored")
    assert "rule 'refused' at the gate 'approve'" in finding.message


def gate(shape: str, rules: str, signals: str = "artifact") -> CircuitSource:
    return read_circuit(
        f"""\
circuit: gated
start: ask
ends: [done, dropped]
steps:
  ask: {{gate: true, timeout: 1d, signals: [{signals}], answer: {{type: object, {shape}}}}}
  sort: {{role: agent, timeout: 5m}}
  send: {{role: agent, timeout: 5m, writes: true}}
rules:
{rules}
  - {{id: sent, at: send, to: done}}
  - {{id: lost, at: ANY, on: [timeout, crash, unreadable], to: dropped}}
"""
    )


FLAG = "properties: {approved: {type: boolean}}, required: [approved]"
STOP = "properties: {halted: {type: boolean}}, required: [halted]"
OWN = "properties: {verdict: {type: string, enum: [ship, polish]}}, required: [verdict]"
MARK = "properties: {mark: {type: integer, minimum: 1, maximum: 5}}, required: [mark]"


@pytest.mark.parametrize(
    ("shape", "guard", "ignored"),
    [
        (FLAG, "approved", False),
        (FLAG, "not approved", True),
        (FLAG, "approved == approved", True),
        (STOP, "not halted", False),
        (STOP, "halted", True),
        (OWN, "verdict == 'ship'", False),
        (OWN, "verdict in ['ship', 'polish']", True),
        (MARK, "mark >= 4", False),
        (MARK, "mark >= 1", True),
    ],
)
def test_answers_of_any_shape_are_understood(shape: str, guard: str, ignored: bool) -> None:
    rules = f"""\
  - {{id: on, at: ask, when: "{guard}", to: send}}
  - {{id: off, at: ask, to: sort}}
  - {{id: sorted, at: sort, to: dropped}}"""
    found_ids = {each.id for each in verify(gate(shape, rules)).findings}
    assert ("circuit.gate-ignored" in found_ids) == ignored


@pytest.mark.parametrize(("word", "ignored"), [("granted", False), ("rejected", True)])
def test_signals_can_be_the_answer(word: str, ignored: bool) -> None:
    other = {"granted": "rejected", "rejected": "granted"}[word]
    rules = f"""\
  - {{id: on, at: ask, on: {word}, to: send}}
  - {{id: off, at: ask, on: {other}, to: sort}}
  - {{id: sorted, at: sort, to: dropped}}"""
    written = gate("properties: {text: {type: string}}", rules, "granted, rejected")
    assert summary(written) == ({("error", "circuit.gate-ignored", "send")} if ignored else set())


@pytest.mark.parametrize(("value", "ignored"), [("true", False), ("false", True)])
def test_an_approval_may_be_read_at_a_later_step(value: str, ignored: bool) -> None:
    rules = f"""\
  - {{id: asked, at: ask, to: sort}}
  - {{id: on, at: sort, when: answers.ask.approved == {value}, to: send}}
  - {{id: off, at: sort, to: dropped}}"""
    found_ids = {each.id for each in verify(gate(FLAG, rules)).findings}
    assert ("circuit.gate-ignored" in found_ids) == ignored
