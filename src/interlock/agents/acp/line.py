"""The line to an agent: JSON-RPC messages over its stdin and stdout, as the SDK's transport.

Knows what may come in at all: bounded lines, messages of the right build, requests that were
offered. What is neither reaches the SDK nor counts. Refuses to know what a message means.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Collection
from typing import Any

import msgspec
from acp.schema import SessionNotification
from pydantic import ValidationError

from interlock.agents.acp.agent_process import InputWriter

MOST_LINE = 10 * 1024 * 1024
"""Bytes of one message."""
MOST_SAID = 256 * 1024 * 1024
"""Bytes of a whole conversation."""
MOST_ODD = 1_000
"""Lines that are no messages: greetings and logs that went to the wrong place are forgiven."""
MOST_UNREAD = 8 * 1024 * 1024
"""Bytes of answers that an agent asked for and does not read."""
UPDATE = "session/update"
_NO_METHOD = {"code": -32601, "message": "Method not found"}


class AcpTransport:
    """One agent's stdout and stdin. `broken` says why it cannot be used any more."""

    def __init__(self, offered: Collection[str], heard: Callable[[], None]) -> None:
        self.broken: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._offered = frozenset(offered)
        self._heard = heard
        self._lines: deque[bytes] = deque()
        self._rest = bytearray()
        self._more = asyncio.Event()
        self._over = False
        self._said = self._odd = 0
        self._pen: InputWriter | None = None

    def connect(self, pen: InputWriter) -> None:
        """From now on what is sent goes there."""
        self._pen = pen

    async def send(self, message: dict[str, Any]) -> None:
        """Hand a message over; one to an agent that is gone is lost, which `receive` will tell."""
        if self._pen is None:
            return
        if "method" not in message and self._pen.unread > MOST_UNREAD:
            self._break("it asks and asks, and reads no answer")
            return
        self._pen.write(msgspec.json.encode(message, enc_hook=str) + b"\n")

    async def receive(self) -> dict[str, Any] | None:
        """The next message that may come in, or None at the end of the line."""
        while True:
            while self._lines:
                message = await self._message(self._lines.popleft())
                if message is not None:
                    return message
            if self._over:
                return None
            self._more.clear()
            await self._more.wait()

    async def close(self) -> None:
        """The SDK's word for the end; the process is ended by whoever started it."""
        self.hang_up()

    def hang_up(self) -> None:
        """Nothing more will come; what is here is still read."""
        self._over = True
        self._more.set()

    def take(self, data: bytes) -> None:
        """Bytes of its stdout, as they come: a chunk for each turn of the loop."""
        if self._over:
            return
        self._heard()
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
        self._lines.clear()
        self._rest.clear()
        self.hang_up()


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
