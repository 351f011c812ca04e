"""What an application adds to the loop: facts, examination, effects with decisions, holds."""

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from interlock.carriers.contract import ExecutionContext
from interlock.engine.case import Case, Decision, RefusedAnswer, Signal
from interlock.journal.history import list_dispatches
from interlock.journal.journal import Effect
from interlock.runtime.application import DefaultHooks
from interlock.system.errors import StoreError
from tests.world.sample_circuit import PAPER
from tests.world.world import World

NOTES = "create table if not exists notes (note text not null)"


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def notes(world: World) -> list[str]:
    return [str(row[0]) for row in world.rows("select note from notes order by rowid")]


class Diary(DefaultHooks):
    """Writes down every decision, in a table of its own."""

    def effects(
        self, case_no: int, case: Case, decision: Decision, data: Mapping[str, Any], by: str
    ) -> Sequence[Effect]:
        def write(raw: Any, at: float) -> None:
            raw.execute(NOTES)
            raw.execute("insert into notes values (?)", (f"{case_no} {case.step} {decision.to}",))

        return [write]


def test_effects_are_written_with_their_decisions(world: World) -> None:
    world.begin("A")
    assert world.work(application=Diary()) == "done"
    assert notes(world) == ["1 write judge", "1 judge sign", "1 sign done"]


class Torn(Diary):
    """Cannot write what the second decision changes."""

    def effects(self, *given: Any) -> Sequence[Effect]:
        def broken(raw: Any, at: float) -> None:
            raise sqlite3.OperationalError("disk I/O error")

        before = super().effects(*given)
        return before if given[1].step == "write" else [*before, broken]


def test_an_effect_that_cannot_be_written_leaves_no_decision_either(world: World) -> None:
    world.begin("A")
    with pytest.raises(StoreError, match="the disk failed"):
        world.work(application=Torn())
    assert world.story() == ["A write#1 artifact written"]
    assert notes(world) == ["1 write judge"]
    assert world.work(application=Diary()) == "done"
    assert notes(world) == ["1 write judge", "1 judge sign", "1 sign done"]


class Strict(DefaultHooks):
    """Refuses what it sees first; raises the mark of what it sees then."""

    def __init__(self) -> None:
        self.seen = 0

    def check_answer(self, case_no: int, case: Case, signal: Signal) -> Signal | RefusedAnswer:
        if case.step != "judge":
            return signal
        self.seen += 1
        if self.seen == 1:
            return RefusedAnswer("Malformed", "Look again.")
        return msgspec.structs.replace(signal, data={**signal.data, "mark": 5})


def test_rules_see_an_answer_as_it_was_examined(world: World) -> None:
    world.begin("A")
    assert world.work(application=Strict()) == "done"
    assert world.refused() == ["Malformed"]
    with world.reading() as connection:
        asked = list_dispatches(connection, case_no=1, texts=True)
    first, again = [each for each in asked if each.step == "judge"]
    assert "Look again." not in first.prompt
    assert "Look again." in again.prompt, "whoever is asked again must be told why"
    assert "A judge#2 artifact good" in world.story()
    assert world.faults() == []


class Facts(DefaultHooks):
    def prompt_values(
        self, case_no: int, case: Case, context: ExecutionContext
    ) -> Mapping[str, Any]:
        return {"weather": f"rain on {case_no}"}


def test_prompts_can_read_the_facts_of_an_application(tmp_path: Path) -> None:
    world = World(tmp_path, PAPER.replace("  write:\n", "  write:\n    prompt: '{{ weather }}'\n"))
    world.begin("A")
    assert world.work(application=Facts()) == "done"
    assert (b"rain on 1",) in world.rows("select data from blobs")


class Convoy(DefaultHooks):
    """Lets nobody be judged before everybody has written."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._there: list[str] = []

    def must_wait(self, case_no: int, case: Case) -> bool:
        if case.step != "judge" or case.status != "open":
            return False
        self._there.append(case.case_id)
        return True

    def released_cases(self) -> Iterable[str]:
        if len(self._there) < self._size:
            return ()
        gone, self._there = self._there, []
        return reversed(gone)


def test_held_cases_wait_and_are_let_go(world: World) -> None:
    world.begin("A", "B", "C")
    assert world.work(application=Convoy(3), places=1) == "done"
    judged = [line.split()[0] for line in world.story() if " judge#" in line]
    assert [line.split()[0] for line in world.story()][:3] == [*"ABC"]
    assert judged == [*"CBA"]
