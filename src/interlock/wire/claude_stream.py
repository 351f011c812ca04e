"""Claude Code's `--output-format stream-json`: one JSON event per line.

Knows its shapes, and which `result` is a success: the subtype alone does not say so.
Refuses to know lines and chunks.
"""

from typing import Any, Final

import msgspec

from interlock.wire.stream_events import (
    AssistantText,
    OtherEvent,
    RateLimit,
    SessionStarted,
    StreamError,
    StreamEvent,
    ToolResult,
    TurnEnd,
    UserTurn,
)


class _Block(msgspec.Struct):
    type: str = ""
    text: str | None = None
    content: Any = None
    is_error: bool | None = None


class _Message(msgspec.Struct):
    id: str | None = None
    content: str | list[_Block] | None = None


class _Limit(msgspec.Struct):
    status: str | None = None
    resetsAt: int | float | None = None  # noqa: N815 -- the CLI's own name
    rateLimitType: str | None = None  # noqa: N815


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


_DECODER: Final = msgspec.json.Decoder(ClaudeEvent)


class ClaudeStream:
    """Decodes one line at a time; there is nothing to remember between them."""

    def decode(self, line: str) -> list[StreamEvent]:
        event = _DECODER.decode(line)
        if event.type == "assistant":
            return _assistant(event)
        if event.type == "user":
            return _user(event)
        if event.type == "result":
            return [_result(event)]
        if event.type == "rate_limit_event" and event.rate_limit_info:
            return [_limit(event.rate_limit_info)]
        return [_system(event)]


def _blocks(event: ClaudeEvent) -> list[_Block]:
    message = event.message
    content = message.content if isinstance(message, _Message) else message
    if isinstance(content, str):
        return [_Block("text", content)]
    return content or []


def _assistant(event: ClaudeEvent) -> list[StreamEvent]:
    texts = [block.text or "" for block in _blocks(event) if block.type == "text"]
    if event.error:  # the CLI's own words, put into the agent's mouth
        return [StreamError("\n".join(texts) or str(event.error))]
    name = event.message.id if isinstance(event.message, _Message) else None
    by_subagent = event.parent_tool_use_id is not None
    return [AssistantText(text, name or "", by_subagent) for text in texts]


def _user(event: ClaudeEvent) -> list[StreamEvent]:
    found: list[StreamEvent] = []
    for block in _blocks(event):
        if block.type == "tool_result":
            found.append(ToolResult(_flat(block.content), bool(block.is_error)))
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


def _result(event: ClaudeEvent) -> TurnEnd:
    if event.subtype != "success" or event.is_error:
        told = "; ".join(map(str, event.errors or [])) or event.result or ""
        return TurnEnd(False, None, f"{event.subtype or 'result'}: {told}".rstrip(": "))
    if event.num_turns == 0:
        return TurnEnd(False, None, "no turn was taken")
    return TurnEnd(True, event.result)


def _limit(limit: _Limit) -> RateLimit | OtherEvent:
    if limit.status == "allowed":
        return OtherEvent("rate_limit_event/allowed")
    resets_at = None if limit.resetsAt is None else int(limit.resetsAt)
    kind = limit.rateLimitType or ""
    rejected = limit.status == "rejected"
    return RateLimit("rejected" if rejected else "warning", resets_at, kind)


def _system(event: ClaudeEvent) -> StreamEvent:
    name = f"{event.type}/{event.subtype}" if event.subtype else event.type
    if name == "system/init":
        return SessionStarted(event.session_id or "")
    if name == "system/api_retry":
        return StreamError(f"retry after {event.error or event.error_status}", passing=True)
    return OtherEvent(name)
