"""The server's stdin: everything at once, garbage, giants, and a client that says nothing."""

import json
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.world.command_line import COMMAND, LIMIT

ME = {"name": "me", "version": "1"}


def message(method: str, number: int | str | None, params: Any = None) -> str:
    result: dict[str, Any] = {"jsonrpc": "2.0", "method": method}
    result |= {} if number is None else {"id": number}
    result |= {} if params is None else {"params": params}
    return json.dumps(result) + "\n"


def initialize(version: str) -> str:
    asked = {"protocolVersion": version, "capabilities": {}, "clientInfo": ME}
    return message("initialize", 0, asked)


def deep(levels: int) -> bytes:
    return b"[" * levels + b"]" * levels


CALL = {"name": "interlock_status", "arguments": {}}


def talk(folder: Path, said: bytes, count: int) -> tuple[list[dict[str, Any]], str, int]:
    """Say all of this; return so many results and errors, and how the server leaves when the
    client hangs up."""
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
            server.stdin.write(said)
            server.stdin.flush()
        answers: list[dict[str, Any]] = []
        while len(answers) < count and (line := server.stdout.readline()):
            found = json.loads(line)
            answers += [found] if {"result", "error"} & found.keys() else []
        _, err = server.communicate(timeout=LIMIT)
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


GARBAGE: list[bytes] = [
    b"hello",
    b'{"jsonrpc": "2.0", "id": 11',
    b"\xff\xfe\x00",
    b"[]",
    b"7",
    b'{"jsonrpc": "1.0", "id": 13, "method": "ping"}',
    b'{"jsonrpc": "2.0", "id": {}, "method": "ping"}',
    b'{"jsonrpc": "2.0", "id": 15}',
    b'{"jsonrpc": "2.0", "id": 16, "params": ' + deep(9000) + b"}",
]


def test_garbage_harms_nothing(tmp_path: Path) -> None:
    lines = [initialize("2025-11-25").encode(), *(line + b"\n" for line in GARBAGE)]
    lines += [message("notifications/initialized", None).encode()]
    lines += [message("tools/call", 2, CALL).encode()]
    answers, _, left = talk(tmp_path, b"".join(lines), 2)
    assert left == 0
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
        ["A message has at most 4,194,304 bytes, this one 134,217,728. Nothing was taken."],
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
