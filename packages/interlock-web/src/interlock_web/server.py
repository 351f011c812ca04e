"""The HTTP server: applications mounted at their paths, served on a socket until a signal comes.

`WebServer` opens its mounted applications, routes requests to them, and lets what is under way
finish before it closes them. `serve_until_signal` runs it under uvicorn behind the access guard;
SIGINT and SIGTERM are handled here, so that the applications close before the connections do.
"""

import asyncio
import os
import signal
import socket
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, contextmanager, nullcontext
from typing import Any, Final

import msgspec
import uvicorn

from interlock.system.errors import SourceError
from interlock_web.access import (
    AccessGuard,
    AccessRules,
    App,
    HttpRefusal,
    Message,
    Receive,
    Send,
    send_refusal,
)
from interlock_web.callers import CALLER_KEY, EVERYBODY, explain_missing_scope
from interlock_web.connection import Connection

HEALTH_PATH: Final = "/healthz"
CLOSING: Final = HttpRefusal(503, "this server is closing")
CLOSE_GRACE: Final = 2.0
"""Seconds that requests under way have to finish when the server closes."""


class MountedApp(msgspec.Struct, frozen=True):
    """An application at a path and below it; `lifespan` lasts as long as it is served."""

    path: str
    app: App
    lifespan: Callable[[], AbstractAsyncContextManager[Any]] = nullcontext
    scope: str = ""
    """What a token must be good for to use it at all; empty if it sees to that itself."""


class WebServer:
    """Routes each request to its application. Use it as an async context."""

    def __init__(self, apps: Sequence[MountedApp]) -> None:
        self._apps = sorted(apps, key=lambda mounted: len(mounted.path), reverse=True)
        self._lifespans = AsyncExitStack()
        self._requests: dict[asyncio.Task[None], bool] = {}
        """Each with whether it may change something, and is waited for."""
        self._open = False

    async def __aenter__(self) -> "WebServer":
        for mounted in self._apps:
            await self._lifespans.enter_async_context(mounted.lifespan())
        self._open = True
        return self

    async def __aexit__(self, *_error: object) -> None:
        self._open = False
        awaited = [task for task, waited_for in self._requests.items() if waited_for]
        if awaited:
            await asyncio.wait(awaited, timeout=CLOSE_GRACE)
        await self._lifespans.aclose()
        for task in self._requests:
            task.cancel()

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        path = scope["path"]
        if path == HEALTH_PATH:
            await _answer_health(scope, send, up=self._open)
            return
        mounted = next((each for each in self._apps if _is_below(path, each.path)), None)
        if mounted is None:
            await send_refusal(HttpRefusal(404, "nothing is served at this path"), send)
        elif not self._open:
            await send_refusal(CLOSING, send)
        elif mounted.scope and (
            problem := explain_missing_scope(scope.get(CALLER_KEY, EVERYBODY), mounted.scope)
        ):
            await send_refusal(HttpRefusal(403, problem), send)
        else:
            await self._run_app(mounted.app, scope, receive, send)

    async def _run_app(self, app: App, scope: Message, receive: Receive, send: Send) -> None:
        """In a task of its own, so that it can be ended when the server closes."""
        response = _Response(send)
        task = asyncio.ensure_future(_await_app(app(scope, receive, response.send)))
        self._requests[task] = scope["method"] != "GET"
        try:
            await task
        except asyncio.CancelledError:
            task.cancel()
            if self._open:
                raise
            await response.end_early()
        finally:
            del self._requests[task]


class _Response:
    """What was sent in reply to a request so far."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._has_begun = False
        self._is_complete = False

    async def send(self, message: Message) -> None:
        self._has_begun = True
        last = message["type"] == "http.response.body" and not message.get("more_body", False)
        self._is_complete = self._is_complete or last
        await self._send(message)

    async def end_early(self) -> None:
        """Say that no more will come."""
        if not self._has_begun:
            await send_refusal(CLOSING, self._send)
        elif not self._is_complete:
            await self._send({"type": "http.response.body", "body": b""})


async def _await_app(work: Awaitable[None]) -> None:
    await work


async def _answer_health(scope: Message, send: Send, *, up: bool) -> None:
    if scope["method"] not in ("GET", "HEAD"):
        await send_refusal(
            HttpRefusal(405, f"only GET and HEAD are allowed at {HEALTH_PATH}"), send
        )
        return
    body = msgspec.json.encode({"status": "ok" if up else "closing"})
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
        (b"cache-control", b"no-store"),
    ]
    await send(
        {"type": "http.response.start", "status": 200 if up else 503, "headers": headers},
    )
    await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else body})


def _is_below(path: str, root: str) -> bool:
    return path == root or path.startswith(f"{root.rstrip('/')}/")


_MAX_CONCURRENT = 1024
_SHUTDOWN_TIMEOUT = 3


class _UvicornServer(uvicorn.Server):
    """Signals are handled by us: the applications close before the connections do."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def open_socket(host: str, port: int, flags: str = "--host and --port") -> socket.socket:
    """A socket that listens; SourceError names the flags that choose another address."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=128)
    except (OSError, OverflowError) as error:
        why = os.strerror(error.errno) if isinstance(error, OSError) and error.errno else error
        raise SourceError(
            f"cannot listen on {host}:{port}: {why}; choose another address with {flags}"
        ) from None


def format_address(listening: socket.socket) -> str:
    """The URL at which a client finds it."""
    host, port = listening.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


async def serve_until_signal(
    app: WebServer, rules: AccessRules, listening: socket.socket, ready: Callable[[], None]
) -> int:
    """Serve until SIGINT or SIGTERM; which of them it was."""
    config = uvicorn.Config(
        AccessGuard(app, rules),
        http=Connection,
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
    async with app:
        serving = asyncio.create_task(server.serve([listening]))
        ready()
        await asyncio.wait((serving, received), return_when=asyncio.FIRST_COMPLETED)
    server.should_exit = True
    await serving
    return received.result()


def _on_signal(received: "asyncio.Future[int]", number: int) -> None:
    if not received.done():
        received.set_result(number)
