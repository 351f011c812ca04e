"""Lines from the agent's client and back: read in a thread, greeted until the SDK is there.

Knows how long a line may be and what to answer to one that is no message. Refuses to know tools.
"""

import asyncio
import os
import threading
from collections.abc import AsyncIterator, Callable
from typing import Final

import msgspec

from interlock.agents.mcp.greeting import INVALID_REQUEST, PARSE_ERROR, Handshake, Head, complaint

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
                    self._say, complaint(head.id, INVALID_REQUEST, "This is no message of MCP.")
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
                self._say(complaint(None, INVALID_REQUEST, "This message has no end."))
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
        return complaint(None, PARSE_ERROR, "This is no JSON.")
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
