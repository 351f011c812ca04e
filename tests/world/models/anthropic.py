"""The dialect of `POST /v1/messages`: what Claude Code sends, and the events it wants back.

Also how that provider refuses: too many requests, a usage limit of a subscription, a broken key.
"""

import json
from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Any

from tests.world.models.script import Asked, Call, Refuses, Says, Script, ToolResult
from tests.world.models.server import Model, serving, sse


class Messages:
    """`POST /v1/messages`, streamed or whole."""

    route = "/v1/messages"
    closing = 2

    def read(self, number: int, path: str, headers: dict[str, str], body: Any) -> Asked:
        messages = body.get("messages", [])
        return Asked(
            number=number,
            path=path,
            headers=headers,
            body=body,
            prompt=_prompt(messages),
            results=tuple(_results(messages)),
            tools=tuple(tool["name"] for tool in body.get("tools", ())),
            streamed=bool(body.get("stream")),
        )

    def stream(self, asked: Asked, result: Says) -> list[bytes]:
        whole = self.whole(asked, result)
        start = {**whole, "content": [], "stop_reason": None}
        start["usage"] = {"input_tokens": result.tokens[0], "output_tokens": 1}
        events = [sse("message_start", {"type": "message_start", "message": start})]
        for index, block in enumerate(whole["content"]):
            events += _block(index, block)
        delta = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
        usage = {"output_tokens": result.tokens[1]}
        output = {"type": "message_delta", "delta": delta, "usage": usage}
        return [
            *events,
            sse("message_delta", output),
            sse("message_stop", {"type": "message_stop"}),
        ]

    def whole(self, asked: Asked, result: Says) -> dict[str, Any]:
        return {
            "id": f"msg_{asked.number:04d}",
            "type": "message",
            "role": "assistant",
            "model": asked.body.get("model", "scripted"),
            "content": list(_content(asked, result)),
            "stop_reason": result.stop or ("tool_use" if result.calls else "end_turn"),
            "stop_sequence": None,
            "usage": {"input_tokens": result.tokens[0], "output_tokens": result.tokens[1]},
        }


def messages_api(script: Script) -> AbstractContextManager[Model]:
    return serving(Messages(), script)


def too_many(retry_after: int) -> Refuses:
    result = {"type": "rate_limit_error", "message": "Too many requests."}
    return Refuses(429, {"type": "error", "error": result}, {"retry-after": str(retry_after)})


def usage_spent(resets_at: int) -> Refuses:
    """The five hours of a subscription are used up."""
    result = {"type": "rate_limit_error", "message": "This request would exceed your rate limit."}
    return Refuses(
        429,
        {"type": "error", "error": result},
        {
            "retry-after": "7200",
            "anthropic-ratelimit-unified-status": "rejected",
            "anthropic-ratelimit-unified-reset": str(resets_at),
            "anthropic-ratelimit-unified-representative-claim": "five_hour",
        },
    )


def too_long() -> Refuses:
    result = {"type": "invalid_request_error", "message": "prompt is too long: 250000 > 200000"}
    return Refuses(400, {"type": "error", "error": result})


def _content(asked: Asked, result: Says) -> Iterator[dict[str, Any]]:
    if result.thinking:
        yield {"type": "thinking", "thinking": result.thinking, "signature": "scripted"}
    if result.text:
        yield {"type": "text", "text": result.text}
    for count, call in enumerate(result.calls):
        call_id = f"toolu_{asked.number:04d}{count:02d}"
        yield {"type": "tool_use", "id": call_id, "name": _name(call), "input": call.input}


def _name(call: Call) -> str:
    return f"mcp__{call.server}__{call.tool}" if call.server else call.tool


_EMPTY = {"text": {"text": ""}, "thinking": {"thinking": "", "signature": ""}}


def _block(index: int, block: dict[str, Any]) -> Iterator[bytes]:
    kind = block["type"]
    started = {**block, **_EMPTY.get(kind, {"input": {}})}
    yield sse(
        "content_block_start",
        {"type": "content_block_start", "index": index, "content_block": started},
    )
    for delta in _deltas(kind, block):
        yield sse(
            "content_block_delta", {"type": "content_block_delta", "index": index, "delta": delta}
        )
    yield sse("content_block_stop", {"type": "content_block_stop", "index": index})


def _deltas(kind: str, block: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """In two parts, so that a reader of halves is tried."""
    if kind == "tool_use":
        for part in _halves(json.dumps(block["input"])):
            yield {"type": "input_json_delta", "partial_json": part}
        return
    for part in _halves(block[kind]):
        yield {"type": f"{kind}_delta", kind: part}
    if kind == "thinking":
        yield {"type": "signature_delta", "signature": block["signature"]}


def _halves(text: str) -> tuple[str, str]:
    return text[: len(text) // 2], text[len(text) // 2 :]


def _prompt(messages: list[Any]) -> str:
    """The last words that a person or a supervisor said."""
    for message in reversed(messages):
        texts = [block["text"] for block in _blocks(message) if block["type"] == "text"]
        if message["role"] == "user" and texts:
            return str(texts[-1]).rpartition("</system-reminder>")[2].strip()
    return ""


def _results(messages: list[Any]) -> Iterator[ToolResult]:
    for message in messages:
        for block in _blocks(message):
            if block["type"] == "tool_result":
                text = "\n".join(part.get("text", "") for part in _blocks(block))
                yield ToolResult(block["tool_use_id"], text, bool(block.get("is_error")))


def _blocks(message: dict[str, Any]) -> list[dict[str, Any]]:
    content = message.get("content", "")
    return [{"type": "text", "text": content}] if isinstance(content, str) else content
