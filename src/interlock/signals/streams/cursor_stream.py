"""Cursor's `--output-format stream-json`: Claude's shapes, with tool calls of its own.

Knows that its `result` repeats every word of the session, so that the final message is what was
said after the last tool. Refuses to know lines and chunks.
"""

from typing import Any, Final

import msgspec

from interlock.signals.streams.claude_stream import ClaudeStream
from interlock.signals.streams.events import (
    AgentNotice,
    AssistantText,
    OtherEvent,
    StreamEvent,
    ToolResult,
    ToolStarted,
    TurnEnd,
)


class _Call(msgspec.Struct):
    type: str
    subtype: str | None = None
    call_id: str | None = None
    tool_call: dict[str, Any] | None = None


_DECODER: Final = msgspec.json.Decoder(_Call)


class CursorStream:
    """Remembers what was said since the last tool."""

    def __init__(self) -> None:
        self._claude = ClaudeStream()
        self._said: list[str] = []

    def decode(self, line: str) -> list[StreamEvent]:
        event = _DECODER.decode(line)
        if event.type == "tool_call":
            self._said = []
            return _tool(event)
        if event.type == "interaction_query" and event.subtype == "request":
            return [AgentNotice("asks", "cursor asks for an approval")]
        if event.type == "thinking":
            return [OtherEvent(event.type)]
        return [self._noted(found) for found in self._claude.decode(line)]

    def _noted(self, found: StreamEvent) -> StreamEvent:
        if isinstance(found, AssistantText):
            self._said.append(found.text)
        if isinstance(found, TurnEnd) and found.ended_by_itself:
            text = "".join(self._said) or None
            return msgspec.structs.replace(found, text=text, ended_by_itself=text is not None)
        return found


def _tool(event: _Call) -> list[StreamEvent]:
    call = event.tool_call or {}
    name = next(iter(call), "")
    if event.subtype == "started":
        return [ToolStarted(event.call_id or "", name)]
    inner = call.get(name)
    result = inner.get("result") if isinstance(inner, dict) else None
    refused = isinstance(result, dict) and bool({"rejected", "permissionDenied"} & result.keys())
    failed = refused or (isinstance(result, dict) and "error" in result)
    found = ToolResult("", failed, event.call_id or "")
    return [found, AgentNotice("denied", name)] if refused else [found]
