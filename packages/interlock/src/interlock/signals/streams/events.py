"""Events that agent CLIs report while they work, and the base of their decoders.

A coordinator needs only the events here. Each CLI's own JSON is hidden in a decoder: a table from
its event types to handlers, and what must be remembered between lines.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Literal, TypeVar

import msgspec


class SessionStarted(msgspec.Struct, frozen=True, tag=True):
    """A session or thread has begun, or begun again."""

    session_id: str


class AssistantText(msgspec.Struct, frozen=True, tag=True):
    """Words of the agent; a sub-agent's words are not the agent's own."""

    text: str
    message_id: str = ""
    by_subagent: bool = False
    is_delta: bool = False
    """The message's next words follow directly, even in the middle of a line."""


class ToolStarted(msgspec.Struct, frozen=True, tag=True):
    """A tool is at work until its result is seen."""

    tool_id: str
    name: str = ""


class ToolResult(msgspec.Struct, frozen=True, tag=True):
    """A tool's output. It never counts as the agent's words."""

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
    """A limit is near or was hit; `resets_at` is in epoch seconds, if the CLI reports it."""

    status: Literal["warning", "rejected"]
    resets_at: int | None = None
    message: str = ""


class UsageReported(msgspec.Struct, frozen=True, tag="Spent"):
    """The cost so far. `of_session` includes the runs before a resume."""

    tokens: int = 0
    money: float = 0.0
    of_session: bool = False


class AgentNotice(msgspec.Struct, frozen=True, tag="Notice"):
    """A fact that a good end hides: a denied tool, a missing server, stopped work, or a
    question."""

    kind: Literal["denied", "server-missing", "work-stopped", "asks"]
    text: str


class TurnEnd(msgspec.Struct, frozen=True, tag=True):
    """The turn is over. Only one that ended by itself has a final message.

    The other fields are the CLI's own report: its name for the end, whether it calls it an error,
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
    """An event without an effect here, by its name."""

    name: str


class BadLine(msgspec.Struct, frozen=True, tag=True):
    """A line that is not an event of the CLI, with the reason."""

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


def convert_or_none(value: Any, kind: type[Record]) -> Record | None:
    """Return the value as that kind of record; None if it does not fit.

    For parts that may change their shape without notice: a changed bill or list of servers must not
    cost us the result it stands in.
    """
    try:
        return msgspec.convert(value, kind, strict=False)
    except (msgspec.ValidationError, OverflowError):
        return None


def convert_fitting(values: Any, kind: type[Record]) -> list[Record]:
    """Return the values of a list or an object that fit."""
    items = values.values() if isinstance(values, dict) else values
    found = (
        convert_or_none(item, kind) for item in (items if isinstance(values, list | dict) else ())
    )
    return [item for item in found if item is not None]


def get_key(value: Any, key: str) -> Any:
    """Return the value of an object's key; None if it is not an object."""
    return value.get(key) if isinstance(value, dict) else None


class StreamDecoder:
    """Decode the JSON lines of one CLI, one at a time.

    A subclass provides the record a line is read into (only the fields that matter, all others are
    ignored) and a table of handlers by event type; a type may end with `*`. A handler returns None
    for an event it does not use.
    """

    record: ClassVar[type[msgspec.Struct]]
    handlers: ClassVar[Mapping[str, Callable[[Any, Any], list[StreamEvent] | None]]]
    limit_words: ClassVar[re.Pattern[str]]
    """The words of an error after a hit rate limit."""
    denial_words: ClassVar[re.Pattern[str]]
    """The words of a tool's error when permission was denied."""
    _json: ClassVar[msgspec.json.Decoder[Any]]

    def __init_subclass__(cls) -> None:
        cls._json = msgspec.json.Decoder(cls.record)

    def decode(self, line: str) -> list[StreamEvent]:
        return self.decode_event(self._json.decode(line), line)

    def decode_event(self, event: Any, line: str) -> list[StreamEvent]:
        handler = self.handlers.get(event.type) or self._find_by_prefix(event.type)
        found = handler(self, event) if handler else None
        return self.decode_other(event, line) if found is None else found

    def decode_other(self, event: Any, line: str) -> list[StreamEvent]:
        """Return an event without a handler."""
        return [OtherEvent(event.type)]

    def _find_by_prefix(self, name: str) -> Callable[[Any, Any], list[StreamEvent] | None] | None:
        prefixes = ((key[:-1], found) for key, found in self.handlers.items() if key[-1] == "*")
        return next((found for prefix, found in prefixes if name.startswith(prefix)), None)

    def report_tool(self, result: ToolResult, error: object, denied: str) -> list[StreamEvent]:
        """Return a tool's result, and a notice if its error says that permission was denied."""
        if isinstance(error, str) and self.denial_words.search(error):
            return [result, AgentNotice("denied", denied)]
        return [result]

    def report_failure(self, name: str, message: str, reason: str) -> list[StreamEvent]:
        """Return the end of a failed turn, after the rate limit that its message may report."""
        end = TurnEnd(False, None, reason, name, is_error=True)
        limited = self.limit_words.search(message)
        return [RateLimit("rejected", None, message), end] if limited else [end]
