"""Decode Claude Code's `--output-format stream-json`, and Cursor's, which has the same shapes.

Hides two traps. Claude: the subtype alone does not say whether a `result` is a success. Cursor: its
`result` repeats every word of the session, so the final message is the text after the last tool.
"""

from typing import Any, ClassVar, Final, Literal

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
    convert_fitting,
    convert_or_none,
    get_key,
)


class _Block(msgspec.Struct):
    type: str = ""
    text: str | None = None
    content: Any = None
    is_error: bool | None = None
    id: str | None = None
    name: str | None = None
    tool_use_id: str | None = None


class _Message(msgspec.Struct):
    id: str | None = None
    content: str | list[_Block] | None = None


class _Limit(msgspec.Struct):
    status: str | None = None
    resetsAt: int | float | None = None  # noqa: N815 -- the CLI's own name
    rateLimitType: str | None = None  # noqa: N815


class _Bill(msgspec.Struct, rename="camel"):
    input_tokens: int = 0
    output_tokens: int = 0
    cache_creation_input_tokens: int = 0


class _Usage(msgspec.Struct):
    input_tokens: int | None = 0
    output_tokens: int | None = 0
    cache_creation_input_tokens: int | None = 0


class _Server(msgspec.Struct):
    name: str = ""
    status: str = ""


class _Denial(msgspec.Struct):
    tool_name: str = ""


class ClaudeEvent(msgspec.Struct):
    """The fields of any event that matter here; all others are ignored."""

    type: str
    subtype: str | None = None
    message: _Message | str | None = None
    parent_tool_use_id: str | None = None
    session_id: str | None = None
    error: Any = None
    error_status: int | None = None
    result: str | None = None
    is_error: bool | None = None
    num_turns: int | None = None
    errors: list[Any] | None = None
    rate_limit_info: _Limit | None = None
    api_error_status: Any = None
    total_cost_usd: Any = None
    usage: Any = None
    modelUsage: Any = None  # noqa: N815
    permission_denials: Any = None
    mcp_servers: Any = None
    status: Any = None
    summary: Any = None


_LIMITED: Final = (429, 529)
"""Too many requests, and an overloaded server: both pass by waiting."""


class ClaudeDecoder(StreamDecoder):
    """Decode Claude's lines; nothing needs to be remembered between them."""

    record = ClaudeEvent

    def decode_other(self, event: ClaudeEvent, line: str) -> list[StreamEvent]:
        return [OtherEvent(f"{event.type}/{event.subtype}" if event.subtype else event.type)]

    def _read_assistant(self, event: ClaudeEvent) -> list[StreamEvent]:
        blocks = _list_blocks(event)
        texts = [block.text or "" for block in blocks if block.type == "text"]
        if event.error:  # the CLI's own words, reported as the agent's
            return [StreamError("\n".join(texts) or str(event.error))]
        message_id = event.message.id if isinstance(event.message, _Message) else None
        by_subagent = event.parent_tool_use_id is not None
        words = [AssistantText(text, message_id or "", by_subagent) for text in texts]
        tools = [
            ToolStarted(block.id or "", block.name or "")
            for block in blocks
            if block.type == "tool_use"
        ]
        return [*words, *tools]

    def _read_user(self, event: ClaudeEvent) -> list[StreamEvent]:
        found: list[StreamEvent] = []
        for block in _list_blocks(event):
            if block.type == "tool_result":
                tool_id = block.tool_use_id or ""
                text = _join_content(block.content)
                found.append(ToolResult(text, bool(block.is_error), tool_id))
            elif block.text is not None:
                found.append(UserTurn(block.text))
        return found

    def _read_result(self, event: ClaudeEvent) -> list[StreamEvent]:
        """Return the end of the turn, after the notices that it does not contain."""
        denials = convert_fitting(event.permission_denials, _Denial)
        denied = [AgentNotice("denied", denial.tool_name) for denial in denials]
        end = _judge_result(event)
        limited = event.api_error_status in _LIMITED
        limit = [RateLimit("rejected", None, end.reason)] if limited else []
        return [*denied, *_read_usage(event), *limit, end]

    def _read_limit(self, event: ClaudeEvent) -> list[StreamEvent] | None:
        limit = event.rate_limit_info
        if limit is None:
            return None
        if limit.status == "allowed":
            return [OtherEvent("rate_limit_event/allowed")]
        resets_at = None if limit.resetsAt is None else int(limit.resetsAt)
        status: Literal["rejected", "warning"]
        status = "rejected" if limit.status == "rejected" else "warning"
        return [RateLimit(status, resets_at, limit.rateLimitType or "")]

    def _read_system(self, event: ClaudeEvent) -> list[StreamEvent] | None:
        if event.subtype == "init":
            servers = convert_fitting(event.mcp_servers, _Server)
            missing = (server for server in servers if server.status != "connected")
            return [
                SessionStarted(event.session_id or ""),
                *(AgentNotice("server-missing", f"{one.name}: {one.status}") for one in missing),
            ]
        if event.subtype == "api_retry":
            return [StreamError(f"retry after {event.error or event.error_status}", passing=True)]
        if event.subtype == "task_notification" and event.status in ("stopped", "killed"):
            return [AgentNotice("work-stopped", str(event.summary or "a task in the background"))]
        return None

    handlers: ClassVar = {
        "assistant": _read_assistant,
        "user": _read_user,
        "result": _read_result,
        "rate_limit_event": _read_limit,
        "system": _read_system,
    }


def _list_blocks(event: ClaudeEvent) -> list[_Block]:
    message = event.message
    content = message.content if isinstance(message, _Message) else message
    if isinstance(content, str):
        return [_Block("text", content)]
    return content or []


def _join_content(content: object) -> str:
    """Return the text of a tool's content: a string, or a list of blocks with text in them."""
    if isinstance(content, list):
        return "\n".join(map(_join_content, content))
    if isinstance(content, dict):
        return str(content.get("text", ""))
    return content if isinstance(content, str) else ""


def _judge_result(event: ClaudeEvent) -> TurnEnd:
    name, is_error, turns = event.subtype or "", bool(event.is_error), event.num_turns
    if name != "success" or is_error:
        message = "; ".join(map(str, event.errors or [])) or event.result or ""
        # A result may be named success and be an error all the same.
        named = "" if name == "success" else name or "result"
        reason = ": ".join(part for part in (named, message) if part) or "an error"
        return TurnEnd(False, None, reason, name, is_error, turns)
    if turns == 0:
        reason = f"no turn was taken: {event.result or ''}".rstrip(": ")
        return TurnEnd(False, None, reason, name, turns=turns)
    return TurnEnd(True, event.result, "", name, turns=turns)


def _read_usage(event: ClaudeEvent) -> list[UsageReported]:
    """Return the tokens and money spent, without cached tokens, which cost next to nothing."""
    bills = convert_fitting(event.modelUsage, _Bill)
    usage = convert_or_none(event.usage, _Usage) if not bills else None
    parts = [
        *(part for bill in bills for part in msgspec.structs.astuple(bill)),
        *(msgspec.structs.astuple(usage) if usage else ()),
    ]
    tokens = sum(part or 0 for part in parts)
    money = convert_or_none(event.total_cost_usd, float) or 0.0
    return [UsageReported(tokens, money)] if tokens > 0 or money > 0 else []


class CursorEvent(msgspec.Struct):
    """The fields of Cursor's own events; all others are read as Claude's."""

    type: str
    subtype: str | None = None
    call_id: str | None = None
    tool_call: dict[str, Any] | None = None


class CursorDecoder(StreamDecoder):
    """Decode Cursor's lines, and remember the words since the last tool."""

    record = CursorEvent

    def __init__(self) -> None:
        self._claude = ClaudeDecoder()
        self._words: list[str] = []

    def decode_other(self, event: CursorEvent, line: str) -> list[StreamEvent]:
        return [self._note(found) for found in self._claude.decode(line)]

    def _note(self, found: StreamEvent) -> StreamEvent:
        if isinstance(found, AssistantText):
            self._words.append(found.text)
        if isinstance(found, TurnEnd) and found.ended_by_itself:
            text = "".join(self._words) or None
            return msgspec.structs.replace(found, text=text, ended_by_itself=text is not None)
        return found

    def _read_tool(self, event: CursorEvent) -> list[StreamEvent]:
        self._words = []
        call = event.tool_call or {}
        name = next(iter(call), "")
        if event.subtype == "started":
            return [ToolStarted(event.call_id or "", name)]
        result = get_key(call.get(name), "result")
        keys = result.keys() if isinstance(result, dict) else ()
        refused = bool({"rejected", "permissionDenied"}.intersection(keys))
        found = ToolResult("", refused or "error" in keys, event.call_id or "")
        return [found, AgentNotice("denied", name)] if refused else [found]

    def _read_query(self, event: CursorEvent) -> list[StreamEvent] | None:
        if event.subtype != "request":
            return None
        return [AgentNotice("asks", "cursor asks for an approval")]

    def _skip(self, event: CursorEvent) -> list[StreamEvent]:
        return [OtherEvent(event.type)]

    handlers: ClassVar = {
        "tool_call": _read_tool,
        "interaction_query": _read_query,
        "thinking": _skip,
    }
