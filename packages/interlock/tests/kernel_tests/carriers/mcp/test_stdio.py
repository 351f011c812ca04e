"""The server's stdin: greeted before the SDK is loaded; garbage, giants and early birds."""

import asyncio
import json
import subprocess
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import anyio
import pytest
from mcp.server.stdio import stdio_server
from mcp.types import version as versions

from interlock.carriers.mcp.messages import RunReport
from interlock.carriers.mcp.server import build_server
from interlock.carriers.mcp.socket import CoordinatorClient
from interlock.carriers.mcp.stdio import HANDSHAKES, Handshake
from interlock.carriers.mcp.worker import Worker
from interlock.carriers.queries import QueryBroker
from interlock.journal.mailbox import Mailbox
from tests.world.command_line import COMMAND, LIMIT

ME = {"name": "me", "version": "1"}


class _Nothing:
    def read_status(self, run_id: int | None) -> dict[str, Any]:
        return {"run_id": None, "status": "", "over": False, "changed_at": 0.0, "reason": ""}

    def read_report(self, run_id: int | None) -> RunReport:
        return RunReport(run_id=None, reason="")


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
    result: dict[str, Any] = {"jsonrpc": "2.0", "method": method}
    result |= {} if number is None else {"id": number}
    result |= {} if params is None else {"params": params}
    return json.dumps(result) + "\n"


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

    server = build_server(
        Worker(
            CoordinatorClient(folder, "me"),
            QueryBroker(Mailbox(folder / "i.db", "queries")),
            _Nothing(),
        )
    )
    given = cast("anyio.AsyncFile[str]", source())
    async with stdio_server(given, cast("anyio.AsyncFile[str]", paper)) as (received, result):
        await server.run(received, result, server.create_initialization_options())
    return sorted(map(json.loads, paper.text.splitlines()), key=lambda each: each["id"])


@pytest.mark.parametrize("version", [*HANDSHAKES, "1999-01-01", "2026-07-28"])
async def test_the_greeting_is_the_sdks_own(version: str, tmp_path: Path) -> None:
    greeter = Handshake()
    greeted = [greeter.answer_line(line.encode()) for line in opening(version)]
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
    assert Handshake().answer_line(line.encode("latin-1")) is None


def test_only_the_first_word_is_greeted() -> None:
    greeter = Handshake()
    assert greeter.answer_line(initialize("2025-11-25").encode())
    assert greeter.answer_line(initialize("2025-11-25").encode()) is None
    assert greeter.answer_line(message("tools/list", 2, {"cursor": "x"}).encode()) is None
    assert (
        greeter.answer_line(message("tools/call", 3, {"name": "interlock_next"}).encode()) is None
    )


def deep(levels: int) -> bytes:
    return b"[" * levels + b"]" * levels


CALL = {"name": "interlock_status", "arguments": {}}


def talk(folder: Path, result: bytes, count: int) -> tuple[list[dict[str, Any]], str, int]:
    """So many answers of the server to all of this, and how it leaves when the client hangs up."""
    with subprocess.Popen(
        [*COMMAND, "mcp"],
        cwd=folder,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as server:
        assert server.stdin
        assert server.stdout
        with suppress(BrokenPipeError):
            server.stdin.write(result)
            server.stdin.flush()
        answers = [json.loads(server.stdout.readline()) for _ in range(count)]
        more, err = server.communicate(timeout=LIMIT)
    assert more == b""
    return answers, err.decode(), server.returncode


def test_all_that_was_said_is_answered_once_also_before_the_sdk_is_there(tmp_path: Path) -> None:
    result = initialize("2025-06-18") + message("notifications/initialized", None)
    result += message("tools/list", "one") + message("tools/call", 2, CALL) + message("ping", 3)
    answers, err, code = talk(tmp_path, result.encode(), 4)
    assert (sorted(str(each["id"]) for each in answers), err, code) == (
        ["0", "2", "3", "one"],
        "",
        0,
    )
    assert answers[0]["result"]["protocolVersion"] == "2025-06-18"
    status = next(each for each in answers if each["id"] == 2)["result"]
    assert status["structuredContent"]["coordinator"] is False


GARBAGE: list[tuple[bytes, int | None, int]] = [
    (b"hello", None, -32700),
    (b'{"jsonrpc": "2.0", "id": 11', None, -32700),
    (b"\xff\xfe\x00", None, -32700),
    (b"[]", None, -32600),
    (b"7", None, -32600),
    (b'{"id": 12, "method": "ping"}', 12, -32600),
    (b'{"jsonrpc": "1.0", "id": 13, "method": "ping"}', 13, -32600),
    (b'{"jsonrpc": "2.0", "id": {}, "method": "ping"}', None, -32600),
    (b'{"jsonrpc": "2.0", "id": 14, "method": 7}', None, -32600),
    (b'{"jsonrpc": "2.0", "id": 15}', 15, -32600),
    (b'{"jsonrpc": "2.0", "id": 16, "params": ' + deep(9000) + b"}", None, -32600),
    (b'{"jsonrpc": "2.0", "id": 17, "method": "x", "params": ' + deep(300) + b"}", 17, -32600),
]


def test_garbage_is_answered_and_harms_nothing(tmp_path: Path) -> None:
    result = [initialize("2025-11-25").encode(), b"\n", *(line + b"\n" for line, _, _ in GARBAGE)]
    result.append(message("tools/call", 2, CALL).encode())
    answers, err, left = talk(tmp_path, b"".join(result), len(GARBAGE) + 2)
    assert (err, left) == ("", 0)
    errors = Counter((each["id"], each["error"]["code"]) for each in answers if "error" in each)
    assert errors == Counter((number, code) for _, number, code in GARBAGE)
    assert sorted(each["id"] for each in answers if "result" in each) == [0, 2]


def test_fifty_megabytes_are_refused_by_name(tmp_path: Path) -> None:
    giant = {"dispatch_id": 1, "lease": "x", "answer": {"text": "x" * 50_000_000}}
    call = message("tools/call", 5, {"name": "interlock_submit", "arguments": giant})
    result = initialize("2025-11-25") + call + message("tools/call", 6, CALL)
    answers, err, code = talk(tmp_path, result.encode(), 3)
    assert (err, code) == ("", 0)
    refused = next(each for each in answers if each["id"] == 5)["error"]
    assert refused["message"].startswith("A message has at most 4,194,304 bytes")
    assert "result" in next(each for each in answers if each["id"] == 6)


def test_a_line_without_an_end_ends_the_talk(tmp_path: Path) -> None:
    answers, err, code = talk(tmp_path, b"x" * (129 << 20), 1)
    assert ([each["error"]["message"] for each in answers], err, code) == (
        ["This message is too long."],
        "",
        0,
    )


def test_a_client_that_says_nothing(tmp_path: Path) -> None:
    assert talk(tmp_path, b"", 0) == ([], "", 0)


WRONG: list[tuple[str, dict[str, Any], str]] = [
    ("interlock_fly", {}, "There is no tool 'interlock_fly'"),
    ("interlock_submit", {}, "missing required field"),
    ("interlock_submit", {"dispatch_id": "1", "lease": "x", "answer": {}}, "`$.dispatch_id`"),
    ("interlock_submit", {"dispatch_id": 1, "lease": "x", "answer": []}, "`$.answer`"),
    ("interlock_next", {"wait": "long"}, "`$.wait`"),
    ("interlock_next", {"patience": 1}, "patience"),
    ("interlock_signal", {"dispatch_id": 1, "lease": "x", "signal": None}, "`$.signal`"),
]


def test_wrong_arguments_are_told(tmp_path: Path) -> None:
    calls = [
        message("tools/call", number, {"name": name, "arguments": arguments})
        for number, (name, arguments, _) in enumerate(WRONG, 1)
    ]
    result = initialize("2025-11-25") + "".join(calls)
    answers, err, code = talk(tmp_path, result.encode(), len(WRONG) + 1)
    assert (err, code) == ("", 0)
    output = {each["id"]: each["result"] for each in answers}
    for number, (_, _, sentence) in enumerate(WRONG, 1):
        assert output[number]["isError"]
        assert sentence in output[number]["content"][0]["text"]
