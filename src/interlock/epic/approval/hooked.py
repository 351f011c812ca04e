"""A desk that is also told by GitHub: while its questions wait, a webhook's door stands open.

Knows how the door is served in the desk's own loop, and closes it before the desk. It has no guard
before it: calls come through tunnels under any name, and each must be signed. Refuses to know what
a call says, and what is asked.
"""

import asyncio
import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final

import uvicorn

from interlock.agents.carrier import Ask, Carrier, Deliver
from interlock.epic.approval.github_hook import PATH, SHORTEST_SECRET, GithubHook
from interlock.system.errors import SourceError
from interlock.web.house import MountedApp, WebServer
from interlock.web.listening import place

LOOPBACK: Final = "127.0.0.1"
_MOST_AT_ONCE: Final = 64
_PATIENCE: Final = 3


class WebhookGate:
    """Carries what its desk carries, and serves the door from start to close."""

    def __init__(self, desk: Carrier, hook: GithubHook, listening: socket.socket) -> None:
        self._desk = desk
        self._house = WebServer([MountedApp(PATH, hook.app())])
        self._server = _Server(_config(self._house))
        self._listening = listening
        self._serving: asyncio.Task[None]

    def start(self, deliver: Deliver) -> None:
        self._desk.start(deliver)
        self._serving = asyncio.get_running_loop().create_task(self._serve())

    def send(self, asks: Sequence[Ask]) -> None:
        self._desk.send(asks)

    def settled(self, dispatch_id: int, error: str = "") -> None:
        self._desk.settled(dispatch_id, error)

    async def close(self) -> None:
        self._server.over.set()
        await asyncio.gather(self._serving, return_exceptions=True)
        self._listening.close()
        await self._desk.close()

    async def _serve(self) -> None:
        async with self._house:
            await self._server.serve([self._listening])


class _Server(uvicorn.Server):
    """Sleeps until it is over: a day of waiting must cost nothing. Signals are the run's."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.over = asyncio.Event()

    async def main_loop(self) -> None:
        await self.over.wait()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def _config(house: WebServer) -> uvicorn.Config:
    return uvicorn.Config(
        house,
        lifespan="off",
        ws="none",
        log_config=None,
        log_level="warning",
        access_log=False,
        server_header=False,
        date_header=False,
        limit_concurrency=_MOST_AT_ONCE,
        timeout_graceful_shutdown=_PATIENCE,
    )


def door(word: str) -> socket.socket:
    """The socket that `[HOST:]PORT` names; without a host only this machine reaches it."""
    host, _, port = word.rpartition(":")
    if not port.isascii() or not port.isdecimal() or int(port[:6]) > 65535:
        raise SourceError(f"--hook {word!r}: write PORT or HOST:PORT, with a port from 0 to 65535")
    return place(host.removeprefix("[").removesuffix("]") or LOOPBACK, int(port), "--hook")


def secret_of(environment: Mapping[str, str], name: str) -> str:
    """The webhook's secret; without one everybody could knock."""
    found = environment.get(name, "").strip()
    if len(found) < SHORTEST_SECRET:
        raise SourceError(
            f"--hook needs the webhook's secret, at least {SHORTEST_SECRET} characters: "
            f"set {name} to what GitHub has for the webhook"
        )
    return found
