"""Claude Code's `--output-format stream-json`: one JSON event per line.

Knows its shapes, and which `result` is a success: the subtype alone does not say so.
Refuses to know lines and chunks.
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
    UsageReported,
    UserTurn,
    all_fitting,
    fitting,
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


_DECODER: Final = msgspec.json.Decoder(ClaudeEvent)
_LIMITED: Final = 429


class ClaudeStream:
    """Decodes one line at a time; there is nothing to remember between them."""

    def decode(self, line: str) -> list[StreamEvent]:
        event = _DECODER.decode(line)
        if event.type == "assistant":
            return _assistant(event)
        if event.type == "user":
            return _user(event)
        if event.type == "result":
            return _results(event)
        if event.type == "rate_limit_event" and event.rate_limit_info:
            return [_limit(event.rate_limit_info)]
        return _system(event)


def _blocks(event: ClaudeEvent) -> list[_Block]:
    message = event.message
    content = message.content if isinstance(message, _Message) else message
    if isinstance(content, str):
        return [_Block("text", content)]
    return content or []


def _assistant(event: ClaudeEvent) -> list[StreamEvent]:
    blocks = _blocks(event)
    texts = [block.text or "" for block in blocks if block.type == "text"]
    if event.error:  # the CLI's own words, put into the agent's mouth
        return [StreamError("\n".join(texts) or str(event.error))]
    name = event.message.id if isinstance(event.message, _Message) else None
    by_subagent = event.parent_tool_use_id is not None
    words = [AssistantText(text, name or "", by_subagent) for text in texts]
    tools = [
        ToolStarted(block.id or "", block.name or "")
        for block in blocks
        if block.type == "tool_use"
    ]
    return [*words, *tools]


def _user(event: ClaudeEvent) -> list[StreamEvent]:
    found: list[StreamEvent] = []
    for block in _blocks(event):
        if block.type == "tool_result":
            tool_id = block.tool_use_id or ""
            found.append(ToolResult(_flat(block.content), bool(block.is_error), tool_id))
        elif block.text is not None:
            found.append(UserTurn(block.text))
    return found


def _flat(content: object) -> str:
    """A tool's content is a string, or a list of blocks with text in them."""
    if isinstance(content, list):
        return "\n".join(_flat(one) for one in content)
    if isinstance(content, dict):
        return str(content.get("text", ""))
    return content if isinstance(content, str) else ""


def _results(event: ClaudeEvent) -> list[StreamEvent]:
    """The end, and before it what it does not tell by itself."""
    denials = all_fitting(event.permission_denials, _Denial)
    denied = [AgentNotice("denied", each.tool_name) for each in denials]
    end = _result(event)
    limit = [RateLimit("rejected", None, end.reason)] if event.api_error_status == _LIMITED else []
    return [*denied, *_spent(event), *limit, end]


def _result(event: ClaudeEvent) -> TurnEnd:
    name, is_error, turns = event.subtype or "", bool(event.is_error), event.num_turns
    if name != "success" or is_error:
        told = "; ".join(map(str, event.errors or [])) or event.result or ""
        reason = f"{name or 'result'}: {told}".rstrip(": ")
        return TurnEnd(False, None, reason, name, is_error, turns)
    if turns == 0:
        reason = f"no turn was taken: {event.result or ''}".rstrip(": ")
        return TurnEnd(False, None, reason, name, turns=turns)
    return TurnEnd(True, event.result, "", name, turns=turns)


def _spent(event: ClaudeEvent) -> list[UsageReported]:
    """Tokens read from a cache are left out: they cost next to nothing and are most of all."""
    bills = all_fitting(event.modelUsage, _Bill)
    usage = fitting(event.usage, _Usage) if not bills else None
    parts = [
        *(part for each in bills for part in msgspec.structs.astuple(each)),
        *(msgspec.structs.astuple(usage) if usage else ()),
    ]
    tokens = sum(part or 0 for part in parts)
    money = fitting(event.total_cost_usd, float) or 0.0
    return [UsageReported(tokens, money)] if tokens > 0 or money > 0 else []


def _limit(limit: _Limit) -> RateLimit | OtherEvent:
    if limit.status == "allowed":
        return OtherEvent("rate_limit_event/allowed")
    resets_at = None if limit.resetsAt is None else int(limit.resetsAt)
    kind = limit.rateLimitType or ""
    rejected = limit.status == "rejected"
    return RateLimit("rejected" if rejected else "warning", resets_at, kind)


def _system(event: ClaudeEvent) -> list[StreamEvent]:
    name = f"{event.type}/{event.subtype}" if event.subtype else event.type
    if name == "system/init":
        servers = all_fitting(event.mcp_servers, _Server)
        missing = [each for each in servers if each.status != "connected"]
        notices = [AgentNotice("server-missing", f"{each.name}: {each.status}") for each in missing]
        return [SessionStarted(event.session_id or ""), *notices]
    if name == "system/api_retry":
        return [StreamError(f"retry after {event.error or event.error_status}", passing=True)]
    if name == "system/task_notification" and event.status in ("stopped", "killed"):
        return [AgentNotice("work-stopped", str(event.summary or "a task in the background"))]
    return [OtherEvent(name)]
