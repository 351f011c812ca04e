"""Workers over HTTP: the SDK's own application, and who of its clients is still there.

A client whose session ended, or that hung up and did not come back soon, gives back what it held.
Clients without a session are missed when their leases run out.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

from interlock.agents.mcp.messages import LONGEST_LEASE
from interlock.agents.mcp.server import SESSION, make_server
from interlock.agents.mcp.worker import Hire, WorkerRegistry
from interlock.web.access import LONGEST_BODY, App, Message, Receive, Send
from interlock.web.server import MountedApp

PATH: Final = "/mcp"
ABSENCE: Final = 5.0
"""Seconds after which a client that hung up is taken for dead."""
_MOST_SESSIONS: Final = 200


class ClientPresence:
    """Watches the requests of each session go by."""

    def __init__(self, app: App, roster: WorkerRegistry) -> None:
        self._app = app
        self._roster = roster
        self._here: Counter[str] = Counter()
        self._missed: dict[str, asyncio.TimerHandle] = {}

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        named = (value for key, value in scope["headers"] if key == SESSION.encode())
        session = next(named, b"").decode("latin-1")  # the first, as the SDK reads it
        if not session:
            await self._app(scope, receive, send)
            return
        request = _Request(receive, send)
        self._come(session)
        try:
            await self._app(scope, request.receive, request.send)
        finally:
            ended = scope["method"] == "DELETE" and request.status < 300
            self._go(session, ended=ended, hung_up=request.hung_up)

    def _come(self, session: str) -> None:
        self._here[session] += 1
        if waiting := self._missed.pop(session, None):
            waiting.cancel()

    def _go(self, session: str, *, ended: bool, hung_up: bool) -> None:
        self._here[session] -= 1
        if ended:
            self._roster.dismiss(session)
        elif hung_up and not self._here[session]:
            later = asyncio.get_running_loop().call_later(ABSENCE, self._miss, session)
            self._missed[session] = later
        self._here += Counter()  # drops who is not here

    def _miss(self, session: str) -> None:
        del self._missed[session]
        self._roster.dismiss(session)


class _Request:
    """One request: what was answered, and whether the client waited for the end of it."""

    def __init__(self, receive: Receive, send: Send) -> None:
        self.hung_up = False
        self.status = 500
        self._receive = receive
        self._send = send
        self._over = False

    async def receive(self) -> Message:
        message = await self._receive()
        if message["type"] == "http.disconnect" and not self._over:
            self.hung_up = True
        return message

    async def send(self, message: Message) -> None:
        self.status = message.get("status", self.status)
        if message["type"] == "http.response.body" and not message.get("more_body", False):
            self._over = True
        await self._send(message)


def workers(hire: Hire) -> MountedApp:
    """The part at which agents pull their work."""
    # Its warnings are of clients that went away, and quote what they sent.
    logging.getLogger("mcp").setLevel(logging.ERROR)
    roster = WorkerRegistry(hire)
    manager = StreamableHTTPSessionManager(
        make_server(roster),
        session_idle_timeout=LONGEST_LEASE,
        max_request_body_size=LONGEST_BODY,
        max_sessions=_MOST_SESSIONS,
    )

    @asynccontextmanager
    async def alive() -> AsyncIterator[None]:
        try:
            async with manager.run():
                yield
        finally:
            await roster.close()

    async def led(scope: Any, receive: Any, send: Any) -> None:
        await manager.handle_request(scope, receive, send)

    return MountedApp(PATH, ClientPresence(led, roster), alive)
