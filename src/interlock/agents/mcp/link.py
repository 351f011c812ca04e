"""A worker's line to the coordinator: calls go out, answers come back, and it mends itself.

Knows the socket and its words. When the coordinator dies, calls under way fail with a sentence; the
next call, or a moment's patience while leases are held, finds the one that was started after it.
"""

import asyncio
import socket
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any, Final

from interlock.agents.mcp.pull_door import near
from interlock.agents.mcp.pull_words import (
    LONGEST,
    Call,
    Cancel,
    GiveUp,
    Hello,
    WorkerReply,
    line_of,
    read_answer,
)
from interlock.system.errors import StateError

PAUSE: Final = 0.25
"""Seconds between looks for a coordinator."""


class NoCoordinatorError(StateError):
    """No coordinator is at work."""


class CoordinatorClient:
    """One worker's connection, made when it is needed."""

    def __init__(self, folder: Path, worker: str, name: str = "") -> None:
        self.run_id: int | None = None
        self._folder = folder
        self._worker = worker
        self._name = name
        self._numbers = count(1)
        self._writer: asyncio.StreamWriter | None = None
        self._waiting: dict[int, asyncio.Future[WorkerReply]] = {}
        self._abandoned: set[int] = set()
        self._leases: set[int] = set()
        self._reading: asyncio.Task[None] | None = None
        self._keeping: asyncio.Task[None] | None = None
        self._connecting = asyncio.Lock()

    async def call(self, make: Callable[[int], Call]) -> dict[str, Any]:
        """What the coordinator answers; NoCoordinatorError if there is none, or it dies."""
        await self._connect()
        data = await self._call(make)
        self._note(data)
        return data

    async def close(self) -> None:
        for task in (self._keeping, self._reading):
            if task is not None:
                task.cancel()
        if self._writer is not None:
            self._writer.close()

    async def _call(self, make: Callable[[int], Call]) -> dict[str, Any]:
        number = next(self._numbers)
        waiting: asyncio.Future[WorkerReply] = asyncio.get_running_loop().create_future()
        self._waiting[number] = waiting
        try:
            self._send(make(number))
            answer = await waiting
        except asyncio.CancelledError:
            self._abandoned.add(number)
            with suppress(NoCoordinatorError):
                self._send(Cancel(call=number))
            raise
        finally:
            self._waiting.pop(number, None)
        if answer.error:
            raise StateError(answer.error)
        return answer.data

    def _send(self, call: Call) -> None:
        if self._writer is None or self._writer.is_closing():
            raise NoCoordinatorError
        self._writer.write(line_of(call))

    async def _connect(self) -> None:
        async with self._connecting:
            if self._writer is not None:
                return
            try:
                ours = _knock(self._folder)
                reader, writer = await asyncio.open_unix_connection(sock=ours, limit=LONGEST)
            except OSError:
                raise NoCoordinatorError from None
            self._writer = writer
            self._reading = asyncio.get_running_loop().create_task(self._listen(reader, writer))
            hello = await self._call(
                lambda number: Hello(call=number, worker=self._worker, name=self._name)
            )
            self.run_id = hello.get("run_id") or self.run_id

    async def _listen(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while line := await reader.readline():
                self._hear(read_answer(line))
        except (OSError, ValueError):
            pass  # cut off in the middle of a line: as good as hung up
        finally:
            writer.close()
            self._writer = None
            self._abandoned.clear()
            for waiting in self._waiting.values():
                if not waiting.done():
                    waiting.set_exception(NoCoordinatorError("the coordinator went away"))
            if self._leases and self._keeping is None:
                self._keeping = asyncio.get_running_loop().create_task(self._come_back())

    def _hear(self, answer: WorkerReply) -> None:
        waiting = self._waiting.get(answer.call)
        if waiting is not None and not waiting.done():
            waiting.set_result(answer)
        elif answer.call in self._abandoned:
            self._abandoned.discard(answer.call)
            self._give_back(answer.data)

    def _give_back(self, data: dict[str, Any]) -> None:
        """Work that came when nobody waited for it any more."""
        if data.get("available"):
            number, held = next(self._numbers), (data["dispatch_id"], data["lease"])
            with suppress(NoCoordinatorError):
                back = GiveUp(call=number, dispatch_id=held[0], lease=held[1], release=True)
                self._send(back)

    def _note(self, data: dict[str, Any]) -> None:
        """Remember what is held: it is a reason to look for a coordinator that comes back."""
        if data.get("available"):
            self._leases.add(data["dispatch_id"])
            self.run_id = data["run_id"]
        elif "accepted" in data and not data.get("open"):
            self._leases.discard(data["dispatch_id"])

    async def _come_back(self) -> None:
        """While something is held, be there when the coordinator is; else the lease is lost."""
        try:
            while self._leases and self._writer is None:
                await asyncio.sleep(PAUSE)
                with suppress(NoCoordinatorError, StateError):
                    await self._connect()
        finally:
            self._keeping = None


def _knock(folder: Path) -> socket.socket:
    ours = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        near(folder, ours.connect)
        ours.setblocking(False)
    except OSError:
        ours.close()
        raise
    return ours
