"""Cases that join a run while it is worked on, those that are changed, and ends that stop it."""

from collections.abc import Iterable
from pathlib import Path

import pytest

from interlock.carriers.contract import ExecutionContext
from interlock.engine.case import Case
from interlock.engine.circuit import HUMAN
from interlock.journal.runs import NewCase
from interlock.runtime.application import DefaultHooks
from interlock.runtime.session import OneRound
from tests.world.sample_circuit import PAPER
from tests.world.world import World


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(
        tmp_path, PAPER.replace("  write:\n", "  write:\n    prompt: '{{ case.topic }}'\n")
    )


class Editor(DefaultHooks):
    """Has news when that case comes to its judge."""

    def __init__(self, *news: NewCase, after: str = "A") -> None:
        self._news = news
        self._after = after
        self._is_time = False

    def prompt_values(
        self, case_no: int, case: Case, context: ExecutionContext
    ) -> dict[str, object]:
        self._is_time = self._is_time or (case.case_id, case.step) == (self._after, "judge")
        return {}

    def new_cases(self) -> Iterable[NewCase]:
        if not self._is_time:
            return ()
        news, self._news = self._news, ()
        return news


class Holder(DefaultHooks):
    """Hold the case at its judge, and let it go on in the next turn."""

    def __init__(self) -> None:
        self.held: set[str] = set()

    def must_wait(self, case_no: int, case: Case) -> bool:
        if case.step == "judge":
            self.held.add(case.case_id)
        return case.step == "judge"

    def released_cases(self) -> Iterable[str]:
        held, self.held = self.held, set()
        return held


def case(name: str, *needs: str, topic: str = "old") -> NewCase:
    return NewCase(name, {"id": name, "topic": topic}, needs=needs)


def prompts(world: World) -> list[str]:
    found = world.rows(
        "select b.data from dispatches d join blobs b on b.blob_id = d.prompt"
        " where d.step = 'write' order by d.dispatch_id"
    )
    return [bytes(row[0]).decode() for row in found]  # type: ignore[call-overload]


def test_a_new_case_joins_and_waits_for_what_it_needs(world: World) -> None:
    world.begin(case("A"))
    assert world.work(application=Editor(case("B", "A"), case("C", "B"))) == "done"
    assert world.ends() == dict.fromkeys("ABC", "done")
    order = [line for line in world.story() if " sign#1" in line or " write#1" in line]
    assert [line[:2].strip() for line in order] == [*"AABBCC"]
    assert world.faults() == []
    assert world.tally.cases == 3


def test_a_released_case_still_rests_if_it_had_its_turn(world: World) -> None:
    world.begin(case("A"))
    once = OneRound(world.circuit, {HUMAN})
    assert world.work(application=Holder(), pace=once) == "stopped"
    assert [line.split()[:2] for line in world.story()] == [["A", "write#1"]]
    assert world.work() == "done"


def test_one_that_needs_what_is_over_starts_at_once(world: World) -> None:
    world.begin(case("A"), case("Z", "A"))
    news = Editor(case("B", "A"), after="Z")
    assert world.work(application=news) == "done"
    assert world.ends() == dict.fromkeys("AZB", "done")


def test_an_open_case_is_changed_and_one_that_is_over_is_not(world: World) -> None:
    world.begin(case("A"), case("B", "A"), case("C", "A"))
    news = Editor(case("A", topic="new"), case("B", "C", topic="new"))
    assert world.work(application=news) == "done"
    assert prompts(world) == ["old", "old", "new"], "A, then C, then B behind it"
    assert world.faults() == []
    again = world.rows("select case_id, needs from cases order by case_id")
    assert again == [("A", "[]"), ("B", '["C"]'), ("C", '["A"]')]


def test_what_joined_is_there_after_a_restart(world: World) -> None:
    world.begin(case("A"))
    world.work(application=Editor(case("B", "A")), inbox=True)
    assert world.ends() == {"A": "open", "B": "open"}
    world.answer(3, "approve")
    world.work(inbox=True)
    assert world.ends()["A"] == "done"
    assert "B write#1 artifact written" in world.story()


HALTING = PAPER.replace("dropped: unhealthy}", "dropped: halting}")


def test_an_end_that_halts_stops_the_run_at_once(tmp_path: Path) -> None:
    world = World(tmp_path, HALTING)
    world.begin("A", "B", "C")
    script = """
"*": {write: {answer: {words: 1}}, judge: {answer: {mark: 9}}, sign: {silent: true}}
B: {write: {answer: {words: 1}}, judge: {answer: {mark: 0}}}
"""
    assert world.work(script, wait=True) == "stopped"
    assert world.tally.halted == "B"
    assert world.ends() == {"A": "open", "B": "dropped", "C": "open"}
