"""The socket between workers and the coordinator, in a folder of this user alone.

`WorkerSocket` is the coordinator's end: lines, calls that take their time, and when a worker has
gone. `CoordinatorClient` is a worker's end and reconnects: when the coordinator dies, calls under
way fail with a sentence; the next call finds the coordinator that was started after it, and while
leases are held the client looks for it by itself.
"""

import asyncio
import os
import socket
import stat
import struct
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any, Final, Protocol

from interlock.carriers.background import report_error, report_failure
from interlock.carriers.mcp.messages import (
    MAX_LINE,
    RELEASE,
    Call,
    CancelCall,
    HelloCall,
    SignalCall,
    WorkerReply,
    decode_call,
    decode_reply,
    encode_call,
    encode_line,
)
from interlock.system.errors import InterlockError, SourceError, StateError

SOCKET_FILE: Final = "mcp.sock"
MAX_WORKERS: Final = 256
_MAX_CALLS: Final = 64
_MAX_PATH: Final = 100
_MAX_NAME: Final = 100
_HELLO_TIMEOUT: Final = 10.0
_CLOSE_GRACE: Final = 2.0


class WorkQueue(Protocol):
    """Who answers the calls."""

    def worker_joined(self, worker: str) -> None: ...

    def worker_left(self, worker: str) -> None: ...

    async def answer_call(self, worker: str, call: Call) -> dict[str, Any]: ...


class WorkerSocket:
    """Lets workers in, one connection each, and carries their calls to the queue."""

    def __init__(self, folder: Path, queue: WorkQueue) -> None:
        self._folder = folder
        self._queue = queue
        self._tasks: set[asyncio.Task[None]] = set()
        self._connections: set[_WorkerConnection] = set()
        self._opening: asyncio.Task[asyncio.Server] | None = None

    def open(self) -> None:
        """Open the socket, or raise SourceError; connections made from now on are served soon."""
        listening = _open_socket(self._folder)
        serving = asyncio.start_unix_server(self._serve_worker, sock=listening, limit=MAX_LINE)
        self._opening = asyncio.get_running_loop().create_task(serving)
        self._opening.add_done_callback(report_failure)

    async def close(self) -> None:
        if self._opening is None:
            return
        server = await self._opening
        server.close()
        with suppress(FileNotFoundError):
            (self._folder / SOCKET_FILE).unlink()
        await self._wait_for_calls()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _wait_for_calls(self) -> None:
        """Calls that have their answer by now still get to say it."""
        calls = [call for connection in self._connections for call in connection.calls.values()]
        if calls:
            await asyncio.wait(calls, timeout=_CLOSE_GRACE)

    async def _serve_worker(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 -- a stream's callback runs in a task
        self._tasks.add(task)
        try:
            if _is_same_user(writer.get_extra_info("socket")) and len(self._tasks) <= MAX_WORKERS:
                connection = _WorkerConnection(self._queue, reader, writer)
                self._connections.add(connection)
                try:
                    await connection.serve()
                finally:
                    self._connections.discard(connection)
        except (ConnectionError, TimeoutError, asyncio.CancelledError):
            pass
        except Exception as error:  # the worker's leases are released, as when it dies
            report_error(error)
        finally:
            self._tasks.discard(task)
            writer.close()
            with suppress(ConnectionError, asyncio.CancelledError):
                await writer.wait_closed()


class _WorkerConnection:
    """One worker's connection."""

    def __init__(
        self, queue: WorkQueue, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._queue = queue
        self._reader = reader
        self._writer = writer
        self.calls: dict[int, asyncio.Task[None]] = {}

    async def serve(self) -> None:
        async with asyncio.timeout(_HELLO_TIMEOUT):
            first = await self._read_call()
        if first is None:
            return
        number, hello = first
        if not isinstance(hello, HelloCall) or not 0 < len(hello.worker) <= _MAX_NAME:
            self._write(WorkerReply(number, error="say hello first"))
            return
        self._queue.worker_joined(hello.worker)
        try:
            await self._answer_call(hello.worker, number, hello)
            while (found := await self._read_call()) is not None:
                number, call = found
                if isinstance(call, CancelCall):
                    if running := self.calls.get(number):
                        running.cancel()
                elif len(self.calls) >= _MAX_CALLS or number in self.calls:
                    self._write(WorkerReply(number, error="too many calls at once"))
                else:
                    self._start_call(hello.worker, number, call)
        finally:
            for running in list(self.calls.values()):
                running.cancel()
            await asyncio.gather(*self.calls.values(), return_exceptions=True)
            self._queue.worker_left(hello.worker)

    async def _read_call(self) -> tuple[int, Call] | None:
        """The next call and its number; None at the end, and for a line that is no call: such a
        worker is sent away."""
        try:
            line = await self._reader.readline()
            return decode_call(line) if line else None
        except (ValueError, RecursionError, TimeoutError) as error:
            self._write(WorkerReply(0, error=f"this is not a call: {error}"[:500]))
            return None

    def _start_call(self, worker: str, number: int, call: Call) -> None:
        answering = self._answer_call(worker, number, call)
        task = self.calls[number] = asyncio.get_running_loop().create_task(answering)
        task.add_done_callback(lambda done: self._end_call(number, call, done))

    def _end_call(self, number: int, call: Call, done: "asyncio.Task[None]") -> None:
        """A call that failed is reported to both sides: nobody shall wait for its reply, nor for
        the dispatch it was about."""
        self.calls.pop(number, None)
        error = None if done.cancelled() else done.exception()
        if error is not None:
            text = "the coordinator failed at this call; see its stderr"
            self._write(WorkerReply(number, error=text))
            report_error(error, getattr(call, "dispatch_id", 0))

    async def _answer_call(self, worker: str, number: int, call: Call) -> None:
        try:
            reply = WorkerReply(number, await self._queue.answer_call(worker, call))
        except InterlockError as error:
            reply = WorkerReply(number, error=str(error))
        self._write(reply)
        with suppress(ConnectionError):
            await self._writer.drain()

    def _write(self, reply: WorkerReply) -> None:
        if not self._writer.is_closing():
            self._writer.write(encode_line(reply))


def _open_socket(folder: Path) -> socket.socket:
    """A socket that listens in the folder, whatever the length of its path."""
    _claim_folder(folder)
    with suppress(FileNotFoundError):
        (folder / SOCKET_FILE).unlink()
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
    umask = os.umask(0o177)
    try:
        use_socket_path(folder, listening.bind)
        listening.listen(MAX_WORKERS)
    except OSError as error:
        listening.close()
        raise SourceError(f"cannot open a socket in {folder}: {error.strerror}") from None
    finally:
        os.umask(umask)
    return listening


def use_socket_path(folder: Path, use: Callable[[str], None]) -> None:
    """Use the socket's path; one that is too long for sockets is reached through its folder."""
    path = folder.absolute() / SOCKET_FILE
    if len(os.fsencode(path)) <= _MAX_PATH:
        use(str(path))
        return
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        use(f"/proc/self/fd/{handle}/{SOCKET_FILE}")
    finally:
        os.close(handle)


def _claim_folder(folder: Path) -> None:
    """The folder is ours alone, or it is not used."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = folder.lstat()
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
            raise SourceError(f"{folder} is not a folder of this user")
        folder.chmod(0o700)
    except OSError as error:
        raise SourceError(f"{folder} cannot be used: {error.strerror}") from None


def _is_same_user(peer: socket.socket) -> bool:
    """Whether the other end is a process of this user; the kernel says so."""
    kind = getattr(socket, "SO_PEERCRED", None)
    if kind is None:
        return True
    packed = peer.getsockopt(socket.SOL_SOCKET, kind, struct.calcsize("3i"))
    uid: int = struct.unpack("3i", packed)[1]
    return uid == os.getuid()


RECONNECT_PAUSE: Final = 0.25
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
        self._reconnecting: asyncio.Task[None] | None = None
        self._connecting = asyncio.Lock()

    async def call(self, call: Call) -> dict[str, Any]:
        """What the coordinator answers; NoCoordinatorError if there is none, or it dies."""
        await self._connect()
        data = await self._call(call)
        self._track_leases(data)
        return data

    async def close(self) -> None:
        for task in (self._reconnecting, self._reading):
            if task is not None:
                task.cancel()
        if self._writer is not None:
            self._writer.close()

    async def _call(self, call: Call) -> dict[str, Any]:
        number = next(self._numbers)
        waiting: asyncio.Future[WorkerReply] = asyncio.get_running_loop().create_future()
        self._waiting[number] = waiting
        try:
            self._send(number, call)
            reply = await waiting
        except asyncio.CancelledError:
            if waiting.done() and not waiting.cancelled() and waiting.exception() is None:
                self._give_back(waiting.result())  # it came before whoever gave up could see it
            else:
                self._abandoned.add(number)
                with suppress(NoCoordinatorError):
                    self._send(number, CancelCall())
            raise
        finally:
            self._waiting.pop(number, None)
        if reply.error:
            raise StateError(reply.error)
        return reply.data

    def _send(self, number: int, call: Call) -> None:
        if self._writer is None or self._writer.is_closing():
            raise NoCoordinatorError
        self._writer.write(encode_call(number, call))

    async def _connect(self) -> None:
        async with self._connecting:
            if self._writer is not None:
                return
            try:
                client = _connect_socket(self._folder)
                reader, writer = await asyncio.open_unix_connection(sock=client, limit=MAX_LINE)
            except OSError:
                raise NoCoordinatorError from None
            self._writer = writer
            self._reading = asyncio.get_running_loop().create_task(
                self._read_replies(reader, writer)
            )
            self._reading.add_done_callback(report_failure)
            hello = await self._call(HelloCall(self._worker, self._name))
            self.run_id = hello.get("run_id") or self.run_id

    async def _read_replies(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        try:
            while line := await reader.readline():
                self._take_reply(decode_reply(line))
        except (OSError, ValueError):
            pass  # cut off in the middle of a line: as good as hung up
        finally:
            writer.close()
            self._writer = None
            self._abandoned.clear()
            for waiting in self._waiting.values():
                if not waiting.done():
                    waiting.set_exception(NoCoordinatorError("the coordinator went away"))
            if self._leases and self._reconnecting is None:
                self._reconnecting = asyncio.get_running_loop().create_task(self._reconnect())
                self._reconnecting.add_done_callback(report_failure)

    def _take_reply(self, reply: WorkerReply) -> None:
        waiting = self._waiting.get(reply.call)
        if waiting is not None and not waiting.done():
            waiting.set_result(reply)
        elif reply.call in self._abandoned:
            self._abandoned.discard(reply.call)
            self._give_back(reply)

    def _give_back(self, reply: WorkerReply) -> None:
        """Let others have work that came when nobody waited for it any more."""
        if reply.data.get("available"):
            held = SignalCall(reply.data["dispatch_id"], reply.data["lease"], RELEASE)
            with suppress(NoCoordinatorError):
                self._send(next(self._numbers), held)

    def _track_leases(self, data: dict[str, Any]) -> None:
        """Remember what is held: it is a reason to look for a coordinator that comes back."""
        if data.get("available"):
            self._leases.add(data["dispatch_id"])
            self.run_id = data["run_id"]
        elif "accepted" in data and not data.get("open"):
            self._leases.discard(data["dispatch_id"])

    async def _reconnect(self) -> None:
        """While something is held, be there when the coordinator is; else the lease is lost."""
        try:
            while self._leases and self._writer is None:
                await asyncio.sleep(RECONNECT_PAUSE)
                with suppress(NoCoordinatorError, StateError):
                    await self._connect()
        finally:
            self._reconnecting = None


def _connect_socket(folder: Path) -> socket.socket:
    client = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        use_socket_path(folder, client.connect)
        client.setblocking(False)
    except OSError:
        client.close()
        raise
    return client
