"""An ACP agent's process, and the JSON-RPC messages over its pipes.

`AcpProcess` is started, read, written to and ended as a tree, with the supervisor's own parts.
`AcpTransport` is the SDK's transport over it. It passes on only bounded lines, well-formed messages
and requests that were offered.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Collection
from contextlib import ExitStack
from subprocess import Popen
from typing import Any

import msgspec
from acp.schema import SessionNotification
from pydantic import ValidationError

from interlock.carriers.cli.process import ProcessFamily, ProcessSpec
from interlock.system.clock import Clock
from interlock.system.process_table import ProcessSnapshot
from interlock.system.process_tree import PipeReader, PipeWriter

_MAX_STDERR = 2_000


class AcpProcess:
    """An agent's process with open pipes; SourceError if it cannot be started."""

    def __init__(
        self,
        spec: ProcessSpec,
        snapshot: ProcessSnapshot,
        on_output: Callable[[bytes], None],
        on_output_end: Callable[[], None],
    ) -> None:
        self.exited: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._stderr = b""
        self.strays = 0
        """The processes outside its session that had to be ended with it."""

        def attach(child: "Popen[bytes]", undo: ExitStack) -> None:
            self._stderr_pipe = PipeReader(child.stderr, self._note_stderr)
            undo.callback(self._stderr_pipe.close)
            self.stdin = PipeWriter(child.stdin)
            undo.callback(self.stdin.close)
            self.stdout = PipeReader(child.stdout, on_output, on_output_end)

        self.family = ProcessFamily(spec, snapshot, self._on_exit, attach, self._close_pipes)

    @property
    def stderr_tail(self) -> str:
        """Return the end of the agent's stderr."""
        self._stderr_pipe.drain()
        return self._stderr.decode(errors="replace").strip()

    async def end(self, clock: Clock, grace: float) -> int | None:
        """End the agent with everything it started, and return its exit code."""
        self.stdout.close()
        members = await self.family.find()
        if members:
            await self.family.kill(members, clock, grace)
        leader = self.family.leader.pid
        self.strays = sum(seen.session != leader for seen in members.values())
        self._close_pipes()
        return self.family.reap()

    def _close_pipes(self) -> None:
        self.stdout.close()
        self.stdin.close()
        self._stderr_pipe.close()

    def _note_stderr(self, data: bytes) -> None:
        self._stderr = (self._stderr + data)[-_MAX_STDERR:]

    def _on_exit(self) -> None:
        if not self.exited.done():
            self.exited.set_result(None)


MAX_LINE = 10 * 1024 * 1024
"""The longest message, in bytes."""
MAX_OUTPUT = 256 * 1024 * 1024
"""The longest conversation, in bytes."""
MAX_BAD_LINES = 1_000
"""The number of lines that may be no messages, such as greetings and logs."""
MAX_UNREAD = 8 * 1024 * 1024
"""The bytes of answers that an agent may leave unread."""
UPDATE_METHOD = "session/update"
_METHOD_NOT_FOUND = {"code": -32601, "message": "Method not found"}


class AcpTransport:
    """The messages over one agent's stdout and stdin; `broken` says why they ended."""

    def __init__(self, offered: Collection[str], on_output: Callable[[], None]) -> None:
        self.broken: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._allowed_requests = frozenset(offered)
        self._on_output = on_output
        self._lines: deque[bytes] = deque()
        self._partial_line = bytearray()
        self._has_lines = asyncio.Event()
        self._has_ended = False
        self._received_bytes = self._bad_lines = 0
        self._stdin: PipeWriter | None = None

    def connect(self, stdin: PipeWriter) -> None:
        """Write messages there from now on."""
        self._stdin = stdin

    async def send(self, message: dict[str, Any]) -> None:
        """Send a message; one to an agent that is gone is lost, as `receive` will show."""
        if self._stdin is None:
            return
        if "method" not in message and self._stdin.unread_bytes > MAX_UNREAD:
            self._fail("it keeps sending requests without reading the answers")
            return
        self._stdin.write(msgspec.json.encode(message, enc_hook=str) + b"\n")

    async def receive(self) -> dict[str, Any] | None:
        """Return the next message that may come in, or None at the end."""
        while True:
            while self._lines:
                message = await self._decode_message(self._lines.popleft())
                if message is not None:
                    return message
            if self._has_ended:
                return None
            self._has_lines.clear()
            await self._has_lines.wait()

    async def close(self) -> None:
        """Do nothing: the process is ended by the code that started it."""
        self.end_input()

    def end_input(self) -> None:
        """Note that nothing more will come; messages that are here are still read."""
        self._has_ended = True
        self._has_lines.set()

    def feed(self, data: bytes) -> None:
        """Take a chunk of the agent's stdout."""
        if self._has_ended:
            return
        self._on_output()
        self._received_bytes += len(data)
        self._partial_line += data
        longest = len(self._partial_line)
        if b"\n" in data:
            *lines, rest = bytes(self._partial_line).split(b"\n")
            self._partial_line = bytearray(rest)
            self._lines.extend(lines)
            self._has_lines.set()
            longest = max(len(rest), *map(len, lines))
        if longest > MAX_LINE:
            self._fail(f"it sent a message of more than {MAX_LINE:,} bytes")
        elif self._received_bytes > MAX_OUTPUT:
            self._fail(f"it sent more than {MAX_OUTPUT:,} bytes")

    async def _decode_message(self, raw: bytes) -> dict[str, Any] | None:
        if not raw.strip():
            return None
        try:
            found = msgspec.json.decode(raw)
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, dict) or not _is_json_rpc(found):
            self._bad_lines += 1
            if self._bad_lines > MAX_BAD_LINES:
                self._fail(
                    "it does not speak the Agent Client Protocol: its output is not JSON-RPC"
                )
            return None
        return await self._filter_message(found)

    async def _filter_message(self, found: dict[str, Any]) -> dict[str, Any] | None:
        """Return a request that was offered, an update that can be read, or any response; None for
        other messages."""
        if "method" not in found:
            return found
        if isinstance(params := found.get("params"), dict):
            # The SDK lays `_meta` over the arguments: it could name another session or tool.
            found["params"] = {name: params[name] for name in params if name != "_meta"}
        if "id" not in found:
            readable = found["method"] == UPDATE_METHOD and _is_readable_update(found.get("params"))
            return found if readable else None
        if found["method"] in self._allowed_requests:
            return found
        await self.send({"jsonrpc": "2.0", "id": found["id"], "error": _METHOD_NOT_FOUND})
        return None

    def _fail(self, reason: str) -> None:
        if not self.broken.done():
            self.broken.set_result(reason)
        self._lines.clear()
        self._partial_line.clear()
        self.end_input()


def _is_json_rpc(message: dict[str, Any]) -> bool:
    """Return whether it is a request, a notification or a response of JSON-RPC."""
    number = message.get("id", 0)
    if isinstance(number, bool) or not isinstance(number, int | str):
        return False
    if "method" in message:
        return isinstance(message["method"], str)
    error = message.get("error", {})
    if "error" in message and (not isinstance(error, dict) or "result" in message):
        return False
    return "id" in message and isinstance(number, int)


def _is_readable_update(params: object) -> bool:
    try:
        SessionNotification.model_validate(params)
    except (ValidationError, RecursionError):
        return False
    return True
