"""An ACP agent's process with its pipes kept open, and the line of JSON-RPC messages over them.

`AcpProcess` is born, read, written to and ended as a tree, by the supervisor's own parts.
`AcpTransport` is the SDK's transport over it: only bounded lines, well-built messages and requests
that were offered come in; anything else neither reaches the SDK nor counts. What a message means is
not known here.
"""

import asyncio
import os
import signal
from collections import deque
from collections.abc import Callable, Collection
from contextlib import ExitStack
from subprocess import Popen
from typing import IO, Any

import msgspec
from acp.schema import SessionNotification
from pydantic import ValidationError

from interlock.agents.cli.orphans import describe_owner
from interlock.agents.cli.process import ProcessSpec, kill_unwatched, start_process
from interlock.agents.cli.tag import build_tag_variables, parse_tag
from interlock.system.errors import SourceError
from interlock.system.process_table import (
    Process,
    ProcessSnapshot,
    ProcessTable,
    SeenProcess,
    find_ancestors,
    find_relatives,
    read_process,
)
from interlock.system.process_tree import (
    HAS_HANDLES,
    Clock,
    Inlet,
    ProcessExit,
    kill_tree,
    send_signal,
)

_MAX_STDERR = 2_000


class OutputReader(Inlet):
    """What the agent prints; told when it closes that."""

    def __init__(
        self, pipe: IO[bytes] | None, take: Callable[[bytes], None], ended: Callable[[], None]
    ) -> None:
        self._on_close = ended
        super().__init__(pipe, take)

    def close(self) -> None:
        was_open = self.is_open
        super().close()
        if was_open:
            self._on_close()


class InputWriter:
    """What the agent reads, written as fast as it takes it; what it does not take waits."""

    def __init__(self, pipe: IO[bytes] | None) -> None:
        assert pipe is not None  # noqa: S101
        self._loop = asyncio.get_running_loop()
        self._pipe = pipe
        self._pending = bytearray()
        self.is_open = True
        os.set_blocking(pipe.fileno(), False)

    @property
    def unread_bytes(self) -> int:
        return len(self._pending)

    def write(self, data: bytes) -> None:
        """An agent that is gone, or does not want to read, is noticed elsewhere."""
        if self.is_open:
            waits = bool(self._pending)
            self._pending += data
            if not waits:
                self._flush()
                if self.is_open and self._pending:
                    self._loop.add_writer(self._pipe.fileno(), self._flush)

    def close(self) -> None:
        if self.is_open:
            self.is_open = False
            self._loop.remove_writer(self._pipe.fileno())
            self._pipe.close()

    def _flush(self) -> None:
        try:
            while self._pending:
                written = os.write(
                    self._pipe.fileno(), memoryview(self._pending)[:65_536].tobytes()
                )
                del self._pending[:written]
        except BlockingIOError:
            return
        except OSError:
            self.close()
            return
        self._loop.remove_writer(self._pipe.fileno())


class AcpProcess:
    """One that was started; SourceError if it cannot be."""

    def __init__(
        self,
        start: ProcessSpec,
        lookout: ProcessSnapshot,
        take: Callable[[bytes], None],
        ended: Callable[[], None],
    ) -> None:
        self.exited: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._tag = start.tag
        self._snapshot = lookout
        self._stderr = b""
        self._known: set[Process] = set()
        child = start_process(
            start, build_tag_variables(parse_tag(start.tag), describe_owner(), os.environ)
        )
        with ExitStack() as undo:
            undo.callback(kill_unwatched, child)
            try:
                self._attach(child, undo, take, ended)
            except OSError as error:
                raise SourceError(
                    f"{start.argv[0]!r} cannot be watched: {error.strerror}; "
                    "run fewer agents at once"
                ) from error
            undo.pop_all()

    def _attach(
        self,
        child: "Popen[bytes]",
        undo: ExitStack,
        take: Callable[[bytes], None],
        ended: Callable[[], None],
    ) -> None:
        seen = read_process(child.pid)
        self.process = seen.process if seen else Process(child.pid, 0)
        self._exit = ProcessExit(child, self._on_exit)
        undo.callback(self._exit.let_go)
        self._err = Inlet(child.stderr, self._note_stderr)
        undo.callback(self._err.close)
        self.stdin = InputWriter(child.stdin)
        undo.callback(self.stdin.close)
        self.stdout = OutputReader(child.stdout, take, ended)

    @property
    def has_exited(self) -> bool:
        return self._exit.has_come

    @property
    def stderr_tail(self) -> str:
        """The end of what it said on stderr."""
        self._err.drain()
        return self._stderr.decode(errors="replace").strip()

    def find_family(self, people: ProcessTable) -> dict[Process, SeenProcess]:
        """Remembered from look to look: one that sheds its tag and its parents stays known."""
        found = find_relatives(people, self._tag, self.process, self._known)
        for process in find_ancestors(people, os.getpid()):
            found.pop(process, None)
        self._known = set(found)
        return found

    async def end(self, clock: Clock, grace: float) -> int | None:
        """End it with everything it started, and give back what it held; its exit code."""
        self.stdout.close()
        kin = await self._find_family(stop=False)
        if kin:
            group = self.process.pid if HAS_HANDLES else None
            await kill_tree(kin, self._find_family, clock, grace, group)
        self.stdin.close()
        self._err.close()
        return self._exit.bury()

    async def _find_family(self, stop: bool) -> dict[Process, SeenProcess]:
        return self.find_family(await self._snapshot.take(self._suspend if stop else None))

    def _suspend(self, seen: SeenProcess) -> None:
        if self._tag in seen.tags and seen.process.pid != os.getpid():
            send_signal(seen.process, signal.SIGSTOP)

    def _note_stderr(self, data: bytes) -> None:
        self._stderr = (self._stderr + data)[-_MAX_STDERR:]

    def _on_exit(self) -> None:
        if not self.exited.done():
            self.exited.set_result(None)


MAX_LINE = 10 * 1024 * 1024
"""Bytes of one message."""
MAX_OUTPUT = 256 * 1024 * 1024
"""Bytes of a whole conversation."""
MAX_BAD_LINES = 1_000
"""Lines that are no messages: greetings and logs that went to the wrong place are forgiven."""
MAX_UNREAD = 8 * 1024 * 1024
"""Bytes of answers that an agent asked for and does not read."""
UPDATE_METHOD = "session/update"
_METHOD_NOT_FOUND = {"code": -32601, "message": "Method not found"}


class AcpTransport:
    """One agent's stdout and stdin. `broken` says why it cannot be used any more."""

    def __init__(self, offered: Collection[str], heard: Callable[[], None]) -> None:
        self.broken: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._allowed_requests = frozenset(offered)
        self._on_output = heard
        self._lines: deque[bytes] = deque()
        self._partial_line = bytearray()
        self._has_lines = asyncio.Event()
        self._has_ended = False
        self._received_bytes = self._bad_lines = 0
        self._stdin: InputWriter | None = None

    def connect(self, pen: InputWriter) -> None:
        """From now on what is sent goes there."""
        self._stdin = pen

    async def send(self, message: dict[str, Any]) -> None:
        """Hand a message over; one to an agent that is gone is lost, which `receive` will tell."""
        if self._stdin is None:
            return
        if "method" not in message and self._stdin.unread_bytes > MAX_UNREAD:
            self._fail("it keeps sending requests without reading the answers")
            return
        self._stdin.write(msgspec.json.encode(message, enc_hook=str) + b"\n")

    async def receive(self) -> dict[str, Any] | None:
        """The next message that may come in, or None at the end of the line."""
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
        """The SDK's word for the end; the process is ended by whoever started it."""
        self.end_input()

    def end_input(self) -> None:
        """Nothing more will come; what is here is still read."""
        self._has_ended = True
        self._has_lines.set()

    def feed(self, data: bytes) -> None:
        """Bytes of its stdout, as they come: a chunk for each turn of the loop."""
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
        """Requests that were offered, updates that can be read, and every response."""
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


def _is_readable_update(params: object) -> bool:
    try:
        SessionNotification.model_validate(params)
    except (ValidationError, RecursionError):
        return False
    return True
