"""Replay: recorded cases decided again, against what was computed by hand."""

from typing import Any

import pytest

from interlock.engine.advance import advance, apply, open_case
from interlock.engine.case import Decision, Signal
from interlock.engine.circuit import TIMEOUT
from interlock.engine.circuit_file import read_circuit
from interlock.engine.replay import Divergence, ReplayedCase, describe_position, replay
from tests.world.sample_circuit import PAPER

CIRCUIT = read_circuit(PAPER).circuit
START = open_case(CIRCUIT, "A", {})
WRITTEN = {"words": 5}
Answers = list[dict[str, Any] | str]


def recorded(answers: Answers) -> tuple[list[tuple[Decision, dict[str, Any]]], str]:
    """What the journal holds after these answers (a text is a failure), and how the case stands."""
    case = START
    record: list[tuple[Decision, dict[str, Any]]] = []
    for each in answers:
        name, data = (each, {}) if isinstance(each, str) else ("artifact", each)
        decision = advance(CIRCUIT, case, Signal(name, data))
        record.append((decision, data))
        case = apply(CIRCUIT, case, decision, data)
    return record, describe_position(case)


def replayed(answers: Answers, **thresholds: int) -> ReplayedCase:
    record, end = recorded(answers)
    return replay(CIRCUIT.with_thresholds(thresholds), START, record, end)


SIGNED: Answers = [WRITTEN, {"mark": 4}, {"decision": "approve"}]
REWORKED: Answers = [WRITTEN, {"mark": 2}, WRITTEN, {"mark": 3}, {"decision": "approve"}]
WORN_OUT: Answers = [WRITTEN, {"mark": 1}, WRITTEN, {"mark": 1}, WRITTEN, {"mark": 2}]
WAITING: Answers = [WRITTEN, {"mark": 4}]
TIMED_OUT: Answers = [TIMEOUT, WRITTEN, {"mark": 4}, {"decision": "approve"}]


@pytest.mark.parametrize("good", [3, 4], ids=["same threshold", "another that changes nothing"])
def test_nothing_changes(good: int) -> None:
    path = ("write", "judge", "sign")
    assert replayed(SIGNED, good=good) == ReplayedCase("A", None, 3, 3, path, path, "done", "done")


@pytest.mark.parametrize(
    ("answers", "path", "stands"),
    [
        pytest.param(REWORKED, ("write", "judge", "write", "judge", "sign"), "done", id="loop"),
        pytest.param(WORN_OUT, ("write", "judge") * 3, "dropped", id="spent loop"),
        pytest.param(WAITING, ("write", "judge"), "sign", id="still open"),
        pytest.param(TIMED_OUT, ("write", "write", "judge", "sign"), "done", id="failures"),
        pytest.param([], (), "write", id="no answer yet"),
    ],
)
def test_the_same_thresholds_change_nothing(
    answers: Answers, path: tuple[str, ...], stands: str
) -> None:
    size = len(path)
    assert replayed(answers) == ReplayedCase("A", None, size, size, path, path, stands, stands)


def test_a_lower_threshold_saves_a_rework() -> None:
    turn = Divergence("judge", 1, "rework", "good", "write", "sign", {"mark": 2, "good": 2})
    assert replayed(REWORKED, good=2) == ReplayedCase(
        case_id="A",
        turn=turn,
        dispatches_before=5,
        dispatches_after=3,
        path_before=("write", "judge", "write", "judge", "sign"),
        path_after=("write", "judge", "sign"),
        end_before="done",
        end_after="done",
    )


def test_a_lower_threshold_asks_for_an_answer_that_was_never_given() -> None:
    turn = Divergence("judge", 3, "worn-out", "good", "dropped", "sign", {"mark": 2, "good": 2})
    assert replayed(WORN_OUT, good=2) == ReplayedCase(
        case_id="A",
        turn=turn,
        dispatches_before=6,
        dispatches_after=7,
        path_before=("write", "judge") * 3,
        path_after=(*("write", "judge") * 3, "sign"),
        end_before="dropped",
        end_after="sign",
        lacks="sign",
    )


def test_a_higher_threshold_wants_another_draft() -> None:
    turn = Divergence("judge", 1, "good", "rework", "sign", "write", {"mark": 4, "good": 5})
    assert replayed(SIGNED, good=5) == ReplayedCase(
        case_id="A",
        turn=turn,
        dispatches_before=3,
        dispatches_after=3,
        path_before=("write", "judge", "sign"),
        path_after=("write", "judge", "write"),
        end_before="done",
        end_after="write",
        lacks="write",
    )


def test_a_case_that_sticks_says_so() -> None:
    turn = Divergence("judge", 1, "good", "", "sign", "stuck", {"mark": 4})
    record, end = recorded(SIGNED)
    lost = CIRCUIT.with_thresholds({"good": "high"})
    found = replay(lost, START, record, end)
    assert (found.end_after, found.lacks, found.dispatches_after) == ("stuck", "", 2)
    assert found.turn is not None
    assert (found.turn.to_before, found.turn.to_after) == (turn.to_before, turn.to_after)
