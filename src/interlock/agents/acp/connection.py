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

from interlock.agents.cli.orphans import owner
from interlock.agents.cli.process import ProcessSpec, abandon, spawn
from interlock.agents.cli.tag import checked, variables
from interlock.system.errors import SourceError
from interlock.system.process_table import (
    Census,
    Process,
    ProcessSnapshot,
    SeenProcess,
    family,
    line_above,
    look,
)
from interlock.system.process_tree import HAS_HANDLES, Clock, Inlet, ProcessExit, kill_tree, send

_TAIL = 2_000


class OutputReader(Inlet):
    """What the agent prints; told when it closes that."""

    def __init__(
        self, pipe: IO[bytes] | None, take: Callable[[bytes], None], ended: Callable[[], None]
    ) -> None:
        self._ended = ended
        super().__init__(pipe, take)

    def close(self) -> None:
        was_open = self.is_open
        super().close()
        if was_open:
            self._ended()


class InputWriter:
    """What the agent reads, written as fast as it takes it; what it does not take waits."""

    def __init__(self, pipe: IO[bytes] | None) -> None:
        assert pipe is not None  # noqa: S101
        self._loop = asyncio.get_running_loop()
        self._pipe = pipe
        self._rest = bytearray()
        self.is_open = True
        os.set_blocking(pipe.fileno(), False)

    @property
    def unread(self) -> int:
        return len(self._rest)

    def write(self, data: bytes) -> None:
        """An agent that is gone, or does not want to read, is noticed elsewhere."""
        if self.is_open:
            waits = bool(self._rest)
            self._rest += data
            if not waits:
                self._write()
                if self.is_open and self._rest:
                    self._loop.add_writer(self._pipe.fileno(), self._write)

    def close(self) -> None:
        if self.is_open:
            self.is_open = False
            self._loop.remove_writer(self._pipe.fileno())
            self._pipe.close()

    def _write(self) -> None:
        try:
            while self._rest:
                written = os.write(self._pipe.fileno(), memoryview(self._rest)[:65_536].tobytes())
                del self._rest[:written]
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
        self._lookout = lookout
        self._errors = b""
        self._known: set[Process] = set()
        child = spawn(start, variables(checked(start.tag), owner(), os.environ))
        with ExitStack() as undo:
            undo.callback(abandon, child)
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
        seen = look(child.pid)
        self.process = seen.process if seen else Process(child.pid, 0)
        self._exit = ProcessExit(child, self._exits)
        undo.callback(self._exit.let_go)
        self._err = Inlet(child.stderr, self._murmur)
        undo.callback(self._err.close)
        self.pen = InputWriter(child.stdin)
        undo.callback(self.pen.close)
        self.ear = OutputReader(child.stdout, take, ended)

    @property
    def has_exited(self) -> bool:
        return self._exit.has_come

    @property
    def complaints(self) -> str:
        """The end of what it said on stderr."""
        self._err.drain()
        return self._errors.decode(errors="replace").strip()

    def kin(self, people: Census) -> dict[Process, SeenProcess]:
        """Remembered from look to look: one that sheds its tag and its parents stays known."""
        found = family(people, self._tag, self.process, self._known)
        for process in line_above(people, os.getpid()):
            found.pop(process, None)
        self._known = set(found)
        return found

    async def end(self, clock: Clock, grace: float) -> int | None:
        """End it with everything it started, and give back what it held; its exit code."""
        self.ear.close()
        kin = await self._find(stop=False)
        if kin:
            group = self.process.pid if HAS_HANDLES else None
            await kill_tree(kin, self._find, clock, grace, group)
        self.pen.close()
        self._err.close()
        return self._exit.bury()

    async def _find(self, stop: bool) -> dict[Process, SeenProcess]:
        return self.kin(await self._lookout.look(self._stop_it if stop else None))

    def _stop_it(self, seen: SeenProcess) -> None:
        if self._tag in seen.tags and seen.process.pid != os.getpid():
            send(seen.process, signal.SIGSTOP)

    def _murmur(self, data: bytes) -> None:
        self._errors = (self._errors + data)[-_TAIL:]

    def _exits(self) -> None:
        if not self.exited.done():
            self.exited.set_result(None)


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
            self._break("it keeps sending requests without reading the answers")
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
            self._break(f"it sent more than {MOST_SAID:,} bytes")

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
                    "it does not speak the Agent Client Protocol: its output is not JSON-RPC"
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
