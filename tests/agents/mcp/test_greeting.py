"""What is said before the SDK is loaded is what the SDK says."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, cast

import anyio
import pytest
from mcp.server.stdio import stdio_server
from mcp.types import version as versions

from interlock.agents.mcp.server import make_server
from interlock.agents.mcp.socket import CoordinatorClient
from interlock.agents.mcp.stdio import HANDSHAKES, Handshake
from interlock.agents.mcp.worker import Worker
from interlock.agents.queries import QueryBroker

ME = {"name": "me", "version": "1"}


class _Nothing:
    def standing(self, run_id: int | None) -> dict[str, Any]:
        return {"run_id": None, "status": "", "over": False, "changed_at": 0.0, "reason": ""}

    def report(self, run_id: int | None) -> dict[str, Any]:
        return {"run_id": None, "reason": ""}


class _Paper:
    def __init__(self) -> None:
        self.text = ""
        self.full = asyncio.Event()

    async def write(self, text: str) -> None:
        self.text += text
        if self.text.count("\n") == 4:
            self.full.set()

    async def flush(self) -> None:
        pass


def message(method: str, number: int | str | None, params: Any = None) -> str:
    said: dict[str, Any] = {"jsonrpc": "2.0", "method": method}
    said |= {} if number is None else {"id": number}
    said |= {} if params is None else {"params": params}
    return json.dumps(said) + "\n"


def initialize(version: str) -> str:
    asked = {"protocolVersion": version, "capabilities": {}, "clientInfo": ME}
    return message("initialize", 0, asked)


def opening(version: str) -> list[str]:
    return [
        initialize(version),
        message("notifications/initialized", None),
        message("tools/list", 1),
        message("tools/list", 2, {"_meta": {"progressToken": 2}}),
        message("resources/templates/list", 3),
    ]


async def said_by_the_sdk(lines: list[str], folder: Path) -> list[Any]:
    paper = _Paper()

    async def source() -> AsyncIterator[str]:
        for line in lines:
            yield line
        await paper.full.wait()

    server = make_server(Worker(CoordinatorClient(folder, "me"), QueryBroker(folder), _Nothing()))
    given = cast("anyio.AsyncFile[str]", source())
    async with stdio_server(given, cast("anyio.AsyncFile[str]", paper)) as (heard, said):
        await server.run(heard, said, server.create_initialization_options())
    return sorted(map(json.loads, paper.text.splitlines()), key=lambda each: each["id"])


@pytest.mark.parametrize("version", [*HANDSHAKES, "1999-01-01", "2026-07-28"])
async def test_the_greeting_is_the_sdks_own(version: str, tmp_path: Path) -> None:
    greeter = Handshake()
    greeted = [greeter.greet(line.encode()) for line in opening(version)]
    assert greeted[1] == b""
    found = [json.loads(each) for each in greeted if each]
    assert found == await said_by_the_sdk(opening(version), tmp_path)


def test_the_handshakes_are_those_of_the_sdk() -> None:
    assert HANDSHAKES == versions.HANDSHAKE_PROTOCOL_VERSIONS
    assert versions.LATEST_PROTOCOL_VERSION not in HANDSHAKES


@pytest.mark.parametrize(
    "line",
    [
        message("tools/list", 1),
        message("server/discover", 1, {"_meta": {}}),
        message("initialize", 1, {"protocolVersion": 7}),
        message("initialize", 1, [1]),
        message("initialize", 1),
        message("initialize", None, {"protocolVersion": "2025-11-25", "clientInfo": ME}),
        message("notifications/initialized", None),
        "{",
        "[]",
        "7",
        "",
        "\xff",
        "[" * 100_000,
    ],
)
def test_everything_else_waits_for_the_sdk(line: str) -> None:
    assert Handshake().greet(line.encode("latin-1")) is None


def test_only_the_first_word_is_greeted() -> None:
    greeter = Handshake()
    assert greeter.greet(initialize("2025-11-25").encode())
    assert greeter.greet(initialize("2025-11-25").encode()) is None
    assert greeter.greet(message("tools/list", 2, {"cursor": "x"}).encode()) is None
    assert greeter.greet(message("tools/call", 3, {"name": "interlock_next"}).encode()) is None
