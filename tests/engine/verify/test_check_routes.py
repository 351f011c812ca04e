"""Ways: reach, ends, loops, gates before writes, and who judges whom."""

import pytest
from tests.engine.circuits import (
    HOPELESS,
    SOUND,
    changed,
    found,
    press,
    summary,
)

from interlock.engine.circuit_file import CircuitSource, read_circuit

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


def test_self_review() -> None:
    assert summary(press(("role: critic", "role: author"))) == {
        ("error", "circuit.self-review", "review")
    }


def test_no_timeout() -> None:
    written = press(("role: press, writes: true, timeout: 5m", "role: press, writes: true"))
    assert summary(written) == {("warning", "circuit.no-timeout", "publish")}
