"""Lines from the agent's client and back, and the handshake of the protocol.

The SDK takes about a second to load, and clients drop a server that is not up by then: until it is
loaded, `Handshake` answers what the SDK's server would answer (a test keeps them equal), and
everything else waits. `StdioTransport` reads in a thread and answers lines that are no message or
too long.
"""

import asyncio
import os
import threading
from collections.abc import AsyncIterator, Callable
from typing import Any, Final

import msgspec

from interlock.carriers.mcp.messages import INSTRUCTIONS, RESOURCE_TEMPLATES, list_tool_specs
from interlock.version import __version__

NAME: Final = "interlock"
HANDSHAKES: Final = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
"""Revisions that begin with `initialize`. The current one does not, and is the SDK's alone."""
CAPABILITIES: Final[dict[str, Any]] = {
    "resources": {"subscribe": False, "listChanged": False},
    "tools": {"listChanged": False},
}
PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600


class MessageHead(msgspec.Struct):
    """What must be read of any message to answer it."""

    jsonrpc: str = ""
    method: str = ""
    id: int | str | float | None = None
    params: Any = None


class Handshake:
    """Answers what needs no SDK; keeps what the SDK must be given all the same."""

    def __init__(self) -> None:
        self.forwarded: list[bytes] = []
        self.answered_ids: list[int | str | float | None] = []
        self._version = ""

    def answer_line(self, line: bytes) -> bytes | None:
        """The answer to this line, or None if it must wait for the SDK."""
        try:
            head = msgspec.json.decode(line, type=MessageHead)
        except (ValueError, RecursionError):
            return None
        if head.method == "initialize" and not self._version and not self.forwarded:
            return self._answer_initialize(head, line)
        if head.method == "notifications/initialized" and self._version:
            self.forwarded.append(line)
            return b""
        if head.method == "tools/list" and self._version and _is_plain(head.params):
            return encode_result(head.id, {"tools": list_tool_specs()})
        if head.method == "resources/templates/list" and self._version and _is_plain(head.params):
            return encode_result(head.id, {"resourceTemplates": list(RESOURCE_TEMPLATES)})
        return None

    def _answer_initialize(self, head: MessageHead, line: bytes) -> bytes | None:
        """A client that does not say who it is gets its answer from the SDK."""
        params = head.params if isinstance(head.params, dict) else {}
        asked = params.get("protocolVersion")
        known = isinstance(params.get("clientInfo"), dict) and isinstance(asked, str)
        if not known or head.id is None:
            return None
        self._version = str(asked) if asked in HANDSHAKES else HANDSHAKES[-1]
        self.forwarded.append(line)
        self.answered_ids.append(head.id)
        return encode_result(head.id, build_initialize_result(self._version))


def build_initialize_result(version: str) -> dict[str, Any]:
    """The result of `initialize`."""
    return {
        "protocolVersion": version,
        "capabilities": CAPABILITIES,
        "serverInfo": {"name": NAME, "version": __version__},
        "instructions": INSTRUCTIONS,
    }


def _is_plain(params: Any) -> bool:
    return not params or set(params) <= {"_meta"}


def encode_result(number: int | str | float | None, result: dict[str, Any]) -> bytes:
    return msgspec.json.encode({"jsonrpc": "2.0", "id": number, "result": result}) + b"\n"


def encode_error(number: int | str | float | None, code: int, message: str) -> bytes:
    error = {"code": code, "message": message}
    return msgspec.json.encode({"jsonrpc": "2.0", "id": number, "error": error}) + b"\n"


MAX_MESSAGE: Final = 4 << 20
"""Bytes of one message that is worked on."""
_MAX_READ: Final = 128 << 20
"""Bytes of one message that is read to its end, so that it can be answered."""
_READ_SIZE: Final = 1 << 16


class StdioTransport:
    """The client's end of the server: `read_lines` and `write` are what the SDK uses."""

    def __init__(self, source: int, sink: int) -> None:
        self._source = source
        self._sink = sink
        self._handshake = Handshake()
        self._lock = threading.Lock()
        self._write_lock = threading.Lock()
        self._early: list[bytes | None] = []
        self._pass_on: Callable[[bytes | None], None] | None = None
        self._already_answered: list[int | str | float | None] = []

    def open(self) -> None:
        """Begin to read. The thread ends with the process."""
        threading.Thread(target=self._read_source, daemon=True, name="mcp-stdio").start()

    async def read_lines(self, check: Callable[[bytes], object]) -> AsyncIterator[str]:
        """All lines for the SDK, from the first on, that `check` accepts."""
        loop = asyncio.get_running_loop()
        queue: asyncio.Queue[bytes | None] = asyncio.Queue()
        with self._lock:
            self._already_answered = list(self._handshake.answered_ids)
            for line in (*self._handshake.forwarded, *self._early):
                queue.put_nowait(line)
            self._pass_on = lambda line: _queue_line(loop, queue, line)
        while (line := await queue.get()) is not None:
            try:
                check(line)
            except ValueError:
                head = msgspec.json.decode(line, type=MessageHead)
                await asyncio.to_thread(
                    self._write,
                    encode_error(head.id, INVALID_REQUEST, "This is not an MCP message."),
                )
            else:
                yield line.decode(errors="replace")

    async def write(self, text: str) -> None:
        """A reply of the SDK; what the handshake has answered is not answered twice."""
        line = text.encode(errors="replace")
        if self._already_answered and (number := _read_answered_id(line)) in self._already_answered:
            self._already_answered.remove(number)
            return
        await asyncio.to_thread(self._write, line)

    async def flush(self) -> None:
        """Nothing is held back."""

    def _read_source(self) -> None:
        """Whatever ends it, the SDK learns that no more lines will come."""
        try:
            self._read_all_lines()
        finally:
            self._forward(None)

    def _read_all_lines(self) -> None:
        pending = bytearray()
        while True:
            try:
                piece = os.read(self._source, _READ_SIZE)
            except OSError:
                return
            if not piece:
                return
            pending += piece
            if b"\n" in piece:
                *lines, rest = pending.split(b"\n")
                pending = bytearray(rest)
                for line in lines:
                    self._take_line(bytes(line))
            elif len(pending) > _MAX_READ:
                self._write(encode_error(None, INVALID_REQUEST, "This message is too long."))
                return

    def _take_line(self, line: bytes) -> None:
        if not line.strip():
            return
        problem = _check_line(line)
        if problem:
            self._write(problem)
            return
        with self._lock:
            if self._pass_on is None:
                answer = self._handshake.answer_line(line)
                if answer is None:
                    self._early.append(line)
                elif answer:
                    self._write(answer)
                return
        self._forward(line)

    def _forward(self, line: bytes | None) -> None:
        with self._lock:
            if self._pass_on is None:
                self._early.append(line)
            else:
                self._pass_on(line)

    def _write(self, line: bytes) -> None:
        view = memoryview(line)
        try:
            with self._write_lock:
                while view:
                    view = view[os.write(self._sink, view) :]
        except OSError:
            return  # whoever asked has gone; the end of its input will say so


def _check_line(line: bytes) -> bytes:
    """The answer to a line that is no message, or too long a one."""
    try:
        head = msgspec.json.decode(line, type=MessageHead)
    except (msgspec.ValidationError, RecursionError):
        return encode_error(None, INVALID_REQUEST, "A message is a JSON-RPC 2.0 object.")
    except (msgspec.DecodeError, UnicodeDecodeError):
        return encode_error(None, PARSE_ERROR, "This is not JSON.")
    if head.jsonrpc != "2.0":
        return encode_error(head.id, INVALID_REQUEST, "A message has jsonrpc: 2.0.")
    if len(line) > MAX_MESSAGE:
        sentence = (
            f"A message has at most {MAX_MESSAGE:,} bytes, this one {len(line):,}; "
            "nothing was taken."
        )
        return encode_error(head.id, INVALID_REQUEST, sentence)
    return b""


def _read_answered_id(line: bytes) -> int | str | float | None:
    head = msgspec.json.decode(line, type=MessageHead)
    return None if head.method else head.id


def _queue_line(
    loop: asyncio.AbstractEventLoop, queue: "asyncio.Queue[bytes | None]", line: bytes | None
) -> None:
    try:
        loop.call_soon_threadsafe(queue.put_nowait, line)
    except RuntimeError:
        return  # the server has ended already
