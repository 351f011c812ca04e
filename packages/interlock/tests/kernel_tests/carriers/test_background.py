"""An unexpected error anywhere in a carrier ends its dispatch, and leaves its traceback."""

import asyncio
import os
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

import interlock
from interlock.carriers.acp.carrier import AcpAgent
from interlock.carriers.background import report_failure
from interlock.carriers.cli.carrier import AgentHome, ProcessAgent
from interlock.carriers.cli.ownership import WorkspaceOwner
from interlock.carriers.cli.profiles import AgentSettings, read_profile
from interlock.carriers.contract import Ask, Carrier, Reply
from interlock.carriers.exec import CommandAgent
from interlock.carriers.files import DispatchFiles
from interlock.carriers.files.batch import BatchCarrier
from interlock.carriers.files.file import FileCarrier
from interlock.carriers.function import AsyncHandler, Handler
from interlock.carriers.human import AnswerPolicy, HumanAnswer, HumanCarrier, write_answer
from interlock.carriers.script import Behaviour, Script, ScriptAgent
from interlock.journal.mailbox import Mailbox
from interlock.system.clock import SystemClock
from tests.world.crashes import boom, check_crash
from tests.world.note import AGENTS, NOTE, PATIENCE, RAIN

ASK = Ask(7, 1, "C7", "work", 1, "worker", "Work.", case_no=7)
CLOCK = SystemClock()


class BrokenOwner(WorkspaceOwner, frozen=True):
    def make_tag(self, run_id: int, dispatch_id: int, nonce: str) -> str:
        return str(boom())


class BrokenPolicy(AnswerPolicy, frozen=True):
    def find_problem(self, step: str, by: str, user: str) -> str:
        return str(boom())


class BrokenScript(Script, frozen=True):
    def find_behaviour(self, case_id: str, step: str, attempt: int) -> Behaviour:
        found: Behaviour = boom()
        return found


class Loose(Carrier):
    """A carrier of somebody else, which does its work in its own ways."""

    def __init__(self, begin: Callable[[], None]) -> None:
        self._begin = begin

    def send(self, asks: Sequence[Ask]) -> None:
        self._begin()


def in_a_timer(_folder: Path) -> Carrier:
    return Loose(lambda: void(asyncio.get_running_loop().call_later(0.001, boom)))


def in_a_timer_of_a_timer(_folder: Path) -> Carrier:
    def again() -> None:
        asyncio.get_running_loop().call_soon(boom)

    return Loose(lambda: void(asyncio.get_running_loop().call_soon(again)))


def in_a_reader(_folder: Path) -> Carrier:
    reader, writer = os.pipe()
    os.write(writer, b"x")
    os.close(writer)

    def read() -> None:
        asyncio.get_running_loop().remove_reader(reader)
        os.close(reader)
        boom()

    return Loose(lambda: asyncio.get_running_loop().add_reader(reader, read))


def in_a_task(_folder: Path) -> Carrier:
    async def work() -> None:
        await asyncio.to_thread(boom)

    tasks: list[asyncio.Task[None]] = []

    def begin() -> None:
        tasks.append(asyncio.get_running_loop().create_task(work()))
        tasks[0].add_done_callback(report_failure)

    return Loose(begin)


def void(_what: object) -> None:
    pass


def home(folder: Path) -> AgentHome:
    return AgentHome(folder, folder, WorkspaceOwner("crashes"), {}, boom)


def sent(_folder: Path) -> Carrier:
    return Loose(boom)


def handler(_folder: Path) -> Carrier:
    return Handler(boom)


def async_handler(_folder: Path) -> Carrier:
    async def work(_ask: Ask) -> Reply:
        found: Reply = await asyncio.to_thread(boom)
        return found

    return AsyncHandler(work)


def command(_folder: Path) -> Carrier:
    return CommandAgent(["true"], {}, BrokenOwner("crashes"))


def process(folder: Path) -> Carrier:
    return ProcessAgent(read_profile("claude"), AgentSettings(), "true", home(folder), CLOCK)


def acp(folder: Path) -> Carrier:
    return AcpAgent(["true"], home(folder), CLOCK)


def file_names(folder: Path) -> Carrier:
    def names(_step: str, _attempt: int) -> DispatchFiles:
        found: DispatchFiles = boom()
        return found

    return FileCarrier(folder, CLOCK, names=names)


def file_tick(folder: Path) -> Carrier:
    found = FileCarrier(folder, CLOCK, mode="poll")
    found.on_tick.append(boom)
    return found


def batch(folder: Path) -> Carrier:
    return BatchCarrier(FileCarrier(folder, CLOCK), CLOCK, workspace=folder)


def human(folder: Path) -> Carrier:
    mail = Mailbox(folder / "i.db", "answers")
    write_answer(mail, HumanAnswer(7, "ann", {}))
    return HumanCarrier(mail, CLOCK, BrokenPolicy(("ann",)))


def script(_folder: Path) -> Carrier:
    return ScriptAgent(BrokenScript({}), CLOCK)


@pytest.mark.parametrize(
    "make",
    [
        sent,
        in_a_timer,
        in_a_timer_of_a_timer,
        in_a_reader,
        in_a_task,
        handler,
        async_handler,
        command,
        process,
        acp,
        file_names,
        file_tick,
        batch,
        human,
        script,
    ],
)
async def test_an_unexpected_error_ends_the_dispatch(
    tmp_path: Path, make: Callable[[Path], Carrier]
) -> None:
    await check_crash(make(tmp_path), ASK, tmp_path, enrich=boom)


def test_a_run_goes_on_when_a_carrier_breaks(tmp_path: Path) -> None:
    """The circuit decides what a crash means: this one asks again, then ends the case."""
    circuit = tmp_path / "note.yaml"
    circuit.write_text(NOTE)
    with interlock.Project(tmp_path) as project:
        run = project.start(circuit, RAIN, agents={**AGENTS, "critic": in_a_timer(tmp_path)})
        result = run.wait(PATIENCE)
        output = str(run.explain("C1"))
    assert result is not None
    assert "an internal error in Interlock: KeyError: 'story_id'" in output
    [file] = tmp_path.rglob("crash-*.txt")
    assert "in boom" in file.read_text()
