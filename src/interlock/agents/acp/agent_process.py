"""An agent's process with its pipes kept open, and everything it started.

Knows how a conversation's process is born, read, written to and ended as a tree. It shares the
supervisor's parts, but the stream stays open both ways. Refuses to know what is said.
"""

import asyncio
import os
import signal
from collections.abc import Callable
from contextlib import ExitStack
from subprocess import Popen
from typing import IO

from interlock.agents.cli.start import ProcessSpec, abandon, owner, spawn
from interlock.agents.cli.tag import checked, variables
from interlock.system.census import Census, Process, SeenProcess, look
from interlock.system.errors import SourceError
from interlock.system.exits import ProcessExit
from interlock.system.kinship import family, line_above
from interlock.system.lookout import ProcessSnapshot
from interlock.system.pipes import Inlet
from interlock.system.signals import HAS_HANDLES, send
from interlock.system.supervise_tree import Clock, fell

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
                why = f"{start.argv[0]!r} cannot be watched: {error.strerror}; run fewer"
                raise SourceError(why) from error
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
            await fell(kin, self._find, clock, grace, group)
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
