"""What an agent CLI reports while it works, whichever CLI it is.

Knows the events a coordinator needs. Refuses to know any CLI's JSON: each dialect has a file of
its own, `claude_stream` to `plain_stream`.

Parts of a foreign record that may change their shape without notice: taken if they fit.

A bill or a list of servers that looks different tomorrow must not cost us the result it stands in.
Refuses to know any field.
"""

from typing import Any, Literal, TypeVar

import msgspec


class SessionStarted(msgspec.Struct, frozen=True, tag=True):
    """A session or thread has begun, or begun again."""

    session_id: str


class AssistantText(msgspec.Struct, frozen=True, tag=True):
    """Words of the agent; a sub-agent's words are not the agent's own."""

    text: str
    message_id: str = ""
    by_subagent: bool = False


class ToolStarted(msgspec.Struct, frozen=True, tag=True):
    """A tool is at work until its result is seen."""

    tool_id: str
    name: str = ""


class ToolResult(msgspec.Struct, frozen=True, tag=True):
    """What a tool printed. It never counts as the agent's words."""

    text: str
    is_error: bool = False
    tool_id: str = ""


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


class UsageReported(msgspec.Struct, frozen=True, tag="Spent"):
    """What it cost so far. `of_session` counts the runs before a resume too."""

    tokens: int = 0
    money: float = 0.0
    of_session: bool = False


class AgentNotice(msgspec.Struct, frozen=True, tag="Notice"):
    """Something that a good end does not tell: a tool that was not allowed, a server that is not
    there, work that was stopped, a question that nobody answers."""

    kind: Literal["denied", "server-missing", "work-stopped", "asks"]
    text: str


class TurnEnd(msgspec.Struct, frozen=True, tag=True):
    """The turn is over. Only one that ended by itself has a final message.

    The rest is what the CLI says of it: its own name for the end, whether it calls it an error,
    how many turns it took, and whether work was left open.
    """

    ended_by_itself: bool
    text: str | None = None
    reason: str = ""
    name: str = ""
    is_error: bool = False
    turns: int | None = None
    left_open: bool = False


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
    | ToolStarted
    | ToolResult
    | UserTurn
    | StreamError
    | RateLimit
    | UsageReported
    | AgentNotice
    | TurnEnd
    | OtherEvent
    | BadLine
)


Record = TypeVar("Record")


def fitting(value: Any, kind: type[Record]) -> Record | None:
    """The value as that kind of record; None if it is not one."""
    try:
        return msgspec.convert(value, kind, strict=False)
    except (msgspec.ValidationError, OverflowError):
        return None


def all_fitting(values: Any, kind: type[Record]) -> list[Record]:
    """Those of a list's or an object's values that fit."""
    each = values.values() if isinstance(values, dict) else values
    found = (fitting(one, kind) for one in (each if isinstance(values, list | dict) else ()))
    return [one for one in found if one is not None]
