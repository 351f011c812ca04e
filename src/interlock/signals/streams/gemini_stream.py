"""Gemini CLI's `--output-format stream-json`: one JSON event per line.

Knows that a message comes in pieces, that the words before a tool are not the final ones, and that
an `error` event is a warning unless the result says so. Refuses to know lines and chunks.
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
    UserTurn,
    fitting,
)

_LIMIT: Final = re.compile(r"quota|\b429\b|rate.?limit|RESOURCE_EXHAUSTED", re.IGNORECASE)
_DENIED: Final = re.compile(
    r"denied by policy|requires? (?:user )?(?:confirmation|approval)", re.IGNORECASE
)


class _Fault(msgspec.Struct):
    type: str | None = None
    message: str | None = None


class _Stats(msgspec.Struct):
    input_tokens: int = 0
    output_tokens: int = 0
    cached: int = 0


class GeminiEvent(msgspec.Struct):
    """The fields of any event that matter here; all others are ignored."""

    type: str
    session_id: str | None = None
    role: str | None = None
    content: str | None = None
    tool_id: str | None = None
    tool_name: str | None = None
    status: str | None = None
    output: str | None = None
    message: str | None = None
    error: _Fault | None = None
    stats: Any = None


_DECODER: Final = msgspec.json.Decoder(GeminiEvent)


class GeminiStream:
    """Remembers what was said since the last tool."""

    def __init__(self) -> None:
        self._said: list[str] = []
        self._message = 0

    def decode(self, line: str) -> list[StreamEvent]:
        event = _DECODER.decode(line)
        match event.type:
            case "init":
                return [SessionStarted(event.session_id or "")]
            case "message":
                return [self._words(event)]
            case "tool_use":
                self._break()
                return [ToolStarted(event.tool_id or "", event.tool_name or "")]
            case "tool_result":
                return _tool_result(event)
            case "error":
                return [StreamError(event.message or "", passing=True)]
            case "result":
                return [*_spent(fitting(event.stats, _Stats)), *self._end(event)]
        return [OtherEvent(event.type)]

    def _words(self, event: GeminiEvent) -> StreamEvent:
        text = event.content or ""
        if event.role != "assistant":
            return UserTurn(text)
        self._said.append(text)
        return AssistantText(text, f"{self._message}")

    def _break(self) -> None:
        self._said = []
        self._message += 1

    def _end(self, event: GeminiEvent) -> list[StreamEvent]:
        name = event.status or "result"
        text = "".join(self._said)
        self._break()
        if name == "success":
            reason = "" if text else "the session ended without a message"
            return [TurnEnd(bool(text), text or None, reason, name)]
        told = (event.error and event.error.message) or ""
        end = TurnEnd(False, None, f"{name}: {told}".rstrip(": "), name, is_error=True)
        return [RateLimit("rejected", None, told), end] if _LIMIT.search(told) else [end]


def _tool_result(event: GeminiEvent) -> list[StreamEvent]:
    why = (event.error and event.error.message) or ""
    found = ToolResult(event.output or why, event.status == "error", event.tool_id or "")
    return [found, AgentNotice("denied", why)] if _DENIED.search(why) else [found]


def _spent(stats: _Stats | None) -> list[UsageReported]:
    tokens = stats.input_tokens - stats.cached + stats.output_tokens if stats else 0
    return [UsageReported(tokens)] if tokens > 0 else []
