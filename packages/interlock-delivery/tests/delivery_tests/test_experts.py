"""Test experts: texts from files, made on request, asked in turn, and bad names."""

import threading
from pathlib import Path

import pytest

from delivery_tests.test_rework import in_turn, says
from delivery_tests.world import messages
from delivery_tests.world.delivery_world import Agent, DeliveryWorld, develop, plan, task
from interlock.carriers.contract import Ask
from interlock_delivery.config import DeliverySettings
from interlock_delivery.task_context import ExpertFiles, is_expert_name
from tests.world.git_repo import git

SHORT = "You know numbers."
TEXT = "---\nname: maths\ndomain: numbers\n---\n" + "You know all about numbers. " * 8


def known(project: DeliveryWorld) -> None:
    place = project.repo / ".claude" / "agents" / "experts"
    place.mkdir(parents=True)
    (place / "maths.md").write_text(TEXT)


def advises(ask: Ask, _folder: Path) -> str:
    return messages.advice(ask.execution.request_id)


def test_an_expert_of_the_project_is_asked(tmp_path: Path) -> None:
    project = DeliveryWorld(tmp_path, plan(task("sub")))
    known(project)
    project.begin()
    developer = in_turn(says(messages.expert_request("maths", "Which order?")), develop)
    assert project.work({"developer": developer, "expert": advises}) == "done"
    assert project.rules("sub")[1:3] == ["consult", "advised"]
    (asked,) = project.prompts("sub", "CONSULT")
    assert "You know all about numbers." in asked
    assert "Which order?" in asked
    assert "Subtract the second from the first." in project.prompts("sub", "IMPLEMENT")[1]


def test_an_expert_is_made_where_there_is_none(tmp_path: Path) -> None:
    project = DeliveryWorld(tmp_path, plan(task("sub")))
    project.begin()

    def makes(ask: Ask, folder: Path) -> str:
        place = folder / ".claude" / "agents" / "experts" / "maths.md"
        assert "`.claude/agents/experts/maths.md`" in ask.prompt
        if ask.attempt > 1:
            place.parent.mkdir(parents=True)
            place.write_text(SHORT)
        return messages.created("maths", ".claude/agents/experts/maths.md")

    developer = in_turn(says(messages.expert_request("maths")), develop)
    script = {"developer": developer, "expert-maker": makes, "expert": advises}
    assert project.work(script) == "done"
    assert project.rules("sub")[1:5] == ["recruit", "strike", "recruited", "advised"]
    assert SHORT in project.prompts("sub", "CONSULT")[0]
    assert (project.folder / "home" / "experts" / "maths.md").read_text() == SHORT
    names = git(project.repo, "ls-tree", "-r", "--name-only", "interlock/calc").split()
    assert not [name for name in names if "experts" in name], "an expert is nobody's work"


def test_an_expert_sees_what_kind_of_help_is_wanted_and_the_snapshot(tmp_path: Path) -> None:
    project = DeliveryWorld(tmp_path, plan(task("sub")))
    known(project)
    project.begin()

    def asks(ask: Ask, folder: Path) -> str:
        (folder / "notes.md").write_text("The scale is 0 to 9.\n")
        result = messages.expert_request("maths", "Which scale?")
        return result.replace("\n\n---D", "\nContext Snapshot: notes.md\n\n---D")

    def finishes(ask: Ask, folder: Path) -> str:
        (folder / "notes.md").unlink()
        return develop(ask, folder)

    script = {"developer": in_turn(asks, finishes), "expert": advises}
    assert project.work(script) == "done"
    (prompt,) = project.prompts("sub", "CONSULT")
    assert "> Request type: decision" in prompt
    assert "> Context snapshot: notes.md" in prompt
    assert "> The scale is 0 to 9." in prompt


def test_three_experts_who_cannot_help_lead_to_a_human(tmp_path: Path) -> None:
    project = DeliveryWorld(tmp_path, plan(task("sub")))
    known(project)
    project.begin()

    def helpless(ask: Ask, _folder: Path) -> str:
        return messages.no_advice(ask.execution.request_id)

    asks = says(messages.expert_request("maths"))
    assert project.work({"developer": asks, "expert": helpless}) == "waiting"
    assert project.rules("sub").count("unadvised") == 3
    assert project.rules("sub")[-1] == "expert-spent"
    project.answer(text="do without")
    assert project.work() == "done"


def test_the_request_number_is_ours(tmp_path: Path) -> None:
    project = DeliveryWorld(tmp_path, plan(task("sub")))
    known(project)
    project.begin()
    asks = in_turn(says(messages.expert_request("maths")), develop)
    wrong = in_turn(says(messages.advice("some-other-1")), advises)
    assert project.work({"developer": asks, "expert": wrong}) == "done"
    assert project.rules("sub")[2:4] == ["strike", "advised"]


def test_one_expert_is_asked_by_so_many_at_once(tmp_path: Path) -> None:
    project = DeliveryWorld(
        tmp_path, plan(task("sub", files="sub.py"), task("dif", files="dif.py"))
    )
    known(project)
    project.begin(DeliverySettings(per_expert=1))
    busy, most, lock = [0], [0], threading.Lock()

    def advising(ask: Ask, folder: Path) -> str:
        with lock:
            busy[0] += 1
            most[0] = max(most[0], busy[0])
        result = advises(ask, folder)
        with lock:
            busy[0] -= 1
        return result

    def developer(ask: Ask, folder: Path) -> str:
        if "Subtract" not in ask.prompt:
            return messages.expert_request("maths")
        (folder / f"{ask.case_id}.py").write_text("done = True\n")
        return f"READY_FOR_REVIEW: {ask.case_id}\n\nFiles Modified:\n- {ask.case_id}.py\n"

    assert project.work({"developer": developer, "expert": advising}) == "done"
    assert most == [1]


@pytest.mark.parametrize("name", ["../../../tmp/evil", "a/b", "a/../../b", "-x", "", "ä"])
def test_a_name_that_leads_elsewhere_is_none(tmp_path: Path, name: str) -> None:
    assert not is_expert_name(name)
    assert not ExpertFiles(tmp_path, tmp_path).has(name)


def test_a_request_for_an_impossible_expert_is_refused(tmp_path: Path) -> None:
    project = DeliveryWorld(tmp_path, plan(task("sub")))
    project.begin()
    agents: list[Agent] = [says(messages.expert_request("a/../../evil")), develop]
    assert project.work({"developer": in_turn(*agents)}) == "done"
    assert project.rules("sub")[1] == "strike"


def test_texts_that_make_nobody_an_expert(tmp_path: Path) -> None:
    (tmp_path / "blank.md").write_text(" \n")
    (tmp_path / "binary.md").write_bytes(b"\xff" * 500)
    (tmp_path / "huge.md").write_text("x" * 300_000)
    (tmp_path / "link.md").symlink_to(tmp_path / "good.md")
    (tmp_path / "good.md").write_text(TEXT)
    experts = ExpertFiles(tmp_path, tmp_path / "made")
    assert [each.name for each in experts.list_experts()] == ["good"]
    assert experts.list_experts()[0].domain == "numbers"
    assert not experts.has("link")
