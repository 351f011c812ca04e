"""Replay a recorded case under another circuit or other thresholds.

Decides the recorded answers again, in order. Each answer serves only its own step and attempt:
where the new path needs an answer that was never given, the replay says so and stops.
"""

from collections.abc import Sequence
from typing import Any

import msgspec

from interlock.engine.advance import advance, apply
from interlock.engine.case import OPEN, Case, Decision, Signal
from interlock.engine.circuit import Circuit

RecordedDecisions = Sequence[tuple[Decision, dict[str, Any]]]


class Divergence(msgspec.Struct, frozen=True):
    """The first point where the two paths part."""

    step: str
    attempt: int
    rule_before: str
    rule_after: str
    to_before: str
    to_after: str
    read: dict[str, Any]


class ReplayedCase(msgspec.Struct, frozen=True):
    """A case decided again.

    `lacks` names the step without a recorded answer, if the replay came to one: the numbers after
    it are then a lower bound.
    """

    case_id: str
    turn: Divergence | None
    dispatches_before: int
    dispatches_after: int
    path_before: tuple[str, ...]
    path_after: tuple[str, ...]
    end_before: str
    end_after: str
    lacks: str = ""


def decide_again(
    circuit: Circuit, start: Case, recorded: RecordedDecisions
) -> tuple[RecordedDecisions, Case, str]:
    """Return the decisions another circuit makes on recorded answers, the resulting case, and the
    step that lacks an answer, if any."""
    answers = {(each.step, each.attempt): (each.signal, data) for each, data in recorded}
    case = start
    decided: list[tuple[Decision, dict[str, Any]]] = []
    while case.status == OPEN:
        found = answers.get((case.step, case.attempt))
        if found is None:
            return decided, case, case.step
        name, data = found
        decision = advance(circuit, case, Signal(name, data))
        decided.append((decision, data))
        case = apply(circuit, case, decision, data)
    return decided, case, ""


def replay(circuit: Circuit, start: Case, recorded: RecordedDecisions, end: str) -> ReplayedCase:
    """Decide a case again from `start`; `end` is its end or position in the journal."""
    decided, case, lacks = decide_again(circuit, start, recorded)
    path = [decision.step for decision, _ in decided]
    pairs = zip(recorded, decided, strict=False)
    turn = next(
        (it for (one, _), (other, _) in pairs if (it := _find_divergence(one, other))), None
    )
    unasked = bool(lacks) and turn is not None
    return ReplayedCase(
        case_id=start.case_id,
        turn=turn,
        dispatches_before=len(recorded),
        dispatches_after=len(path) + unasked,
        path_before=tuple(each.step for each, _ in recorded),
        path_after=(*path, lacks) if unasked else tuple(path),
        end_before=end,
        end_after=end if turn is None else describe_position(case),
        lacks=lacks if turn is not None else "",
    )


def describe_position(case: Case) -> str:
    """Return a case's end, or its position, in one word."""
    return case.end or (case.step if case.status == OPEN else case.status)


def _find_divergence(before: Decision, after: Decision) -> Divergence | None:
    if (before.to, before.status) == (after.to, after.status):
        return None
    return Divergence(
        step=after.step,
        attempt=after.attempt,
        rule_before=before.rule,
        rule_after=after.rule,
        to_before=before.to or before.status,
        to_after=after.to or after.status,
        read=dict(after.read),
    )
