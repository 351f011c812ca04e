"""Agents that break the protocol: each has a clear outcome, and leaves no process behind."""

import asyncio
import json
import logging
from pathlib import Path

import pytest

from interlock.carriers.acp.carrier import AcpAgent
from interlock.carriers.cli.ownership import TAGS
from interlock.carriers.contract import MAX_ANSWER, Reply
from interlock.system.clock import SystemClock
from interlock.system.process_table import list_processes
from tests.world.acp_agents import ROGUE, WORKSPACE, make_acp_agent, noted, reply_of, station
from tests.world.carrier_bench import Bench, appears, ask, gone
from tests.world.clock import FakeClock

GOOD = Reply(1, b'{"n":1}')


def crashed(reason: str) -> Reply:
    return Reply(1, failure="crash", reason=reason)


def rogue(folder: Path, scene: str, clock: FakeClock | None = None) -> AcpAgent:
    return make_acp_agent(folder, scene, ROGUE, clock)


def left_over() -> list[int]:
    """Whatever still carries the tag of the dispatch under test."""
    tag = f"{WORKSPACE}:1:1:x"
    return [pid for pid, seen in list_processes(TAGS).items() if tag in seen.tags and seen.alive]


SILENT = Reply(
    1,
    failure="unreadable",
    reason="the final message is empty; answer with one JSON object",
)
ODD = "its response to {} does not follow the protocol"
OUTCOMES = {
    "garbage_before": GOOD,
    "garbage_for_ever": crashed(
        "it does not speak the Agent Client Protocol: its output is not JSON-RPC"
    ),
    "bad_welcome": crashed(ODD.format("initialize")),
    "null_welcome": crashed(ODD.format("initialize")),
    "bad_session": crashed("its session id is empty or too long"),
    "bad_stop": crashed(ODD.format("session/prompt")),
    "error_with_odd_words": crashed(
        "the agent failed at session/prompt: ['\\x1b[2J'] ({'a': [1]})"
    ),
    "rate_limited": Reply(
        1,
        failure="rate-limit",
        reason="the agent failed at session/prompt: Internal error (HTTP 429)",
    ),
    "endless_chunks": Reply(
        1, failure="unreadable", reason=f"the answer is longer than {MAX_ANSWER:,} bytes"
    ),
    "endless_thoughts": crashed("it sent more than 268,435,456 bytes"),
    "endless_line": crashed("it sent a message of more than 10,485,760 bytes"),
    "huge_message": GOOD,
    "huge_answer": Reply(
        1, failure="unreadable", reason=f"the answer is longer than {MAX_ANSWER:,} bytes"
    ),
    "wrong_sessions": SILENT,
    "forged_meta": GOOD,
    "never_offered": GOOD,
    "permission_flood": crashed("it asked for permission more than 200 times"),
    "deaf_flood": crashed("it keeps sending requests without reading the answers"),
    "bad_wishes": GOOD,
    "exits_in_the_middle": crashed("exit code 3 before its turn was over: out of memory"),
    "killed_in_the_middle": crashed("killed by signal 9 before its turn was over"),
    "exits_at_once": crashed("exit code 0 before its turn was over"),
    "closes_its_output": crashed("it closed its output before its turn was over"),
    "answers_and_stays": GOOD,
    "leaves_a_daemon": GOOD,
    "late_words": SILENT,
    "two_messages": GOOD,
    "half_a_line": crashed("exit code 0 before its turn was over"),
}


@pytest.mark.parametrize("scene", OUTCOMES)
async def test_rogues(tmp_path: Path, scene: str, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        assert await reply_of(rogue(tmp_path, scene)) == OUTCOMES[scene]
    assert left_over() == []
    assert caplog.messages == [], "the SDK would have shown a traceback"


async def test_a_wish_is_judged_by_what_it_says_itself(tmp_path: Path) -> None:
    await reply_of(rogue(tmp_path, "forged_meta"))
    (answer,) = noted(tmp_path, "answer")
    assert json.loads(answer)["result"] == {"outcome": {"outcome": "cancelled"}}


async def test_a_wish_in_another_session_is_an_error(tmp_path: Path) -> None:
    await reply_of(rogue(tmp_path, "wrong_sessions"))
    (answer,) = noted(tmp_path, "answer")
    assert json.loads(answer)["error"]["data"] == {"details": "this is not the open session"}


async def test_what_was_not_offered_is_not_there(tmp_path: Path) -> None:
    await reply_of(rogue(tmp_path, "never_offered"))
    assert noted(tmp_path, "answers") == ["-32601"] * 5


async def test_wishes_that_cannot_be_read_get_an_error_and_never_a_yes(tmp_path: Path) -> None:
    await reply_of(rogue(tmp_path, "bad_wishes"))
    answers = [json.loads(each) for each in noted(tmp_path, "answers")]
    assert [each.get("result") or each["error"]["code"] for each in answers] == [
        -32602,
        -32602,
        {"outcome": {"outcome": "cancelled"}},
        -32602,
    ]


@pytest.mark.parametrize(
    ("scene", "reason", "at"),
    [
        ("never_answers", "it produced no output (60 s)", 60),
        ("hangs", "it went silent (600 s)", 600),
        ("hangs_stubbornly", "it went silent (600 s)", 600),
        ("hangs_with_a_tool", "it went silent while a tool was running (1800 s)", 1_800),
        ("never_reads", "it went silent (600 s)", 600),
    ],
)
async def test_clocks(tmp_path: Path, scene: str, reason: str, at: float) -> None:
    clock = FakeClock()
    began = clock.time
    async with Bench(make_acp_agent(tmp_path, scene, ROGUE, clock), clock) as bench:
        bench.carrier.send([ask(prompt="x" * 1_000_000)])
        pid = int(await appears(tmp_path / "notes" / "pid"))
        for _ in range(100):  # what it said before is in the pipe, and is heard
            await asyncio.sleep(0)
        while not bench.replies:
            clock.advance()
            await asyncio.sleep(0)
        assert bench.replies == [Reply(1, failure="timeout", reason=reason)]
        assert clock.time - began >= at
        assert gone(pid)


@pytest.mark.parametrize("end", ["settled", "close"])
@pytest.mark.parametrize(
    "scene",
    ["hangs", "hangs_stubbornly", "never_answers", "hangs_with_a_tool", "closes_its_output"],
)
async def test_what_still_runs_is_ended(tmp_path: Path, scene: str, end: str) -> None:
    async with Bench(rogue(tmp_path, scene)) as bench:
        bench.carrier.send([ask()])
        pid = int(await appears(tmp_path / "notes" / "pid"))
        if end == "settled":
            bench.carrier.settle(1)
    assert gone(pid)
    assert bench.replies == []


async def test_settled_in_the_moment_it_was_sent(tmp_path: Path) -> None:
    async with Bench(rogue(tmp_path, "hangs")) as bench:
        bench.carrier.send([ask()])
        bench.carrier.settle(1)
        await asyncio.sleep(0)
    assert (left_over(), bench.replies) == ([], [])


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("/nosuch/agent", "'/nosuch/agent' cannot be started: No such file or directory"),
        ("/etc", "'/etc' cannot be started: Permission denied"),
        ("a\0b", "'a\\x00b' cannot be started: embedded null byte"),
    ],
)
async def test_what_cannot_be_started_is_a_crash(tmp_path: Path, name: str, reason: str) -> None:
    agent = AcpAgent([name], station(tmp_path), SystemClock())
    assert await reply_of(agent) == crashed(reason)


async def test_a_work_folder_that_leads_elsewhere_is_a_crash(tmp_path: Path) -> None:
    (tmp_path / "work" / "1").mkdir(parents=True)
    place = tmp_path / "work" / "1" / "0"
    place.symlink_to("/tmp")
    agent = AcpAgent(["true"], station(tmp_path), SystemClock())
    assert await reply_of(agent) == crashed(
        f"{place} is a symbolic link; symbolic links are refused"
    )
