"""The line to an agent: JSON-RPC messages over its stdin and stdout, as the SDK's transport.

Knows what may come in at all: bounded lines, messages of the right build, requests that were
offered. What is neither reaches the SDK nor counts. Refuses to know what a message means.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Collection
from typing import Any, cast

import msgspec
from acp.schema import SessionNotification
from pydantic import ValidationError

MOST_LINE = 10 * 1024 * 1024
"""Bytes of one message."""
MOST_SAID = 256 * 1024 * 1024
"""Bytes of a whole conversation."""
MOST_ODD = 1_000
"""Lines that are no messages: greetings and logs that went to the wrong place are forgiven."""
MOST_UNREAD = 8 * 1024 * 1024
"""Bytes of answers that an agent asked for and does not read."""
UPDATE = "session/update"
_QUEUED = 512
_TURN = 64
_TAIL = 2_000
_NO_METHOD = {"code": -32601, "message": "Method not found"}


class AgentLine(asyncio.SubprocessProtocol):
    """One agent's process as its line. `broken` says why it cannot be used any more, `exited` that
    the process is no more; the two come in any order."""

    def __init__(self, offered: Collection[str], heard: Callable[[], None]) -> None:
        future = asyncio.get_running_loop().create_future
        self.broken: asyncio.Future[str] = future()
        self.exited: asyncio.Future[None] = future()
        self._silent: asyncio.Future[None] = future()
        self._gone: asyncio.Future[None] = future()
        self._offered = frozenset(offered)
        self._heard = heard
        self._lines: deque[bytes] = deque()
        self._rest = bytearray()
        self._more = asyncio.Event()
        self._over = False
        self._paused = False
        self._attached = {0, 1, 2}
        self._errors = b""
        self._said = self._odd = self._taken = 0
        self._transport: asyncio.SubprocessTransport

    @property
    def pid(self) -> int:
        return self._transport.get_pid()

    @property
    def exit_code(self) -> int | None:
        return self._transport.get_returncode()

    @property
    def complaints(self) -> str:
        """The end of what it said on stderr."""
        return self._errors.decode(errors="replace").strip()

    async def send(self, message: dict[str, Any]) -> None:
        """Hand a message over; one to an agent that is gone is lost, which `receive` will tell."""
        pipe = self._transport.get_pipe_transport(0)
        if 0 not in self._attached or not isinstance(pipe, asyncio.WriteTransport):
            return
        if "method" not in message and pipe.get_write_buffer_size() > MOST_UNREAD:
            self._break("it asks and asks, and reads no answer")
            return
        pipe.write(msgspec.json.encode(message, enc_hook=str) + b"\n")

    async def receive(self) -> dict[str, Any] | None:
        """The next message that may come in, or None at the end of the line."""
        while True:
            while self._lines:
                self._taken += 1
                if self._taken % _TURN == 0:
                    await asyncio.sleep(0)
                message = await self._message(self._lines.popleft())
                self._go_on()
                if message is not None:
                    return message
            if self._over:
                return None
            self._more.clear()
            await self._more.wait()

    async def close(self) -> None:
        """The SDK's word for the end; the process is ended by whoever started it."""
        self._over = True
        self._more.set()

    async def let_go(self) -> None:
        """After the process has ended: give its pipes back."""
        await self.exited
        pipe = self._transport.get_pipe_transport(0)
        if 0 in self._attached and isinstance(pipe, asyncio.WriteTransport):
            pipe.abort()
        self._transport.close()
        await self._gone

    async def last_words(self, patience: float) -> None:
        """Let what was said before the end arrive, if it does soon."""
        await asyncio.wait([self.exited, self._silent], timeout=patience)

    def connection_made(self, transport: Any) -> None:
        self._transport = transport

    def connection_lost(self, exc: Exception | None) -> None:
        _done(self._gone)

    def process_exited(self) -> None:
        _done(self.exited)

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        self._attached.discard(fd)
        if fd == 1:
            self._over = True
            self._more.set()
        if not self._attached & {1, 2}:
            _done(self._silent)

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        if fd != 1:
            self._errors = (self._errors + data)[-_TAIL:]
        elif not self._over:
            self._heard()
            self._take(data)

    def _take(self, data: bytes) -> None:
        self._said += len(data)
        self._rest += data
        longest = len(self._rest)
        if b"\n" in data:
            *lines, rest = bytes(self._rest).split(b"\n")
            self._rest = bytearray(rest)
            self._lines.extend(lines)
            self._more.set()
            longest = max(len(rest), *map(len, lines))
        if longest > MOST_LINE:
            self._break(f"it sent a message of more than {MOST_LINE:,} bytes")
        elif self._said > MOST_SAID:
            self._break(f"it said more than {MOST_SAID:,} bytes")
        elif len(self._lines) > _QUEUED:
            self._paused = True
            self._pipe(1).pause_reading()

    def _go_on(self) -> None:
        if self._paused and len(self._lines) < _QUEUED // 2 and 1 in self._attached:
            self._paused = False
            self._pipe(1).resume_reading()

    async def _message(self, raw: bytes) -> dict[str, Any] | None:
        if not raw.strip():
            return None
        try:
            found = msgspec.json.decode(raw)
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, dict) or not _well_built(found):
            self._odd += 1
            if self._odd > MOST_ODD:
                self._break(
                    "it does not speak the Agent Client Protocol: its output is no JSON-RPC"
                )
            return None
        return await self._admitted(found)

    async def _admitted(self, found: dict[str, Any]) -> dict[str, Any] | None:
        """Requests that were offered, updates that can be read, and every response."""
        if "method" not in found:
            return found
        if isinstance(params := found.get("params"), dict):
            # The SDK lays `_meta` over the arguments: it could name another session or tool.
            found["params"] = {name: params[name] for name in params if name != "_meta"}
        if "id" not in found:
            readable = found["method"] == UPDATE and _is_update(found.get("params"))
            return found if readable else None
        if found["method"] in self._offered:
            return found
        await self.send({"jsonrpc": "2.0", "id": found["id"], "error": _NO_METHOD})
        return None

    def _break(self, reason: str) -> None:
        if not self.broken.done():
            self.broken.set_result(reason)
        self._over = True
        self._lines.clear()
        self._rest.clear()
        self._more.set()
        if 1 in self._attached:
            self._pipe(1).close()

    def _pipe(self, fd: int) -> asyncio.ReadTransport:
        return cast(asyncio.ReadTransport, self._transport.get_pipe_transport(fd))


def _well_built(message: dict[str, Any]) -> bool:
    """Whether it is a request, a notification or a response as JSON-RPC has them."""
    number = message.get("id", 0)
    if isinstance(number, bool) or not isinstance(number, int | str):
        return False
    if "method" in message:
        return isinstance(message["method"], str)
    error = message.get("error", {})
    if "error" in message and (not isinstance(error, dict) or "result" in message):
        return False
    return "id" in message and isinstance(number, int)


def _is_update(params: object) -> bool:
    try:
        SessionNotification.model_validate(params)
    except (ValidationError, RecursionError):
        return False
    return True


def _done(future: "asyncio.Future[None]") -> None:
    if not future.done():
        future.set_result(None)
