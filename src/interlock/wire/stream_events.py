"""What an agent CLI reports while it works, whichever CLI it is.

Knows the events a coordinator needs. Refuses to know any CLI's JSON: claude_stream and
codex_stream know that.
"""

from typing import Literal

import msgspec


class SessionStarted(msgspec.Struct, frozen=True, tag=True):
    """A session or thread has begun, or begun again."""

    session_id: str


class AssistantText(msgspec.Struct, frozen=True, tag=True):
    """Words of the agent; a sub-agent's words are not the agent's own."""

    text: str
    message_id: str = ""
    by_subagent: bool = False


class ToolResult(msgspec.Struct, frozen=True, tag=True):
    """What a tool printed. It never counts as the agent's words."""

    text: str
    is_error: bool = False


class UserTurn(msgspec.Struct, frozen=True, tag=True):
    """Text that was put to the agent, by us or by its own machinery."""

    text: str


class StreamError(msgspec.Struct, frozen=True, tag=True):
    """An error the CLI reports; a passing one is retried by the CLI itself."""

    message: str
    passing: bool = False


class RateLimit(msgspec.Struct, frozen=True, tag=True):
    """A limit is near or was hit; `resets_at` is in epoch seconds where it is told."""

    status: Literal["warning", "rejected"]
    resets_at: int | None = None
    message: str = ""


class TurnEnd(msgspec.Struct, frozen=True, tag=True):
    """The turn is over. Only one that ended by itself has a final message."""

    ended_by_itself: bool
    text: str | None = None
    reason: str = ""


class OtherEvent(msgspec.Struct, frozen=True, tag=True):
    """An event that changes nothing here, by its name."""

    name: str


class BadLine(msgspec.Struct, frozen=True, tag=True):
    """A line that is no event of the CLI, kept with the reason."""

    sentence: str
    text: str
    where: int


StreamEvent = (
    SessionStarted
    | AssistantText
    | ToolResult
    | UserTurn
    | StreamError
    | RateLimit
    | TurnEnd
    | OtherEvent
    | BadLine
)
