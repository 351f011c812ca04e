"""The verdict about a human comment: its outcome, why, and where that was seen.

Knows the outcomes and which of two is the more cautious one. Refuses to know how a comment is read.
"""

from enum import StrEnum
from typing import Final

import msgspec


class CommentDecision(StrEnum):
    """What a comment comes to."""

    APPROVE = "APPROVE"
    REVISE = "REVISE"
    DISCUSS = "DISCUSS"
    HALT = "HALT"
    DEFER = "DEFER"
    UNCLEAR = "UNCLEAR"
    IGNORED = "IGNORED"


CAUTION: Final = (
    CommentDecision.HALT,
    CommentDecision.REVISE,
    CommentDecision.DISCUSS,
    CommentDecision.DEFER,
    CommentDecision.UNCLEAR,
    CommentDecision.APPROVE,
)
"""The most cautious first."""


class Span(msgspec.Struct, frozen=True):
    """A place in the comment and what was seen there."""

    start: int
    end: int
    kind: str


class CommentReading(msgspec.Struct, frozen=True):
    """What one comment is taken for."""

    outcome: CommentDecision
    why: str
    notes: str = ""
    """What the human wants, in their words."""
    evidence: tuple[Span, ...] = ()
