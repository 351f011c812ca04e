"""The agent `exec`: any command. The prompt goes to its stdin, its stdout is the answer.

Each ask is one process in a session and process group of its own, ended as a group. What the exit
code and the output mean is told as a reply; the command learns its ids from INTERLOCK_* variables.
"""

import asyncio
import os
import signal
from asyncio.subprocess import PIPE, Process
from collections.abc import Mapping, Sequence
from contextlib import suppress

from interlock.core.circuit import CRASH, UNREADABLE
from interlock.dispatch.carrier import MAX_ANSWER, Ask, Deliver, Reply

_TAIL = 2_000
_CHUNK = 64 * 1024
_GRACE = 2.0


class CommandAgent:
    """A carrier that starts one process for each ask."""

    def __init__(self, argv: Sequence[str], environment: Mapping[str, str]) -> None:
        self._argv = tuple(argv)
        self._environment = dict(environment)
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._deliver: Deliver

    def start(self, deliver: Deliver) -> None:
        self._deliver = deliver

    def send(self, asks: Sequence[Ask]) -> None:
        for ask in asks:
            if ask.dispatch_id not in self._tasks:
                self._tasks[ask.dispatch_id] = asyncio.create_task(self._carry(ask))

    def settled(self, dispatch_id: int, error: str = "") -> None:
        task = self._tasks.get(dispatch_id)
        if task is not None:
            task.cancel()

    async def close(self) -> None:
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _carry(self, ask: Ask) -> None:
        try:
            self._deliver(await self._answer(ask))
        finally:
            del self._tasks[ask.dispatch_id]

    async def _answer(self, ask: Ask) -> Reply:
        try:
            process = await asyncio.create_subprocess_exec(
                *self._argv,
                stdin=PIPE,
                stdout=PIPE,
                stderr=PIPE,
                env={**self._environment, **_variables(ask)},
                start_new_session=True,
            )
        except OSError as error:
            reason = f"{self._argv[0]!r} cannot be started: {error.strerror}"
            return Reply(ask.dispatch_id, failure=CRASH, reason=reason)
        try:
            return await self._converse(process, ask)
        finally:
            await _end(process)

    async def _converse(self, process: Process, ask: Ask) -> Reply:
        writing = asyncio.create_task(_write(process, ask.prompt.encode()))
        errors = asyncio.create_task(_tail(process))
        try:
            answer = await _read(process)
            if len(answer) > MAX_ANSWER:
                reason = f"the answer is longer than {MAX_ANSWER:,} bytes"
                return Reply(ask.dispatch_id, failure=UNREADABLE, reason=reason)
            tail = await errors
            code = await process.wait()
        finally:
            writing.cancel()
            errors.cancel()
        if code != 0:
            reason = f"exit code {code}" if code > 0 else f"killed by signal {-code}"
            return Reply(ask.dispatch_id, failure=CRASH, reason=f"{reason}{tail}")
        return Reply(ask.dispatch_id, answer)


def _variables(ask: Ask) -> dict[str, str]:
    return {
        "INTERLOCK_DISPATCH_ID": str(ask.dispatch_id),
        "INTERLOCK_RUN_ID": str(ask.run_id),
        "INTERLOCK_CASE_ID": ask.case_id,
        "INTERLOCK_STEP": ask.step,
        "INTERLOCK_ATTEMPT": str(ask.attempt),
        "INTERLOCK_ROLE": ask.role,
    }


async def _write(process: Process, prompt: bytes) -> None:
    """A command may answer without reading its prompt: a closed pipe is no fault."""
    assert process.stdin is not None  # noqa: S101
    with suppress(BrokenPipeError, ConnectionResetError):
        process.stdin.write(prompt)
        await process.stdin.drain()
        process.stdin.close()
        await process.stdin.wait_closed()


async def _read(process: Process) -> bytes:
    assert process.stdout is not None  # noqa: S101
    parts = bytearray()
    while len(parts) <= MAX_ANSWER:
        part = await process.stdout.read(_CHUNK)
        if not part:
            break
        parts += part
    return bytes(parts)


async def _tail(process: Process) -> str:
    assert process.stderr is not None  # noqa: S101
    kept = b""
    while part := await process.stderr.read(_CHUNK):
        kept = (kept + part)[-_TAIL:]
    words = kept.decode(errors="replace").strip()
    return f": {words}" if words else ""


async def _end(process: Process) -> None:
    """The whole group goes, also what the command left running behind it."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGTERM)
    try:
        async with asyncio.timeout(_GRACE):
            await process.wait()
    except TimeoutError:
        pass
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    await process.wait()
