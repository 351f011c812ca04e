"""Test work that comes back: objections, the order of judges, and repeated questions."""

from pathlib import Path

import pytest

from delivery_tests.world import messages
from delivery_tests.world.delivery_world import (
    Agent,
    DeliveryWorld,
    audit,
    develop,
    plan,
    review,
    task,
)
from interlock.carriers.contract import Ask
from interlock_delivery.config import DeliverySettings


def in_turn(*agents: Agent) -> Agent:
    """Return an agent that behaves differently each time; the last behaviour repeats."""
    asked: list[int] = []

    def answer(ask: Ask, folder: Path) -> str:
        asked.append(ask.dispatch_id)
        return agents[min(len(asked), len(agents)) - 1](ask, folder)

    return answer


def says(text: str) -> Agent:
    return lambda _ask, _folder: text


def edits(name: str) -> Agent:
    """Add a new file each time, so that every round has a change."""

    def answer(ask: Ask, folder: Path) -> str:
        (folder / f"{name}{ask.attempt}.txt").write_text("more\n")
        return develop(ask, folder)

    return answer


def test_points_pile_up_until_their_judge_is_content(tmp_path: Path) -> None:
    project = DeliveryWorld(tmp_path, plan(task("sub")))
    project.begin()
    critic = in_turn(
        says(messages.review_failed("sub", "names are odd")),
        says(messages.review_failed("sub", "no docstring")),
        review,
    )
    auditor = in_turn(says(messages.audit_failed("sub", "negative numbers")), audit)
    script = {"developer": edits("work"), "critic": critic, "auditor": auditor}
    assert project.work(script) == "done"
    first, second, third, fourth = project.prompts("sub", "IMPLEMENT")
    assert "What must be put right" not in first
    assert "names are odd" in second
    assert "names are odd" in third
    assert "no docstring" in third
    assert "negative numbers" in fourth
    assert "names are odd" not in fourth, "the critic passed it: its points are closed"
    assert "names are odd" in project.prompts("sub", "REVIEW")[1], "the critic sees what it held"


def test_review_that_never_ends_fails_the_task(tmp_path: Path) -> None:
    project = DeliveryWorld(tmp_path, plan(task("sub")))
    project.begin()
    script = {"developer": edits("work"), "critic": says(messages.review_failed("sub", "ugly"))}
    assert project.work(script, thresholds={"max_review_rework": 1}) == "unhealthy"
    assert project.rules("sub")[-2:] == ["checked", "review-spent"]


def test_an_analyst_writes_a_vague_task_out(tmp_path: Path) -> None:
    project = DeliveryWorld(tmp_path, plan(task("sub")))
    project.begin(DeliverySettings(expand="always"))
    script = {"business-analyst": says(messages.expanded("sub"))}
    assert project.work(script) == "done"
    assert project.rules("sub")[:3] == ["underspecified", "expanded", "written"]
    assert "A function of two numbers in calc.py." in project.prompts("sub", "IMPLEMENT")[0]


def test_an_analyst_who_is_not_sure_asks_a_human(tmp_path: Path) -> None:
    project = DeliveryWorld(tmp_path, plan(task("sub")))
    project.begin(DeliverySettings(expand="always"))
    analyst = in_turn(says(messages.expanded("sub", "LOW")), says(messages.expanded("sub")))
    assert project.work({"business-analyst": analyst}) == "waiting"
    assert project.rules("sub")[-1] == "unsure"
    project.answer(text="whole numbers only")
    assert project.work({"business-analyst": analyst}) == "done"
    assert "whole numbers only" in project.prompts("sub", "EXPAND")[1]


@pytest.mark.parametrize("category", ["missing_info", "out_of_scope", "", "nonsense"])
def test_what_a_developer_cannot_finish_goes_to_a_human(tmp_path: Path, category: str) -> None:
    project = DeliveryWorld(tmp_path, plan(task("sub")))
    project.begin()
    developer = in_turn(says(messages.incomplete("sub", category)), develop)
    assert project.work({"developer": developer}) == "waiting"
    assert project.rules("sub")[-1] == "incomplete"
    project.answer(text="subtract them")
    assert project.work({"developer": developer}) == "done"
    assert "subtract them" in project.prompts("sub", "IMPLEMENT")[-1]


def test_one_that_needs_another_waits_until_something_is_over(tmp_path: Path) -> None:
    project = DeliveryWorld(tmp_path, plan(task("sub"), task("dif")))
    project.begin()
    waits = in_turn(says(messages.incomplete("sub", "blocked by dependency")), develop)

    def developer(ask: Ask, folder: Path) -> str:
        return waits(ask, folder) if ask.case_id == "sub" else develop(ask, folder)

    assert project.work({"developer": developer}) == "done"
    assert "waits" in project.rules("sub")
    second = [ask for ask in project.asked if (ask.case_id, ask.step) == ("sub", "IMPLEMENT")][1]
    last = [ask for ask in project.asked if ask.case_id == "dif"][-1]
    assert second.dispatch_id > last.dispatch_id


@pytest.mark.parametrize("blocker", ["dif must be done first", "it needs the work of task dif"])
def test_a_blocker_that_names_another_task_is_a_dependency(tmp_path: Path, blocker: str) -> None:
    project = DeliveryWorld(tmp_path, plan(task("sub"), task("dif"), task("abc")))
    project.begin()
    result = messages.incomplete("sub").replace("it cannot go on", blocker)
    waits = in_turn(says(result), develop)

    def developer(ask: Ask, folder: Path) -> str:
        return waits(ask, folder) if ask.case_id == "sub" else develop(ask, folder)

    assert project.work({"developer": developer}) == "done"
    assert "waits" in project.rules("sub")
    second = [ask for ask in project.asked if (ask.case_id, ask.step) == ("sub", "IMPLEMENT")][1]
    last = [ask for ask in project.asked if ask.case_id == "dif"][-1]
    assert second.dispatch_id > last.dispatch_id
    assert "Task `dif`, which you waited for, is COMPLETE" in second.prompt


def test_progress_alone_decides_nothing_and_not_for_ever(tmp_path: Path) -> None:
    project = DeliveryWorld(tmp_path, plan(task("sub")))
    project.begin()
    developer = in_turn(says(messages.progress("sub")), develop)
    assert project.work({"developer": developer}) == "done"
    assert project.rules("sub")[1:3] == ["progress", "written"]
    second = DeliveryWorld(tmp_path / "two", plan(task("sub")))
    second.begin()
    limits = {"max_checkpoint": 2}
    status = second.work({"developer": says(messages.progress("sub"))}, thresholds=limits)
    assert (status, second.rules("sub")[-1]) == ("waiting", "progress-spent")


def test_three_strikes_then_a_fresh_attempt(tmp_path: Path) -> None:
    project = DeliveryWorld(tmp_path, plan(task("sub")))
    project.begin()
    mumbles = says("I think I am done.")
    developer = in_turn(mumbles, mumbles, mumbles, develop)
    assert project.work({"developer": developer}) == "done"
    assert project.rules("sub")[1:5] == ["strike", "strike", "three-strikes", "written"]
    assert "could not be used" in project.prompts("sub", "IMPLEMENT")[1]
    assert "CHECKPOINT: sub, and continue" in project.prompts("sub", "IMPLEMENT")[1]


def test_a_judge_who_says_nothing_neither_passes_nor_fails(tmp_path: Path) -> None:
    project = DeliveryWorld(tmp_path, plan(task("sub")))
    project.begin()
    limits = {"max_strikes": 0, "max_lost": 1}
    assert project.work({"critic": says("Hm.")}, thresholds=limits) == "waiting"
    assert project.rules("sub")[-1] == "judge-lost"
    project.answer(text="look again")
    assert project.work(thresholds=limits) == "done"


def test_strict_answers_carry_the_mark_of_their_dispatch(tmp_path: Path) -> None:
    project = DeliveryWorld(tmp_path, plan(task("sub")))
    project.begin(strict_signals=True)

    def marked(agent: Agent) -> Agent:
        def answer(ask: Ask, folder: Path) -> str:
            line, rest = agent(ask, folder).split("\n", 1)
            return f"{line}\nDispatch: {ask.execution.nonce}\n{rest}"

        return answer

    good = {"developer": marked(develop), "critic": marked(review), "auditor": marked(audit)}
    forged = {**good, "auditor": audit}
    limits = {"max_strikes": 0, "max_lost": 1}
    assert project.work(forged, thresholds=limits) == "waiting"
    assert "merged" not in project.rules("sub")
    project.answer(text="again")
    assert project.work(good, thresholds=limits) == "done"
