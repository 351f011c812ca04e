"""GitHub's webhooks wake an epic that waits: the real command, a real door, a GitHub of ours."""

import hashlib
import hmac
import json
import re
import subprocess
from collections.abc import Iterator

import httpx
import pytest
from tests.cli.epic_project import DONE, Project
from tests.cli.world import World, ended, until
from tests.world.github import REPO, TOKEN, Github, a_github

SECRET = "a secret of the tests"
ASKS = "SAGE_SIGNAL:HITL_REQUIRED:issue:77"
HOOKED = ("--hitl", "github", "--hook", "0")


@pytest.fixture
def github(monkeypatch: pytest.MonkeyPatch) -> Iterator[Github]:
    with a_github() as running:
        monkeypatch.setenv("GITHUB_API_URL", running.url)
        monkeypatch.setenv("GITHUB_REPOSITORY", REPO)
        monkeypatch.setenv("GITHUB_TOKEN", TOKEN)
        monkeypatch.setenv("INTERLOCK_GITHUB_SECRET", SECRET)
        yield running


@pytest.fixture
def project(world: World) -> Project:
    return Project(world)


class Waiting:
    """An epic that waits for an answer on an issue, and the door it opened."""

    def __init__(self, project: Project, github: Github) -> None:
        self.github = github
        github.fault("429 Slow down", "/comments", Retry_After="3600")
        project.sessions([ASKS], [DONE])
        words = (*project.words, *HOOKED)
        self.process: subprocess.Popen[str] = project.world.start("epic", "run", "epic.md", *words)
        self.url = ""
        until(self._heard_door, "the door is open")
        self._until_quiet()

    def _heard_door(self) -> bool:
        assert self.process.stderr is not None
        line = self.process.stderr.readline()
        assert line, "it ended"
        found = re.search(r"webhooks come in at (\S+)", line)
        self.url = found[1] if found else self.url
        return bool(found)

    def _until_quiet(self) -> None:
        """The question stands on its issue, and GitHub wants an hour of rest before the next look:
        whatever comes sooner, a call has brought. HITL_WAITING is said after the first look."""
        assert self.process.stderr is not None
        while "HITL_WAITING" not in (line := self.process.stderr.readline()):
            assert line, "it ended"

    def knock(
        self, number: int = 1, *, secret: str = SECRET, delivery: str = "d-1", repo: str = REPO
    ) -> int:
        output = {"repository": {"full_name": repo}, "issue": {"number": number}}
        raw = json.dumps({"action": "created", "comment": {"body": "/approve"}, **output}).encode()
        right = hmac.new(secret.encode(), raw, hashlib.sha256).hexdigest()
        headers = {
            "X-Hub-Signature-256": f"sha256={right}",
            "X-GitHub-Event": "issue_comment",
            "X-GitHub-Delivery": delivery,
            "Host": "a-tunnel.example",
        }
        return httpx.post(self.url, content=raw, headers=headers, timeout=30).status_code


@pytest.fixture
def waiting(project: Project, github: Github) -> Iterator[Waiting]:
    found = Waiting(project, github)
    yield found
    found.process.kill()
    found.process.communicate()


def test_a_signed_call_brings_the_answer_at_once(waiting: Waiting, project: Project) -> None:
    waiting.github.comment(1, "/approve")
    assert waiting.knock() == 202
    result = ended(waiting.process)
    assert (result.code, result.json["outcome"], project.started) == (0, "COMPLETE", 2), result.err
    assert "SAGE_SIGNAL:HITL_APPROVED:issue:1" in result.json["signals"]


def test_forged_foreign_and_replayed_calls_change_nothing(
    waiting: Waiting, project: Project
) -> None:
    github = waiting.github
    before = len(github.log)
    assert waiting.knock(secret="another secret altogether") == 401
    assert waiting.knock(2, delivery="of another issue") == 202
    assert waiting.knock(repo="harbour/ships", delivery="of another repository") == 202
    assert httpx.get(waiting.url).status_code == 405
    assert httpx.post(waiting.url.replace("/github", "/"), content=b"").status_code == 404
    assert len(github.log) == before, "nobody was asked"

    assert waiting.knock(delivery="again") == 202
    until(lambda: len(github.log) > before, "GitHub is asked, and has no comment")
    github.comment(1, "/approve")
    assert waiting.knock(delivery="again") == 409
    assert (waiting.process.poll(), project.started) == (None, 1), "a body is no answer"

    assert waiting.knock(delivery="new") == 202
    assert ended(waiting.process).json["outcome"] == "COMPLETE"


def test_a_door_is_closed_with_the_run(waiting: Waiting) -> None:
    waiting.process.terminate()
    result = ended(waiting.process)
    assert (result.code, result.json["outcome"]) == (143, "STOPPED"), result.err
    with pytest.raises(httpx.ConnectError):
        waiting.knock()


@pytest.mark.parametrize(
    ("more", "secret", "sentence"),
    [
        (HOOKED, "", "at least 16 characters: set INTERLOCK_GITHUB_SECRET"),
        (HOOKED, "short", "at least 16 characters: set INTERLOCK_GITHUB_SECRET"),
        (("--hook", "0"), SECRET, "use it with --hitl github"),
        (("--hitl", "github", "--hook", "harbour"), SECRET, "write PORT or HOST:PORT"),
        (("--hitl", "github", "--hook", "127.0.0.1:"), SECRET, "write PORT or HOST:PORT"),
        (("--hitl", "github", "--hook", "70000"), SECRET, "a port from 0 to 65535"),
        (
            ("--hitl", "github", "--hook", "no.such.host.invalid:0"),
            SECRET,
            "another address with --hook",
        ),
    ],
)
def test_a_door_that_cannot_be_is_refused_before_anything_is_begun(
    project: Project,
    github: Github,
    monkeypatch: pytest.MonkeyPatch,
    more: tuple[str, ...],
    secret: str,
    sentence: str,
) -> None:
    monkeypatch.setenv("INTERLOCK_GITHUB_SECRET", secret)
    result = project.run([ASKS], more=more)
    assert (result.code, sentence in result.err) == (2, True), result
    assert (project.started, github.log) == (0, [])


def test_no_door_is_opened_before_the_agent_is_found(
    project: Project, github: Github, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    result = project.world.say("epic", "run", "epic.md", "--agent", "claude", *HOOKED)
    assert (result.code, "not installed" in result.err) == (2, True), result
    assert ("webhooks come in" in result.err, github.log) == (False, [])


def test_another_variable_can_hold_the_secret_and_no_session_sees_it(
    world: World, github: Github, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = '[epic]\ngrace = "200ms"\nhook_secret_env = "HARBOUR_SECRET"\n'
    project = Project(world, settings)
    monkeypatch.setenv("HARBOUR_SECRET", SECRET)
    monkeypatch.delenv("INTERLOCK_GITHUB_SECRET")
    show = ["sh", "-c", "env > script-env"]
    result = project.run([{"run": show}, DONE], more=HOOKED)
    assert (result.json["outcome"], result.code) == ("COMPLETE", 0), result.err
    seen = (world.folder / "script-env").read_text()
    assert ("SAGE_ORCHESTRATOR" in seen, "HARBOUR_SECRET" in seen) == (True, False)
