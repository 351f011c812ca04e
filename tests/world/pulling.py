"""Workers as agents' clients start them: the official client library over a real subprocess."""

import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import jsonschema
import psutil
from mcp import Client, StdioServerParameters, stdio_client

from interlock.carriers.pull.messages import TOOLS
from interlock.carriers.pull.offers import list_sessions
from tests.world.command_line import LIMIT, World, until

GIVES = {tool.name: tool.output_schema for tool in TOOLS}
BEFORE, NOW = "legacy", "2026-07-28"
"""The revision before the current one, by its handshake, and the current one."""
Answering = Callable[[dict[str, Any]], dict[str, Any]]


@asynccontextmanager
async def worker(world: World, mode: str = BEFORE, *words: str) -> AsyncIterator[Client]:
    """One `interlock mcp` in the world's folder."""
    command = StdioServerParameters(
        command=sys.executable,
        args=["-m", "interlock", "mcp", *words],
        env=dict(os.environ),
        cwd=world.folder,
    )
    async with Client(stdio_client(command), mode=mode, read_timeout_seconds=LIMIT) as client:
        yield client


async def use(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    """What a tool gives, as its schema says."""
    found = await client.call_tool(f"interlock_{tool}", arguments)
    assert found.structured_content is not None, found.content
    jsonschema.validate(found.structured_content, GIVES[f"interlock_{tool}"])
    return dict(found.structured_content)


async def take(client: Client, **arguments: Any) -> dict[str, Any]:
    """The next piece of work; there must be one."""
    work = await use(client, "next", **arguments)
    assert work["available"], work
    return work


async def submit(client: Client, work: dict[str, Any], answer: Any) -> dict[str, Any]:
    held = {"dispatch_id": work["dispatch_id"], "lease": work["lease"]}
    return await use(client, "submit", **held, answer=answer)


async def work_off(client: Client, answering: Answering) -> list[dict[str, Any]]:
    """Work until the run is over; what was done."""
    done: list[dict[str, Any]] = []
    while True:
        work = await use(client, "next")
        if work["done"]:
            return done
        if work["available"]:
            taken = await submit(client, work, answering(work))
            assert taken["accepted"], taken
            done.append(work)


def servers(world: World) -> list[psutil.Process]:
    """The servers that our own clients have started here."""
    ours = psutil.Process().children(recursive=True)
    return [each for each in ours if "mcp" in each.cmdline()]


def kill_newest(world: World) -> None:
    max(servers(world), key=lambda each: each.create_time()).send_signal(signal.SIGKILL)


SURE = {"confidence": 0.9}


RUN = ("run", "triage", "--cases", "cases.jsonl", "--dispatch", "mcp", "--json")


def start(world: World, *words: str) -> "subprocess.Popen[str]":
    """A run that hands out work."""
    process = world.start(*(words or RUN))
    until(lambda: opened(world) or process.poll() is not None, "the desk opens")
    return process


def refusals(world: World) -> Counter[str]:
    return Counter(world.say("status", "--json").json["refused_by_reason"])


def opened(world: World) -> bool:
    return bool(list_sessions(world.db))
