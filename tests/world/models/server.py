"""A model server on the loopback: takes requests, asks the script, answers in a dialect.

Keeps every request for the test to look at. A dialect turns requests into `Asked` and answers into
bytes; this file knows sockets, and nothing of what a provider's JSON looks like.
"""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Protocol

from tests.world.models.script import Answer, Asked, Fault, Line, Refuses, Says, Script

PATIENCE = 180.0


class Dialect(Protocol):
    """One provider's JSON."""

    route: str

    def read(self, number: int, path: str, headers: dict[str, str], body: Any) -> Asked: ...

    def stream(self, asked: Asked, result: Says) -> list[bytes]:
        """The events of an answer. The last `closing` of them only end it."""

    def whole(self, asked: Asked, result: Says) -> dict[str, Any]: ...

    closing: int


class Model:
    """A model at work: its script may be changed between runs, its requests may be read."""

    def __init__(self, dialect: Dialect, script: Script) -> None:
        self.dialect = dialect
        self.script = script
        self.asked: list[Asked] = []
        self.other: list[str] = []
        self.url = ""
        self.stopped = threading.Event()
        self._news = threading.Condition()

    def take(self, path: str, headers: dict[str, str], body: Any) -> tuple[Asked, Answer]:
        with self._news:
            asked = self.dialect.read(len(self.asked), path, headers, body)
            self.asked.append(asked)
            self._news.notify_all()
        return asked, self.script(asked)

    def until_asked(self, times: int) -> None:
        """Wait until that many requests have come."""
        with self._news:
            came = self._news.wait_for(lambda: len(self.asked) >= times, PATIENCE)
        assert came, f"the model was asked {len(self.asked)} times, not {times}"


class _Handler(BaseHTTPRequestHandler):
    model: Model
    protocol_version = "HTTP/1.1"

    def do_HEAD(self) -> None:
        self._note()
        self._head(200, {"Content-Length": "0"})

    def do_GET(self) -> None:
        self._note()
        self._json(200, {"data": [], "models": []})

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.path.split("?")[0] != self.model.dialect.route:
            self._note()
            self._json(200, {"input_tokens": 10})
            return
        headers = {name.lower(): value for name, value in self.headers.items()}
        asked, answer = self.model.take(self.path, headers, json.loads(raw or b"{}"))
        try:
            self._give(asked, answer)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    def _note(self) -> None:
        self.model.other.append(f"{self.command} {self.path}")

    def _give(self, asked: Asked, answer: Answer) -> None:
        if isinstance(answer, Refuses):
            self._json(answer.status, answer.body, answer.headers)
        elif isinstance(answer, Fault):
            self._fail(asked, answer)
        elif asked.streamed:
            self._stream(self.model.dialect.stream(asked, answer), answer.headers)
        else:
            self._json(200, self.model.dialect.whole(asked, answer), answer.headers)

    def _fail(self, asked: Asked, fault: Fault) -> None:
        self.close_connection = True
        if fault.line is Line.SILENT:
            self.model.stopped.wait()
            return
        if fault.line is Line.PAGE:
            page = b"<html><body>Bad gateway</body></html>"
            self._head(200, {"Content-Type": "text/html", "Content-Length": str(len(page))})
            self.wfile.write(page)
            return
        events = self.model.dialect.stream(asked, Says(fault.text))
        closing = self.model.dialect.closing
        kept = 0 if fault.line is Line.HELD else len(events) - closing
        half = -1 if fault.line in (Line.HALF, Line.CUT) else kept
        self._head(200, {"Content-Type": "text/event-stream", "Connection": "close"})
        self.wfile.write(b"".join(events[:kept][:half]))
        self.wfile.flush()
        if fault.line is not Line.CUT:
            self.model.stopped.wait()

    def _stream(self, events: list[bytes], headers: dict[str, str]) -> None:
        raw = b"".join(events)
        output = {"Content-Type": "text/event-stream", "Content-Length": str(len(raw))}
        self._head(200, output | headers)
        self.wfile.write(raw)

    def _json(self, status: int, body: Any, headers: dict[str, str] | None = None) -> None:
        raw = json.dumps(body).encode()
        output = {"Content-Type": "application/json", "Content-Length": str(len(raw))}
        self._head(status, output | (headers or {}))
        if self.command != "HEAD":
            self.wfile.write(raw)

    def _head(self, status: int, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        pass


@contextmanager
def serving(dialect: Dialect, script: Script) -> Iterator[Model]:
    """A running model; it ends with the block."""
    model = Model(dialect, script)
    handler = type("Handler", (_Handler,), {"model": model})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    model.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield model
    finally:
        model.stopped.set()
        server.shutdown()
        server.server_close()
        thread.join()


def sse(name: str, data: dict[str, Any]) -> bytes:
    """One server-sent event."""
    return f"event: {name}\ndata: {json.dumps(data)}\n\n".encode()
