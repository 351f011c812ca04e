"""A server that closes: what is under way finishes, what stays is cut off."""

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest
from litestar import Litestar, asgi, get

from interlock_web.server import ClosingApp


def asking(app: ClosingApp) -> httpx.AsyncClient:
    transport = httpx.ASGITransport(app)  # type: ignore[arg-type]
    return httpx.AsyncClient(transport=transport, base_url="http://localhost")


@get("/a", sync_to_thread=False)
def say() -> str:
    return "here"


async def test_an_application_lives_as_long_as_the_server() -> None:
    life: list[str] = []

    @asynccontextmanager
    async def lifespan(_app: Litestar) -> AsyncIterator[None]:
        life.append("opens")
        yield
        life.append("closes")

    app = ClosingApp(Litestar([say], lifespan=[lifespan], openapi_config=None))
    async with asking(app) as client:
        assert (await client.get("/a")).status_code == 503
        async with app:
            assert life == ["opens"]
            assert (await client.get("/a")).text == "here"
            assert (await client.head("/a")).status_code == 200
            assert (await client.get("/c")).status_code == 404
        assert life == ["opens", "closes"]
        assert (await client.get("/a")).json() == {"error": "this server is closing"}


@pytest.mark.parametrize("started", [False, True])
async def test_a_stream_that_stays_is_cut_off_when_the_server_closes(started: bool) -> None:
    there = asyncio.Event()

    @asgi("/s", copy_scope=True)
    async def stays(scope: Any, receive: Any, send: Any) -> None:
        if started:
            await send({"type": "http.response.start", "status": 200, "headers": []})
        there.set()
        await asyncio.Event().wait()

    async with asking(app := ClosingApp(Litestar([stays], openapi_config=None))) as client:
        async with app:
            asked = asyncio.create_task(client.get("/s"))
            await there.wait()
        found = await asked
        assert (found.status_code, found.text == "") == ((200, True) if started else (503, False))


_LOADED = """
import asyncio, sys
import interlock_web.build
from interlock_web.workers import McpApplication

async def drop(message):
    pass

async def receive():
    return {"type": "http.request", "body": b"", "more_body": False}

async def main():
    app = McpApplication(None)
    async with app.run():
        before = "mcp" in sys.modules
        scope = {"type": "http", "method": "GET", "path": "/mcp"}
        scope |= {"headers": [], "query_string": b""}
        await app.handle(scope, receive, drop)
        print(before, "mcp" in sys.modules)

asyncio.run(main())
"""


def test_the_sdk_is_loaded_when_the_first_client_comes() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _LOADED], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.stdout == "False True\n", done.stderr
