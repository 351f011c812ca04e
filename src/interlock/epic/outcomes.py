"""How an epic can end: one row each, with its exit code, its status and the signal that says so.

Codes below 10 and from 75 are those of every verb; the rest are the epic's own. Refuses to know
where they are shown.
"""

from typing import Final

import msgspec

from interlock.epic.status import Status


class EpicOutcome(msgspec.Struct, frozen=True):
    """One way to end. An epic whose `status` is None keeps the one it has."""

    exit_code: int
    status: Status | None
    signal: str
    means: str


ENDINGS: Final[dict[str, EpicOutcome]] = {
    "COMPLETE": EpicOutcome(0, Status.DONE, "EPIC_COMPLETE", "all of it is done"),
    "FATAL": EpicOutcome(1, Status.FAILED, "FATAL_ERROR", "it cannot go on; the code says why"),
    "PARTIAL": EpicOutcome(3, Status.PARTIAL, "EPIC_COMPLETE", "it ended, and not all succeeded"),
    "PAUSED_DISCUSS": EpicOutcome(10, Status.PAUSED, "HITL_DISCUSS", "a human wants to talk first"),
    "PAUSED_TIMEOUT": EpicOutcome(11, Status.WAITING, "HITL_TIMEOUT", "nobody answered in time"),
    "PAUSED_DEFERRED": EpicOutcome(12, Status.DEFERRED, "HITL_HALT", "a human put it off"),
    "HALTED": EpicOutcome(13, Status.HALTED, "HITL_HALT", "a human stopped it"),
    "LIMIT": EpicOutcome(14, Status.PAUSED, "FATAL_ERROR", "a limit is spent, or nothing moves"),
    "NO_CHECKPOINT": EpicOutcome(15, None, "FATAL_ERROR", "there is nothing to resume from"),
    "GIT_MISMATCH": EpicOutcome(
        16, Status.BLOCKED, "FATAL_ERROR", "git does not fit the checkpoint"
    ),
    "NO_SIGNAL": EpicOutcome(17, Status.BLOCKED, "FATAL_ERROR", "a session ended without a word"),
}
LOCKED: Final = "LOCKED"
LOCKED_EXIT: Final = 18
"""Somebody else works on the epic, or in this workspace: no end of it."""


def table() -> list[tuple[str, int, str]]:
    """Every word with its exit code and what it means, by code."""
    rows = [(name, each.exit_code, each.means) for name, each in ENDINGS.items()]
    rows += [("WAITING", 4, "a human is asked; run it again when there is an answer")]
    rows += [(LOCKED, LOCKED_EXIT, "somebody else works on it")]
    return sorted(rows, key=lambda row: row[1])
