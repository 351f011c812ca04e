"""GitHub Copilot CLI's `--output-format json`: one JSON event per line, the payload under `data`.

Knows that `result` says exit code 0 also after an abort, and that its session is named only there.
The final message is one that asks for no tool. Refuses to know lines and chunks.
"""

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
)

_LIMITED: Final = 429


class _Data(msgspec.Struct, rename="camel"):
    message_id: str | None = None
    content: str | None = None
    tool_requests: list[Any] | None = None
    parent_tool_call_id: str | None = None
    tool_call_id: str | None = None
    tool_name: str | None = None
    success: bool | None = None
    result: Any = None
    error: Any = None
    message: str | None = None
    error_type: str | None = None
    status_code: int | None = None
    error_message: str | None = None
    aborted: bool | None = None
    servers: list[Any] | None = None


class CopilotEvent(msgspec.Struct, rename="camel"):
    """The fields of any event that matter here; all others are ignored."""

    type: str
    data: _Data | None = None
    session_id: str | None = None
    exit_code: int | None = None


_DECODER: Final = msgspec.json.Decoder(CopilotEvent)


class CopilotStream:
    """Remembers the last message that asked for no tool, and what went wrong after it."""

    def __init__(self) -> None:
        self._last: str | None = None
        self._wrong = ""
        self._limited = ""

    def decode(self, line: str) -> list[StreamEvent]:
        event = _DECODER.decode(line)
        data = event.data or _Data()
        if event.type == "result":
            return self._result(event)
        if event.type.startswith("tool.execution_"):
            return _tool(event.type, data)
        if event.type == "assistant.message":
            return self._message(data)
        if event.type == "session.mcp_servers_loaded":
            return _servers(data)
        if event.type.startswith("permission.requested"):
            return [AgentNotice("asks", "copilot asks for a permission")]
        return [self._other(event.type, data)]

    def _message(self, data: _Data) -> list[StreamEvent]:
        by_subagent = data.parent_tool_call_id is not None
        if not by_subagent:
            final = not data.tool_requests and bool(data.content)
            self._last, self._wrong = (data.content if final else None), ""
        if not data.content:
            return []
        return [AssistantText(data.content, data.message_id or "", by_subagent)]

    def _other(self, name: str, data: _Data) -> StreamEvent:
        if name == "model.call_failure":
            message = data.error_message or f"status {data.status_code}"
            self._limited = message if data.status_code == _LIMITED else ""
            return StreamError(f"{data.status_code}: {message}", passing=True)
        if name == "session.error":
            self._wrong = data.message or data.error_type or "an error"
            return StreamError(self._wrong)
        if name == "abort" or (name == "assistant.idle" and data.aborted):
            self._last, self._wrong = None, self._wrong or "the turn was aborted"
        return OtherEvent(name)

    def _result(self, event: CopilotEvent) -> list[StreamEvent]:
        begun = SessionStarted(event.session_id or "")
        if self._last is not None and not event.exit_code and not self._wrong:
            return [begun, TurnEnd(True, self._last, "", "result")]
        why = self._wrong or "the session ended without a message"
        failed = bool(event.exit_code or self._wrong)
        end = TurnEnd(False, None, why, "result", is_error=failed)
        limit = [RateLimit("rejected", None, self._limited)] if self._limited else []
        return [begun, *limit, end]


def _tool(name: str, data: _Data) -> list[StreamEvent]:
    tool_id = data.tool_call_id or ""
    if name == "tool.execution_start":
        return [ToolStarted(tool_id, data.tool_name or "")]
    if name != "tool.execution_complete":
        return [OtherEvent(name)]
    said = data.result.get("content") if isinstance(data.result, dict) else None
    failed = data.success is False
    found = ToolResult(said if isinstance(said, str) else "", failed, tool_id)
    code = data.error.get("code") if isinstance(data.error, dict) else None
    why = data.error.get("message") if isinstance(data.error, dict) else ""
    return [found, AgentNotice("denied", str(why))] if code == "denied" else [found]


def _servers(data: _Data) -> list[StreamEvent]:
    servers = [each for each in data.servers or () if isinstance(each, dict)]
    return [
        AgentNotice("server-missing", f"{each.get('name')}: {each.get('status')}")
        for each in servers
        if each.get("status") not in ("connected", "disabled")
    ]
