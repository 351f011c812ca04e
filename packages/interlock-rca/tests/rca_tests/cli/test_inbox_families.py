"""inbox and answer with families: one answer settles what is one and the same cause."""

import json
import sqlite3
from typing import Any

import pytest

from interlock.journal.mailbox import Mailbox
from rca_tests.worlds.red_repository import DISK, KEY, KEY_TOO, TYPE, junit, red
from tests.world.command_line import World

THIRD = red("three", "KeyError: no total")


@pytest.fixture
def waiting(world: World) -> World:
    """A family of three, and two cases for themselves."""
    world.write("red.xml", junit(KEY, TYPE, KEY_TOO, DISK, THIRD))
    assert world.say("analyze", "red.xml").code == 4
    return world


def reviews(world: World) -> dict[str, list[int]]:
    """The questions of each review by the name of its first case."""
    found = world.say("inbox", "--json").json["reviews"]
    return {each["case_ids"][0]: each["question_ids"] for each in found}


def cases(world: World) -> dict[str, tuple[Any, ...]]:
    connection = sqlite3.connect(f"file:{world.db}?mode=ro", uri=True)
    try:
        rows = connection.execute(
            "select e.case_id, r.status, r.decision, r.reviewed_by from rca_cases r"
            " join cases e on e.case_no = r.case_no"
        )
        return {row[0]: row[1:] for row in rows}
    finally:
        connection.close()


def test_a_family_is_one_row_of_the_inbox(waiting: World) -> None:
    found = reviews(waiting)
    assert {name: len(numbers) for name, numbers in found.items()} == {"C1": 3, "C2": 1, "C4": 1}
    lines = waiting.say("inbox").out.splitlines()
    assert len(lines) == 5
    assert sum(" C1 +2 " in line for line in lines) == 1
    assert all(len(line) <= 140 for line in lines)


def test_one_answer_is_for_the_whole_family(waiting: World) -> None:
    family = sorted(reviews(waiting)["C1"])
    result = waiting.say("answer", str(family[1]), "approve", "--by", "Ada", "--json")
    assert sorted([result.json["question_id"], *result.json["also"]]) == family
    assert waiting.say("inbox").out.splitlines()[-1].startswith("answered, and taken when")
    done = waiting.say("analyze", "red.xml", "--json")
    assert (done.code, done.json["summary"]["by_state"]) == (4, {"closed": 3, "waiting": 2})
    found = cases(waiting)
    assert {found[name] for name in ("C1", "C3", "C5")} == {("closed", "approve", "Ada")}
    assert {found[name][1] for name in ("C2", "C4")} == {""}
    assert len(reviews(waiting)) == 2


def test_only_this_one(waiting: World) -> None:
    family = sorted(reviews(waiting)["C1"])
    result = waiting.say("answer", str(family[0]), "approve", "--only")
    assert result.out.startswith(f"saved the answer to question {family[0]}; ")
    waiting.say("resume")
    left = {number for many in reviews(waiting).values() for number in many}
    assert left & {*family} == {*family[1:]}
    assert sum(status == "closed" for status, _, _ in cases(waiting).values()) == 1


def test_text_says_how_many_more(waiting: World) -> None:
    family = sorted(reviews(waiting)["C1"])
    result = waiting.say("answer", str(family[0]), "approve")
    assert result.out == (
        f"saved the answer to question {family[0]} and to 2 others of its family; "
        "'interlock resume 1' continues with it\n"
    )


def test_all_reviewed_is_done(waiting: World) -> None:
    for numbers in reviews(waiting).values():
        assert waiting.say("answer", str(numbers[0]), "approve").code == 0
    done = waiting.say("analyze", "red.xml", "--json")
    assert (done.code, done.json["status"]) == (0, "done")
    assert done.json["summary"]["by_state"] == {"closed": 5}
    drafts = sorted(path.name for path in (waiting.folder / done.json["files"][-1]).iterdir())
    assert len(drafts) == done.json["summary"]["causes"]
    assert waiting.say("inbox").out == "nothing waits for a human\n"
    assert waiting.say("doctor", "--deep").code == 0


def test_a_family_sent_back_is_looked_at_again_and_can_be_approved(waiting: World) -> None:
    family = sorted(reviews(waiting)["C1"])
    words = ("reassess", "--set", "loop_target=F3_INVESTIGATE", "-m", "look at the cart")
    assert waiting.say("answer", str(family[0]), *words).code == 0
    assert waiting.say("analyze", "red.xml").code == 4
    again = [numbers for name, numbers in reviews(waiting).items() if name in ("C1", "C3", "C5")]
    assert sorted(number for many in again for number in many) != family
    assert sum(len(many) for many in again) == 3
    for numbers in reviews(waiting).values():
        waiting.say("answer", str(numbers[0]), "approve")
    assert waiting.say("analyze", "red.xml").code == 0
    assert {status for status, _, _ in cases(waiting).values()} == {"closed"}


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("ok",), "answer.decision must be one of 'approve', 'reassess', 'overturn', not 'ok'"),
        (("reassess", "--set", "loop_target=F0_RECALL"), "answer.loop_target must be one of"),
        (("overturn", "--set", "human_override=no"), "answer.human_override must be an object"),
    ],
)
def test_an_answer_that_cannot_be_saves_nothing_for_anybody(
    waiting: World, words: tuple[str, ...], problem: str
) -> None:
    family = sorted(reviews(waiting)["C1"])
    result = waiting.say("answer", str(family[0]), *words)
    assert (result.code, result.out) == (2, "")
    assert result.err.startswith(f"interlock: {problem}")
    assert Mailbox(waiting.db, "answers").list_names() == []


def test_an_overturn_with_a_code_that_is_none_is_refused_at_once(waiting: World) -> None:
    family = sorted(reviews(waiting)["C1"])
    override = json.dumps({"defect_type": "zz9", "rca_message": "the cart"})
    result = waiting.say(
        "answer", str(family[0]), "overturn", "--set", f"human_override={override}"
    )
    assert (result.code, result.out) == (2, "")
    assert result.err.startswith("interlock: 'zz9' is not a defect code; use one of ")
    assert result.err.endswith("; nothing was saved\n")
    assert Mailbox(waiting.db, "answers").list_names() == []


def test_a_projects_own_code_can_be_named(world: World) -> None:
    world.write("interlock.toml", '[defect_codes]\nzz9 = "firmware"\n')
    world.write("red.xml", junit(KEY))
    assert world.say("analyze", "red.xml").code == 4
    ((number,),) = reviews(world).values()
    override = json.dumps({"defect_type": "zz9", "rca_message": "the board"})
    words = ("overturn", "--set", f"human_override={override}")
    assert world.say("answer", str(number), *words).code == 0
    done = world.say("analyze", "red.xml", "--json")
    assert (done.code, done.json["summary"]["families"][0]["defect_type"]) == (0, "zz9")
