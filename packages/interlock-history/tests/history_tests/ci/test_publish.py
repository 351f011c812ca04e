"""Texts and places: limits, hostile names, one comment edited in place, trouble that only warns."""

import json
import re
from pathlib import Path

import msgspec
import pytest

from history_tests.ci.test_digest import digest, make_run
from history_tests.uploads import Upload
from interlock_history.ci.digest import Digest
from interlock_history.ci.publish import Annotation, Publication, publish
from interlock_history.ci.render import (
    Links,
    make_marker,
    render_comment,
    render_summary,
)
from tests.world.github import OWN, REPO, TOKEN, Github, a_github

HOSTILE = "a\n::error file=x::pwned\n@everyone <script> `` | ![x](http://evil) ${{ secrets.X }}"


def published(found: Digest, folder: Path, **news: object) -> Publication:
    links = Links()
    made = Publication(
        digest=found,
        title="Tests",
        comment=render_comment(found, title="Tests", links=links),
        summary=render_summary(found, title="Tests", links=links),
        annotations=(),
        outputs={"verdict": found.verdict, "names": "one\nEOF\ntwo=3"},
        folder=folder,
    )
    return msgspec.structs.replace(made, **news)


def on_pull_request(folder: Path, tests: dict[str, str]) -> Digest:
    found = digest(folder, Upload(make_run(9, "pull-request"), tests))
    return msgspec.structs.replace(
        found, run=msgspec.structs.replace(found.run, project=REPO, pr="1")
    )


def environment(folder: Path, github: Github | None = None) -> dict[str, str]:
    base = {"GITHUB_STEP_SUMMARY": str(folder / "s"), "GITHUB_OUTPUT": str(folder / "o")}
    return base | ({"GITHUB_API_URL": github.url, "GITHUB_TOKEN": TOKEN} if github else {})


def test_the_first_line_says_it_and_names_do_nothing(tmp_path: Path) -> None:
    found = on_pull_request(tmp_path, {"a": "F", "broken": "F", HOSTILE: "F", "b": "P", "c": "P"})
    text = render_comment(found, title="Tests", links=Links(commit="https://x.example/{}"))
    lines = text.splitlines()
    assert lines[0] == make_marker("Tests")
    assert lines[1] == "### ❌ Tests"
    assert "**2 new**, 1 still failing; 2 of 5 tests passed · commit 0000000000" in lines[3]
    assert "failing since" in text
    assert not re.search(r"^::|<script|(?<!`)@everyone", text, re.MULTILINE)
    assert "](http://evil" not in re.sub(r"`[^`]*`", "", text)


def test_one_comment_is_edited_and_a_forged_one_is_left(tmp_path: Path) -> None:
    red = on_pull_request(tmp_path / "red", {"a": "F", "b": "P"})
    green = on_pull_request(tmp_path / "green", {"a": "P", "b": "P"})
    with a_github() as github:
        github.opened("a pull request", "")
        forged = github.comment(1, make_marker("Tests") + " all is well", by="eve")
        environ = environment(tmp_path, github)

        def send(found: Digest) -> list[str]:
            return publish(
                published(found, tmp_path / "out"),
                environ,
                print,
                provider="github",
                comment="failures",
            )

        assert send(green) == []
        assert len(github.comments[1]) == 1, "quiet when green"
        assert send(red) == []
        assert send(red) == []
        bodies = [each["body"] for each in github.comments[1] if each["user"]["login"] == OWN]
        assert len(bodies) == 1
        assert "1 new" in bodies[0]
        assert sum(method == "PATCH" for method, _, _ in github.log) == 0, "equal: untouched"
        assert send(green) == []
        assert "2 tests passed" in github.comments[1][1]["body"]
        assert forged["body"].endswith("all is well")
        github.opened("another", "")
        quiet = msgspec.structs.replace(green, run=msgspec.structs.replace(green.run, pr="2"))
        made = published(quiet, tmp_path / "out")
        assert publish(made, environ, print, provider="github", comment="always") == []
        assert len(github.comments[2]) == 1


@pytest.mark.parametrize("fault", ["403 Resource not accessible", "422", "500", "page", "half"])
def test_trouble_is_a_sentence_and_the_rest_is_published(tmp_path: Path, fault: str) -> None:
    found = on_pull_request(tmp_path / "d", {"a": "F", "b": "P"})
    with a_github() as github:
        github.opened("a pull request", "")
        github.fault(fault, "/comments", times=5)
        problems = publish(
            published(found, tmp_path / "out"),
            environment(tmp_path, github),
            print,
            provider="github",
            comment="failures",
        )
    assert len(problems) == 1
    assert TOKEN not in problems[0]
    assert "1 new" in (tmp_path / "s").read_text()
    assert (tmp_path / "out" / "ci-comment.md").exists()


def test_commands_and_outputs_cannot_be_forged(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = on_pull_request(tmp_path / "d", {"a": "F", "b": "P"})
    note = Annotation(
        path="src/a,b:c.py",
        line=3,
        title="a\n::warning::x, y: z",
        text="50% gone\r\n::set-output name=x::y",
        is_new=True,
        fingerprint="",
    )
    publish(
        published(found, tmp_path / "out", annotations=(note,)),
        environment(tmp_path),
        print,
        provider="github",
        comment="off",
    )
    (line,) = capsys.readouterr().out.splitlines()
    assert line.startswith("::error file=src/a%2Cb%3Ac.py,line=3,title=a%0A%3A%3Awarning")
    assert line.endswith("::50%25 gone%0D%0A::set-output name=x::y")
    outputs = (tmp_path / "o").read_text()
    found_values = re.findall(r"^(\w+)<<(end-\w+)\n(.*?)\n\2$", outputs, re.DOTALL | re.MULTILINE)
    assert [(name, value) for name, _, value in found_values] == [
        ("verdict", "new"),
        ("names", "one\nEOF\ntwo=3"),
    ]
    quality = json.loads((tmp_path / "out" / "gl-code-quality-report.json").read_text())
    assert quality[0]["location"] == {"path": "src/a,b:c.py", "lines": {"begin": 3}}
