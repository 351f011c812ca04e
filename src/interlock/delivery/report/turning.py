"""What single turns of a delivery say: what was seen, what was said, what was asked.

Pure: answers as the journal keeps them in, records and short texts out. Bounded, since what agents
write is not.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from interlock.delivery import steps
from interlock.delivery.checks.records import CheckResult
from interlock.delivery.report.records import CheckEvidence
from interlock.engine.circuit import FAILURES
from interlock.journal.turns import DispatchRecord

_MOST_SAID: Final = 2_000
_MOST_OUTPUT: Final = 3_000
_SAYS: Final = (
    "summary",
    "question",
    "blocker",
    "decision",
    "problem",
    "recommendation",
    "text",
)
"""The parts of an answer that tell what it comes to, the best one first."""
_ASKS: Final = ("question", "blocker", "problem", "summary", "reason", "text")


def is_look(turn: DispatchRecord) -> bool:
    return turn.decision is not None and turn.decision.signal == "artifact"


def is_merge(turn: DispatchRecord) -> bool:
    return turn.step == steps.MERGE and is_look(turn) and turn.answer.get("outcome") == "merged"


def last_of(turns: Sequence[DispatchRecord], step: str, signal: str) -> Mapping[str, Any]:
    for turn in reversed(turns):
        if turn.step == step and turn.decision and turn.decision.signal == signal:
            found: Mapping[str, Any] = turn.answer
            return found
    return {}


def question(turns: Sequence[DispatchRecord]) -> str:
    """What was asked, in the words of the one who asked; else why a human is needed."""
    asked = turns[-2] if len(turns) > 1 else None
    if asked is None or asked.decision is None:
        return ""
    answer = asked.answer if isinstance(asked.answer, Mapping) else {}
    for name in _ASKS:
        if found := text(answer.get(name)):
            return found
    return text(asked.decision.adds.get("reason"))


def said(signal: str, answer: Any) -> str:
    if not isinstance(answer, Mapping):
        return ""
    if signal in FAILURES:
        return text(answer.get("reason"))
    for name in _SAYS:
        if found := text(answer.get(name)):
            more = text(answer.get("text")) if name == "decision" else ""
            return f"{found}: {more}" if more else found
    return ""


def text(value: Any) -> str:
    """A section as plain text, whatever the parser made of it."""
    if isinstance(value, str):
        return value.strip()[:_MOST_SAID]
    if isinstance(value, list):
        return "; ".join(text(each) for each in value if each)[:_MOST_SAID]
    if isinstance(value, Mapping):
        return " ".join(text(each) for each in value.values() if each)[:_MOST_SAID]
    return "" if value is None else str(value)


def proofs(looked: Iterable[DispatchRecord]) -> Iterator[CheckEvidence]:
    for turn in looked:
        for row in turn.answer.get("results", ()):
            yield CheckEvidence(
                stage=turn.step.lower().replace("_", " "),
                attempt=turn.attempt,
                check=str(row.get("check", "")),
                environment=str(row.get("environment", "")),
                passed=bool(row.get("passed")),
                exit_code=row.get("exit_code"),
                tests=row.get("tests"),
                seconds=float(row.get("seconds") or 0.0),
                note=str(row.get("note", "")),
                output=str(row.get("output", "")),
            )


def proof(result: CheckResult, stage: str) -> CheckEvidence:
    return CheckEvidence(
        stage=stage,
        attempt=1,
        check=result.check,
        environment=result.environment,
        passed=result.passed,
        exit_code=result.exit_code,
        tests=result.test_count,
        seconds=result.seconds,
        note=result.note,
        output="" if result.passed else result.output_tail[-_MOST_OUTPUT:],
    )
