"""top: a real project at a glance, and answers that take two keys."""

import asyncio
from collections.abc import Callable

import pytest
from tests.cli import triage
from tests.cli.reds import KEY, KEY_TOO, junit
from tests.cli.test_run import APPROVED
from tests.cli.world import World
from textual.pilot import Pilot
from textual.widgets import DataTable, Static

from interlock.api.project import Project
from interlock.cli.top_screen import QuestionScreen, TopApp

EVIL = "[red]x[/red] \x1b[2J\u202e"


@pytest.fixture
def asked(world: World) -> World:
    """Two cases wait at the gate, with questions 5 and 6; another run is over."""
    world.write("crew.yaml", APPROVED)
    world.cases("one", "two", topic=EVIL)
    run = ("run", "change", "--cases", "cases.jsonl", "--agent", "script:crew.yaml")
    assert world.say(*run).code == 4
    triage.done(world)
    return world


def test_it_is_printed_once_without_a_terminal(asked: World) -> None:
    told = asked.say("top")
    assert (told.code, told.err) == (0, "")
    assert told.out == asked.say("top", "--once").out
    head, *lines = told.out.splitlines()
    assert head.startswith("0 runs at work, 2 questions wait, today 10 dispatches, 10 tokens")
    assert "2    triage   unhealthy  2 dropped, 2 kept" in told.out
    assert "\x1b" not in told.out
    assert [line.split()[:2] for line in lines if line.startswith(("5 ", "6 "))] == [
        ["5", "1"],
        ["6", "1"],
    ]
    found = asked.say("top", "--json").json
    assert [each["question_id"] for each in found["inbox"]] == [5, 6]
    assert found["today"]["tokens"] == 10


def test_without_a_database(world: World) -> None:
    told = world.say("top", "--once")
    assert (told.code, told.out.startswith("0 runs at work, 0 questions wait")) == (0, True)


async def wait(pilot: Pilot[None], true: Callable[[], object]) -> None:
    async with asyncio.timeout(60):
        while not true():
            await pilot.pause(0.02)


def note(app: TopApp) -> str:
    return str(app.query_one("#note", Static).content)


async def test_answers_take_two_keys(asked: World) -> None:
    app = TopApp(Project(asked.folder))
    async with app.run_test(size=(160, 60)) as pilot:
        inbox = app.query_one("#inbox", DataTable)
        await wait(pilot, lambda: inbox.row_count == 2)
        assert [str(cell) for cell in app.query_one("#runs", DataTable).get_row_at(0)][:3] == [
            "2",
            "triage",
            "unhealthy",
        ]
        await pilot.press("y")
        assert note(app) == ""
        await pilot.press("a")
        assert "with 'approve'? y answers" in note(app)
        await pilot.press("escape", "y")
        assert note(app) == ""
        first = str(inbox.get_row_at(0)[0])
        await pilot.press("a", "j", "y")  # the cursor is on another one now
        assert "not as you saw it" in note(app)
        assert asked.say("top", "--json").json["inbox"][0]["answer_saved"] is False
        await pilot.press("k", "r", "y")
        await wait(pilot, lambda: note(app).startswith(f"answered question {first} with reject"))
        await wait(pilot, lambda: "answered" in [str(row[6]) for row in rows(inbox)])
        await pilot.press("q")
    assert app.return_code == 0
    saved = {each["question_id"]: each for each in asked.say("inbox", "--json").json["questions"]}
    assert (saved[int(first)]["answer_saved"], len(saved)) == (True, 2)


@pytest.fixture
def reviewed(world: World) -> World:
    """Two failures that are alike wait for a review."""
    world.write("red.xml", junit(KEY, KEY_TOO))
    assert world.type("analyze", "red.xml").code == 4
    return world


async def test_a_question_is_shown_whole_and_no_key_means_another_answer(reviewed: World) -> None:
    app = TopApp(Project(reviewed.folder))
    async with app.run_test(size=(160, 60)) as pilot:
        inbox = app.query_one("#inbox", DataTable)
        await wait(pilot, lambda: inbox.row_count == 1)
        await pilot.press("enter")
        await wait(pilot, lambda: isinstance(app.screen, QuestionScreen))
        shown = str(app.screen.query_one(Static).content)
        assert "no total" in shown
        assert "a approve, 2 reassess, 3 overturn" in shown
        await pilot.press("escape")
        await wait(pilot, lambda: not isinstance(app.screen, QuestionScreen))
        await pilot.press("r")
        assert "takes a approve, 2 reassess, 3 overturn" in note(app)
        await pilot.press("y", "2")
        assert "(C1 and 1 other alike) with 'reassess'? y answers" in note(app)
        await pilot.press("escape", "q")
    saved = reviewed.say("inbox", "--json").json["questions"]
    assert [each["answer_saved"] for each in saved] == [False, False]


def rows(table: "DataTable[object]") -> list[list[object]]:
    return [table.get_row_at(place) for place in range(table.row_count)]
