"""The vocabulary of epics: statuses and their transitions, outcomes, and effects of line signals.

All three are tables. Other words for a status are accepted on reading only. Exit codes below
10 and from 75 are those of every command, the rest are the epic's own.
"""

from enum import StrEnum
from typing import Final, Literal

import msgspec

from interlock.system.errors import SourceError, StateError

Kind = Literal["epic", "story", "task"]


class Status(StrEnum):
    """How a piece of work stands."""

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
    Status.BACKLOG: ("todo", "to_do", "pending", "queued", "planned", "optional"),
    Status.DRAFT: ("drafted", "ready_for_review", "creating", "created", "context_generating"),
    Status.READY: ("ready_for_dev", "idle"),
    Status.IN_PROGRESS: ("working", "active", "started", "planning", "implementing", "testing"),
    Status.REVIEW: ("in_review", "reviewing", "merging", "validating"),
    Status.WAITING: ("hitl_pending", "hitl_waiting"),
    Status.PAUSED: ("discuss", "on_hold"),
    Status.DEFERRED: ("postponed",),
    Status.FAILED: ("error", "fatal"),
    Status.HALTED: ("stopped",),
    Status.DONE: ("completed", "complete", "success"),
    Status.CANCELLED: ("canceled", "aborted"),
}
"""Other words for a status, with underscores for hyphens and blanks."""

_BY_KIND: Final[dict[tuple[Kind, str], Status]] = {("epic", "planning"): Status.DRAFT}
"""A story that is being planned is in progress; an epic that is being planned is not."""
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
"""Legal transitions. The same status again is always legal; what is done is never undone."""


def read_status(word: str, kind: Kind = "story") -> Status:
    """The status that a word means, in any spelling; SourceError if it means none."""
    plain = "_".join(word.strip().lower().replace("-", " ").replace("_", " ").split())
    found = _BY_KIND.get((kind, plain)) or _MEANING.get(plain)
    if found is None:
        raise SourceError(f"{word[:40]!r} is not a status; use one of {', '.join(Status)}")
    return found


def change_status(before: Status | None, after: Status, subject: str) -> Status:
    """The new status, if it may follow; StateError with those that may."""
    if before is None or after == before or after in NEXT[before]:
        return after
    legal = ", ".join(NEXT[before]) or "nothing"
    raise StateError(f"{subject} is {before} and cannot become {after}; possible: {legal}")


class EpicOutcome(msgspec.Struct, frozen=True):
    """One way to end. With a `status` of None, the epic keeps the one it has; the protocol has no
    `signal` for some."""

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
    "LIMIT": EpicOutcome(
        14, Status.PAUSED, "FATAL_ERROR", "a limit is reached, or there is no progress"
    ),
    "NO_CHECKPOINT": EpicOutcome(15, None, "FATAL_ERROR", "there is nothing to resume from"),
    "GIT_MISMATCH": EpicOutcome(
        16, Status.BLOCKED, "FATAL_ERROR", "git does not match the checkpoint"
    ),
    "NO_SIGNAL": EpicOutcome(17, Status.BLOCKED, "FATAL_ERROR", "a session ended without a signal"),
}
LOCKED: Final = "LOCKED"
LOCKED_EXIT: Final = 18
"""Another process works on the epic or in this workspace. Not an outcome of the epic."""


def list_exit_codes() -> list[tuple[str, int, str]]:
    """Every outcome with its exit code and meaning, by code."""
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
"""`restart`, `review` and `stop` end the session; `retry` says how it ended if nothing stronger
does; `story` changes a story; `note` is only recorded. A session cannot decide for a human: such a
line is a note."""

ENDING: Final = frozenset(
    name for name, effect in EFFECTS.items() if effect in ("restart", "review", "stop")
)
DECIDING: Final = ENDING | {"RECOVERABLE_ERROR"}
FIRM: Final = ("FATAL_ERROR", "RECOVERY_FAILED", "HITL_REQUIRED")
"""These decide wherever they stand, the first of the list before the others; of all other signals
the last one decides."""
