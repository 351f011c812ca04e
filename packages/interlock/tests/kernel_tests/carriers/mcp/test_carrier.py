"""The desk under a clock of the test's own, and its door with visitors who do not behave."""

import asyncio
import json
import os
import stat
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from interlock.carriers.contract import Ask, Reply, Session
from interlock.carriers.mcp import messages
from interlock.carriers.mcp.carrier import McpCarrier
from interlock.carriers.mcp.socket import (
    SOCKET_FILE,
    CoordinatorClient,
    WorkerSocket,
    use_socket_path,
)
from interlock.carriers.queries import QueryBroker
from interlock.engine.case import RefusedAnswer, Usage
from interlock.engine.circuit import Step
from interlock.engine.shape import ANYTHING
from interlock.journal.mailbox import Mailbox
from interlock.system.errors import SourceError
from tests.world.clock import FakeClock

STEPS = {
    "look": Step("look", "scout", ANYTHING, timeout=60),
    "free": Step("free", "cook", ANYTHING),
}


def ask(number: int, step: str = "look") -> Ask:
    return Ask(number, 1, f"C{number}", step, 1, STEPS[step].role, f"Look at {number}.")


class WorkerBench:
    """A desk, its clock, and what it delivered."""

    def __init__(self, folder: Path) -> None:
        numbers = count(1)
        self.clock = FakeClock()
        self.delivered: list[Reply] = []
        queries = QueryBroker(Mailbox(folder / "i.db", "queries"))
        nonce = lambda: f"{next(numbers):x}"  # noqa: E731
        self.carrier = McpCarrier(folder / "pull", queries, self.clock, nonce)
        self.refusal: RefusedAnswer | None = None

    async def take(self, worker: str, **more: Any) -> dict[str, Any]:
        return await self.carrier.answer_call(worker, messages.NextCall(**more))

    async def submit(self, worker: str, work: dict[str, Any], **answer: Any) -> dict[str, Any]:
        call = messages.SubmitCall(work["dispatch_id"], work["lease"], answer)
        return await self.carrier.answer_call(worker, call)


@asynccontextmanager
async def room(folder: Path) -> AsyncIterator[WorkerBench]:
    found = WorkerBench(folder)
    judge = lambda _ask, _reply: found.refusal  # noqa: E731
    found.carrier.start(Session(found.delivered.append, found.clock, steps=STEPS, judge=judge))
    try:
        yield found
    finally:
        await found.carrier.close()


async def test_the_oldest_goes_first_and_each_to_one(tmp_path: Path) -> None:
    async with room(tmp_path) as here:
        here.carrier.send([ask(3), ask(1), ask(2, "free")])
        here.carrier.send([ask(1)])
        got = [await here.take(worker, wait=0) for worker in "abcd"]
        assert [each.get("dispatch_id") for each in got] == [1, 2, 3, None]
        assert got[3]["reason"] == "other workers have all that is open; ask again"


async def test_whoever_waits_gets_what_comes(tmp_path: Path) -> None:
    async with room(tmp_path) as here:
        waiting = asyncio.create_task(here.take("a", roles=("cook",)))
        await asyncio.sleep(0)
        here.carrier.send([ask(1)])
        await asyncio.sleep(0)
        assert not waiting.done()
        here.carrier.send([ask(2, "free")])
        assert (await waiting)["dispatch_id"] == 2
        late = asyncio.create_task(here.take("b", wait=5, roles=("cook",)))
        await asyncio.sleep(0)
        here.clock.advance()
        assert (await late)["reason"] == "what waits is for scout, not for cook"
        assert here.clock.time == 1_000_005.0


async def test_the_steps_time_runs_from_the_first_hand_out(tmp_path: Path) -> None:
    async with room(tmp_path) as here:
        here.carrier.send([ask(1)])
        here.clock.time += 10_000
        work = await here.take("a", ttl=20)
        here.clock.advance()
        assert (here.clock.time, here.delivered) == (1_010_020.0, [])
        again = await here.take("b", ttl=500)
        assert (again["dispatch_id"], again["fence"]) == (work["dispatch_id"], 2)
        here.clock.advance()
        assert here.clock.time == 1_010_060.0
        assert [(each.failure, each.dispatch_id) for each in here.delivered] == [("timeout", 1)]
        here.carrier.settle(1, "no answer in time")
        late = await here.submit("b", again)
        assert (late["accepted"], late["refusal"]) == (False, "Stale")
        assert here.delivered[-1].refused == "Stale"


async def test_a_worker_that_lost_its_work_is_handed_it_again(tmp_path: Path) -> None:
    async with room(tmp_path) as here:
        here.carrier.send([ask(1), ask(2, "free")])
        first, second = await here.take("a", wait=0), await here.take("a", wait=0)
        here.clock.time += 10
        assert await here.take("a", wait=0) == first
        assert await here.take("a", wait=0, roles=["cook"]) == second
        assert not (await here.take("a", wait=0, roles=["nurse"]))["available"]
        assert not (await here.take("b", wait=0))["available"]
        answered = asyncio.create_task(here.submit("a", first))
        await asyncio.sleep(0)
        assert await here.take("a", wait=0) == second
        here.carrier.settle(1)
        assert (await answered)["accepted"]


async def test_who_gives_up_when_the_work_is_there_already_does_not_keep_it(tmp_path: Path) -> None:
    """Its call is answered, but whoever made it has not seen that yet: the word that it stopped
    waiting comes too late for the coordinator."""
    async with room(tmp_path) as here:
        client = CoordinatorClient(tmp_path / "pull", "a")
        assert not (await client.call(messages.NextCall(wait=0)))["available"]
        here.carrier.send([ask(1)])
        waiting = asyncio.create_task(client.call(messages.NextCall(wait=30)))
        # This looks once in each round of the loop, before the caller has its turn.
        while not any(each.done() for each in client._waiting.values()):
            assert not waiting.done()
            await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        other = await asyncio.wait_for(here.take("b", wait=30), 10)
        assert (other["dispatch_id"], other["fence"]) == (1, 2)
        await client.close()


async def test_any_call_that_names_the_lease_keeps_it(tmp_path: Path) -> None:
    async with room(tmp_path) as here:
        here.carrier.send([ask(1, "free"), ask(2, "free")])
        one, two = await here.take("a", ttl=20), await here.take("a", ttl=20)
        here.clock.time += 15
        await here.carrier.answer_call("a", messages.StatusCall(one["lease"]))
        here.clock.advance()
        free = await here.take("b", wait=0)
        assert free["dispatch_id"] == two["dispatch_id"]
        assert not (await here.take("c", wait=0))["available"]


async def test_an_answer_is_taken_when_it_is_settled_and_not_before(tmp_path: Path) -> None:
    async with room(tmp_path) as here:
        here.carrier.send([ask(1)])
        work = await here.take("a")
        first = asyncio.create_task(here.submit("a", work))
        await asyncio.sleep(0)
        assert [each.content for each in here.delivered] == [b"{}"]
        second = await here.submit("a", work)
        assert (second["accepted"], second["refusal"]) == (False, "Stale")
        assert not first.done()
        here.carrier.settle(1)
        assert (await first)["accepted"]


async def test_an_answer_that_nobody_settles_is_to_be_brought_again(tmp_path: Path) -> None:
    async with room(tmp_path) as here:
        here.carrier.send([ask(1)])
        work = await here.take("a")
        waiting = asyncio.create_task(here.submit("a", work))
        await asyncio.sleep(0)
    lost = await waiting
    assert (lost["accepted"], lost["refusal"], lost["open"]) == (False, "Unsettled", True)
    async with room(tmp_path) as again:
        again.carrier.worker_joined("a")
        again.carrier.send([ask(1)])
        assert not (await again.take("b", wait=0))["available"]
        brought = asyncio.create_task(again.submit("a", work))
        await asyncio.sleep(0)
        again.carrier.settle(1)
        assert (await brought)["accepted"]


async def test_what_the_judge_refuses_is_journaled_and_stays(tmp_path: Path) -> None:
    async with room(tmp_path) as here:
        here.refusal = RefusedAnswer("Malformed", "Say more.")
        here.carrier.send([ask(1)])
        work = await here.take("a")
        output = [await here.submit("a", work) for _ in range(10)]
        assert [each["open"] for each in output] == [True] * 9 + [False]
        assert {each["sentence"] for each in output} == {"Say more."}
        assert [each.refused for each in here.delivered] == ["Malformed"] * 10 + [""]
        assert here.delivered[-1].failure == "unreadable"


async def test_a_worker_with_two_lines_is_gone_when_both_are(tmp_path: Path) -> None:
    async with room(tmp_path) as here:
        here.carrier.send([ask(1)])
        here.carrier.worker_joined("a")
        here.carrier.worker_joined("a")
        await here.take("a")
        here.carrier.worker_left("a")
        assert not (await here.take("b", wait=0))["available"]
        here.carrier.worker_left("a")
        assert (await here.take("b", wait=0))["fence"] == 2


async def test_work_of_a_silent_worker_is_offered_and_the_first_answer_counts(
    tmp_path: Path,
) -> None:
    """Nobody knows whether it died or thinks."""
    async with room(tmp_path) as here:
        here.carrier.send([ask(1, "free"), ask(2, "free")])
        mine = await here.take("a")
        assert await here.carrier.answer_call("a", messages.SilenceCall()) == {"seconds_left": 900}
        assert here.carrier.keeps_answers()
        assert [(await here.take("b", wait=0))["dispatch_id"] for _ in range(2)] == [2, 1]
        assert not (await here.take("c", wait=0))["available"]
        stolen = await here.submit("c", mine)
        assert (stolen["accepted"], stolen["refusal"]) == (False, "Stale")
        answered = asyncio.create_task(here.submit("a", mine, mind="slow"))
        await asyncio.sleep(0)
        here.carrier.settle(1)
        assert (await answered)["accepted"]
        late = await here.submit("b", {**mine, "lease": "1.2.3"})
        assert (late["accepted"], late["refusal"]) == (False, "Stale")
        assert [each.refused for each in here.delivered] == ["Stale", "", "Stale"]


async def test_a_silent_worker_that_is_heard_of_again_keeps_its_work(tmp_path: Path) -> None:
    async with room(tmp_path) as here:
        here.carrier.send([ask(1, "free")])
        mine = await here.take("a", ttl=50)
        await here.carrier.answer_call("a", messages.SilenceCall())
        here.carrier.worker_joined("a")  # whoever carries its calls is back, not the worker
        await here.carrier.answer_call("a", messages.StatusCall(mine["lease"]))
        assert not (await here.take("b", wait=0))["available"]
        await here.carrier.answer_call("a", messages.SilenceCall())
        here.carrier.worker_joined("a")
        assert (await here.take("b", wait=0, ttl=900))["fence"] == 2
        here.clock.time += 51
        here.clock.advance()
        late = await here.submit("a", mine)
        assert (late["accepted"], late["refusal"]) == (False, "Stale")


@asynccontextmanager
async def visit(folder: Path) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    reader, writer = await asyncio.open_unix_connection(folder / "pull" / SOCKET_FILE)
    try:
        yield reader, writer
    finally:
        writer.close()


@pytest.mark.parametrize(
    ("line", "error"),
    [
        (b"hello\n", "this is not a call"),
        (b"\xff\n", "this is not a call"),
        (b"[" * 100_000 + b"\n", "this is not a call"),
        (b'{"do": "next", "call": 1}\n', "say hello first"),
        (b'{"do": "hello", "call": 1, "arguments": {"worker": ""}}\n', "say hello first"),
        (
            b'{"do": "hello", "call": 1, "arguments": {"worker": "x", "token": "y"}}\n',
            "this is not a call",
        ),
        (b'{"do": "rule", "call": 1}\n', "this is not a call"),
        (b"x" * (messages.MAX_LINE + 2) + b"\n", "this is not a call"),
    ],
)
async def test_visitors_who_do_not_behave_are_sent_away(
    tmp_path: Path, line: bytes, error: str
) -> None:
    async with room(tmp_path) as here:
        here.carrier.send([ask(1)])
        async with visit(tmp_path) as (reader, writer):
            writer.write(line)
            assert error in json.loads(await reader.readline())["error"]
            assert await reader.read() == b""
        assert (await here.take("a", wait=0))["available"]


async def test_the_place_is_for_its_owner_alone(tmp_path: Path) -> None:
    async with room(tmp_path):
        modes = [(tmp_path / "pull" / name).stat().st_mode for name in ("", SOCKET_FILE)]
        assert [stat.S_IMODE(mode) for mode in modes] == [0o700, 0o600]
    assert not (tmp_path / "pull" / SOCKET_FILE).exists()


async def test_a_long_path_is_no_hindrance(tmp_path: Path) -> None:
    deep = tmp_path / ("x" * 120)
    async with room(deep):
        found: list[str] = []
        use_socket_path(deep / "pull", found.append)
        assert (deep / "pull" / SOCKET_FILE).is_socket()
        assert len(os.fsencode(found[0])) < 100


async def test_a_place_that_is_not_ours(tmp_path: Path) -> None:
    (tmp_path / "pull").symlink_to(tmp_path)
    with pytest.raises(SourceError, match="not a folder of this user"):
        WorkerSocket(tmp_path / "pull", WorkerBench(tmp_path).carrier).open()
    (tmp_path / "file").write_text("")
    with pytest.raises(SourceError, match="cannot be used"):
        WorkerSocket(tmp_path / "file" / "pull", WorkerBench(tmp_path).carrier).open()


async def test_tokens_are_reckoned_as_for_files(tmp_path: Path) -> None:
    """Nobody at work knows its bill; a budget of tokens holds for pulled work all the same."""
    async with room(tmp_path) as here:
        here.carrier.send([ask(1)])
        work = await here.take("a")
        answered = asyncio.create_task(here.submit("a", work, n=12345))
        await asyncio.sleep(0)
        here.carrier.settle(1)
        assert (await answered)["accepted"]
        assert here.delivered[-1].usage == Usage(len("Look at 1.") // 4 + len('{"n":12345}') // 4)
