"""OpenCode's `run --format json`: one JSON event per line.

Knows that it has no terminal event: the last step finishes with `stop`, and one that finishes with
`tool-calls` is followed by another, or by nothing if a permission was refused. Tools are told of
only when they are over. Refuses to know lines and chunks.
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
    TurnEnd,
    UsageReported,
    fitting,
)

_LIMIT: Final = re.compile(
    r"quota|\b429\b|rate.?limit|usage limit|too many requests", re.IGNORECASE
)
_DENIED: Final = re.compile(
    r"rejected permission|prevents you from using|permission denied", re.IGNORECASE
)


class _State(msgspec.Struct):
    status: str | None = None
    output: Any = None
    error: Any = None


class _Cache(msgspec.Struct):
    write: int = 0


class _Tokens(msgspec.Struct):
    input: int = 0
    output: int = 0
    reasoning: int = 0
    cache: _Cache = msgspec.field(default_factory=_Cache)


class _Part(msgspec.Struct, rename={"message_id": "messageID", "call_id": "callID"}):
    message_id: str | None = None
    call_id: str | None = None
    text: str | None = None
    tool: str | None = None
    reason: str | None = None
    state: _State | None = None
    tokens: Any = None
    cost: Any = None


class OpencodeEvent(msgspec.Struct, rename={"session_id": "sessionID"}):
    """The fields of any event that matter here; all others are ignored."""

    type: str
    session_id: str | None = None
    part: _Part | None = None
    error: Any = None


_DECODER: Final = msgspec.json.Decoder(OpencodeEvent)


class OpencodeStream:
    """Remembers the session, the words of the present step, and what all steps cost."""

    def __init__(self) -> None:
        self._session = ""
        self._said: list[str] = []
        self._tokens = 0
        self._money = 0.0

    def decode(self, line: str) -> list[StreamEvent]:
        event = _DECODER.decode(line)
        return [*self._begun(event), *self._event(event, event.part or _Part())]

    def _begun(self, event: OpencodeEvent) -> list[StreamEvent]:
        if not event.session_id or event.session_id == self._session:
            return []
        self._session = event.session_id
        return [SessionStarted(self._session)]

    def _event(self, event: OpencodeEvent, part: _Part) -> list[StreamEvent]:
        match event.type:
            case "step_start":
                self._said = []
                return [OtherEvent("turn.started")]
            case "text":
                self._said.append(part.text or "")
                return [AssistantText(part.text or "", part.message_id or "")]
            case "tool_use":
                return _tool(part)
            case "step_finish":
                return self._finish(part)
            case "error":
                return _error(event.error)
        return [OtherEvent(event.type)]

    def _finish(self, part: _Part) -> list[StreamEvent]:
        tokens = fitting(part.tokens, _Tokens) or _Tokens()
        self._tokens += tokens.input + tokens.output + tokens.reasoning + tokens.cache.write
        self._money += fitting(part.cost, float) or 0.0
        spent = UsageReported(max(self._tokens, 0), max(self._money, 0.0))
        if part.reason in (None, "tool-calls"):
            return [spent, OtherEvent(f"step_finish/{part.reason}")]
        text = "".join(self._said)
        good = part.reason == "stop" and bool(text)
        why = "" if good else f"the last step ended with {part.reason}"
        return [spent, TurnEnd(good, text or None if good else None, why, part.reason)]


def _tool(part: _Part) -> list[StreamEvent]:
    state = part.state or _State()
    failed = state.status == "error"
    said = state.error if failed else state.output
    found = ToolResult(said if isinstance(said, str) else "", failed, part.call_id or "")
    refused = failed and isinstance(said, str) and _DENIED.search(said)
    return [found, AgentNotice("denied", part.tool or "")] if refused else [found]


def _error(error: Any) -> list[StreamEvent]:
    data = error.get("data") if isinstance(error, dict) else None
    told = data.get("message") if isinstance(data, dict) else None
    name = error.get("name") if isinstance(error, dict) else error
    message = str(told or name or "an error without a name")
    end = TurnEnd(False, None, message, "error", is_error=True)
    limit = [RateLimit("rejected", None, message)] if _LIMIT.search(message) else []
    return [StreamError(message), *limit, end]
