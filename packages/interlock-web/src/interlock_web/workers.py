"""Workers over HTTP: the SDK's own application, and which of its clients are still there.

A client is known by its session. Revisions without sessions get a cookie: whoever sends it back is
one worker. A client that keeps no cookies is known by the lease that it names. All of them are
there while they have a connection or a request open. One that has none any more, and does not come
back soon, is silent: others are offered its work, and the first valid answer counts. A client that
ends its session gives back what it held at once.
"""

import asyncio
import logging
import secrets
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http.cookies import CookieError, SimpleCookie
from typing import TYPE_CHECKING, Final

from interlock.carriers.mcp.messages import MAX_LEASE, SESSION_HEADER, WORKER_HEADER
from interlock.carriers.mcp.worker import KNOWN_CLIENT, NEW_CLIENT, MakeWorker, WorkerRegistry
from interlock_web.access import MAX_BODY, App, Message, Receive, Send
from interlock_web.connection import SCOPE_KEY, Connection
from interlock_web.server import MountedApp

if TYPE_CHECKING:
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

MCP_PATH: Final = "/mcp"
ABSENCE_SECONDS: Final = 5.0
"""Seconds after which a client that hung up is silent."""
ABSENCE_WITHOUT_COOKIE: Final = 20.0
"""The same for clients that keep no cookies: many of them close idle connections as well."""
_KEPT_OPEN: Final = 600
"""Seconds for which clients are asked to keep an idle connection open."""
_MAX_SESSIONS: Final = 200
_COOKIE: Final = "interlock-worker"


class ClientPresence:
    """Watches the requests and the connections of each client."""

    def __init__(self, app: App, workers: WorkerRegistry) -> None:
        self._app = app
        self._workers = workers
        workers.on_recognised = self._recognise
        self._visitors: dict[str, str] = {}
        self._open_requests: Counter[str] = Counter()
        self._connections: dict[str, set[Connection]] = {}
        self._missed: dict[str, asyncio.TimerHandle] = {}

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        connection = scope.get(SCOPE_KEY)
        connection = connection if isinstance(connection, Connection) else None
        session = _read_header(scope, SESSION_HEADER)
        request = _Request(receive, send)
        visitor = ""
        if not session:
            session = _read_cookie(scope)
            if not session:
                session = visitor = request.introduce()
                self._visitors[visitor] = visitor
            named = f"{NEW_CLIENT}{visitor}" if visitor else session
            scope["headers"] = [
                *(pair for pair in scope["headers"] if pair[0] != WORKER_HEADER.encode()),
                (WORKER_HEADER.encode(), named.encode()),
            ]
            if connection is not None:
                connection.keep_alive(_KEPT_OPEN if visitor else MAX_LEASE)
                if not visitor:
                    self._watch_connection(session, connection, ABSENCE_SECONDS)
        self._request_began(session)
        try:
            await self._app(scope, request.receive, request.send)
        finally:
            ended = scope["method"] == "DELETE" and request.status < 300
            session = self._visitors.pop(visitor, session)
            absence = ABSENCE_WITHOUT_COOKIE if visitor else ABSENCE_SECONDS
            hung_up = absence if request.hung_up else None
            self._request_ended(session, ended=ended, hung_up=hung_up)
            if visitor and connection is not None and self._workers.holds_work(session):
                self._watch_connection(session, connection, absence)

    def _recognise(self, visitor: str, session: str) -> None:
        """The client of a request under way turns out to be that one."""
        if visitor in self._visitors:
            self._visitors[visitor] = session
            self._open_requests[visitor] -= 1
            self._request_began(session)

    def _watch_connection(self, session: str, connection: Connection, absence: float) -> None:
        """A client keeps its connection, if we let it: then losing it means that the client is
        gone, most likely."""
        known = self._connections.setdefault(session, set())
        if connection not in known:
            known.add(connection)
            connection.on_lost.add(lambda: self._connection_lost(session, connection, absence))
            if connection.transport.is_closing():
                self._connection_lost(session, connection, absence)

    def _connection_lost(self, session: str, connection: Connection, absence: float) -> None:
        known = self._connections.get(session, set())
        if connection not in known:
            return
        known.discard(connection)
        if not known:
            self._connections.pop(session, None)
            if not self._open_requests[session]:
                self._expect_soon(session, absence)

    def _request_began(self, session: str) -> None:
        self._open_requests[session] += 1
        if waiting := self._missed.pop(session, None):
            waiting.cancel()

    def _request_ended(self, session: str, *, ended: bool, hung_up: float | None) -> None:
        self._open_requests[session] -= 1
        if ended:
            self._workers.end_session(session)
        elif hung_up is not None and not self._open_requests[session]:
            self._expect_soon(session, hung_up)
        self._open_requests += Counter()  # drops who is not here

    def _expect_soon(self, session: str, absence: float) -> None:
        if waiting := self._missed.pop(session, None):
            waiting.cancel()
        later = asyncio.get_running_loop().call_later(absence, self._session_missed, session)
        self._missed[session] = later

    def _session_missed(self, session: str) -> None:
        del self._missed[session]
        self._workers.miss_session(session)


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
        """Give a client that is not known a cookie; the name of its worker."""
        self._cookie = secrets.token_hex(16)
        return f"{KNOWN_CLIENT}{self._cookie}"

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
                (b"keep-alive", f"timeout={_KEPT_OPEN}".encode()),
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


class McpApplication:
    """The SDK's application. The SDK takes as long to load as all the rest of the server, so that
    it is loaded when the first client comes."""

    def __init__(self, workers: WorkerRegistry) -> None:
        self._workers = workers
        self._wanted = asyncio.Event()
        self._closing = asyncio.Event()
        self._manager: asyncio.Future[StreamableHTTPSessionManager] | None = None

    @asynccontextmanager
    async def run(self) -> AsyncIterator[None]:
        self._manager = asyncio.get_running_loop().create_future()
        serving = asyncio.create_task(self._serve(self._manager))
        try:
            yield
        finally:
            self._closing.set()
            self._wanted.set()
            await serving
            await self._workers.close()

    async def handle(self, scope: Message, receive: Receive, send: Send) -> None:
        assert self._manager is not None  # noqa: S101 - it is open while requests come
        self._wanted.set()
        manager = await asyncio.shield(self._manager)
        await manager.handle_request(scope, receive, send)

    async def _serve(self, ready: "asyncio.Future[StreamableHTTPSessionManager]") -> None:
        """In one task from the beginning to the end, as the SDK demands."""
        await self._wanted.wait()
        if self._closing.is_set():
            return
        try:
            manager = await asyncio.to_thread(self._load)
        except Exception as error:  # each request of a client says so
            ready.set_exception(error)
            return
        async with manager.run():
            ready.set_result(manager)
            await self._closing.wait()

    def _load(self) -> "StreamableHTTPSessionManager":
        from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

        from interlock.carriers.mcp.server import build_server

        # Its warnings are of clients that went away, and quote what they sent.
        logging.getLogger("mcp").setLevel(logging.ERROR)
        return StreamableHTTPSessionManager(
            build_server(self._workers),
            session_idle_timeout=MAX_LEASE,
            max_request_body_size=MAX_BODY,
            max_sessions=_MAX_SESSIONS,
        )


def build_mcp_app(make_worker: MakeWorker) -> MountedApp:
    """The application through which agents pull their work."""
    workers = WorkerRegistry(make_worker)
    app = McpApplication(workers)
    return MountedApp(MCP_PATH, ClientPresence(app.handle, workers), app.run, "work")
