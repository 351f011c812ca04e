"""Decode the streams of Codex, GitHub Copilot, Gemini and OpenCode: one JSON event per line.

Each CLI has a record of the fields that matter and a decoder with its table of events. They differ
most in how they report their final message and their end.
"""

import re
from typing import Any, ClassVar, Final

import msgspec

from interlock.signals.streams.events import (
    AgentNotice,
    AssistantText,
    OtherEvent,
    RateLimit,
    SessionStarted,
    StreamDecoder,
    StreamError,
    StreamEvent,
    ToolResult,
    ToolStarted,
    TurnEnd,
    UsageReported,
    UserTurn,
    convert_or_none,
    get_key,
)


class _CodexItem(msgspec.Struct):
    id: str | None = None
    type: str | None = None
    text: str | None = None
    message: str | None = None
    aggregated_output: str | None = None
    status: str | None = None
    result: Any = None
    error: Any = None
    tool: str | None = None


class _CodexError(msgspec.Struct):
    message: str | None = None


class _CodexUsage(msgspec.Struct):
    input_tokens: int = 0
    cached_input_tokens: int = 0
    output_tokens: int = 0


class CodexEvent(msgspec.Struct):
    type: str
    thread_id: str | None = None
    item: _CodexItem | None = None
    error: _CodexError | str | None = None
    message: str | None = None
    usage: Any = None


class CodexDecoder(StreamDecoder):
    """Decode Codex, `exec --json`.

    Remembers, within a turn, the last message and the work that is still open: work left open at
    the end of a turn was killed.
    """

    record = CodexEvent
    limit_words = re.compile(r"usage limit|\b429\b|rate limit", re.IGNORECASE)
    denial_words = re.compile(r"requires? approval|approval policy", re.IGNORECASE)
    _TOOLS: Final = ("command_execution", "mcp_tool_call", "file_change", "collab_tool_call")

    def __init__(self) -> None:
        self._open: set[str] = set()
        self._last: str | None = None

    def _start_session(self, event: CodexEvent) -> list[StreamEvent]:
        return [SessionStarted(event.thread_id or "")]

    def _start_turn(self, event: CodexEvent) -> list[StreamEvent]:
        self._open, self._last = set(), None
        return [OtherEvent(event.type)]

    def _read_item(self, event: CodexEvent) -> list[StreamEvent] | None:
        item = event.item
        if item is None:
            return None
        item_id = item.id or ""
        other = [OtherEvent(f"{event.type}/{item.type}")]
        if event.type != "item.completed":
            self._open.add(item_id)
            started = item.type in self._TOOLS and event.type == "item.started"
            return [ToolStarted(item_id, item.tool or item.type or "")] if started else [*other]
        self._open.discard(item_id)
        if item.type == "agent_message":
            self._last = item.text or ""
            return [AssistantText(self._last, item_id)]
        if item.type in self._TOOLS:
            output = item.aggregated_output or (item.result if isinstance(item.result, str) else "")
            result = ToolResult(output, item.status == "failed", item_id)
            error = item.error.get("message") if isinstance(item.error, dict) else item.error
            return self.report_tool(result, error, item.tool or str(error))
        if item.type == "error":
            return [StreamError(item.message or "", passing=True)]
        return [*other]

    def _end_turn(self, event: CodexEvent) -> list[StreamEvent]:
        if self._open:
            reason = "work was still open when the turn ended"
            end = TurnEnd(False, None, reason, event.type, left_open=True)
        elif self._last is None:
            end = TurnEnd(False, None, "the turn ended without a message", event.type)
        else:
            end = TurnEnd(True, self._last, "", event.type)
        # Codex counts its whole thread, over every resume.
        usage = convert_or_none(event.usage, _CodexUsage) or _CodexUsage()
        tokens = usage.input_tokens - usage.cached_input_tokens + usage.output_tokens
        return [UsageReported(tokens, of_session=True), end] if tokens > 0 else [end]

    def _read_failure(self, event: CodexEvent) -> list[StreamEvent]:
        self._last = None
        error = event.error.message if isinstance(event.error, _CodexError) else event.error
        message = event.message or error or ""
        if event.type == "error":
            return [StreamError(message, passing=message.startswith("Reconnecting..."))]
        return self.report_failure(event.type, message, message)

    handlers: ClassVar = {
        "thread.started": _start_session,
        "turn.started": _start_turn,
        "item.*": _read_item,
        "turn.completed": _end_turn,
        "turn.failed": _read_failure,
        "error": _read_failure,
    }


class _CopilotData(msgspec.Struct, rename="camel"):
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
    type: str
    data: _CopilotData | None = None
    session_id: str | None = None
    exit_code: int | None = None


class CopilotDecoder(StreamDecoder):
    """Decode GitHub Copilot, `--output-format json`.

    Remembers the last message that asked for no tool, which is the final one, and any error after
    it: `result` has exit code 0 even after an abort. Only `result` names the session.
    """

    record = CopilotEvent
    _LIMITED: Final = (429, 529)

    def __init__(self) -> None:
        self._last: str | None = None
        self._wrong = ""
        self._limited = ""

    def _read_message(self, event: CopilotEvent) -> list[StreamEvent]:
        data = event.data or _CopilotData()
        by_subagent = data.parent_tool_call_id is not None
        if not by_subagent:
            final = not data.tool_requests and bool(data.content)
            self._last, self._wrong = (data.content if final else None), ""
        if not data.content:
            return []
        return [AssistantText(data.content, data.message_id or "", by_subagent)]

    def _read_tool(self, event: CopilotEvent) -> list[StreamEvent] | None:
        data = event.data or _CopilotData()
        tool_id = data.tool_call_id or ""
        if event.type == "tool.execution_start":
            return [ToolStarted(tool_id, data.tool_name or "")]
        if event.type != "tool.execution_complete":
            return None
        output = get_key(data.result, "content")
        found = ToolResult(
            output if isinstance(output, str) else "", data.success is False, tool_id
        )
        if get_key(data.error, "code") != "denied":
            return [found]
        return [found, AgentNotice("denied", str(get_key(data.error, "message")))]

    def _read_servers(self, event: CopilotEvent) -> list[StreamEvent]:
        servers = (event.data and event.data.servers) or []
        return [
            AgentNotice("server-missing", f"{server.get('name')}: {server.get('status')}")
            for server in servers
            if isinstance(server, dict) and server.get("status") not in ("connected", "disabled")
        ]

    def _read_permission(self, event: CopilotEvent) -> list[StreamEvent]:
        return [AgentNotice("asks", "copilot asks for a permission")]

    def _read_call_failure(self, event: CopilotEvent) -> list[StreamEvent]:
        data = event.data or _CopilotData()
        message = data.error_message or f"status {data.status_code}"
        self._limited = message if data.status_code in self._LIMITED else ""
        return [StreamError(f"{data.status_code}: {message}", passing=True)]

    def _read_error(self, event: CopilotEvent) -> list[StreamEvent]:
        data = event.data or _CopilotData()
        self._wrong = data.message or data.error_type or "an error"
        return [StreamError(self._wrong)]

    def _read_abort(self, event: CopilotEvent) -> list[StreamEvent] | None:
        if event.type == "abort" or (event.data and event.data.aborted):
            self._last, self._wrong = None, self._wrong or "the turn was aborted"
        return None

    def _end_session(self, event: CopilotEvent) -> list[StreamEvent]:
        start = SessionStarted(event.session_id or "")
        if self._last is not None and not event.exit_code and not self._wrong:
            return [start, TurnEnd(True, self._last, "", "result")]
        reason = self._wrong or "the session ended without a message"
        failed = bool(event.exit_code or self._wrong)
        end = TurnEnd(False, None, reason, "result", is_error=failed)
        limit = [RateLimit("rejected", None, self._limited)] if self._limited else []
        return [start, *limit, end]

    handlers: ClassVar = {
        "assistant.message": _read_message,
        "tool.execution_*": _read_tool,
        "session.mcp_servers_loaded": _read_servers,
        "permission.requested*": _read_permission,
        "model.call_failure": _read_call_failure,
        "session.error": _read_error,
        "abort": _read_abort,
        "assistant.idle": _read_abort,
        "result": _end_session,
    }


class _GeminiError(msgspec.Struct):
    type: str | None = None
    message: str | None = None


class _GeminiStats(msgspec.Struct):
    input_tokens: int = 0
    output_tokens: int = 0
    cached: int = 0


class GeminiEvent(msgspec.Struct):
    type: str
    session_id: str | None = None
    role: str | None = None
    content: str | None = None
    tool_id: str | None = None
    tool_name: str | None = None
    status: str | None = None
    output: str | None = None
    message: str | None = None
    error: _GeminiError | None = None
    stats: Any = None


class GeminiDecoder(StreamDecoder):
    """Decode Gemini, `--output-format stream-json`.

    A message comes in pieces, and the words before a tool are not final; an `error` event is a
    warning unless the result agrees.
    """

    record = GeminiEvent
    limit_words = re.compile(r"quota|\b429\b|rate.?limit|RESOURCE_EXHAUSTED", re.IGNORECASE)
    denial_words = re.compile(
        r"denied by policy|requires? (?:user )?(?:confirmation|approval)", re.IGNORECASE
    )

    def __init__(self) -> None:
        self._words: list[str] = []
        self._message = 0

    def _take_words(self) -> str:
        """Return the words since the last tool; the next words start another message."""
        text, self._words = "".join(self._words), []
        self._message += 1
        return text

    def _start_session(self, event: GeminiEvent) -> list[StreamEvent]:
        return [SessionStarted(event.session_id or "")]

    def _read_message(self, event: GeminiEvent) -> list[StreamEvent]:
        text = event.content or ""
        if event.role != "assistant":
            return [UserTurn(text)]
        self._words.append(text)
        return [AssistantText(text, f"{self._message}", is_delta=True)]

    def _start_tool(self, event: GeminiEvent) -> list[StreamEvent]:
        self._take_words()
        return [ToolStarted(event.tool_id or "", event.tool_name or "")]

    def _end_tool(self, event: GeminiEvent) -> list[StreamEvent]:
        error = (event.error and event.error.message) or ""
        result = ToolResult(event.output or error, event.status == "error", event.tool_id or "")
        return self.report_tool(result, error, error)

    def _read_error(self, event: GeminiEvent) -> list[StreamEvent]:
        return [StreamError(event.message or "", passing=True)]

    def _end_session(self, event: GeminiEvent) -> list[StreamEvent]:
        stats = convert_or_none(event.stats, _GeminiStats) or _GeminiStats()
        tokens = stats.input_tokens - stats.cached + stats.output_tokens
        usage = [UsageReported(tokens)] if tokens > 0 else []
        name, text = event.status or "result", self._take_words()
        if name == "success":
            reason = "" if text else "the session ended without a message"
            return [*usage, TurnEnd(bool(text), text or None, reason, name)]
        message = (event.error and event.error.message) or ""
        reason = f"{name}: {message}".rstrip(": ")
        return [*usage, *self.report_failure(name, message, reason)]

    handlers: ClassVar = {
        "init": _start_session,
        "message": _read_message,
        "tool_use": _start_tool,
        "tool_result": _end_tool,
        "error": _read_error,
        "result": _end_session,
    }


class _OpencodeState(msgspec.Struct):
    status: str | None = None
    output: Any = None
    error: Any = None


class _OpencodeCache(msgspec.Struct):
    write: int = 0


class _OpencodeTokens(msgspec.Struct):
    input: int = 0
    output: int = 0
    reasoning: int = 0
    cache: _OpencodeCache = msgspec.field(default_factory=_OpencodeCache)


class _OpencodePart(msgspec.Struct, rename={"message_id": "messageID", "call_id": "callID"}):
    message_id: str | None = None
    call_id: str | None = None
    text: str | None = None
    tool: str | None = None
    reason: str | None = None
    state: _OpencodeState | None = None
    tokens: Any = None
    cost: Any = None


class OpencodeEvent(msgspec.Struct, rename={"session_id": "sessionID"}):
    type: str
    session_id: str | None = None
    part: _OpencodePart | None = None
    error: Any = None


class OpencodeDecoder(StreamDecoder):
    """Decode OpenCode, `run --format json`.

    Remembers the session, the words of the current step, and the cost of all steps. There is no
    terminal event: the last step finishes with `stop`; one that finishes with `tool-calls` is
    followed by another, or by nothing if a permission was refused. Tools are reported only when
    they are over.
    """

    record = OpencodeEvent
    limit_words = re.compile(
        r"quota|\b429\b|rate.?limit|usage limit|too many requests", re.IGNORECASE
    )
    denial_words = re.compile(
        r"rejected permission|prevents you from using|permission denied", re.IGNORECASE
    )

    def __init__(self) -> None:
        self._session = ""
        self._words: list[str] = []
        self._tokens = 0
        self._money = 0.0

    def decode_event(self, event: OpencodeEvent, line: str) -> list[StreamEvent]:
        found = super().decode_event(event, line)
        if not event.session_id or event.session_id == self._session:
            return found
        self._session = event.session_id
        return [SessionStarted(self._session), *found]

    def _start_step(self, event: OpencodeEvent) -> list[StreamEvent]:
        self._words = []
        return [OtherEvent("turn.started")]

    def _read_text(self, event: OpencodeEvent) -> list[StreamEvent]:
        part = event.part or _OpencodePart()
        self._words.append(part.text or "")
        return [AssistantText(part.text or "", part.message_id or "")]

    def _read_tool(self, event: OpencodeEvent) -> list[StreamEvent]:
        part = event.part or _OpencodePart()
        state = part.state or _OpencodeState()
        failed = state.status == "error"
        output = state.error if failed else state.output
        text = output if isinstance(output, str) else ""
        result = ToolResult(text, failed, part.call_id or "")
        return self.report_tool(result, state.error if failed else None, part.tool or "")

    def _end_step(self, event: OpencodeEvent) -> list[StreamEvent]:
        part = event.part or _OpencodePart()
        tokens = convert_or_none(part.tokens, _OpencodeTokens) or _OpencodeTokens()
        self._tokens += tokens.input + tokens.output + tokens.reasoning + tokens.cache.write
        self._money += convert_or_none(part.cost, float) or 0.0
        usage = UsageReported(max(self._tokens, 0), max(self._money, 0.0))
        if part.reason in (None, "tool-calls"):
            return [usage, OtherEvent(f"step_finish/{part.reason}")]
        text = "".join(self._words)
        good = part.reason == "stop" and bool(text)
        reason = "" if good else f"the last step ended with {part.reason}"
        return [usage, TurnEnd(good, text if good else None, reason, part.reason)]

    def _read_error(self, event: OpencodeEvent) -> list[StreamEvent]:
        error = event.error
        name = error.get("name") if isinstance(error, dict) else error
        detail = get_key(get_key(error, "data"), "message")
        message = str(detail or name or "an error without a name")
        return [StreamError(message), *self.report_failure("error", message, message)]

    handlers: ClassVar = {
        "step_start": _start_step,
        "text": _read_text,
        "tool_use": _read_tool,
        "step_finish": _end_step,
        "error": _read_error,
    }
