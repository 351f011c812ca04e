"""Agents that are code: functions of a user, and handlers of our own applications."""

import asyncio
import threading
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pytest

from interlock.carriers.contract import MAX_ANSWER, Ask, Reply, Traits
from interlock.carriers.function import (
    AsyncHandler,
    Dispatch,
    FunctionCarrier,
    Handler,
    Returned,
    build_answer,
    build_dispatch,
)
from interlock.carriers.script import ScriptAgent, read_script
from interlock.engine.case import Case
from interlock.engine.circuit import Language, Step
from interlock.engine.shape import ANYTHING, build_schema
from interlock.system.errors import SourceError
from tests.world.carrier_bench import Bench, ask
from tests.world.sample_circuit import GOOD_SCRIPT
from tests.world.world import World


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


class Listed(ScriptAgent):
    """A good crew that remembers what it was sent together."""

    def __init__(self, world: World) -> None:
        super().__init__(read_script(GOOD_SCRIPT, "crew.yaml"), world.clock)
        self.sent: list[str] = []

    def send(self, asks: Sequence[Ask]) -> None:
        self.sent.append(" ".join(f"{ask.case_id}:{ask.step}" for ask in asks))
        super().send(asks)


def writes(ask: Ask) -> Reply | None:
    """Knows how to write, and leaves case B to others."""
    if ask.step != "write" or ask.case_id == "B":
        return None
    assert ask.case is not None
    assert (ask.case.case_id, ask.case.step) == (ask.case_id, "write")
    return build_answer(ask, {"words": 5})


def test_a_program_answers_what_it_can_and_leaves_the_rest_together(world: World) -> None:
    world.begin("A", "B", "C")
    helpers = Listed(world)
    carrier = Handler(writes, helpers)
    assert world.work(carriers=dict.fromkeys(world.circuit.roles, carrier)) == "done"
    assert helpers.sent == ["B:write", "A:judge C:judge B:judge", "A:sign C:sign B:sign"]
    assert world.faults() == []


def test_a_program_alone_that_has_no_answer_crashes_that_dispatch(world: World) -> None:
    world.begin("B")
    carrier = Handler(writes)
    world.work(carriers=dict.fromkeys(world.circuit.roles, carrier))
    assert "B write#1 crash" in world.story()[0]


def test_a_program_that_meets_a_bad_world_crashes_that_dispatch_only(world: World) -> None:
    def broken(ask: Ask) -> Reply | None:
        if ask.case_id == "A":
            raise SourceError("the repository is gone")
        return None

    world.begin("A", "B")
    carrier = Handler(broken, Listed(world))
    world.work(carriers=dict.fromkeys(world.circuit.roles, carrier))
    assert any(line.startswith("A write#1 crash") for line in world.story())
    assert world.ends()["B"] == "done"


def test_room_is_that_of_the_carrier_behind(world: World) -> None:
    class Narrow(Listed):
        traits = Traits(capacity="shared")

        def __init__(self, world: World) -> None:
            super().__init__(world)
            self.out: set[int] = set()

        def free_capacity(self, role: str) -> int:
            return 1 - len(self.out)

        def send(self, asks: Sequence[Ask]) -> None:
            self.out |= {ask.dispatch_id for ask in asks}
            super().send(asks)

        def settle(self, dispatch_id: int, error: str = "") -> None:
            self.out.discard(dispatch_id)
            super().settle(dispatch_id, error)

    world.begin("A", "B")
    helpers = Narrow(world)
    assert world.work(carriers=dict.fromkeys(world.circuit.roles, Handler(writes, helpers)))
    assert all(" " not in each for each in helpers.sent)


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


FAULT = "an internal error in Interlock: KeyError: 'x'"


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
    started, cut = asyncio.Event(), asyncio.Event()

    async def work(question: Ask) -> Reply:
        started.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cut.set()
            raise
        return Reply(question.dispatch_id)

    async with Bench(AsyncHandler(work)) as bench:
        bench.carrier.send([ask()])
        await started.wait()
        bench.carrier.settle(ask().dispatch_id)
        await cut.wait()
    assert bench.replies == []


class Verdict(msgspec.Struct):
    score: float


@dataclass
class Note:
    text: str


@pytest.mark.parametrize(
    ("returned", "language", "content"),
    [
        ('{"score": 0.9}', "json", b'{"score": 0.9}'),
        ('```json\n{"score": 0.9}\n```', "json", b'{"score": 0.9}'),
        ("Done. ✓", "text", "Done. ✓".encode()),
        ("```\ncode\n```", "text", b"```\ncode\n```"),
        ({"score": 0.9}, "json", b'{"score":0.9}'),
        ({}, "json", b"{}"),
        (Verdict(0.9), "json", b'{"score":0.9}'),
        (Note("rain"), "json", b'{"text":"rain"}'),
    ],
)
@pytest.mark.parametrize("is_async", [False, True])
async def test_what_a_function_returns_is_the_answer(
    returned: Returned, language: Language, content: bytes, is_async: bool
) -> None:
    def plain(_dispatch: Dispatch) -> Returned:
        return returned

    async def waits(_dispatch: Dispatch) -> Returned:
        await asyncio.sleep(0)
        return returned

    asked = msgspec.structs.replace(ask(7), language=language)
    async with Bench(FunctionCarrier(waits if is_async else plain)) as bench:
        bench.carrier.send([asked])
        assert await bench.until(1) == [Reply(7, content)]


async def test_a_function_sees_its_dispatch_and_cannot_change_the_case() -> None:
    seen: list[Dispatch] = []

    def judge(dispatch: Dispatch) -> dict[str, Any]:
        seen.append(dispatch)
        dispatch.case["tags"].append("mine")
        return {}

    tags = ["wet"]
    case = Case("C1", "judge", input={"topic": "rain", "tags": tags}, context={"draft": "…"})
    asked = Ask(4, 1, "C1", "judge", 2, "critic", "Judge it.", at=1000.0, case=case)
    steps = {"judge": Step("judge", "critic", ANYTHING, timeout=60)}
    async with Bench(FunctionCarrier(judge), steps=steps) as bench:
        bench.carrier.send([asked])
        await bench.until(1)
    assert seen == [
        Dispatch(
            id=4,
            case={"topic": "rain", "tags": ["wet", "mine"], "id": "C1"},
            case_id="C1",
            step="judge",
            role="critic",
            attempt=2,
            prompt="Judge it.",
            schema=build_schema(ANYTHING),
            deadline=1060.0,
            context={"draft": "…"},
        )
    ]
    assert tags == ["wet"]


def test_without_its_steps_a_function_knows_neither_schema_nor_deadline() -> None:
    found = build_dispatch(ask(1))
    assert (found.schema, found.deadline, found.case) == (None, None, {"id": "A"})


class StrangeError(Exception):
    """One of the user's own."""


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (StrangeError("the model is away"), "StrangeError: the model is away"),
        (StrangeError(), "StrangeError"),
        (SourceError("no such file"), "SourceError: no such file"),
        (OSError("disk full"), "OSError: disk full"),
        (SystemExit(3), "SystemExit: 3"),
        (asyncio.CancelledError(), "CancelledError"),
    ],
    ids=lambda each: type(each).__name__,
)
@pytest.mark.parametrize("is_async", [False, True])
async def test_what_a_function_raises_is_a_crash(
    error: BaseException, reason: str, is_async: bool
) -> None:
    def plain(_dispatch: Dispatch) -> str:
        raise error

    async def waits(_dispatch: Dispatch) -> str:
        raise error

    async with Bench(FunctionCarrier(waits if is_async else plain)) as bench:
        bench.carrier.send([ask(), ask(2)])
        found = await bench.until(2)
    assert {(each.failure, each.reason) for each in found} == {("crash", reason)}


async def test_a_plain_function_may_stop_an_iteration() -> None:
    def plain(_dispatch: Dispatch) -> str:
        raise StopIteration

    async with Bench(FunctionCarrier(plain)) as bench:
        bench.carrier.send([ask()])
        (found,) = await bench.until(1)
    assert (found.failure, found.reason) == (
        "crash",
        "RuntimeError: coroutine raised StopIteration",
    )


@pytest.mark.parametrize("returned", [None, 5, ["a"], b"{}", Verdict])
async def test_what_is_no_answer_says_what_to_return(returned: Any) -> None:
    async with Bench(FunctionCarrier(lambda _dispatch: returned)) as bench:
        bench.carrier.send([ask()])
        (found,) = await bench.until(1)
    assert found.failure == "crash"
    assert found.reason.endswith("return text, a dict or a record")


async def test_a_dict_that_is_no_json_is_a_crash() -> None:
    async with Bench(FunctionCarrier(lambda _dispatch: {"when": object()})) as bench:
        bench.carrier.send([ask()])
        (found,) = await bench.until(1)
    assert found.failure == "crash"
    assert "object" in found.reason


async def test_an_answer_without_end_is_unreadable() -> None:
    async with Bench(FunctionCarrier(lambda _dispatch: "x" * (MAX_ANSWER + 1))) as bench:
        bench.carrier.send([ask()])
        (found,) = await bench.until(1)
    assert found.failure == "unreadable"


async def test_whatever_gives_something_to_await_is_awaited() -> None:
    class Judge:
        async def __call__(self, dispatch: Dispatch) -> dict[str, Any]:
            return {"n": dispatch.id}

    judge = Judge()

    def wrapped(dispatch: Dispatch) -> Awaitable[dict[str, Any]]:
        return judge(dispatch)

    for function in (judge, wrapped):
        async with Bench(FunctionCarrier(function)) as bench:
            bench.carrier.send([ask(3)])
            assert await bench.until(1) == [Reply(3, b'{"n":3}')]


async def test_plain_functions_run_at_the_same_time_and_never_on_the_loop() -> None:
    """Each waits for all the others: with one thread too few nobody would ever answer."""
    together = threading.Barrier(40, timeout=120)

    def plain(_dispatch: Dispatch) -> dict[str, Any]:
        together.wait()
        return {"main": threading.current_thread() is threading.main_thread()}

    async with Bench(FunctionCarrier(plain)) as bench:
        bench.carrier.send([ask(number) for number in range(1, 41)])
        found = await bench.until(40)
    assert {each.content for each in found} == {b'{"main":false}'}


@pytest.mark.parametrize("how", ["settled", "closed"])
async def test_an_async_function_is_cancelled_when_nobody_needs_it(how: str) -> None:
    started, cancelled = asyncio.Event(), asyncio.Event()

    async def slow(_dispatch: Dispatch) -> str:
        started.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.set()
            raise
        return ""

    async with Bench(FunctionCarrier(slow)) as bench:
        bench.carrier.send([ask()])
        await started.wait()
        if how == "settled":
            bench.carrier.settle(1)
            await cancelled.wait()
    assert cancelled.is_set()
    assert bench.replies == []


async def test_a_plain_function_that_hangs_does_not_hold_the_stop() -> None:
    started, release, done = threading.Event(), threading.Event(), threading.Event()

    def slow(_dispatch: Dispatch) -> str:
        started.set()
        release.wait(20)
        done.set()
        return "{}"

    async with Bench(FunctionCarrier(slow)) as bench:
        bench.carrier.send([ask()])
        await asyncio.to_thread(started.wait, 20)
    assert not done.is_set()
    release.set()
    await asyncio.to_thread(done.wait, 20)
    await asyncio.sleep(0)
    assert bench.replies == []


def test_a_thread_that_outlives_its_loop_is_harmless() -> None:
    release = threading.Event()
    threads: list[threading.Thread] = []

    async def session() -> None:
        started = asyncio.Event()
        loop = asyncio.get_running_loop()

        def slow(_dispatch: Dispatch) -> str:
            threads.append(threading.current_thread())
            loop.call_soon_threadsafe(started.set)
            release.wait(20)
            return "{}"

        async with Bench(FunctionCarrier(slow)) as bench:
            bench.carrier.send([ask()])
            await started.wait()

    asyncio.run(session())
    release.set()
    (thread,) = threads
    thread.join(120)
    assert not thread.is_alive()
