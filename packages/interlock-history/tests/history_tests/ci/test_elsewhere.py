"""GitLab, Azure and Buildkite: their places, their limits, and names that try to be commands."""

import os
from pathlib import Path

import msgspec
import pytest

from history_tests.ci.test_publish import on_pull_request, published
from interlock_history.ci.digest import Digest
from interlock_history.ci.publish import Annotation, defuse, publish
from interlock_history.ci.render import make_marker
from tests.world.gitlab import OWN, PROJECT, TOKEN, Gitlab, a_gitlab

HOSTILE = Annotation(
    path="src/a;b]c.py",
    line=3,
    title="x ##vso[task.setvariable variable=PATH]/evil",
    text="line\n##vso[task.complete result=Succeeded]\n##[error]no",
    is_new=True,
    fingerprint="",
)


def on_merge_request(folder: Path, tests: dict[str, str]) -> Digest:
    found = on_pull_request(folder, tests)
    return msgspec.structs.replace(found, run=msgspec.structs.replace(found.run, project=PROJECT))


def send(found: Digest, folder: Path, gitlab: Gitlab, token: str = TOKEN) -> list[str]:
    environ = {"CI_API_V4_URL": gitlab.url, "INTERLOCK_GITLAB_TOKEN": token}
    return publish(published(found, folder), environ, print, provider="gitlab", comment="failures")


def test_one_note_is_edited_and_a_forged_one_is_left(tmp_path: Path) -> None:
    red = on_merge_request(tmp_path / "red", {"a": "F", "b": "P"})
    green = on_merge_request(tmp_path / "green", {"a": "P", "b": "P"})
    with a_gitlab() as gitlab:
        forged = gitlab.add(make_marker("Tests") + " all is well", author=666)
        assert send(green, tmp_path / "out", gitlab) == []
        assert len(gitlab.notes) == 1, "quiet when green"
        assert send(red, tmp_path / "out", gitlab) == []
        for number in range(120):
            gitlab.add(f"remark {number}", author=8)
        assert send(red, tmp_path / "out", gitlab) == []
        assert [method for method, _, _ in gitlab.log].count("PUT") == 0, "equal: untouched"
        assert send(green, tmp_path / "out", gitlab) == []
    (own,) = (each["body"] for each in gitlab.notes if each["author"]["id"] == OWN)
    assert "2 tests passed" in own
    assert forged["body"].endswith("all is well")


@pytest.mark.parametrize(
    ("fault", "token", "said"),
    [
        (None, "wrong", "scope api"),
        (("/notes", 403), TOKEN, "scope api"),
        (("/notes", 404), TOKEN, "404"),
        (("/user", 500), TOKEN, "500"),
        (("/notes", 200), TOKEN, "not understood"),
    ],
)
def test_trouble_with_gitlab_is_one_sentence(
    tmp_path: Path, fault: tuple[str, int] | None, token: str, said: str
) -> None:
    found = on_merge_request(tmp_path / "d", {"a": "F", "b": "P"})
    with a_gitlab() as gitlab:
        gitlab.add(make_marker("Tests") + " whose is it?", author=666)
        gitlab.fault = fault
        (problem,) = send(found, tmp_path / "out", gitlab, token)
    assert said in problem
    assert TOKEN not in problem
    assert "1 new" in (tmp_path / "out" / "ci-summary.md").read_text()


def test_names_are_no_commands_to_azure(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its agent looks for ##vso[ anywhere in a line."""
    found = on_merge_request(tmp_path / "d", {"a": "F", "b": "P"})
    visible = published(found, tmp_path / "out", annotations=(HOSTILE,))
    assert publish(visible, {}, print, provider="azure", comment="off") == []
    issue, summary = capsys.readouterr().out.splitlines()
    start = "##vso[task.logissue type=error;sourcepath=src/a%3Bb%5Dc.py;linenumber=3]x "
    assert issue.startswith(start)
    assert "##" not in issue.removeprefix("##")
    assert summary == f"##vso[task.uploadsummary]{tmp_path / 'out' / 'ci-summary.md'}"
    assert defuse("# Title, ## part") == "# Title, ## part"


def test_buildkite_gets_one_annotation_or_says_why_not(tmp_path: Path) -> None:
    found = on_merge_request(tmp_path / "d", {"a": "F", "b": "P"})
    visible = published(found, tmp_path / "out")
    agent = tmp_path / "buildkite-agent"
    agent.write_text(f'#!/bin/sh\necho "$@" > "{tmp_path}/words"\ncat > "{tmp_path}/text"\n')
    agent.chmod(0o755)
    environ = {"PATH": f"{tmp_path}{os.pathsep}{os.defpath}"}
    assert publish(visible, environ, print, provider="buildkite", comment="off") == []
    words = (tmp_path / "words").read_text()
    assert words == "annotate --context interlock --style error\n"
    assert (tmp_path / "text").read_text() == visible.summary
    agent.write_text("#!/bin/sh\ncat > /dev/null\necho 'no access token' >&2\nexit 1\n")
    (refused,) = publish(visible, environ, print, provider="buildkite", comment="off")
    assert "no access token" in refused
    (absent,) = publish(visible, {"PATH": "/nowhere"}, print, provider="buildkite", comment="off")
    assert "not on the PATH" in absent
