"""Test what a checkpoint records about a question to a human: its id, issue and deadline."""

import json
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import pytest

from epic_tests.world.epic_project import DONE, SETTINGS, Project
from tests.world.command_line import World
from tests.world.github import REPO, TOKEN, Github, a_github

ASKS = "SAGE_SIGNAL:HITL_REQUIRED:issue:77"
ON_GITHUB = ("--hitl", "github")


@pytest.fixture
def github(monkeypatch: pytest.MonkeyPatch) -> Iterator[Github]:
    with a_github() as running:
        monkeypatch.setenv("GITHUB_API_URL", running.url)
        monkeypatch.setenv("GITHUB_REPOSITORY", REPO)
        monkeypatch.setenv("GITHUB_TOKEN", TOKEN)
        yield running


@pytest.fixture
def project(world: World) -> Project:
    return Project(world, SETTINGS + 'hitl_timeout = "24h"\n')


def _hitl(project: Project) -> dict[str, Any]:
    found: dict[str, Any] = project.checkpoint()["hitl"]
    return found


def _hours(hitl: dict[str, Any]) -> float:
    since, until = (datetime.fromisoformat(hitl[each]) for each in ("waiting_since", "deadline"))
    return round((until - since).total_seconds() / 3600, 2)


def test_a_question_in_the_inbox_is_named_by_its_number(project: Project) -> None:
    result = project.run([ASKS], [DONE])
    hitl = _hitl(project)
    assert hitl["request_id"] == str(result.json["questions"][0])
    assert (hitl["issue"], hitl["url"], _hours(hitl)) == (77, "", 24.0)
    assert result.json["checkpoint"]["hitl"] == hitl
    assert result.json["signals"][-1] == "SAGE_SIGNAL:HITL_WAITING:issue:77"

    project.world.say("answer", hitl["request_id"], "approve")
    done = project.resume().json
    assert done["outcome"] == "COMPLETE"
    assert "SAGE_SIGNAL:HITL_APPROVED:issue:77" in done["signals"]
    after = _hitl(project)
    assert after == {**hitl, "response": "approve", "answered_at": after["answered_at"]}


def test_putting_it_off_is_no_halt(project: Project) -> None:
    question = project.run([ASKS], [DONE]).json["questions"][0]
    project.world.say("answer", str(question), "defer")
    result = project.resume()
    assert (result.json["outcome"], result.code) == ("PAUSED_DEFERRED", 12), result.err
    assert not any("HALT" in line for line in result.json["signals"])


def test_a_question_on_github_is_named_as_in_its_issue(project: Project, github: Github) -> None:
    project.run([ASKS], [DONE], more=ON_GITHUB)
    hitl, issue = _hitl(project), github.issues[0]
    assert hitl["request_id"]
    assert f"{hitl['request_id']} " in issue["body"]
    assert (hitl["issue"], hitl["url"]) == (issue["number"], issue["html_url"])
    assert _hours(hitl) == 24.0


def test_the_deadline_stays_over_restarts_and_is_written_once(project: Project) -> None:
    project.run([ASKS], [DONE])
    first = project.checkpoint()
    for _ in range(2):
        assert project.resume().json["outcome"] == "WAITING"
    assert project.checkpoint() == first, "not even the generation moved"


def test_an_answer_after_the_deadline_is_late_though_the_run_was_not_there(
    world: World,
) -> None:
    """Test that the time runs from the question, not from the restart."""
    project = Project(world, SETTINGS + 'hitl_timeout = "24h"\n')
    project.run([ASKS], [DONE])
    before = _hitl(project)
    world.write("interlock.toml", SETTINGS + 'hitl_timeout = "1ms"\n')

    result = project.resume(more=("--wait",))

    assert (result.json["outcome"], result.code) == ("PAUSED_TIMEOUT", 11), result.err
    after = _hitl(project)
    assert (after["request_id"], after["response"]) == (before["request_id"], "timeout")
    assert after["deadline"] < before["deadline"]


def test_a_question_that_is_asked_anew_has_a_new_name_and_its_own_time(
    project: Project, github: Github
) -> None:
    project.run([ASKS], [DONE], more=ON_GITHUB)
    first = _hitl(project)
    github.comment(1, "/discuss")
    assert project.resume(more=ON_GITHUB).json["outcome"] == "PAUSED_DISCUSS"
    assert project.resume(more=ON_GITHUB).json["outcome"] == "WAITING"

    again = _hitl(project)
    assert again["request_id"] != first["request_id"]
    assert (again["issue"], again["deadline"] >= first["deadline"]) == (2, True)
    assert "The session names" not in github.issues[1]["body"]


def test_a_checkpoint_that_is_gone_does_not_keep_the_question_from_being_asked(
    project: Project,
) -> None:
    project.run([ASKS], [DONE])
    question = _hitl(project)["request_id"]
    project.world.say("epic", "checkpoint", "clear", "--epic", "epic-3", "--yes")
    result = project.resume(more=("epic-3",))
    assert (result.json["outcome"], result.json["questions"]) == ("WAITING", [int(question)]), (
        result.err
    )
    assert json.loads(result.out)["checkpoint"] in (None, {})
