"""Clients that send too much, too slowly, or hang up, over real sockets."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import uvicorn

from interlock_web.access import AccessGuard, AccessRules, Message, Receive, Send
from interlock_web.connection import BODY_TIMEOUT, HEADER_TIMEOUT, Connection


async def reads_all(_scope: Message, receive: Receive, send: Send) -> None:
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise RuntimeError("the client hung up")
        if not message.get("more_body"):
            break
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"ok"})


@asynccontextmanager
async def listening() -> AsyncIterator[int]:
    server = uvicorn.Server(
        uvicorn.Config(
            AccessGuard(reads_all, AccessRules()), http=Connection, lifespan="off", log_config=None
        )
    )
    with socket.create_server(("127.0.0.1", 0)) as door:
        serving = asyncio.create_task(server.serve([door]))
        yield door.getsockname()[1]
        server.should_exit = True
        await serving


@pytest.mark.parametrize("head", ["content-length: 50000000", "transfer-encoding: chunked"])
async def test_a_body_that_is_too_long_is_answered(head: str) -> None:
    async with listening() as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(f"POST /mcp HTTP/1.1\r\nhost: localhost\r\n{head}\r\n\r\n".encode())
        for _ in range(50):
            size = b"f4240\r\n" if "chunked" in head else b""
            writer.write(size + b"x" * 1_000_000 + (b"\r\n" if size else b""))
            await writer.drain()
        if "chunked" in head:
            writer.write(b"0\r\n\r\n")
        found = await reader.read()
        writer.close()
    assert found.startswith(b"HTTP/1.1 413 ")
    assert b"at most 4,194,304 bytes" in found


async def test_headers_and_bodies_that_never_end_are_not_waited_for() -> None:
    async def send(port: int, begun: str) -> float:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(f"POST / HTTP/1.1\r\nhost: localhost\r\n{begun}".encode())
        began = asyncio.get_running_loop().time()
        assert (await reader.read()).startswith(b"HTTP/1.1 408 ")
        writer.close()
        return asyncio.get_running_loop().time() - began

    async with listening() as port, asyncio.timeout(3 * BODY_TIMEOUT):
        headers, *bodies = await asyncio.gather(
            send(port, "x-slow: "),
            send(port, "content-length: 9\r\n\r\nx"),
            send(port, "transfer-encoding: chunked\r\n\r\n1\r\nx\r\n"),
        )
    assert headers >= HEADER_TIMEOUT - 0.1
    assert min(bodies) >= BODY_TIMEOUT - 0.1


async def test_a_client_that_hangs_up_leaves_no_traceback(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with listening() as port:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"POST / HTTP/1.1\r\nhost: localhost\r\ncontent-length: 9\r\n\r\nx")
        await writer.drain()
        writer.close()
        await writer.wait_closed()
        again, pen = await asyncio.open_connection("127.0.0.1", port)
        pen.write(b"POST / HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1\r\n\r\nx")
        assert b"200 OK" in await again.readline()
        pen.close()
    assert not [record for record in caplog.records if record.exc_info]
