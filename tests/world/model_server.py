"""A model endpoint for tests: a real HTTP server in a thread that speaks both dialects.

It answers `/v1/chat/completions` and `/v1/messages` in the shapes of the real ones, checks the key,
and keeps every request. What it says next is laid out by `say`; a `Fault` is met instead of an
answer. A request that nobody laid out an answer for is answered by `{"n": NUMBER}`.
"""

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from typing import Any

from tests.world.http_server import serve_http

KEY = "sk-tests-0123456789"
MODEL = "small-1"


class Said:
    """One answer, or what is met instead: an HTTP status, a broken connection, a long silence."""

    def __init__(
        self,
        text: str = "",
        *,
        data: Mapping[str, Any] | None = None,
        stop: str = "",
        status: int = 200,
        code: str = "",
        message: str = "",
        headers: Mapping[str, str] | None = None,
        body: bytes | None = None,
        refusal: str = "",
        silent: bool = False,
    ) -> None:
        self.text = text
        self.data = data
        self.stop = stop
        self.status = status
        self.code = code
        self.message = message
        self.headers = headers or {}
        self.body = body
        self.refusal = refusal
        self.silent = silent


class ModelServer:
    """What was asked, and what is said next."""

    def __init__(self) -> None:
        self.url = ""
        self.requests: list[dict[str, Any]] = []
        self.headers: list[Mapping[str, str]] = []
        self.left = threading.Event()
        """Set when somebody hung up before the answer."""
        self.asked = threading.Event()
        self.stopped = threading.Event()
        self._next: list[Said] = []

    def say(self, *answers: Said) -> None:
        self._next += answers

    def take(self, prompt: str) -> Said:
        if self._next:
            return self._next.pop(0)
        return Said(json.dumps({"n": len(self.requests)}))


def openai_body(said: Said, request: Mapping[str, Any], number: int) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": said.text or None}
    if said.refusal:
        message["refusal"] = said.refusal
    if "tools" in request and said.text:
        function = {"name": "answer", "arguments": said.text}
        message |= {"content": None, "tool_calls": [{"id": "1", "function": function}]}
    return {
        "id": f"chatcmpl-{number}",
        "model": f"{request['model']}-2026",
        "choices": [{"index": 0, "message": message, "finish_reason": said.stop or "stop"}],
        "usage": {
            "prompt_tokens": 120,
            "completion_tokens": 30,
            "prompt_tokens_details": {"cached_tokens": 100},
        },
    }


def anthropic_body(said: Said, request: Mapping[str, Any], number: int) -> dict[str, Any]:
    block: dict[str, Any] = {"type": "text", "text": said.text}
    if "tools" in request and said.text.startswith("{"):
        block = {"type": "tool_use", "id": "1", "name": "answer", "input": json.loads(said.text)}
    return {
        "id": f"msg_{number}",
        "model": f"{request['model']}-2026",
        "content": [{"type": "thinking", "thinking": "hm"}, block] if said.text else [],
        "stop_reason": said.stop or "end_turn",
        "usage": {
            "input_tokens": 15,
            "output_tokens": 30,
            "cache_read_input_tokens": 100,
            "cache_creation_input_tokens": 5,
        },
    }


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    model: ModelServer

    def log_message(self, *_words: object) -> None:
        pass

    def do_GET(self) -> None:
        if self._check_key():
            self._send(200, {"data": [{"id": MODEL}, {"id": "large-1"}]})

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers["content-length"]))
        request = json.loads(raw)
        self.model.requests.append(request)
        self.model.headers.append(dict(self.headers.items()))
        self.model.asked.set()
        if not self._check_key():
            return
        said = self.model.take(str(request["messages"]))
        if said.silent:
            # Nothing more is sent: a read ends when the other side hangs up.
            self.connection.settimeout(20)
            self.model.left.set() if self.rfile.read(1) == b"" else None
            self.close_connection = True
            return
        number = len(self.model.requests)
        if said.body is not None:
            self._send(said.status, said.body, said.headers)
        elif said.status != 200:
            error = {"message": said.message, "type": said.code, "code": said.code or None}
            self._send(said.status, {"error": error}, said.headers)
        elif self.path.endswith("/messages"):
            self._send(200, anthropic_body(said, request, number), {"request-id": f"req_{number}"})
        else:
            self._send(200, openai_body(said, request, number), {"x-request-id": f"req_{number}"})

    def _check_key(self) -> bool:
        given = self.headers.get("x-api-key") or self.headers.get("authorization") or ""
        if given.removeprefix("Bearer ") == KEY:
            return True
        self._send(401, {"error": {"message": f"wrong key: {given}", "type": "auth"}})
        return False

    def _send(self, status: int, body: Any, headers: Mapping[str, str] | None = None) -> None:
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        for name, value in {"content-length": str(len(raw)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(raw)


@contextmanager
def model_server() -> Iterator[ModelServer]:
    """A server that runs as long as this lasts."""
    made = ModelServer()
    with serve_http(_Handler, model=made) as url:
        made.url = f"{url}/v1"
        yield made
