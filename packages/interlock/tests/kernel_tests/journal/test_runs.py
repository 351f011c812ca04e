"""Runs: begun whole, found again, taken up where they stood."""

from pathlib import Path

import pytest

from interlock.engine.advance import open_case
from interlock.engine.schedule import Budget, Spent
from interlock.journal.address import DatabaseAddress
from interlock.journal.database import open_writer
from interlock.journal.runs import (
    LoadedCase,
    NewCase,
    OpenDispatch,
    Run,
    find_run,
    find_unfinished_run,
    list_runs,
    load_cases,
    load_holds,
    load_open_dispatches,
    set_options,
)
from interlock.system.errors import StoreError
from tests.world.sample_circuit import HOLDING, PAPER
from tests.world.world import World

AT = 1_000_000.0


@pytest.fixture
def world(tmp_path: Path, db: DatabaseAddress) -> World:
    return World(tmp_path, db=db)


def test_a_run_is_begun_with_all_it_needs(world: World) -> None:
    cases = [NewCase("A", {"id": "A", "x": [1]}, 3), NewCase("B", {"id": "B"}, 0, ("A",))]
    assert world.begin(*cases) == 1
    assert world.run() == Run(1, "paper", 1, "test", PAPER, {}, "running", Spent(), AT, AT)
    with world.reading() as connection:
        first, second = load_cases(connection, world.circuit, 1)
    start = open_case(world.circuit, "A", {"id": "A", "x": [1]})
    assert first == LoadedCase(1, start, 3, (), None)
    assert second == LoadedCase(2, open_case(world.circuit, "B", {"id": "B"}), 0, ("A",), None)


def test_a_run_that_cannot_be_begun_leaves_nothing(world: World) -> None:
    world.begin("A")
    before = world.rows("select count(*) from blobs")
    with pytest.raises(StoreError, match=r"(UNIQUE constraint failed|duplicate key)"):
        world.begin("B", "C", "B")
    assert world.rows("select run_id, case_id from cases") == [(1, "A")]
    assert (world.rows("select count(*) from runs"), world.rows("select count(*) from blobs")) == (
        [(1,)],
        before,
    )


def test_runs_are_found_by_number_or_as_the_newest(world: World) -> None:
    world.begin("A")
    world.begin("B")
    with world.reading() as connection:
        assert [each.run_id for each in list_runs(connection)] == [1, 2]
        assert [find_run(connection).run_id, find_run(connection, 1).run_id] == [2, 1]
        for number in (3, 0, -1, 10**30):
            with pytest.raises(StoreError) as caught:
                find_run(connection, number)
            assert str(caught.value) == f"there is no run {number}; 'interlock runs' lists them"


def test_no_runs_yet(world: World) -> None:
    with open_writer(world.address) as connection, pytest.raises(StoreError) as caught:
        find_run(connection)
    assert str(caught.value) == "there are no runs yet; 'interlock runs' lists them"


def test_the_newest_unfinished_run_of_the_same_mark(world: World) -> None:
    for _ in range(3):
        world.begin("A")
    world.work(run_id=3)
    with world.reading() as connection:
        assert find_unfinished_run(connection, "mark") == 2
        assert find_unfinished_run(connection, "another") is None


def test_options_can_change(world: World) -> None:
    world.begin("A")
    with open_writer(world.address) as connection:
        set_options(connection, 1, {"parallel": 3})
    assert world.run().options == {"parallel": 3}


def test_what_is_open_is_found_again(world: World) -> None:
    world.begin("A", "B")
    world.work('"*": {write: {answer: {words: 5}}}', inbox=True, budget=Budget(dispatches=1))
    world.work(inbox=True)
    with world.reading() as connection:
        found = list(load_open_dispatches(connection, 1))
        cases = {each.case.case_id: each for each in load_cases(connection, world.circuit, 1)}
    assert [
        (each.dispatch_id, each.case_id, each.step, each.attempt, each.role) for each in found
    ] == [(cases[name].dispatch_id, name, "sign", 1, "human") for name in ("A", "B")]
    assert all(isinstance(each, OpenDispatch) and each.prompt for each in found)
    assert cases["A"].case.answers == {"write": {"words": 5}, "judge": {"mark": 4}}


def test_a_case_that_is_over_is_loaded_by_its_end_unless_asked_for(world: World) -> None:
    world.begin("A")
    world.work()
    with world.reading() as connection:
        (short,) = load_cases(connection, world.circuit, 1)
        (whole,) = load_cases(connection, world.circuit, 1, whole=True)
    assert (short.case.status, short.case.end, short.case.answers) == ("ended", "done", {})
    assert (whole.case.status, whole.case.end) == ("ended", "done")
    assert whole.case.answers["sign"] == {"decision": "approve"}


def test_a_hold_ends_with_its_case_and_the_next_may_hold(
    tmp_path: Path, db: DatabaseAddress
) -> None:
    world = World(tmp_path, HOLDING, db)
    world.begin("A", "B")
    broken = "work: {answer: {broken: 1}}, fix: {answer: {unsure: 1}}"
    agents = f'"*": {{{broken}, ask: {{answer: {{decision: approve}}}}}}'
    for limit, held in ((1, {"repair": "A"}), (2, {}), (3, {"repair": "B"}), (9, {})):
        world.work(agents, places=1, budget=Budget(dispatches=limit), wait=True)
        with world.reading() as connection:
            assert load_holds(connection, world.circuit, 1) == held
    assert world.ends() == {"A": "done", "B": "done"}
