"""Our own work as a carrier: answers that come later, failures that are told, work cut short."""

import asyncio

import pytest
from tests.world.bench import Bench, ask

from interlock.agents.carrier import Ask, Reply
from interlock.agents.function import AsyncHandler
from interlock.system.errors import SourceError


async def test_the_answer_comes_when_the_work_is_done() -> None:
    done = asyncio.Event()

    async def work(question: Ask) -> Reply:
        await done.wait()
        return Reply(question.dispatch_id, b"{}")

    async with Bench(AsyncHandler(work)) as bench:
        bench.carrier.send([ask()])
        bench.carrier.send([ask()])
        done.set()
        assert await bench.until(1) == [Reply(ask().dispatch_id, b"{}")]


FAULT = "a fault in Interlock itself: KeyError: 'x'"


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (SourceError("no such tree"), "no such tree"),
        (OSError("disk full"), "disk full"),
        (KeyError("x"), FAULT),
    ],
)
async def test_work_that_fails_is_a_crash(error: Exception, reason: str) -> None:
    async def work(question: Ask) -> Reply:
        raise error

    async with Bench(AsyncHandler(work)) as bench:
        bench.carrier.send([ask()])
        (reply,) = await bench.until(1)
    assert (reply.failure, reply.reason) == ("crash", reason)


async def test_work_that_is_not_needed_any_more_is_cut_short() -> None:
    begun, cut = asyncio.Event(), asyncio.Event()

    async def work(question: Ask) -> Reply:
        begun.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cut.set()
            raise
        return Reply(question.dispatch_id)

    async with Bench(AsyncHandler(work)) as bench:
        bench.carrier.send([ask()])
        await begun.wait()
        bench.carrier.settled(ask().dispatch_id)
        await cut.wait()
    assert bench.replies == []
