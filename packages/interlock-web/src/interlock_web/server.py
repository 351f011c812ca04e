"""The server's process: one application under uvicorn, until a signal comes.

SIGINT and SIGTERM are handled here, so that the application closes before its connections do, and
what is under way has time to finish.
"""

import asyncio
import os
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, contextmanager, suppress
from typing import Any, Final

import uvicorn
from litestar import Litestar
from litestar.types import Message, Receive, Scope, Send

from interlock.system.errors import SourceError

CLOSE_GRACE: Final = 2.0
"""Seconds that requests under way have to finish when the server closes."""
_CLOSING: Final = b'{"error":"this server is closing"}'
_MAX_CONCURRENT: Final = 1024
_SHUTDOWN_TIMEOUT: Final = 3
_MAX_DRAINED: Final = 256 << 20
_DRAIN_TIMEOUT: Final = 10.0


class ClosingApp:
    """An application whose requests can be ended. Use it as an async context."""

    def __init__(self, app: Litestar) -> None:
        self._app = app
        self._lifespan = AsyncExitStack()
        self._requests: dict[asyncio.Task[None], bool] = {}
        """The requests under way; True if one may change something, and is waited for."""
        self._open = False

    async def __aenter__(self) -> "ClosingApp":
        await self._lifespan.enter_async_context(self._app.lifespan())
        self._open = True
        return self

    async def __aexit__(self, *_error: object) -> None:
        self._open = False
        awaited = [task for task, waited_for in self._requests.items() if waited_for]
        if awaited:
            await asyncio.wait(awaited, timeout=CLOSE_GRACE)
        await self._lifespan.aclose()
        for task in self._requests:
            task.cancel()

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        request = _Exchange(receive, send)
        if not self._open:
            await request.end_early()
            return
        # uvicorn leaves the body of an answer to HEAD out. Litestar's own answer to OPTIONS names
        # the methods of one handler alone; its refusal of TRACE names all of a path.
        method = {"HEAD": "GET", "OPTIONS": "TRACE"}.get(scope.get("method"), scope.get("method"))
        task = asyncio.ensure_future(self._run(scope | {"method": method}, request))
        self._requests[task] = method != "GET"
        try:
            await task
        except asyncio.CancelledError:
            task.cancel()
            if self._open:
                raise
            await request.end_early()
        except Exception:
            if not request.has_hung_up:  # nobody reads what is said of such a client
                raise
        finally:
            del self._requests[task]

    async def _run(self, scope: Scope, request: "_Exchange") -> None:
        await self._app(scope, request.receive, request.send)


class _Exchange:
    """A request and what was sent in reply to it so far."""

    def __init__(self, receive: Receive, send: Send) -> None:
        self._receive = receive
        self._send = send
        self._is_read = False
        self._has_begun = False
        self._is_complete = False
        self.has_hung_up = False

    async def receive(self) -> Any:
        message = await self._receive()
        self.has_hung_up = self.has_hung_up or message["type"] == "http.disconnect"
        self._is_read = not message.get("more_body", False)
        return message

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start" and message["status"] >= 400:
            await self._drain()
        self._has_begun = True
        last = message["type"] == "http.response.body" and not message.get("more_body", False)
        self._is_complete = self._is_complete or last
        await self._send(message)

    async def _drain(self) -> None:
        """Read the rest of a refused request within bounds, and drop it: a connection that is
        closed with bytes unread is reset, and the client would not read the refusal."""
        drained = 0
        with suppress(TimeoutError):
            async with asyncio.timeout(_DRAIN_TIMEOUT):
                while not self._is_read and drained <= _MAX_DRAINED:
                    drained += len((await self.receive()).get("body", b""))

    async def end_early(self) -> None:
        """Say that no more will come."""
        if not self._has_begun:
            headers = [(b"content-type", b"application/json"), (b"connection", b"close")]
            start: Any = {"type": "http.response.start", "status": 503, "headers": headers}
            await self._send(start)
        if not self._is_complete:
            body = b"" if self._has_begun else _CLOSING
            await self._send({"type": "http.response.body", "body": body, "more_body": False})


class _UvicornServer(uvicorn.Server):
    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def open_socket(host: str, port: int, flags: str = "--host and --port") -> socket.socket:
    """Return a socket that listens; SourceError names the flags that choose another address."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=128)
    except (OSError, OverflowError) as error:
        why = os.strerror(error.errno) if isinstance(error, OSError) and error.errno else error
        raise SourceError(
            f"cannot listen on {host}:{port}: {why}; choose another address with {flags}"
        ) from None


def format_address(listening: socket.socket) -> str:
    """Return the URL of a socket."""
    host, port = listening.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


async def serve_until_signal(
    app: Litestar, listening: socket.socket, ready: Callable[[], None]
) -> int:
    """Serve until SIGINT or SIGTERM, and return its number."""
    closing = ClosingApp(app)
    config = uvicorn.Config(
        closing,
        lifespan="off",
        log_config=None,
        log_level="warning",
        access_log=False,
        server_header=False,
        limit_concurrency=_MAX_CONCURRENT,
        timeout_graceful_shutdown=_SHUTDOWN_TIMEOUT,
    )
    server = _UvicornServer(config)
    received: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, _on_signal, received, number)
    async with closing:
        serving = asyncio.create_task(server.serve([listening]))
        ready()
        await asyncio.wait((serving, received), return_when=asyncio.FIRST_COMPLETED)
    server.should_exit = True
    await serving
    return received.result()


def _on_signal(received: "asyncio.Future[int]", number: int) -> None:
    if not received.done():
        received.set_result(number)
