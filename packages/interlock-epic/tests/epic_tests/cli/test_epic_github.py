"""Test an epic whose humans answer on GitHub, with the real command and a real HTTP server."""

from collections.abc import Iterator

import pytest

from epic_tests.world.epic_project import DONE, Project
from tests.world.command_line import World
from tests.world.github import REPO, TOKEN, Github, a_github


@pytest.fixture
def github(monkeypatch: pytest.MonkeyPatch) -> Iterator[Github]:
    with a_github() as running:
        monkeypatch.setenv("GITHUB_API_URL", running.url)
        monkeypatch.setenv("GITHUB_REPOSITORY", REPO)
        monkeypatch.setenv("GITHUB_TOKEN", TOKEN)
        yield running


@pytest.fixture
def project(world: World) -> Project:
    return Project(world)


ON_GITHUB = ("--hitl", "github")
ASKS = "SAGE_SIGNAL:HITL_REQUIRED:issue:77"


def test_an_issue_is_opened_once_and_its_answer_goes_on_with_the_epic(
    project: Project, github: Github
) -> None:
    asked = project.run([ASKS], [DONE], more=ON_GITHUB)
    assert (asked.json["outcome"], asked.code) == ("WAITING", 4), asked.err
    number = github.issues[0]["number"]
    assert asked.json["signals"][-1] == f"SAGE_SIGNAL:HITL_WAITING:issue:{number}"
    assert "The session names issue 77." in github.issues[0]["body"]

    still = project.resume(more=ON_GITHUB)
    assert (still.json["outcome"], len(github.issues)) == ("WAITING", 1)

    github.comment(number, "/revise name it Yacht")
    result = project.resume(more=ON_GITHUB)
    assert (result.json["outcome"], result.code) == ("COMPLETE", 0), result.err
    assert f"SAGE_SIGNAL:HITL_REVISE:issue:{number}" in result.json["signals"]
    assert "A human wants changes: name it Yacht" in project.prompt(2)


def test_a_doubtful_word_does_not_let_the_epic_go_on(project: Project, github: Github) -> None:
    project.run([ASKS], [DONE], more=ON_GITHUB)
    github.comment(github.issues[0]["number"], "approved, if the tests are green?")
    result = project.resume(more=ON_GITHUB)
    assert (result.json["outcome"], project.started) in (("WAITING", 1), ("PAUSED_DISCUSS", 1))


@pytest.mark.parametrize(
    ("fault", "why"), [("500", "GitHub answered 500."), ("page", "A web page came back")]
)
def test_an_issue_that_cannot_be_opened_yet_is_no_end(
    project: Project, github: Github, fault: str, why: str
) -> None:
    github.fault(fault, "/issues")
    asked = project.run([ASKS], [DONE], more=ON_GITHUB)
    assert (asked.json["outcome"], asked.code, github.issues) == ("WAITING", 4, []), asked.err
    assert why in asked.err
    assert "no issue is open yet" in asked.err

    still = project.resume(more=ON_GITHUB)
    assert (still.json["outcome"], len(github.issues)) == ("WAITING", 1)
    assert "no issue is open" not in still.err


def test_a_token_without_rights_is_fatal_and_the_question_is_asked_again_later(
    project: Project, github: Github, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_TOKEN", "ghp_of_nobody")
    result = project.run([ASKS], [DONE], more=ON_GITHUB)
    assert (result.json["outcome"], result.code) == ("FATAL", 1), result.err
    assert result.json["code"] == "GITHUB_AUTH_FAILED"
    assert result.json["signals"][-1].startswith("SAGE_SIGNAL:FATAL_ERROR:GITHUB_AUTH_FAILED:")

    again = project.resume()
    assert (again.json["outcome"], project.started) == ("WAITING", 1), "nothing ran unapproved"
