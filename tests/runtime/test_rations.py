"""Rations: what a carrier with little room is sent, and who goes meanwhile."""

from collections.abc import Sequence
from pathlib import Path

import msgspec
from tests.world.paper import PAPER
from tests.world.world import World

from interlock.agents.carrier import Ask, Carrier, Deliver, HasCapacity
from interlock.agents.script import ScriptAgent, read_script
from interlock.engine.schedule import Budget
from interlock.runtime.outbox import CarrierCapacity

CREW = """\
"*":
  write: {answer: {words: 5}}
  judge: {answer: {mark: 4}}
"""
NO_GATE = PAPER.replace("to: sign}", "to: done}", 1)


class Ferry:
    """Takes so many at once, and no more until all are across."""

    def __init__(self, inside: Carrier, size: int) -> None:
        self.trips: list[list[str]] = []
        self.size = size
        self._inside = inside
        self._aboard: set[int] = set()

    def start(self, deliver: Deliver) -> None:
        self._inside.start(deliver)

    def room(self) -> int:
        return 0 if self._aboard else self.size

    def send(self, asks: Sequence[Ask]) -> None:
        self.trips.append([f"{ask.case_id}:{ask.step}" for ask in asks])
        self._aboard |= {ask.dispatch_id for ask in asks}
        self._inside.send(asks)

    def settled(self, dispatch_id: int, error: str = "") -> None:
        self._aboard.discard(dispatch_id)
        self._inside.settled(dispatch_id, error)

    async def close(self) -> None:
        await self._inside.close()


def ferry(world: World, size: int, crew: str = CREW) -> Ferry:
    return Ferry(ScriptAgent(read_script(crew, "crew.yaml"), world.clock), size)


def test_trips_are_full_and_mix_the_roles_of_one_carrier(tmp_path: Path) -> None:
    world = World(tmp_path, NO_GATE)
    world.begin("A", "B", "C")
    boat = ferry(world, 2)
    assert world.work(carriers={"author": boat, "critic": boat}) == "done"
    assert boat.trips == [["A:write", "B:write"], ["C:write", "A:judge"], ["B:judge", "C:judge"]]


def test_who_has_no_room_does_not_keep_others_waiting(tmp_path: Path) -> None:
    world = World(tmp_path, NO_GATE)
    world.begin("A", "B", "C")
    boat = ferry(world, 1, '"*": {write: {delay: 5s, answer: {words: 5}}}')
    assert world.work(CREW, carriers={"author": boat}, places=2) == "done"
    assert boat.trips == [["A:write"], ["B:write"], ["C:write"]]
    assert [line.split()[1] for line in world.story()][:2] == ["write#1", "judge#1"]


def test_no_room_at_all_ends_like_a_spent_budget(tmp_path: Path) -> None:
    world = World(tmp_path, NO_GATE)
    world.begin("A", "B")
    boat = ferry(world, 1)
    assert world.work(carriers={"author": boat}, budget=Budget(dispatches=2)) == "budget"
    boat.size = 0
    assert world.work(carriers={"author": boat}) == "budget"
    boat.size = 1
    assert world.work(carriers={"author": boat}) == "done"


def test_a_stop_lets_the_trip_end_and_begins_no_other(tmp_path: Path) -> None:
    world = World(tmp_path, NO_GATE)
    world.begin("A", "B", "C")
    boat = ferry(world, 2, CREW.replace("{answer: {words", "{delay: 5s, answer: {words"))
    status = world.work(
        carriers={"author": boat, "critic": boat}, at_rest=[lambda loop: loop.stop()]
    )
    assert (status, boat.trips) == ("stopped", [["A:write", "B:write"]])


def test_roles_with_one_carrier_share_its_room(tmp_path: Path) -> None:
    world = World(tmp_path)
    boat, script = ferry(world, 2), ScriptAgent(read_script(CREW, "crew.yaml"), world.clock)
    assert isinstance(boat, HasCapacity)
    assert not isinstance(script, HasCapacity)
    rations = CarrierCapacity({"a": boat, "b": boat, "c": script})
    rations.ask()
    assert [rations.reserve(role) for role in ("a", "c", "b", "a", "c")] == [
        *(True, True, True, False, True)
    ]
    assert rations.closed_roles == {"a", "b"}
    assert not CarrierCapacity({"c": script})


def test_sent_at_is_the_moment_of_opening_also_after_a_restart(tmp_path: Path) -> None:
    world = World(tmp_path, NO_GATE)
    world.begin("A")
    seen: list[Ask] = []

    class Deaf(Ferry):
        def send(self, asks: Sequence[Ask]) -> None:
            seen.extend(asks)

    deaf = Deaf(ScriptAgent(read_script(CREW, "crew.yaml"), world.clock), 9)
    twice = [lambda loop: loop.stop(), lambda loop: loop.stop()]
    for _ in range(2):
        world.work(carriers={"author": deaf}, at_rest=twice)
        world.clock.time += 3
    assert seen[0] == seen[1]
    assert msgspec.structs.asdict(seen[0])["at"] == 1_000_000.0
