"""The one status vocabulary of epics, stories and tasks, and which change may follow which.

Knows the words that older tools write for the same thing, and takes them on reading only. Refuses
to know who changes a status.
"""

from enum import StrEnum
from typing import Final, Literal

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
"""Other words for a status, with hyphens and blanks written as underscores."""

_OF_A_KIND: Final[dict[tuple[Kind, str], Status]] = {("epic", "planning"): Status.DRAFT}
"""A story that is being planned is at work; an epic that is being planned has not begun."""
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
    before: tuple(each for each in after if each != before) for before, after in _AFTER.items()
}
"""What may follow. The same status again is always legal; what is done is never undone."""


def read_status(word: str, kind: Kind = "story") -> Status:
    """The status a word means, in any of its spellings; SourceError if it means none."""
    plain = "_".join(word.strip().lower().replace("-", " ").replace("_", " ").split())
    found = _OF_A_KIND.get((kind, plain)) or _MEANING.get(plain)
    if found is None:
        raise SourceError(f"{word[:40]!r} is no status; use one of {', '.join(Status)}")
    return found


def change_status(before: Status | None, after: Status, subject: str) -> Status:
    """The new status, if it may follow; StateError with what may."""
    if before is None or after == before or after in NEXT[before]:
        return after
    legal = ", ".join(NEXT[before]) or "nothing"
    raise StateError(f"{subject} is {before}: {after} cannot follow; what can is {legal}")
