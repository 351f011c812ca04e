"""Workers over HTTP: the SDK's own application, and which of its clients are still there.

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

from interlock.agents.mcp.messages import MAX_LEASE
from interlock.agents.mcp.server import SESSION_HEADER, build_server
from interlock.agents.mcp.worker import MakeWorker, WorkerRegistry
from interlock.web.access import MAX_BODY, App, Message, Receive, Send
from interlock.web.server import MountedApp

MCP_PATH: Final = "/mcp"
ABSENCE_SECONDS: Final = 5.0
"""Seconds after which a client that hung up is taken for dead."""
_MAX_SESSIONS: Final = 200


class ClientPresence:
    """Watches the requests of each session."""

    def __init__(self, app: App, workers: WorkerRegistry) -> None:
        self._app = app
        self._workers = workers
        self._open_requests: Counter[str] = Counter()
        self._missed: dict[str, asyncio.TimerHandle] = {}

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        named = (value for key, value in scope["headers"] if key == SESSION_HEADER.encode())
        session = next(named, b"").decode("latin-1")  # the first, as the SDK reads it
        if not session:
            await self._app(scope, receive, send)
            return
        request = _Request(receive, send)
        self._request_began(session)
        try:
            await self._app(scope, request.receive, request.send)
        finally:
            ended = scope["method"] == "DELETE" and request.status < 300
            self._request_ended(session, ended=ended, hung_up=request.hung_up)

    def _request_began(self, session: str) -> None:
        self._open_requests[session] += 1
        if waiting := self._missed.pop(session, None):
            waiting.cancel()

    def _request_ended(self, session: str, *, ended: bool, hung_up: bool) -> None:
        self._open_requests[session] -= 1
        if ended:
            self._workers.end_session(session)
        elif hung_up and not self._open_requests[session]:
            later = asyncio.get_running_loop().call_later(
                ABSENCE_SECONDS, self._session_missed, session
            )
            self._missed[session] = later
        self._open_requests += Counter()  # drops who is not here

    def _session_missed(self, session: str) -> None:
        del self._missed[session]
        self._workers.end_session(session)


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


def build_mcp_app(make_worker: MakeWorker) -> MountedApp:
    """The application through which agents pull their work."""
    # Its warnings are of clients that went away, and quote what they sent.
    logging.getLogger("mcp").setLevel(logging.ERROR)
    workers = WorkerRegistry(make_worker)
    manager = StreamableHTTPSessionManager(
        build_server(workers),
        session_idle_timeout=MAX_LEASE,
        max_request_body_size=MAX_BODY,
        max_sessions=_MAX_SESSIONS,
    )

    @asynccontextmanager
    async def lifespan() -> AsyncIterator[None]:
        try:
            async with manager.run():
                yield
        finally:
            await workers.close()

    async def handle(scope: Any, receive: Any, send: Any) -> None:
        await manager.handle_request(scope, receive, send)

    return MountedApp(MCP_PATH, ClientPresence(handle, workers), lifespan)
