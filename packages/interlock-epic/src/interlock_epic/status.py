"""Define the vocabulary of epics: statuses, outcomes, and the effects of line signals.

All three are tables. Other words for a status are accepted on reading only. Exit codes below 10 and
from 75 are those of every command; the rest are the epic's own.
"""

from enum import StrEnum
from typing import Final, Literal

import msgspec

from interlock.system.errors import SourceError, StateError


class Status(StrEnum):
    """The status of an epic or a story."""

    BACKLOG = "backlog"
    DRAFT = "draft"
    READY = "ready"
    IN_PROGRESS = "in_progress"
    REVIEW = "review"
    WAITING = "waiting"
    PAUSED = "paused"
    BLOCKED = "blocked"
    DEFERRED = "deferred"
    FAILED = "failed"
    PARTIAL = "partial"
    HALTED = "halted"
    DONE = "done"
    SKIPPED = "skipped"
    CANCELLED = "cancelled"


ALIASES: Final[dict[Status, tuple[str, ...]]] = {
    Status.BACKLOG: ("todo", "to_do", "pending", "queued", "planned"),
    Status.DRAFT: ("drafted",),
    Status.READY: ("ready_for_dev",),
    Status.IN_PROGRESS: ("working", "active", "started"),
    Status.REVIEW: ("in_review", "reviewing"),
    Status.PAUSED: ("on_hold",),
    Status.DEFERRED: ("postponed",),
    Status.FAILED: ("error",),
    Status.HALTED: ("stopped",),
    Status.DONE: ("completed", "complete", "success"),
    Status.CANCELLED: ("canceled", "aborted"),
}
"""Other words that people write for a status, with underscores for hyphens and blanks."""

_MEANING: Final = {
    **{status.value: status for status in Status},
    **{alias: status for status, aliases in ALIASES.items() for alias in aliases},
}
_ASIDE: Final = (Status.DEFERRED, Status.SKIPPED, Status.CANCELLED)
_HELD: Final = (Status.WAITING, Status.PAUSED, Status.BLOCKED, Status.HALTED)
_AGAIN: Final = (Status.IN_PROGRESS, Status.FAILED, *_HELD, *_ASIDE)

_AFTER: Final[dict[Status, tuple[Status, ...]]] = {
    Status.BACKLOG: (Status.DRAFT, Status.READY, *_ASIDE),
    Status.DRAFT: (Status.BACKLOG, Status.READY, Status.WAITING, *_ASIDE),
    Status.READY: (Status.DRAFT, Status.IN_PROGRESS, Status.BLOCKED, *_ASIDE),
    Status.IN_PROGRESS: (
        Status.REVIEW,
        Status.DONE,
        Status.PARTIAL,
        Status.FAILED,
        *_HELD,
        *_ASIDE,
    ),
    Status.REVIEW: (Status.DONE, Status.PARTIAL, *_AGAIN),
    Status.WAITING: (Status.REVIEW, Status.DONE, *_AGAIN),
    Status.PAUSED: _AGAIN,
    Status.BLOCKED: _AGAIN,
    Status.HALTED: (Status.IN_PROGRESS, *_ASIDE),
    Status.DEFERRED: (Status.BACKLOG, Status.READY, Status.IN_PROGRESS, Status.CANCELLED),
    Status.FAILED: (Status.IN_PROGRESS, *_ASIDE),
    Status.PARTIAL: (Status.IN_PROGRESS, Status.CANCELLED),
    Status.DONE: (),
    Status.SKIPPED: (),
    Status.CANCELLED: (),
}
NEXT: Final = {
    before: tuple(status for status in after if status != before)
    for before, after in _AFTER.items()
}
"""Legal transitions. Repeating a status is always legal; finished work is never undone."""


def read_status(word: str) -> Status:
    """Return the status that a word means, in any spelling; raise SourceError if it means none."""
    plain = "_".join(word.strip().lower().replace("-", " ").replace("_", " ").split())
    found = _MEANING.get(plain)
    if found is None:
        raise SourceError(f"{word[:40]!r} is not a status; use one of {', '.join(Status)}")
    return found


def change_status(before: Status | None, after: Status, subject: str) -> Status:
    """Return the new status; raise StateError with the legal ones if it may not follow."""
    if before is None or after == before or after in NEXT[before]:
        return after
    legal = ", ".join(NEXT[before]) or "nothing"
    raise StateError(f"{subject} is {before} and cannot become {after}; possible: {legal}")


class EpicOutcome(msgspec.Struct, frozen=True):
    """One way to end.

    A `status` of None leaves the epic's unchanged; `signal` is "" if the protocol has none.
    """

    exit_code: int
    status: Status | None
    signal: str
    means: str


OUTCOMES: Final[dict[str, EpicOutcome]] = {
    "COMPLETE": EpicOutcome(0, Status.DONE, "EPIC_COMPLETE", "everything is done"),
    "FATAL": EpicOutcome(1, Status.FAILED, "FATAL_ERROR", "it cannot continue; the code says why"),
    "PARTIAL": EpicOutcome(3, Status.PARTIAL, "EPIC_COMPLETE", "it ended with parts undone"),
    "PAUSED_DISCUSS": EpicOutcome(
        10, Status.PAUSED, "HITL_DISCUSS", "a human wants to discuss it first"
    ),
    "PAUSED_TIMEOUT": EpicOutcome(11, Status.WAITING, "HITL_TIMEOUT", "nobody answered in time"),
    "PAUSED_DEFERRED": EpicOutcome(12, Status.DEFERRED, "", "a human deferred it"),
    "HALTED": EpicOutcome(13, Status.HALTED, "HITL_HALT", "a human stopped it"),
    "LIMIT": EpicOutcome(14, Status.PAUSED, "FATAL_ERROR", "a limit is reached, or nothing moves"),
    "NO_CHECKPOINT": EpicOutcome(15, None, "FATAL_ERROR", "there is nothing to resume from"),
    "GIT_MISMATCH": EpicOutcome(
        16, Status.BLOCKED, "FATAL_ERROR", "git does not match the checkpoint"
    ),
    "NO_SIGNAL": EpicOutcome(17, Status.BLOCKED, "FATAL_ERROR", "a session ended without a signal"),
}
LOCKED: Final = "LOCKED"
LOCKED_EXIT: Final = 18
"""Another process works on the epic or in this workspace; the epic itself has not ended."""


def list_exit_codes() -> list[tuple[str, int, str]]:
    """Return every outcome with its exit code and meaning, by code."""
    rows = [(name, outcome.exit_code, outcome.means) for name, outcome in OUTCOMES.items()]
    rows += [("WAITING", 4, "a human is asked; run it again after the answer")]
    rows += [(LOCKED, LOCKED_EXIT, "another process is working on it")]
    return sorted(rows, key=lambda row: row[1])


Effect = Literal["restart", "retry", "review", "stop", "story", "note"]

EFFECTS: Final[dict[str, Effect]] = {
    "CHECKPOINT:WRITE": "restart",
    "CHECKPOINT:LOADED": "note",
    "CHECKPOINT:MISSING": "note",
    "HITL_REQUIRED": "review",
    "HITL_WAITING": "note",
    "HITL_APPROVED": "note",
    "HITL_REVISE": "note",
    "HITL_DISCUSS": "note",
    "HITL_HALT": "note",
    "HITL_TIMEOUT": "note",
    "EPIC_STARTED": "note",
    "EPIC_COMPLETE": "stop",
    "STORY_STARTED": "story",
    "STORY_COMPLETE": "story",
    "PHASE_TRANSITION": "note",
    "RECOVERY_STARTED": "note",
    "RECOVERY_COMPLETE": "restart",
    "RECOVERY_FAILED": "stop",
    "FATAL_ERROR": "stop",
    "RECOVERABLE_ERROR": "retry",
}
"""`restart`, `review` and `stop` end the session; `retry` names its end unless another signal does;
`story` changes a story; `note` is only recorded. A session cannot decide for a human, so such a
line is a note.
"""

ENDING: Final = frozenset(
    name for name, effect in EFFECTS.items() if effect in ("restart", "review", "stop")
)
DECIDING: Final = ENDING | {"RECOVERABLE_ERROR"}
FIRM: Final = ("FATAL_ERROR", "RECOVERY_FAILED", "HITL_REQUIRED")
"""These signals decide wherever they appear, the first in this list winning; of all others the last
one decides.
"""
