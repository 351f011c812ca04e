"""Codex CLI's `exec --json`: one JSON event per line.

Knows its items, and that work left open at the end of a turn was killed.
Refuses to know lines and chunks.
"""

import re
from typing import Any, Final

import msgspec

from interlock.signals.streams.events import (
    AgentNotice,
    AssistantText,
    OtherEvent,
    RateLimit,
    SessionStarted,
    StreamError,
    StreamEvent,
    ToolResult,
    ToolStarted,
    TurnEnd,
    UsageReported,
    fitting,
)

_LIMIT: Final = re.compile(r"usage limit|\b429\b|rate limit", re.IGNORECASE)
_UNASKED: Final = re.compile(r"requires? approval|approval policy", re.IGNORECASE)
_TOOLS: Final = ("command_execution", "mcp_tool_call", "file_change", "collab_tool_call")


class _Item(msgspec.Struct):
    id: str | None = None
    type: str | None = None
    text: str | None = None
    message: str | None = None
    aggregated_output: str | None = None
    status: str | None = None
    result: Any = None
    error: Any = None
    tool: str | None = None


class _Error(msgspec.Struct):
    message: str | None = None


class _Usage(msgspec.Struct):
    input_tokens: int = 0
    cached_input_tokens: int = 0
    output_tokens: int = 0


class CodexEvent(msgspec.Struct):
    """The fields of any event that matter here; all others are ignored."""

    type: str
    thread_id: str | None = None
    item: _Item | None = None
    error: _Error | str | None = None
    message: str | None = None
    usage: Any = None


_DECODER: Final = msgspec.json.Decoder(CodexEvent)


class CodexStream:
    """Remembers, within a turn, the last message and the work that is still open."""

    def __init__(self) -> None:
        self._open: set[str] = set()
        self._last: str | None = None

    def decode(self, line: str) -> list[StreamEvent]:
        event = _DECODER.decode(line)
        if event.type == "thread.started":
            return [SessionStarted(event.thread_id or "")]
        if event.type == "turn.started":
            self._open, self._last = set(), None
            return [OtherEvent(event.type)]
        if event.type.startswith("item.") and event.item:
            return self._item(event.type, event.item)
        if event.type == "turn.completed":
            return [*_spent(fitting(event.usage, _Usage)), self._turn_end(event.type)]
        if event.type in ("turn.failed", "error"):
            return self._failure(event)
        return [OtherEvent(event.type)]

    def _item(self, name: str, item: _Item) -> list[StreamEvent]:
        if name != "item.completed":
            self._open.add(item.id or "")
            if item.type in _TOOLS and name == "item.started":
                return [ToolStarted(item.id or "", item.tool or item.type or "")]
            return [OtherEvent(f"{name}/{item.type}")]
        self._open.discard(item.id or "")
        if item.type == "agent_message":
            self._last = item.text or ""
            return [AssistantText(self._last, item.id or "")]
        if item.type in _TOOLS:
            return _tool_result(item)
        if item.type == "error":
            return [StreamError(item.message or "", passing=True)]
        return [OtherEvent(f"{name}/{item.type}")]

    def _turn_end(self, name: str) -> TurnEnd:
        if self._open:
            reason = "work was still open when the turn ended"
            return TurnEnd(False, None, reason, name, left_open=True)
        if self._last is None:
            return TurnEnd(False, None, "the turn ended without a message", name)
        return TurnEnd(True, self._last, "", name)

    def _failure(self, event: CodexEvent) -> list[StreamEvent]:
        self._last = None
        error = event.error.message if isinstance(event.error, _Error) else event.error
        message = event.message or error or ""
        if event.type == "error":
            return [StreamError(message, passing=message.startswith("Reconnecting..."))]
        end = TurnEnd(False, None, message, event.type, is_error=True)
        return [RateLimit("rejected", None, message), end] if _LIMIT.search(message) else [end]


def _tool_result(item: _Item) -> list[StreamEvent]:
    said = item.aggregated_output or (item.result if isinstance(item.result, str) else "")
    found = ToolResult(said, item.status == "failed", item.id or "")
    why = item.error.get("message") if isinstance(item.error, dict) else item.error
    denied = isinstance(why, str) and _UNASKED.search(why) is not None
    return [found, AgentNotice("denied", item.tool or str(why))] if denied else [found]


def _spent(usage: _Usage | None) -> list[UsageReported]:
    """Codex counts its whole thread, over every resume."""
    if usage is None:
        return []
    tokens = usage.input_tokens - usage.cached_input_tokens + usage.output_tokens
    return [UsageReported(tokens, of_session=True)] if tokens > 0 else []
