"""Gates in a run: a human answers before, while or after it is worked on, or does not."""

from pathlib import Path

import pytest

from interlock.runtime.loop import RunLoop
from tests.world.world import World

ASKED = ["A write#1 artifact written", "A judge#1 artifact good"]
QUESTION = 3


@pytest.fixture
def world(tmp_path: Path) -> World:
    """A run that waits for a human to sign."""
    made = World(tmp_path)
    made.begin("A")
    assert made.work(inbox=True) == "waiting"
    return made


def test_a_run_waits_for_its_human(world: World) -> None:
    assert (world.run().status, world.story()) == ("waiting", ASKED)
    assert world.work(inbox=True) == "waiting"
    assert world.rows("select question_id, answered_at from questions") == [(QUESTION, None)]


@pytest.mark.parametrize(
    ("decision", "rule", "status"),
    [("approve", "signed", "done"), ("reject", "unsigned", "unhealthy")],
)
def test_an_answer_given_while_nobody_was_running(
    world: World, decision: str, rule: str, status: str
) -> None:
    world.answer(QUESTION, decision)
    assert world.work(inbox=True) == status
    assert world.story() == [*ASKED, f"A sign#1 artifact {rule}"]
    assert world.rows("select answered_by from questions") == [("ann",)]
    assert world.answers.list_names() == []


def test_an_answer_given_while_the_run_waits(world: World) -> None:
    waits = [lambda _: None, lambda _: world.answer(QUESTION, "approve")]
    assert world.work(inbox=True, wait=True, at_rest=waits) == "done"


def test_a_deadline_that_passed_while_nobody_was_running(world: World) -> None:
    world.clock.time += 61
    assert world.work(inbox=True) == "unhealthy"
    assert world.story() == [*ASKED, "A sign#1 timeout silence"]
    assert world.faults() == []


def test_a_deadline_that_passes_while_the_run_waits(world: World) -> None:
    assert world.work(inbox=True, wait=True) == "unhealthy"
    assert world.story() == [*ASKED, "A sign#1 timeout silence"]
    assert world.rows(
        "select j.at - d.at from journal j join dispatches d using (dispatch_id)"
        " where d.step = 'sign'"
    ) == [(60.0,)]


def test_an_answer_that_lay_there_goes_before_the_deadline(world: World) -> None:
    world.answer(QUESTION, "approve")
    world.clock.time += 1_000
    assert world.work(inbox=True) == "done"


def test_an_answer_after_the_deadline_stays_without_effect(world: World) -> None:
    world.clock.time += 61
    world.work(inbox=True)
    world.answer(QUESTION, "approve")
    assert world.work(inbox=True) == "unhealthy"
    assert len(world.story()) == 3


BROKEN = {
    "not JSON": "approve!",
    "cut off": '{"question_id": 3, "by": "ann", "da',
    "another question's": '{"question_id": 2, "by": "ann", "data": {"decision": "approve"}}',
    "wrong shape": '{"question_id": 3, "by": "ann", "data": {"decision": "perhaps"}}',
    "unknown field": '{"question_id": 3, "by": "ann", "data": {}, "also": 1}',
    "too deep": '{"question_id": 3, "by": "ann", "data": {"x": ' + "[" * 100_000,
    "too long": '{"question_id": 3, "by": "ann", "data": {"x": "' + "x" * 2_000_000 + '"}}',
}


@pytest.mark.parametrize("content", BROKEN.values(), ids=BROKEN)
def test_an_unusable_answer_is_refused_and_the_question_stays_open(
    world: World, content: str
) -> None:
    world.answers.put(str(QUESTION), content.encode())
    assert world.work(inbox=True) == "waiting"
    assert (world.story(), world.refused()) == (ASKED, ["Malformed"])
    assert world.answers.list_names() == []
    world.answer(QUESTION, "approve")
    assert world.work(inbox=True) == "done"


def test_a_refused_answer_in_the_moment_of_the_deadline(world: World) -> None:
    world.answers.put(str(QUESTION), b"no")
    world.clock.time += 61
    assert world.work(inbox=True, wait=True) == "unhealthy"
    assert world.story() == [*ASKED, "A sign#1 timeout silence"]


FOREIGN = ["03", "3 ", "3²", "٣", "-3", "x", "4", ".3", ""]


@pytest.mark.parametrize("name", FOREIGN)
def test_foreign_messages_are_left_alone(world: World, name: str) -> None:
    world.answers.put(name, b'{"question_id": 3, "by": "x", "data": {}}')
    assert world.work(inbox=True) == "waiting"
    assert [each.name for each in world.answers.list_names()] == [name]
    assert world.refused() == []


def test_a_stop_while_waiting_for_a_human(world: World) -> None:
    assert world.work(inbox=True, wait=True, at_rest=[RunLoop.stop]) == "stopped"
    world.answer(QUESTION, "approve")
    assert world.work(inbox=True) == "done"
