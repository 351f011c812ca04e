"""Workers over HTTP: the SDK's own application, and which of its clients are still there.

A client is known by its session. Revisions without sessions get a cookie: whoever sends it back is
one worker, and gone when it has no connection any more. Such a client, like one whose session ended
or that hung up and did not come back soon, gives back what it held. A client that keeps no cookies
is known by its lease alone, and missed when that runs out.
"""

import asyncio
import logging
import secrets
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http.cookies import CookieError, SimpleCookie
from typing import Any, Final

from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

from interlock.agents.mcp.messages import MAX_LEASE
from interlock.agents.mcp.server import SESSION_HEADER, WORKER_HEADER, build_server
from interlock.agents.mcp.worker import KNOWN_CLIENT, NEW_CLIENT, MakeWorker, WorkerRegistry
from interlock.web.access import MAX_BODY, App, Message, Receive, Send
from interlock.web.connection import SCOPE_KEY, Connection
from interlock.web.server import MountedApp

MCP_PATH: Final = "/mcp"
ABSENCE_SECONDS: Final = 5.0
"""Seconds after which a client that hung up is taken for dead."""
_MAX_SESSIONS: Final = 200
_COOKIE: Final = "interlock-worker"


class ClientPresence:
    """Watches the requests and the connections of each client."""

    def __init__(self, app: App, workers: WorkerRegistry) -> None:
        self._app = app
        self._workers = workers
        self._open_requests: Counter[str] = Counter()
        self._connections: dict[str, set[Connection]] = {}
        self._missed: dict[str, asyncio.TimerHandle] = {}

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        session = _read_header(scope, SESSION_HEADER)
        request = _Request(receive, send)
        if not session:
            session = _read_cookie(scope)
            scope["headers"] = [
                *(pair for pair in scope["headers"] if pair[0] != WORKER_HEADER.encode()),
                (WORKER_HEADER.encode(), (session or request.introduce()).encode()),
            ]
            if session:
                self._watch_connection(session, scope.get(SCOPE_KEY))
        if not session:
            await self._app(scope, receive, request.send)
            return
        self._request_began(session)
        try:
            await self._app(scope, request.receive, request.send)
        finally:
            ended = scope["method"] == "DELETE" and request.status < 300
            self._request_ended(session, ended=ended, hung_up=request.hung_up)

    def _watch_connection(self, session: str, connection: object) -> None:
        """A client that keeps a cookie keeps its connection, too, if we let it: then losing it
        means that the client is gone."""
        known = self._connections.setdefault(session, set())
        if isinstance(connection, Connection) and connection not in known:
            known.add(connection)
            connection.keep_alive(MAX_LEASE)
            connection.on_lost.add(lambda: self._connection_lost(session, connection))

    def _connection_lost(self, session: str, connection: Connection) -> None:
        known = self._connections.get(session, set())
        known.discard(connection)
        if not known:
            self._connections.pop(session, None)
            if not self._open_requests[session]:
                self._expect_soon(session)

    def _request_began(self, session: str) -> None:
        self._open_requests[session] += 1
        if waiting := self._missed.pop(session, None):
            waiting.cancel()

    def _request_ended(self, session: str, *, ended: bool, hung_up: bool) -> None:
        self._open_requests[session] -= 1
        if ended:
            self._workers.end_session(session)
        elif hung_up and not self._open_requests[session]:
            self._expect_soon(session)
        self._open_requests += Counter()  # drops who is not here

    def _expect_soon(self, session: str) -> None:
        if waiting := self._missed.pop(session, None):
            waiting.cancel()
        later = asyncio.get_running_loop().call_later(
            ABSENCE_SECONDS, self._session_missed, session
        )
        self._missed[session] = later

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
        self._cookie = ""

    def introduce(self) -> str:
        """Give a client that is not known a cookie; the name of its worker for this request."""
        self._cookie = secrets.token_hex(16)
        return f"{NEW_CLIENT}{KNOWN_CLIENT}{self._cookie}"

    async def receive(self) -> Message:
        message = await self._receive()
        if message["type"] == "http.disconnect" and not self._over:
            self.hung_up = True
        return message

    async def send(self, message: Message) -> None:
        self.status = message.get("status", self.status)
        if message["type"] == "http.response.start" and self._cookie:
            cookie = f"{_COOKIE}={self._cookie}; Path={MCP_PATH}; HttpOnly; SameSite=Strict"
            message["headers"] = [
                *message.get("headers", ()),
                (b"set-cookie", cookie.encode()),
            ]
        if message["type"] == "http.response.body" and not message.get("more_body", False):
            self._over = True
        await self._send(message)


def _read_header(scope: Message, name: str) -> str:
    """The first of that name, as the SDK reads it."""
    found = (value for key, value in scope["headers"] if key == name.encode())
    return str(next(found, b"").decode("latin-1"))


def _read_cookie(scope: Message) -> str:
    try:
        found = SimpleCookie(_read_header(scope, "cookie")).get(_COOKIE)
    except CookieError:
        return ""
    known = found is not None and len(found.value) == 32 and found.value.isalnum()
    return f"{KNOWN_CLIENT}{found.value}" if found is not None and known else ""


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
