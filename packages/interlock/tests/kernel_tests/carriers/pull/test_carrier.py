"""The carrier that offers work in a table, with the tools that take it: judged, late, closed."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from interlock.carriers.background import CarrierGuard, CrashReporter
from interlock.carriers.contract import Ask, Reply, Session
from interlock.carriers.pull.carrier import MAX_REFUSALS, PullCarrier
from interlock.carriers.pull.messages import RunReport
from interlock.carriers.pull.offers import OfferTable, list_sessions, pull_folder
from interlock.carriers.pull.tools import PullTools
from interlock.carriers.queries import QueryBroker
from interlock.engine.case import RefusedAnswer, Usage
from interlock.engine.circuit import Step
from interlock.engine.shape import ANYTHING
from interlock.journal.mailbox import Mailbox

STEPS = {
    "look": Step("look", "scout", ANYTHING, timeout=60),
    "hurry": Step("hurry", "scout", ANYTHING, timeout=0.2),
    "free": Step("free", "cook", ANYTHING),
    "talk": Step("talk", "scout", ANYTHING, language="text"),
}


def ask(number: int, step: str = "look") -> Ask:
    return Ask(number, 1, f"C{number}", step, 1, STEPS[step].role, f"Look at {number}.")


class NoRuns:
    """A journal without any run."""

    def read_status(self, run_id: int | None) -> dict[str, Any]:
        found = {"run_id": run_id, "status": "", "over": False, "changed_at": 0.0, "reason": "-"}
        return {**found, "cases": 0, "cases_over": 0}

    def read_report(self, run_id: int | None) -> RunReport:
        return RunReport(run_id=run_id, reason="-")


class PullBench:
    """A carrier, what it delivered, and a client."""

    def __init__(self, folder: Path, client: str = "a") -> None:
        self.db = folder / "interlock.db"
        self.carrier = PullCarrier(self.db)
        self.delivered: list[Reply] = []
        self.refusal: RefusedAnswer | None = None
        self._arrived = asyncio.Event()
        self.tools = self.client(client)

    def client(self, name: str) -> PullTools:
        queries = QueryBroker(Mailbox(self.db, "queries"))
        return PullTools(OfferTable(self.db), queries, NoRuns(), client=name)

    def take_reply(self, reply: Reply) -> None:
        self.delivered.append(reply)
        self._arrived.set()

    def judge(self, _ask: Ask, _reply: Reply) -> RefusedAnswer | None:
        return self.refusal

    async def until(self, count: int) -> None:
        while len(self.delivered) < count:
            self._arrived.clear()
            await asyncio.wait_for(self._arrived.wait(), 60)

    async def use(self, tool: str, tools: PullTools | None = None, **words: Any) -> dict[str, Any]:
        found = await (tools or self.tools).call_tool(f"interlock_{tool}", words)
        assert isinstance(found, dict), found
        return found

    async def take(self, tools: PullTools | None = None, **words: Any) -> dict[str, Any]:
        found = await self.use("next", tools, **{"wait": 20, **words})
        assert found["available"], found
        return found

    async def submit(self, work: dict[str, Any], **answer: Any) -> dict[str, Any]:
        return await self.use("submit", **held(work), answer=answer)


def held(work: dict[str, Any]) -> dict[str, Any]:
    return {"dispatch_id": work["dispatch_id"], "lease": work["lease"]}


@asynccontextmanager
async def opened(folder: Path) -> AsyncIterator[PullBench]:
    bench = PullBench(folder)
    bench.carrier.start(Session(bench.take_reply, steps=STEPS, judge=bench.judge))
    try:
        yield bench
    finally:
        await bench.carrier.close()
        await bench.tools.close()


async def test_an_answer_is_accepted_when_it_is_settled_and_not_before(tmp_path: Path) -> None:
    async with opened(tmp_path) as bench:
        bench.carrier.send([ask(1)])
        work = await bench.take()
        first = asyncio.create_task(bench.submit(work, n=1))
        await bench.until(1)
        second = await bench.submit(work, n=2)
        assert (second["accepted"], second["refusal"]) == (False, "Stale")
        await bench.until(2)
        assert not first.done()
        bench.carrier.settle(1)
        assert (await first)["accepted"]
    assert [(each.content, each.refused) for each in bench.delivered] == [
        (b'{"n":1}', ""),
        (b'{"n":2}', "Stale"),
    ]


async def test_what_the_judge_refuses_is_journaled_and_stays(tmp_path: Path) -> None:
    async with opened(tmp_path) as bench:
        bench.refusal = RefusedAnswer("Malformed", "Say more.")
        bench.carrier.send([ask(1)])
        work = await bench.take()
        output = [await bench.submit(work) for _ in range(MAX_REFUSALS)]
    assert [each["open"] for each in output] == [True] * (MAX_REFUSALS - 1) + [False]
    assert {each["sentence"] for each in output} == {"Say more."}
    assert [each.refused for each in bench.delivered] == ["Malformed"] * MAX_REFUSALS + [""]
    assert bench.delivered[-1].failure == "unreadable"


async def test_an_error_of_the_run_is_told_and_a_failure_is_taken(tmp_path: Path) -> None:
    async with opened(tmp_path) as bench:
        bench.carrier.send([ask(1), ask(2)])
        first, second = await bench.take(), await bench.take()
        answered = asyncio.create_task(bench.submit(first))
        await bench.until(1)
        bench.carrier.settle(1, "it is of no use")
        assert (await answered)["refusal"] == "Unreadable"
        given_up = asyncio.create_task(
            bench.use("signal", **held(second), signal="crash", data={"reason": "no log"})
        )
        await bench.until(2)
        bench.carrier.settle(2, "no log")
        assert (await given_up)["accepted"]
    assert (bench.delivered[1].failure, bench.delivered[1].reason) == ("crash", "no log")


async def test_a_steps_time_counts_from_when_it_is_taken(tmp_path: Path) -> None:
    async with opened(tmp_path) as bench:
        bench.carrier.send([ask(1, "hurry"), ask(2, "free")])
        work = await bench.take()
        await bench.until(1)
        assert (bench.delivered[0].dispatch_id, bench.delivered[0].failure) == (1, "timeout")
        bench.carrier.settle(1, "no answer in time")
        late = await bench.submit(work)
        assert (late["accepted"], late["refusal"]) == (False, "Stale")
        await bench.until(2)
    assert bench.delivered[1].refused == "Stale"


async def test_a_client_that_lost_its_work_is_handed_it_again(tmp_path: Path) -> None:
    async with opened(tmp_path) as bench:
        other = bench.client("b")
        bench.carrier.send([ask(1), ask(2, "free")])
        first, second = await bench.take(), await bench.take()
        assert await bench.take(wait=0) == first
        assert await bench.take(wait=0, roles=["cook"]) == second
        assert not (await bench.use("next", wait=0, roles=["nurse"]))["available"]
        none = await bench.use("next", other, wait=0)
        assert none["reason"] == "other workers have all that is open; ask again"
        await other.close()


async def test_a_client_that_hangs_up_while_it_waits_keeps_nothing(tmp_path: Path) -> None:
    async with opened(tmp_path) as bench:
        other = bench.client("b")
        for number in range(1, 30):
            waiting = asyncio.create_task(bench.use("next", other, wait=30))
            await asyncio.sleep(0)
            bench.carrier.send([ask(number, "free")])
            await asyncio.sleep(number / 400)
            waiting.cancel()
            try:
                await waiting
            except asyncio.CancelledError:
                work = await bench.take()
                assert work["dispatch_id"] == number
            bench.carrier.settle(number)
        await other.close()


async def test_an_answer_that_nobody_settles_is_to_be_handed_in_again(tmp_path: Path) -> None:
    async with opened(tmp_path) as bench:
        bench.carrier.send([ask(1)])
        work = await bench.take()
        tools = bench.client("a")
        waiting = asyncio.create_task(bench.use("submit", tools, **held(work), answer={}))
        await bench.until(1)
        assert not bench.carrier.keeps_answers()
        await bench.carrier.close()
        lost = await waiting
        assert (lost["accepted"], lost["refusal"], lost["open"]) == (False, "Unsettled", True)
        lost = await bench.use("submit", tools, **held(work), answer={})
        assert (lost["refusal"], lost["open"]) == ("Unsettled", True)
        assert list_sessions(bench.db) == []
        async with opened(tmp_path) as again:
            again.carrier.send([ask(1)])
            accepted = asyncio.create_task(again.use("submit", tools, **held(work), answer={}))
            await again.until(1)
            again.carrier.settle(1)
            assert (await accepted)["accepted"]
        await tools.close()


async def test_a_run_may_stop_when_nobody_holds_anything(tmp_path: Path) -> None:
    async with opened(tmp_path) as bench:
        woken = asyncio.Event()
        carrier = PullCarrier(bench.db)
        await bench.carrier.close()
        carrier.start(Session(bench.take_reply, steps=STEPS, wake_up=woken.set))
        carrier.send([ask(1)])
        assert carrier.keeps_answers()
        work = await bench.take()
        assert not carrier.keeps_answers()
        assert (await bench.use("signal", **held(work), signal="release"))["accepted"]
        await asyncio.wait_for(woken.wait(), 60)
        assert carrier.keeps_answers()
        await carrier.close()


async def test_a_message_is_handed_in_as_the_text_of_an_object(tmp_path: Path) -> None:
    async with opened(tmp_path) as bench:
        bench.carrier.send([ask(1, "talk")])
        assert "text" in (await bench.take())["answer_schema"]["properties"]


async def test_tokens_are_reckoned_as_for_files(tmp_path: Path) -> None:
    """Nobody at work knows its bill; a budget of tokens holds for pulled work all the same."""
    async with opened(tmp_path) as bench:
        bench.carrier.send([ask(1)])
        work = await bench.take()
        answered = asyncio.create_task(bench.submit(work, n=12345))
        await bench.until(1)
        bench.carrier.settle(1)
        assert (await answered)["accepted"]
    assert bench.delivered[-1].usage == Usage(len("Look at 1.") // 4 + len('{"n":12345}') // 4)


async def test_a_judge_that_fails_ends_the_dispatch(tmp_path: Path) -> None:
    def judge(_ask: Ask, _reply: Reply) -> RefusedAnswer | None:
        raise KeyError("story_id")

    bench, notes = PullBench(tmp_path), list[str]()
    guard = CarrierGuard(bench.carrier)
    with CrashReporter(tmp_path / "crashes", notes.append).install():
        guard.start(Session(bench.take_reply, steps=STEPS, judge=judge))
        guard.send([ask(1), ask(2)])
        answered = asyncio.create_task(bench.submit(await bench.take()))
        await bench.until(1)
        guard.settle(1, bench.delivered[0].reason)
        assert not (await answered)["accepted"]
        await guard.close()
        await bench.tools.close()
    assert [(each.dispatch_id, each.failure) for each in bench.delivered] == [(1, "crash")]
    assert notes[0].endswith("; dispatch 1 ends as crash")


async def test_the_place_of_the_locks_is_for_its_owner_alone(tmp_path: Path) -> None:
    async with opened(tmp_path) as bench:
        folder = pull_folder(bench.db)
        assert folder.stat().st_mode & 0o077 == 0
        bench.carrier.send([ask(1)])
        assert (await bench.tools.read_resource())["text"]
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("words", [{}, {"lease": "1.1.ab"}])
async def test_without_a_run_every_tool_says_so(tmp_path: Path, words: dict[str, Any]) -> None:
    bench = PullBench(tmp_path)
    assert not (await bench.use("next", wait=0))["available"]
    assert not (await bench.use("status", **words))["coordinator"]
    assert not (await bench.use("ask", question="?", **words))["asked"]
    assert (await bench.tools.read_resource())["text"] is None
    lost = await bench.use("submit", dispatch_id=1, lease="1.1.ab", answer={})
    assert (lost["refusal"], lost["open"]) == ("Unsettled", True)
    await bench.tools.close()
    assert not bench.db.exists()
