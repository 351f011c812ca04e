"""What each line signal of a session does to an epic: one row each.

Knows which signals end a session and which of several counts. A word that holds the work back is
taken wherever it stands; of the others the last one said counts. Refuses to know how it was heard.
"""

from collections.abc import Iterable
from typing import Final, Literal, Protocol, TypeVar

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
"""`restart`, `review` and `stop` end the session; `retry` says how it ended if it says nothing
stronger; `story` changes a story; `note` is only written down. What a human decided is no session's
to say: such a line is a note."""

ENDING: Final = frozenset(
    name for name, effect in EFFECTS.items() if effect in ("restart", "review", "stop")
)
DECIDING: Final = ENDING | {"RECOVERABLE_ERROR"}
FIRM: Final = ("FATAL_ERROR", "RECOVERY_FAILED", "HITL_REQUIRED")
"""These count wherever they stand, the first of them before the others."""


class SessionSignal(Protocol):
    """A signal that was accepted."""

    @property
    def type(self) -> str: ...


S = TypeVar("S", bound=SessionSignal)


def deciding(spoken: Iterable[S]) -> S | None:
    """The signal by which a session ended, of all that were accepted, in their order."""
    said = [each for each in spoken if each.type in DECIDING]
    for name in FIRM:
        firm = next((each for each in said if each.type == name), None)
        if firm is not None:
            return firm
    return said[-1] if said else None


def ended_by(name: str) -> str:
    """The word of the artifact for a signal."""
    return name.replace(":", "_")
