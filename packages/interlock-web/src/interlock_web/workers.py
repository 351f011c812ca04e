"""Agents that pull their work over MCP: the SDK's own application.

A client of a revision with sessions is known by its session, any other by the leases that it names.
A session that ends gives back what it held; a client that is lost keeps it until its leases end.
"""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

from litestar import asgi
from litestar.types import Receive, Scope, Send

from interlock.carriers.pull.messages import MAX_LEASE, SESSION_HEADER
from interlock.carriers.pull.tools import PullTools

if TYPE_CHECKING:
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

MCP_PATH: Final = "/mcp"
MAX_BODY: Final = 4 << 20
_MAX_SESSIONS: Final = 200


class McpApplication:
    """The SDK's application. It is loaded when the first client comes, because the SDK takes as
    long to load as the rest of the server."""

    def __init__(self, tools: PullTools) -> None:
        self._tools = tools
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

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        assert self._manager is not None  # noqa: S101 - it is open while requests come
        self._wanted.set()
        manager = await asyncio.shield(self._manager)
        await manager.handle_request(scope, receive, send)  # type: ignore[arg-type]
        if scope.get("method") == "DELETE" and (session := _read_session(scope)):
            await self._tools.release_all(session)

    async def _serve(self, ready: "asyncio.Future[StreamableHTTPSessionManager]") -> None:
        """Open and close the SDK's manager in one task, as the SDK demands."""
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

        from interlock.carriers.pull.server import build_server

        # Its warnings are of clients that went away, and quote what they sent.
        logging.getLogger("mcp").setLevel(logging.ERROR)
        return StreamableHTTPSessionManager(
            build_server(self._tools),
            session_idle_timeout=MAX_LEASE,
            max_request_body_size=MAX_BODY,
            max_sessions=_MAX_SESSIONS,
        )


def _read_session(scope: Scope) -> str:
    """Return the first header of that name, as the SDK reads it."""
    found = (value for key, value in scope["headers"] if key == SESSION_HEADER.encode())
    return str(next(found, b"").decode("latin-1"))


@asgi(MCP_PATH, is_mount=True, copy_scope=True, opt={"scopes": ("work",)})
async def handle_mcp(scope: Scope, receive: Receive, send: Send) -> None:
    """Hand a request to the SDK's application."""
    app: McpApplication = scope["litestar_app"].state["mcp"]
    await app.handle(scope, receive, send)
