"""The contract of carriers: what the loop relies on, tried on every carrier there is."""

import asyncio
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import ClassVar

import msgspec
import pytest

from interlock.carriers.background import TaskCarrier
from interlock.carriers.cli.carrier import AgentHome, ProcessAgent, make_nonce
from interlock.carriers.cli.ownership import WorkspaceOwner
from interlock.carriers.cli.profiles import AgentSettings, read_profile
from interlock.carriers.contract import Ask, Carrier, Reply, Session
from interlock.carriers.exec import CommandAgent
from interlock.carriers.files.batch import BatchCarrier
from interlock.carriers.files.file import FileCarrier, ManualCarrier
from interlock.carriers.function import Dispatch, FunctionCarrier
from interlock.carriers.human import HumanAnswer, HumanCarrier, write_answer
from interlock.carriers.pull.carrier import PullCarrier
from interlock.carriers.pull.offers import OfferTable
from interlock.carriers.pull.tools import PullTools
from interlock.carriers.queries import QueryBroker
from interlock.carriers.script import ScriptAgent, read_script
from interlock.journal.mailbox import Mailbox
from interlock.system.clock import SystemClock
from interlock.system.errors import SourceError
from interlock.testing.contracts import CarrierContract
from interlock.testing.kit import ManualClock
from kernel_tests.carriers.pull.test_carrier import NoRuns
from tests.world.acp_agents import GOOD, make_acp_agent
from tests.world.carrier_bench import Bench, ask


def command(_folder: Path, _clock: ManualClock) -> Carrier:
    return CommandAgent(["sh", "-c", 'printf "{\\"n\\":%s}" $INTERLOCK_DISPATCH_ID'], {})


def process(folder: Path, _clock: ManualClock) -> Carrier:
    program = folder / "agent"
    start = '{"type":"system","subtype":"init","session_id":"s"}'
    ended = (
        '{"type":"result","subtype":"success","is_error":false,"num_turns":1,'
        r'"result":"{\\"n\\":%s}"}'
    )
    program.write_text(
        f"#!/bin/sh\ncat > /dev/null\necho '{start}'\nprintf '{ended}\\n' $INTERLOCK_DISPATCH_ID\n"
    )
    program.chmod(0o755)
    environ = {"PATH": os.environ["PATH"]}
    station = AgentHome(folder / "agents", folder, WorkspaceOwner("contract"), environ, make_nonce)
    return ProcessAgent(
        read_profile("claude"), AgentSettings(), str(program), station, SystemClock()
    )


def function(_folder: Path, _clock: ManualClock) -> Carrier:
    return FunctionCarrier(lambda dispatch: {"n": dispatch.id})


def async_function(_folder: Path, _clock: ManualClock) -> Carrier:
    async def judge(dispatch: Dispatch) -> str:
        await asyncio.sleep(0)
        return f'{{"n":{dispatch.id}}}'

    return FunctionCarrier(judge)


def acp(folder: Path, _clock: ManualClock) -> Carrier:
    return make_acp_agent(folder, "answers", GOOD)


def human(folder: Path, clock: ManualClock) -> Carrier:
    mail = Mailbox(folder / "i.db", "answers")
    for number in (1, 2):
        write_answer(mail, HumanAnswer(number, "ann", {"n": number}))
    return HumanCarrier(mail, clock)


def script(_folder: Path, clock: ManualClock) -> Carrier:
    text = "C1: {work: {answer: {n: 1}}}\nC2: {work: {answer: {n: 2}}}"
    return ScriptAgent(read_script(text, "crew.yaml"), clock)


def slow_script(_folder: Path, clock: ManualClock) -> Carrier:
    text = "C1: {work: {delay: 5s, answer: {n: 1}}}\nC2: {work: {delay: 9s, answer: {n: 2}}}"
    return ScriptAgent(read_script(text, "crew.yaml"), clock)


def laid_out(folder: Path) -> Path:
    """Artifacts for the first two dispatches, as a watcher left them before a restart."""
    for number in (1, 2):
        place = folder / "1" / f"{number}"
        place.mkdir(parents=True)
        wrapped = f'{{"dispatch_id": {number}, "data": {{"n":{number}}}}}'
        (place / "work-result.json").write_text(wrapped)
    return folder


def file(folder: Path, clock: ManualClock) -> Carrier:
    return FileCarrier(laid_out(folder), clock)


def polled_file(folder: Path, clock: ManualClock) -> Carrier:
    return FileCarrier(laid_out(folder), clock, mode="poll")


def manual(folder: Path, clock: ManualClock) -> Carrier:
    return ManualCarrier(laid_out(folder), clock)


def batch(folder: Path, clock: ManualClock) -> Carrier:
    carrier = FileCarrier(laid_out(folder), clock)
    return BatchCarrier(carrier, clock, workspace=folder)


class Pulled(PullCarrier):
    """Its agent takes and answers by the tools, over a connection of its own."""

    def start(self, session: Session) -> None:
        super().start(session)
        self._working = asyncio.create_task(self._work())

    async def close(self) -> None:
        if not self._working.done():
            self._working.cancel()
            await asyncio.gather(self._working, return_exceptions=True)
        await super().close()

    async def _work(self) -> None:
        tools = PullTools(
            OfferTable(self._db), QueryBroker(Mailbox(self._db, "queries")), NoRuns(), client="w"
        )
        answering: list[asyncio.Task[object]] = []
        try:
            while True:
                work = await tools.call_tool("interlock_next", {"wait": 1})
                if isinstance(work, dict) and work["available"]:
                    held = {name: work[name] for name in ("dispatch_id", "lease")}
                    answer = {**held, "answer": {"n": work["dispatch_id"]}}
                    call = tools.call_tool("interlock_submit", answer)
                    answering.append(asyncio.create_task(call))
        finally:
            for task in answering:
                task.cancel()
            await asyncio.gather(*answering, return_exceptions=True)
            await tools.close()


def pulled(folder: Path, _clock: ManualClock) -> Carrier:
    return Pulled(folder / "interlock.db")


Make = Callable[[Path, ManualClock], Carrier]
MAKERS: list[Make] = [
    *(command, process, acp, human, script, slow_script, function, async_function),
    *(file, polled_file, manual, batch, pulled),
]


class TestEveryCarrier(CarrierContract):
    """Each of ours keeps what the contract says."""

    answers: ClassVar[dict[int, bytes]] = {1: b'{"n":1}', 2: b'{"n":2}'}

    @pytest.fixture(autouse=True, params=MAKERS, ids=lambda each: each.__name__)
    def _choose(self, request: pytest.FixtureRequest) -> None:
        self._make: Make = request.param

    def make_carrier(self, folder: Path, clock: ManualClock) -> Carrier:
        return self._make(folder, clock)

    def prepare_again(self, folder: Path) -> None:
        mail = Mailbox(folder / "i.db", "answers")
        write_answer(mail, HumanAnswer(1, "ann", {"n": 1}))


def case(number: int) -> Ask:
    return msgspec.structs.replace(ask(number), case_id=f"C{number}", case_no=number)


class Working(TaskCarrier):
    """A carrier that is nothing but its tasks."""

    def __init__(
        self,
        work: Callable[[Ask], Awaitable[Reply]],
        first: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        super().__init__()
        self._work = work
        self._first = first
        self.reported: list[str] = []

    def start(self, session: Session) -> None:
        asyncio.get_running_loop().set_exception_handler(
            lambda _loop, context: self.reported.append(f"{context['exception']!r}")
        )
        super().start(session)

    async def prepare(self) -> None:
        if self._first is not None:
            await self._first()

    async def answer(self, ask: Ask) -> Reply:
        return await self._work(ask)

    async def close(self) -> None:
        await super().close()
        await asyncio.sleep(0)  # what is called when a task is done is called after it
        asyncio.get_running_loop().set_exception_handler(None)


async def echo(ask: Ask) -> Reply:
    return Reply(ask.dispatch_id)


async def test_a_task_that_breaks_is_a_crash_and_is_reported() -> None:
    async def work(ask: Ask) -> Reply:
        raise KeyError(ask.dispatch_id)

    carrier = Working(work)
    async with Bench(carrier) as bench:
        bench.carrier.send([case(1), case(2)])
        replies = await bench.until(2)
    assert [each.failure for each in replies] == ["crash", "crash"]
    assert replies[0].reason == "an internal error in Interlock: KeyError: 1"
    assert carrier.reported == ["KeyError(1)", "KeyError(2)"]


async def test_a_reply_that_cannot_be_delivered_is_reported() -> None:
    def deliver(_reply: Reply) -> None:
        arrived.set()
        raise RuntimeError("nobody there")

    arrived = asyncio.Event()
    carrier = Working(echo)
    carrier.start(Session(deliver))
    carrier.send([case(1)])
    await arrived.wait()
    await carrier.close()
    assert carrier.reported == ["RuntimeError('nobody there')"]


async def test_what_every_task_waits_for_may_fail() -> None:
    async def first() -> None:
        await asyncio.sleep(0)
        raise SourceError("no process can be seen")

    async with Bench(Working(echo, first)) as bench:
        bench.carrier.send([case(1), case(2)])
        replies = await bench.until(2)
    assert [each.reason for each in replies] == ["no process can be seen"] * 2


async def test_a_dispatch_can_be_sent_again_as_soon_as_its_reply_is_there() -> None:
    """After a rate limit it comes again without being settled."""
    async with Bench(Working(echo)) as bench:
        bench.carrier.send([case(1)])
        await bench.until(1)
        bench.carrier.send([case(1)])
        await bench.until(2)


async def test_what_is_dropped_before_it_began_is_never_begun() -> None:
    started: list[int] = []

    async def work(ask: Ask) -> Reply:
        started.append(ask.dispatch_id)
        return Reply(ask.dispatch_id)

    async with Bench(Working(work)) as bench:
        bench.carrier.send([case(1)])
        bench.carrier.settle(1)
    assert started == []
