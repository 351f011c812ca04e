"""The house: parts by their paths, opened before and closed after all requests."""

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial

import httpx
import pytest

from interlock_web.access import App, Message, Receive, Send
from interlock_web.server import MountedApp, WebServer

LIFE: list[str] = []


def saying(word: str) -> App:
    """An application that says its word and the path it was asked for."""

    async def app(scope: Message, _receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        text = f"{word} {scope['path']}".encode()
        await send({"type": "http.response.body", "body": text})

    return app


def alive(word: str) -> AbstractAsyncContextManager[None]:
    @asynccontextmanager
    async def life() -> AsyncIterator[None]:
        LIFE.append(f"{word} opens")
        yield
        LIFE.append(f"{word} closes")

    return life()


def asking(house: WebServer) -> httpx.AsyncClient:
    return httpx.AsyncClient(transport=httpx.ASGITransport(house), base_url="http://localhost")


@pytest.mark.parametrize(
    ("path", "status", "text"),
    [
        ("/mcp", 200, "mcp /mcp"),
        ("/mcp/x", 200, "mcp /mcp/x"),
        ("/mcpx", 200, "window /mcpx"),
        ("/", 200, "window /"),
        ("/hooks/in", 200, "hooks /hooks/in"),
        ("/healthz", 200, '{"status":"ok"}'),
    ],
)
async def test_each_path_has_its_part(path: str, status: int, text: str) -> None:
    parts = [MountedApp("/", saying("window")), MountedApp("/mcp", saying("mcp"))]
    async with (
        WebServer([*parts, MountedApp("/hooks", saying("hooks"))]) as house,
        asking(house) as client,
    ):
        found = await client.get(path)
        assert (found.status_code, found.text) == (status, text)


async def test_parts_live_as_long_as_the_house() -> None:
    LIFE.clear()
    parts = [MountedApp(f"/{word}", saying(word), partial(alive, word)) for word in ("a", "bb")]
    house = WebServer(parts)
    async with asking(house) as client:
        assert (await client.get("/a")).status_code == 503
        assert (await client.get("/healthz")).json() == {"status": "closing"}
        async with house:
            assert LIFE == ["bb opens", "a opens"]
            assert (await client.get("/a")).text == "a /a"
            assert (await client.get("/c")).status_code == 404
        assert LIFE[2:] == ["a closes", "bb closes"]
        assert (await client.get("/a")).json() == {"error": "this server is closing"}


@pytest.mark.parametrize("started", [False, True])
async def test_a_stream_that_stays_is_cut_off_when_the_house_closes(started: bool) -> None:
    there = asyncio.Event()

    async def stays(_scope: Message, _receive: Receive, send: Send) -> None:
        if started:
            await send({"type": "http.response.start", "status": 200, "headers": []})
        there.set()
        await asyncio.Event().wait()

    async with asking(house := WebServer([MountedApp("/s", stays)])) as client:
        async with house:
            asked = asyncio.create_task(client.get("/s"))
            await there.wait()
        found = await asked
        assert (found.status_code, found.text == "") == ((200, True) if started else (503, False))


_LOADED = """
import asyncio, sys
import interlock_web.api.app, interlock_web.app
from interlock_web.server import WebServer
from interlock_web.workers import build_mcp_app

async def drop(message):
    pass

async def receive():
    return {"type": "http.request", "body": b"", "more_body": False}

async def main():
    async with WebServer([build_mcp_app(None)]) as server:
        before = "mcp" in sys.modules
        scope = {"type": "http", "method": "GET", "path": "/mcp"}
        scope |= {"headers": [], "query_string": b""}
        await server(scope, receive, drop)
        print(before, "mcp" in sys.modules)

asyncio.run(main())
"""


def test_the_sdk_is_loaded_when_the_first_client_comes() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _LOADED], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.stdout == "False True\n", done.stderr
