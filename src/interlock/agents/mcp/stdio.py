"""Lines from the agent's client and back, and the first words of the protocol.

The SDK takes about a second to load, and clients drop a server that is not up by then: until it is
there, `Handshake` says what the SDK's server would say (a test keeps them equal), and everything
else waits. `StdioTransport` reads in a thread and answers lines that are no message or too long.
"""

import asyncio
import os
import threading
from collections.abc import AsyncIterator, Callable
from typing import Any, Final

import msgspec

from interlock.agents.mcp.messages import INSTRUCTIONS, TEMPLATES, specs
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


class Head(msgspec.Struct):
    """What must be read of any message to answer it."""

    jsonrpc: str = ""
    method: str = ""
    id: int | str | float | None = None
    params: Any = None


class Handshake:
    """Answers what can be said without the SDK; remembers what the SDK must hear all the same."""

    def __init__(self) -> None:
        self.heard: list[bytes] = []
        self.answered: list[int | str | float | None] = []
        self._version = ""

    def greet(self, line: bytes) -> bytes | None:
        """The answer to this line, or None if it must wait for the SDK."""
        try:
            head = msgspec.json.decode(line, type=Head)
        except (ValueError, RecursionError):
            return None
        if head.method == "initialize" and not self._version and not self.heard:
            return self._initialized(head, line)
        if head.method == "notifications/initialized" and self._version:
            self.heard.append(line)
            return b""
        if head.method == "tools/list" and self._version and _plain(head.params):
            return answer(head.id, {"tools": specs()})
        if head.method == "resources/templates/list" and self._version and _plain(head.params):
            return answer(head.id, {"resourceTemplates": list(TEMPLATES)})
        return None

    def _initialized(self, head: Head, line: bytes) -> bytes | None:
        """A client that does not say who it is gets its answer from the SDK."""
        params = head.params if isinstance(head.params, dict) else {}
        asked = params.get("protocolVersion")
        known = isinstance(params.get("clientInfo"), dict) and isinstance(asked, str)
        if not known or head.id is None:
            return None
        self._version = str(asked) if asked in HANDSHAKES else HANDSHAKES[-1]
        self.heard.append(line)
        self.answered.append(head.id)
        return answer(head.id, initialized(self._version))


def initialized(version: str) -> dict[str, Any]:
    """The result of `initialize`."""
    return {
        "protocolVersion": version,
        "capabilities": CAPABILITIES,
        "serverInfo": {"name": NAME, "version": __version__},
        "instructions": INSTRUCTIONS,
    }


def _plain(params: Any) -> bool:
    return not params or set(params) <= {"_meta"}


def answer(number: int | str | float | None, result: dict[str, Any]) -> bytes:
    return msgspec.json.encode({"jsonrpc": "2.0", "id": number, "result": result}) + b"\n"


def complaint(number: int | str | float | None, code: int, message: str) -> bytes:
    error = {"code": code, "message": message}
    return msgspec.json.encode({"jsonrpc": "2.0", "id": number, "error": error}) + b"\n"


LONGEST: Final = 4 << 20
"""Bytes of one message that is worked on."""
_LONGEST_READ: Final = 128 << 20
"""Bytes of one message that is read to its end, so that it can be answered."""
_PIECE: Final = 1 << 16


class StdioTransport:
    """The client's end of the server: `lines` for the SDK to read, `write` for it to answer by."""

    def __init__(self, source: int, sink: int) -> None:
        self._source = source
        self._sink = sink
        self._greeter = Handshake()
        self._lock = threading.Lock()
        self._mouth = threading.Lock()
        self._early: list[bytes | None] = []
        self._pass_on: Callable[[bytes | None], None] | None = None
        self._quiet: list[int | str | float | None] = []

    def open(self) -> None:
        """Begin to listen. The thread ends with the process."""
        threading.Thread(target=self._listen, daemon=True, name="doorway").start()

    async def lines(self, check: Callable[[bytes], object]) -> AsyncIterator[str]:
        """All that the SDK must hear, from the first word on, if it can be read by `check`."""
        running = asyncio.get_running_loop()
        queue: asyncio.Queue[bytes | None] = asyncio.Queue()
        with self._lock:
            self._quiet = list(self._greeter.answered)
            for line in (*self._greeter.heard, *self._early):
                queue.put_nowait(line)
            self._pass_on = lambda line: _pass_on(running, queue, line)
        while (line := await queue.get()) is not None:
            try:
                check(line)
            except ValueError:
                head = msgspec.json.decode(line, type=Head)
                await asyncio.to_thread(
                    self._say, complaint(head.id, INVALID_REQUEST, "This is not an MCP message.")
                )
            else:
                yield line.decode(errors="replace")

    async def write(self, text: str) -> None:
        """An answer of the SDK; what the greeting has answered is not answered twice."""
        line = text.encode(errors="replace")
        if self._quiet and (number := _answered(line)) in self._quiet:
            self._quiet.remove(number)
            return
        await asyncio.to_thread(self._say, line)

    async def flush(self) -> None:
        """Nothing is held back."""

    def _listen(self) -> None:
        held = bytearray()
        while True:
            try:
                piece = os.read(self._source, _PIECE)
            except OSError:
                piece = b""
            if not piece:
                self._hand(None)
                return
            held += piece
            if b"\n" in piece:
                *whole, rest = held.split(b"\n")
                held = bytearray(rest)
                for line in whole:
                    self._take(bytes(line))
            elif len(held) > _LONGEST_READ:
                self._say(complaint(None, INVALID_REQUEST, "This message is too long."))
                self._hand(None)
                return

    def _take(self, line: bytes) -> None:
        if not line.strip():
            return
        problem = _problem(line)
        if problem:
            self._say(problem)
            return
        with self._lock:
            if self._pass_on is None:
                greeting = self._greeter.greet(line)
                if greeting is None:
                    self._early.append(line)
                elif greeting:
                    self._say(greeting)
                return
        self._hand(line)

    def _hand(self, line: bytes | None) -> None:
        with self._lock:
            if self._pass_on is None:
                self._early.append(line)
            else:
                self._pass_on(line)

    def _say(self, line: bytes) -> None:
        view = memoryview(line)
        try:
            with self._mouth:
                while view:
                    view = view[os.write(self._sink, view) :]
        except OSError:
            return  # whoever asked has gone; the end of its input will say so


def _problem(line: bytes) -> bytes:
    """The answer to a line that is no message, or too long a one."""
    try:
        head = msgspec.json.decode(line, type=Head)
    except (msgspec.ValidationError, RecursionError):
        return complaint(None, INVALID_REQUEST, "A message is a JSON-RPC 2.0 object.")
    except (msgspec.DecodeError, UnicodeDecodeError):
        return complaint(None, PARSE_ERROR, "This is not JSON.")
    if head.jsonrpc != "2.0":
        return complaint(head.id, INVALID_REQUEST, "A message has jsonrpc: 2.0.")
    if len(line) > LONGEST:
        said = (
            f"A message has at most {LONGEST:,} bytes, this one {len(line):,}; nothing was taken."
        )
        return complaint(head.id, INVALID_REQUEST, said)
    return b""


def _answered(line: bytes) -> int | str | float | None:
    head = msgspec.json.decode(line, type=Head)
    return None if head.method else head.id


def _pass_on(
    running: asyncio.AbstractEventLoop, queue: "asyncio.Queue[bytes | None]", line: bytes | None
) -> None:
    try:
        running.call_soon_threadsafe(queue.put_nowait, line)
    except RuntimeError:
        return  # the server has ended already
