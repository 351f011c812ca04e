"""The carrier `program`: what our own code answers, what it leaves to others, and how it fails."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.world.paper import GOOD_CREW
from tests.world.world import World

from interlock.agents.carrier import Ask, Reply
from interlock.agents.function import Handler, answer
from interlock.agents.script import ScriptAgent, read_script
from interlock.system.errors import SourceError


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


class Listed(ScriptAgent):
    """A good crew that remembers what it was sent together."""

    def __init__(self, world: World) -> None:
        super().__init__(read_script(GOOD_CREW, "crew.yaml"), world.clock)
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
    return answer(ask, {"words": 5})


def test_a_program_answers_what_it_can_and_leaves_the_rest_together(world: World) -> None:
    world.begin("A", "B", "C")
    crew = Listed(world)
    desk = Handler(writes, crew)
    assert world.work(carriers=dict.fromkeys(world.circuit.roles, desk)) == "done"
    assert crew.sent == ["B:write", "A:judge C:judge B:judge", "A:sign C:sign B:sign"]
    assert world.faults() == []


def test_a_program_alone_that_has_no_answer_crashes_that_dispatch(world: World) -> None:
    world.begin("B")
    desk = Handler(writes)
    world.work(carriers=dict.fromkeys(world.circuit.roles, desk))
    assert "B write#1 crash" in world.story()[0]


def test_a_program_that_meets_a_bad_world_crashes_that_dispatch_only(world: World) -> None:
    def broken(ask: Ask) -> Reply | None:
        if ask.case_id == "A":
            raise SourceError("the repository is gone")
        return None

    world.begin("A", "B")
    desk = Handler(broken, Listed(world))
    world.work(carriers=dict.fromkeys(world.circuit.roles, desk))
    assert any(line.startswith("A write#1 crash") for line in world.story())
    assert world.ends()["B"] == "done"


def test_room_is_that_of_the_carrier_behind(world: World) -> None:
    class Narrow(Listed):
        def __init__(self, world: World) -> None:
            super().__init__(world)
            self.out: set[int] = set()

        def room(self) -> int:
            return 1 - len(self.out)

        def send(self, asks: Sequence[Ask]) -> None:
            self.out |= {ask.dispatch_id for ask in asks}
            super().send(asks)

        def settled(self, dispatch_id: int, error: str = "") -> None:
            self.out.discard(dispatch_id)
            super().settled(dispatch_id, error)

    world.begin("A", "B")
    crew = Narrow(world)
    assert world.work(carriers=dict.fromkeys(world.circuit.roles, Handler(writes, crew)))
    assert all(" " not in each for each in crew.sent)
