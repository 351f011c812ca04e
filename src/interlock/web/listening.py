"""The house on a socket, until a signal ends it: take the place, say where it is, close in order.

Knows sockets, uvicorn and the two signals. The first lets what is under way finish.
"""

import asyncio
import os
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import uvicorn

from interlock.system.errors import SourceError
from interlock.web.access import AccessGuard, AccessRules
from interlock.web.house import WebServer

_MOST_AT_ONCE = 1024
_PATIENCE = 3


class _Server(uvicorn.Server):
    """Signals are ours: the house closes before the connections do."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def place(host: str, port: int, flags: str = "--host and --port") -> socket.socket:
    """The socket, or a sentence about why it cannot be had and which flags choose another."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=128)
    except (OSError, OverflowError) as error:
        why = os.strerror(error.errno) if isinstance(error, OSError) and error.errno else error
        raise SourceError(
            f"{host}:{port} cannot be served at: {why}; choose another with {flags}"
        ) from None


def address(listening: socket.socket) -> str:
    """Where a client finds it."""
    host, port = listening.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


async def listen(
    house: WebServer, rules: AccessRules, listening: socket.socket, ready: Callable[[], None]
) -> int:
    """Serve until SIGINT or SIGTERM; which of them it was."""
    config = uvicorn.Config(
        AccessGuard(house, rules),
        lifespan="off",
        log_config=None,
        log_level="warning",
        access_log=False,
        server_header=False,
        limit_concurrency=_MOST_AT_ONCE,
        timeout_graceful_shutdown=_PATIENCE,
    )
    server = _Server(config)
    heard: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, _hear, heard, number)
    async with house:
        serving = asyncio.create_task(server.serve([listening]))
        ready()
        await asyncio.wait((serving, heard), return_when=asyncio.FIRST_COMPLETED)
    server.should_exit = True
    await serving
    return heard.result()


def _hear(heard: "asyncio.Future[int]", number: int) -> None:
    if not heard.done():
        heard.set_result(number)
