"""The agent `exec`: any command. The prompt goes to its stdin, its stdout is the answer.

Each ask is one process in a session and process group of its own, ended as a group. What the exit
code and the output mean is told as a reply; the command learns its ids from INTERLOCK_* variables.
"""

import asyncio
import os
import signal
from asyncio.subprocess import PIPE
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, cast

from interlock.core.circuit import CRASH, UNREADABLE
from interlock.dispatch.carrier import MAX_ANSWER, Ask, Deliver, Reply

_TAIL = 2_000
_GRACE = 2.0


class CommandAgent:
    """A carrier that starts one process for each ask."""

    def __init__(self, argv: Sequence[str], environment: Mapping[str, str]) -> None:
        self._argv = tuple(argv)
        self._environment = dict(environment)
        self._talks: dict[int, _Talk] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._deliver: Deliver

    def start(self, deliver: Deliver) -> None:
        self._deliver = deliver

    def send(self, asks: Sequence[Ask]) -> None:
        for ask in asks:
            if ask.dispatch_id not in self._talks:
                talk = self._talks[ask.dispatch_id] = _Talk()
                task = asyncio.create_task(self._carry(ask, talk))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)

    def settled(self, dispatch_id: int, error: str = "") -> None:
        talk = self._talks.pop(dispatch_id, None)
        if talk is not None:
            talk.hang_up()

    async def close(self) -> None:
        for dispatch_id in list(self._talks):
            self.settled(dispatch_id)
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _carry(self, ask: Ask, talk: "_Talk") -> None:
        reply = await self._answer(ask, talk)
        if self._talks.get(ask.dispatch_id) is talk:
            del self._talks[ask.dispatch_id]
            self._deliver(reply)

    async def _answer(self, ask: Ask, talk: "_Talk") -> Reply:
        try:
            await asyncio.get_running_loop().subprocess_exec(
                lambda: talk,
                *self._argv,
                stdin=PIPE,
                stdout=PIPE,
                stderr=PIPE,
                env={**self._environment, **variables_of(ask)},
                start_new_session=True,
            )
        except OSError as error:
            reason = f"{self._argv[0]!r} cannot be started: {error.strerror}"
            return Reply(ask.dispatch_id, failure=CRASH, reason=reason)
        try:
            talk.tell(ask.prompt.encode())
            await talk.over
            return await talk.reply(ask.dispatch_id)
        finally:
            await talk.end()


class _Talk(asyncio.SubprocessProtocol):
    """One process and what it says. Over when it exits, says too much, or is not needed any more;
    what it leaves running in its group ends with it."""

    def __init__(self) -> None:
        future = asyncio.get_running_loop().create_future
        self.over: asyncio.Future[None] = future()
        self._exited: asyncio.Future[None] = future()
        self._silent: asyncio.Future[None] = future()
        self._let_go: asyncio.Future[None] = future()
        self._answer = bytearray()
        self._errors = b""
        self._attached = {0, 1, 2}
        self._transport: asyncio.SubprocessTransport

    def connection_made(self, transport: Any) -> None:
        self._transport = transport

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        if fd == 1 and len(self._answer) <= MAX_ANSWER:
            self._answer += data
            if len(self._answer) > MAX_ANSWER:
                self._pipe(fd).close()
                _done(self.over)
        elif fd != 1:
            self._errors = (self._errors + data)[-_TAIL:]

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        self._attached.discard(fd)
        if not self._attached & {1, 2}:
            _done(self._silent)

    def connection_lost(self, exc: Exception | None) -> None:
        _done(self._let_go)

    def process_exited(self) -> None:
        _done(self._exited)
        _done(self.over)

    def hang_up(self) -> None:
        _done(self.over)

    def tell(self, prompt: bytes) -> None:
        """A command may answer without reading its prompt: a closed pipe is no fault."""
        self._stdin().write(prompt)
        self._stdin().close()

    async def reply(self, dispatch_id: int) -> Reply:
        if len(self._answer) > MAX_ANSWER:
            reason = f"the answer is longer than {MAX_ANSWER:,} bytes"
            return Reply(dispatch_id, failure=UNREADABLE, reason=reason)
        if self._exited.done():
            self._signal(signal.SIGKILL)
            await asyncio.wait([self._silent], timeout=_GRACE)
        code = self._transport.get_returncode()
        if code:
            reason = f"exit code {code}" if code > 0 else f"killed by signal {-code}"
            words = self._errors.decode(errors="replace").strip()
            reason += f": {words}" if words else ""
            return Reply(dispatch_id, failure=CRASH, reason=reason)
        return Reply(dispatch_id, bytes(self._answer))

    async def end(self) -> None:
        """The whole group goes, also what the command left running behind it."""
        if not self._exited.done():
            self._signal(signal.SIGTERM)
            await asyncio.wait([self._exited], timeout=_GRACE)
        self._signal(signal.SIGKILL)
        await self._exited
        if 0 in self._attached:
            self._stdin().abort()
        self._transport.close()
        await self._let_go

    def _signal(self, number: int) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._transport.get_pid(), number)

    def _stdin(self) -> asyncio.WriteTransport:
        return cast(asyncio.WriteTransport, self._pipe(0))

    def _pipe(self, fd: int) -> asyncio.BaseTransport:
        pipe = self._transport.get_pipe_transport(fd)
        assert pipe is not None  # noqa: S101
        return pipe


def _done(future: "asyncio.Future[None]") -> None:
    if not future.done():
        future.set_result(None)


def variables_of(ask: Ask) -> dict[str, str]:
    return {
        "INTERLOCK_DISPATCH_ID": str(ask.dispatch_id),
        "INTERLOCK_RUN_ID": str(ask.run_id),
        "INTERLOCK_CASE_ID": ask.case_id,
        "INTERLOCK_STEP": ask.step,
        "INTERLOCK_ATTEMPT": str(ask.attempt),
        "INTERLOCK_ROLE": ask.role,
    }
