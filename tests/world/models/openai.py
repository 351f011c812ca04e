"""The dialect of `POST /v1/responses`: what Codex sends, and the events it wants back.

Also how that provider refuses: too many requests, a usage limit with its end.
"""

import json
from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Any

from tests.world.models.script import Asked, Call, Refuses, Says, Script, ToolResult
from tests.world.models.server import Model, serving, sse


class Responses:
    """`POST /v1/responses`, streamed."""

    route = "/v1/responses"
    closing = 1

    def read(self, number: int, path: str, headers: dict[str, str], body: Any) -> Asked:
        items = body.get("input", [])
        return Asked(
            number=number,
            path=path,
            headers=headers,
            body=body,
            prompt=_prompt(items),
            results=tuple(_results(items)),
            tools=tuple(_tools(body.get("tools", ()))),
            streamed=bool(body.get("stream")),
        )

    def stream(self, asked: Asked, result: Says) -> list[bytes]:
        whole = self.whole(asked, result)
        started = {"type": "response.created", "response": {"id": whole["id"]}}
        items = [
            sse(
                "response.output_item.done",
                {"type": "response.output_item.done", "output_index": index, "item": item},
            )
            for index, item in enumerate(whole["output"])
        ]
        ended = {"type": "response.completed", "response": whole}
        return [sse("response.created", started), *items, sse("response.completed", ended)]

    def whole(self, asked: Asked, result: Says) -> dict[str, Any]:
        took, gave = result.tokens
        return {
            "id": f"resp_{asked.number:04d}",
            "output": list(_output(asked, result)),
            "usage": {
                "input_tokens": took,
                "input_tokens_details": {"cached_tokens": 0},
                "output_tokens": gave,
                "output_tokens_details": {"reasoning_tokens": 0},
                "total_tokens": took + gave,
            },
        }


def responses_api(script: Script) -> AbstractContextManager[Model]:
    return serving(Responses(), script)


def too_many(retry_after: int) -> Refuses:
    result = {"type": "rate_limit_exceeded", "message": "Too many requests."}
    return Refuses(429, {"error": result}, {"retry-after": str(retry_after)})


def usage_spent(resets_at: int) -> Refuses:
    """The plan's hours are used up."""
    result = {
        "type": "usage_limit_reached",
        "message": "The usage limit has been reached",
        "plan_type": "plus",
        "resets_at": resets_at,
    }
    return Refuses(429, {"error": result})


def _output(asked: Asked, result: Says) -> Iterator[dict[str, Any]]:
    if result.thinking:
        summary = [{"type": "summary_text", "text": result.thinking}]
        yield {"type": "reasoning", "id": f"rs_{asked.number:04d}", "summary": summary}
    if result.text:
        content = [{"type": "output_text", "text": result.text}]
        yield {
            "type": "message",
            "id": f"msg_{asked.number:04d}",
            "role": "assistant",
            "content": content,
        }
    for count, call in enumerate(result.calls):
        yield _call(f"call_{asked.number:04d}{count:02d}", call)


def _call(call_id: str, call: Call) -> dict[str, Any]:
    item = {
        "type": "function_call",
        "id": f"fc_{call_id}",
        "call_id": call_id,
        "name": call.tool,
        "arguments": json.dumps(call.input),
    }
    return item | ({"namespace": f"mcp__{call.server}"} if call.server else {})


def _tools(tools: Any) -> Iterator[str]:
    """Names; those of a namespace as `namespace.tool`."""
    for tool in tools:
        name = tool.get("name", tool["type"])
        inner = tool.get("tools")
        if inner is None:
            yield name
        else:
            yield from (f"{name}.{each.get('name', each['type'])}" for each in inner)


def _prompt(items: list[Any]) -> str:
    """The last words that a person or a supervisor said."""
    for item in reversed(items):
        if item.get("type", "message") == "message" and item.get("role") == "user":
            return "\n".join(part.get("text", "") for part in item["content"])
    return ""


def _results(items: list[Any]) -> Iterator[ToolResult]:
    for item in items:
        if item.get("type") == "function_call_output":
            output = item["output"]
            text = output if isinstance(output, str) else json.dumps(output)
            yield ToolResult(item["call_id"], text)
