"""`interlock serve` as a real process, and workers that reach it with the official client."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from typing import NamedTuple

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from tests.world.command_line import COMMAND, LIMIT, World

TOKEN = "a-token-of-ours-0123456789"


class Served(NamedTuple):
    process: "subprocess.Popen[str]"
    url: str
    mcp: str


@contextmanager
def served(world: World, *words: str, env: Mapping[str, str] | None = None) -> Iterator[Served]:
    """A server of this world at a free port; ended with the block."""
    process = subprocess.Popen(
        [*COMMAND, "serve", "--port", "0", "--json", *words],
        cwd=world.folder,
        env={**os.environ, **(env or {})},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        result = ready(process)
        yield Served(process, result["url"], result["mcp"])
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=LIMIT)


def ready(process: "subprocess.Popen[str]") -> dict[str, str]:
    """What the server says when it is up: one JSON object."""
    assert process.stdout is not None
    lines: list[str] = []
    while line := process.stdout.readline():
        lines.append(line)
        if line == "}\n":
            break
    assert lines, process.communicate(timeout=LIMIT)
    found = json.loads("".join(lines))
    assert isinstance(found, dict)
    return found


@asynccontextmanager
async def remote(
    server: Served, mode: str, headers: Mapping[str, str] | None = None
) -> AsyncIterator[Client]:
    """A worker over HTTP."""
    async with httpx2.AsyncClient(headers=dict(headers or {}), timeout=LIMIT) as http:
        carried = streamable_http_client(server.mcp, http_client=http)
        async with Client(carried, mode=mode, read_timeout_seconds=LIMIT) as client:
            yield client


_MORTAL = """
import asyncio, json, sys
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
async def live():
    async with Client(streamable_http_client(sys.argv[1]), mode=sys.argv[2]) as client:
        found = await client.call_tool("interlock_next", {"ttl": float(sys.argv[3])})
        print(json.dumps(found.structured_content), flush=True)
        await asyncio.Event().wait()
asyncio.run(live())
"""


def killed_at_work(server: Served, mode: str, ttl: float) -> dict[str, object]:
    """A worker in a process of its own takes something and is killed; what it held."""
    with subprocess.Popen(
        [sys.executable, "-c", _MORTAL, server.mcp, mode, str(ttl)],
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        held = json.loads(process.stdout.readline())
        process.kill()
        assert isinstance(held, dict)
        return held
