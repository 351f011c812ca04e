"""Occasions: what is told of a run, when, and how often."""

from pathlib import Path

from tests.world.paper import GOOD_CREW, PAPER
from tests.world.world import World

from interlock.journal.runs import NewCase

STUCK = PAPER.replace("otherwise: dropped\n", "")


def told(world: World) -> list[tuple[str, str]]:
    found = [(str(each.event), each.text) for each in world.notices]
    world.notices.clear()
    return found


def test_gates_of_one_family_are_one_notice_and_told_once(tmp_path: Path) -> None:
    world = World(tmp_path)
    cases = [NewCase(name, {"id": name, "family": "kin"}) for name in ("A", "B", "C")]
    world.begin(*cases, "D")
    assert world.work(desk=True) == "waiting"
    assert told(world) == [
        ("gate", "A and 2 more at sign: 'interlock answer 9 DECISION'"),
        ("gate", "D at sign: 'interlock answer 12 DECISION'"),
    ]
    assert world.work(desk=True) == "waiting"
    assert told(world) == []
    for question in (9, 10, 11, 12):
        world.answer(question, "approve")
    assert world.work(desk=True) == "done"
    assert told(world) == [("over", "run 1: done; 4 done")]


def test_a_case_that_is_stuck_is_told_once(tmp_path: Path) -> None:
    world = World(tmp_path, STUCK)
    world.begin("A", "B")
    crew = GOOD_CREW + "B:\n  write: {crash: oh}\n"
    assert world.work(crew, desk=True) == "waiting"
    assert told(world) == [
        ("stuck", "B stuck at write: 'interlock explain B'"),
        ("gate", "A at sign: 'interlock answer 5 DECISION'"),
    ]
    world.answer(5, "approve")
    assert world.work(crew, desk=True) == "unhealthy"
    assert told(world) == [("over", "run 1: unhealthy; 1 done; 1 stuck")]


def test_a_run_that_only_rests_is_not_over(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.begin("A", "B")
    assert world.work(budget="dispatches=1", desk=True, places=1) == "budget"
    about = "run 1 has spent its budget (dispatches=1): raise it, or stop?"
    assert told(world) == [("budget-low", LOW), ("budget", about)]


LOW = "100% of the budget's dispatches is spent"
