"""Describe an epic's state for people and programs: outcome, newest run, sessions."""

from typing import Any, Final

import msgspec

from interlock.api.project import Project
from interlock.api.work import RunResult, load_circuit
from interlock.engine.case import Case
from interlock.journal.connection import Connection
from interlock.journal.history import find_case, list_open_questions
from interlock.journal.runs import find_run, load_cases, load_decisions
from interlock.system.errors import SourceError, StoreError
from interlock_epic.checkpoints.record import Checkpoint
from interlock_epic.checkpoints.store import Checkpoints, LoadedCheckpoint
from interlock_epic.hooks import EpicHooks
from interlock_epic.status import OUTCOMES

_SESSION_FIELDS: Final = (
    "ended_by",
    "message",
    "checkpoint_before",
    "checkpoint_after",
    "exit",
    "seconds",
    "counted",
    "record",
)


class EpicReport(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of work on an epic."""

    epic_id: str
    run_id: int
    outcome: str
    status: str
    code: str
    reason: str
    sessions: int
    questions: list[int]
    signals: list[str]
    """The line signals that the coordinator emitted."""
    checkpoint: dict[str, Any] | None
    exit_code: int | msgspec.UnsetType = msgspec.UNSET
    """The epic's own exit code, once it has ended."""


def build_report(
    connection: Connection, result: RunResult, epic_id: str, checkpoints: Checkpoints
) -> EpicReport:
    case = load_case(connection, result.run_id)
    outcome = read_outcome(result.status, case)
    found = checkpoints.read(epic_id)
    return EpicReport(
        epic_id=epic_id,
        run_id=result.run_id,
        outcome=outcome,
        status=result.status,
        code=_read_context(case, "code"),
        reason=_read_context(case, "reason") or case.reason,
        sessions=case.visits.get("SESSION", 0),
        questions=_list_questions(connection, result.run_id),
        signals=result.hooks.signals.lines if isinstance(result.hooks, EpicHooks) else [],
        checkpoint=(
            describe_checkpoint(found.checkpoint) if isinstance(found, LoadedCheckpoint) else None
        ),
        exit_code=OUTCOMES[outcome].exit_code if outcome in OUTCOMES else msgspec.UNSET,
    )


def load_case(connection: Connection, run_id: int) -> Case:
    """Return the only case of an epic's run, with its whole context."""
    circuit = load_circuit(find_run(connection, run_id))
    return next(iter(load_cases(connection, circuit, run_id, whole=True))).case


def read_outcome(status: str, case: Case) -> str:
    """Return the outcome of an epic in one word."""
    if case.end:
        return case.end
    if case.status != "open":
        return "FATAL"
    words = {
        "running": "RUNNING",
        "waiting": "WAITING",
        "budget": "BUDGET",
        "rate-limited": "RATE_LIMITED",
    }
    return words.get(status, "STOPPED")


def describe_checkpoint(checkpoint: Checkpoint) -> dict[str, Any]:
    """Return a summary of a checkpoint for programs."""
    return {
        "generation": checkpoint.generation,
        "epic_status": checkpoint.epic.status.value,
        "position": msgspec.to_builtins(checkpoint.position),
        "commit": checkpoint.git.commit,
        "branch": checkpoint.git.branch,
        "stories": {story.id: story.status.value for story in checkpoint.stories},
        "next_action": msgspec.to_builtins(checkpoint.next_action),
        "hitl": msgspec.to_builtins(checkpoint.hitl),
        "note": checkpoint.note,
        "updated": checkpoint.updated,
    }


def describe_newest_run(project: Project, epic_id: str) -> dict[str, Any]:
    """Return what the database knows of the epic's newest run; `run_id` is 0 if it knows none."""
    unknown = {"run_id": 0, "outcome": "", "step": "", "sessions": [], "questions": []}
    if not project.has_database:
        return unknown
    with project.read() as connection:
        try:
            found = find_case(connection, epic_id)
        except (StoreError, SourceError):
            return unknown
        case = load_case(connection, found.run_id)
        return {
            "run_id": found.run_id,
            "outcome": read_outcome(find_run(connection, found.run_id).status, case),
            "step": case.step,
            "code": _read_context(case, "code"),
            "reason": _read_context(case, "reason"),
            "sessions": _list_sessions(connection, found.case_no),
            "questions": _list_questions(connection, found.run_id),
        }


def _list_sessions(connection: Connection, case_no: int) -> list[dict[str, Any]]:
    return [
        {"attempt": decision.attempt, "rule": decision.rule}
        | {name: answer[name] for name in _SESSION_FIELDS if name in answer}
        | ({"message": answer["reason"]} if "reason" in answer else {})
        for decision, answer in load_decisions(connection, case_no)
        if decision.step == "SESSION"
    ]


def _list_questions(connection: Connection, run_id: int) -> list[int]:
    return [
        question.question_id
        for question in list_open_questions(connection)
        if question.run_id == run_id
    ]


def _read_context(case: Case, name: str) -> str:
    return str(case.context.get(name, "")) if case.end else ""
