"""Clients that send too much, or hang up, over real sockets."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import uvicorn
from litestar import Litestar, Request, post

from interlock_web.server import ClosingApp


@post("/mcp")
async def read_all(request: Request[Any, Any, Any]) -> str:
    await request.body()
    return "ok"


@asynccontextmanager
async def listening() -> AsyncIterator[int]:
    app = Litestar([read_all], request_max_body_size=4 << 20, openapi_config=None)
    async with ClosingApp(app) as closing:
        server = uvicorn.Server(uvicorn.Config(closing, lifespan="off", log_config=None))
        with socket.create_server(("127.0.0.1", 0)) as door:
            serving = asyncio.create_task(server.serve([door]))
            yield door.getsockname()[1]
            server.should_exit = True
            await serving


@pytest.mark.parametrize("head", ["content-length: 50000000", "transfer-encoding: chunked"])
async def test_a_body_that_is_too_long_is_answered(head: str) -> None:
    async with listening() as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(
            f"POST /mcp HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n{head}\r\n\r\n".encode()
        )
        for _ in range(50):
            size = b"f4240\r\n" if "chunked" in head else b""
            writer.write(size + b"x" * 1_000_000 + (b"\r\n" if size else b""))
            await writer.drain()
        if "chunked" in head:
            writer.write(b"0\r\n\r\n")
        found = await reader.read()
        writer.close()
    assert found.startswith(b"HTTP/1.1 413 ")


async def test_a_client_that_hangs_up_leaves_no_traceback(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with listening() as port:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-length: 9\r\n\r\nx")
        await writer.drain()
        writer.close()
        await writer.wait_closed()
        again, pen = await asyncio.open_connection("127.0.0.1", port)
        pen.write(b"POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1\r\n\r\nx")
        assert b"201 Created" in await again.readline()
        pen.close()
    assert not [record for record in caplog.records if record.exc_info]
