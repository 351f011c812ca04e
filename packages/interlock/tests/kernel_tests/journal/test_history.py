"""What readers ask: the life of a case, the lines of a run, the questions that wait."""

from collections import Counter
from pathlib import Path

import pytest

from interlock.engine.schedule import Budget
from interlock.journal.address import DatabaseAddress
from interlock.journal.history import (
    OpenGate,
    RefusalRecord,
    count_ends,
    find_case,
    list_dispatches,
    list_lines,
    list_open_questions,
    list_refusals,
)
from interlock.system.errors import StoreError
from tests.world.world import World

SCRIPT = """\
"*": {write: {answer: {words: 5}}, judge: {answer: {mark: 4}}}
B: {write: [{raw: "ü?", delay: 2s}, {answer: {words: 6}}]}
"""
SENTENCE = (
    "Answer with one JSON object and nothing else "
    "(it is not valid JSON: invalid character (byte 0))."
)


@pytest.fixture
def world(tmp_path: Path, db: DatabaseAddress) -> World:
    """A run in which A and B wait to be signed; B was refused once."""
    made = World(tmp_path, db=db)
    made.begin("A", "B")
    assert made.work(SCRIPT, inbox=True) == "waiting"
    return made


def test_the_life_of_a_case(world: World) -> None:
    with world.reading() as connection:
        life = list_dispatches(connection, case_no=find_case(connection, "B").case_no, texts=True)
    assert [(each.step, each.attempt, each.role, each.answer) for each in life] == [
        ("write", 1, "author", {"reason": SENTENCE}),
        ("write", 2, "author", {"words": 6}),
        ("judge", 1, "critic", {"mark": 4}),
        ("sign", 1, "human", None),
    ]
    assert [each.decision.rule if each.decision else None for each in life] == [
        "again",
        "written",
        "good",
        None,
    ]
    at = world.clock.time
    assert (life[0].sent_at, life[0].answered_at, life[3].answered_at) == (at - 2, at, None)
    assert life[0].refused == [RefusalRecord(at, "Malformed", SENTENCE, "ü?", 2, "B", 1)]
    assert [each.refused for each in life[1:]] == [[], [], []]


def test_who_signed_is_part_of_the_life(world: World) -> None:
    with world.reading() as connection:
        (question,) = (each for each in list_open_questions(connection) if each.case_id == "A")
    world.answer(question.question_id, "approve")
    world.work(SCRIPT, inbox=True)
    with world.reading() as connection:
        life = list_dispatches(connection, case_no=find_case(connection, "A").case_no, texts=True)
    assert [each.answered_by for each in life] == [None, None, "ann"]


def test_questions_wait_in_every_run_until_they_are_settled(world: World) -> None:
    world.begin("Z")
    world.work(SCRIPT, run_id=2, inbox=True)
    with world.reading() as connection:
        found = list_open_questions(connection)
    assert [(each.run_id, each.case_id, each.step) for each in found] == [
        (1, "A", "sign"),
        (1, "B", "sign"),
        (2, "Z", "sign"),
    ]
    assert isinstance(found[0], OpenGate)
    world.clock.time += 61
    world.work(SCRIPT, inbox=True)
    with world.reading() as connection:
        assert [each.case_id for each in list_open_questions(connection)] == ["Z"]


def test_lines_since_a_point(world: World) -> None:
    with world.reading() as connection:
        everything = list_lines(connection, 1, 0)
        assert [each.case_id for each in everything] == ["A", "A", "B", "B", "B"]
        assert list_lines(connection, 1, everything[2].seq) == everything[3:]
        assert list_lines(connection, 1, everything[-1].seq) == []
        assert list_lines(connection, 1, 0, "B") == everything[2:]
        assert list_lines(connection, 2, 0) == []


def test_counts_and_refusals(world: World) -> None:
    with world.reading() as connection:
        assert count_ends(connection, 1) == Counter(open=2)
        assert [each.content for each in list_refusals(connection, 1)] == ["ü?"]
        assert list_refusals(connection, 2) == []


def test_a_case_is_found_in_the_newest_run_that_has_it(world: World) -> None:
    world.begin("A")
    with world.reading() as connection:
        assert find_case(connection, "A").run_id == 2
        assert find_case(connection, "A", 1).run_id == 1
        assert find_case(connection, "B").run_id == 1


@pytest.mark.parametrize(
    ("name", "run_id", "problem"),
    [
        ("Z", None, "there is no case 'Z' in any run; see 'interlock status'"),
        ("B", 2, "there is no case 'B' in run 2; see 'interlock status'"),
        ("B", 10**30, f"there is no case 'B' in run {10**30}; see 'interlock status'"),
        ("x" * 999, None, f"there is no case {'x' * 80!r} in any run; see 'interlock status'"),
        ("' or 1=1 --", 1, "there is no case \"' or 1=1 --\" in run 1; see 'interlock status'"),
        ("\0", None, "there is no case '\\x00' in any run; see 'interlock status'"),
    ],
)
def test_a_case_that_is_not_there(
    world: World, name: str, run_id: int | None, problem: str
) -> None:
    with world.reading() as connection, pytest.raises(StoreError) as caught:
        find_case(connection, name, run_id)
    assert str(caught.value) == problem


def test_the_digest_is_of_decisions_and_answers(tmp_path: Path) -> None:
    world = World(tmp_path)
    for _ in range(4):
        world.begin("A", "B")
    world.work(run_id=1)
    world.work(run_id=2, budget=Budget(dispatches=1), places=1)
    partly = world.digest(2)
    world.work(run_id=2)
    other = '"*": {write: {answer: {words: 5, more: 1}}, judge: {answer: {mark: 4}}, '
    world.work(other + "sign: {answer: {decision: approve}}}", run_id=3)
    assert world.digest(1) == world.digest(2) != partly
    assert len({world.digest(1), world.digest(3), world.digest(4), partly}) == 4
