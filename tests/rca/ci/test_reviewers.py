"""What reviewers say in a pull request: who is found, how strictly, once, and what it changes."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from tests.rca.ci.test_digest import digest, make_run
from tests.rca.history.uploads import Upload
from tests.world.findings import example
from tests.world.github import OWN, REPO, TOKEN, Github, a_github
from tests.world.gitlab import PROJECT, Gitlab, a_gitlab
from tests.world.gitlab import TOKEN as GITLAB_TOKEN

from interlock.rca.ci.digest import Digest
from interlock.rca.ci.forge import open_forge
from interlock.rca.ci.render import Links, list_reported, render_comment
from interlock.rca.ci.reviewers import Command, KnownCause, Listener, read_block, read_commands
from interlock.rca.ci.run import respect_statements
from interlock.rca.history.names import make_test_id
from interlock.rca.history.statements import Statement, Statements, number_failure
from interlock.rca.history.store import FolderStore
from interlock.rca.report.outline import build_outline
from interlock.system.text import clean_text

CAUSE = number_failure("f" * 16)


@pytest.mark.parametrize(
    ("body", "want"),
    [
        ("/interlock flaky", [Command("flaky")]),
        ("/Interlock Not-This 48213\r\n", [Command("not-this", 48213)]),
        ("I had a look.\n\n/interlock not-this", [Command("not-this")]),
        ("/interlock cause 12 for 48213", [Command("cause", 48213, 12)]),
        ("/interlock cause #12", [Command("cause", 0, 12)]),
        (
            "/interlock flaky 11111\n/interlock not-this 22222",
            [Command("flaky", 11111), Command("not-this", 22222)],
        ),
        ("> /interlock flaky", []),
        ("```\n/interlock flaky\n```", []),
        ("    /interlock flaky", []),
        ("<!-- /interlock flaky -->", []),
        ("we could say /interlock flaky", []),
        ("see docs/interlock flaky", []),
        ("/interlocked flaky", []),
        (" /interlock flaky", "very start"),
        ("- /interlock flaky", "very start"),
        ("/interlock", "names no command"),
        ("/interlock frobnicate", "is no command"),
        ("/interlock flaky?", "is no command"),
        ("/interlock flaky maybe", "something else"),
        ("/interlock cause", "something else"),
        ("/interlock cause 12 and 13", "something else"),
        ("/interlock flaky\n\nif it happens again", "beside the command"),
        ("/interlock cause 12\n\nOr is it?", "beside the command"),
        ("/interlock flaky\n/interlock not-this", "several things"),
        ("> quoted\n/interlock flaky", "part of a quote"),
        ("/interlock flaky\n" + "x" * 70_000, "characters"),
    ],
)
def test_commands_are_read_strictly(body: str, want: list[Command] | str) -> None:
    found = read_commands(body)
    if isinstance(want, str):
        assert isinstance(found, str), found
        assert want in found
    else:
        assert found == want


def make_report(folder: Path, *tests: str) -> Digest:
    return digest(folder, Upload(make_run(9, "pull-request"), dict.fromkeys(tests, "F")))


@contextmanager
def listen(server: Github | Gitlab, *known: Statement) -> Iterator[Listener]:
    environ = {"GITHUB_API_URL": server.url, "GITHUB_TOKEN": TOKEN}
    environ |= {"CI_API_V4_URL": server.url, "INTERLOCK_GITLAB_TOKEN": GITLAB_TOKEN}
    provider, project = ("github", REPO) if isinstance(server, Github) else ("gitlab", PROJECT)
    causes = {12: KnownCause("the known one")}
    forge = open_forge(provider, environ, project)
    assert forge is not None
    with closing(forge):
        yield Listener(forge, REPO, causes.get, Statements(known))


def test_those_with_the_right_are_heard_once(tmp_path: Path) -> None:
    """Readers, bots, our own account, quotes and edits are not; each unclear comment gets one
    reply, and hearing it all again changes nothing."""
    report = render_comment(make_report(tmp_path, "a"), title="Tests", links=Links())
    with a_github() as github:
        github.opened("a pull request", "", by="eve")
        github.comment(1, report, by=OWN)
        github.comment(1, report.replace("ffff", "eeee"), by="eve")
        github.comment(1, "/interlock flaky", by="eve")
        github.comment(1, "/interlock flaky", by="stranger", author_association="OWNER")
        github.comment(1, "/interlock flaky", by="helper[bot]")
        github.comment(1, "/interlock flaky", by=OWN)
        github.comment(1, "> /interlock flaky\n\nShall we?")
        edited = github.comment(1, "hello")
        github.edit(edited, "/interlock flaky")
        odd = github.comment(1, "/interlock flacky", by="bob")
        good = github.comment(1, "/interlock cause 12")
        with listen(github) as listener:
            found = listener.read("1")
            assert found.replies == 2
            assert listener.show("1", found.statements) == 1
            assert listener.show("1", found.statements) == 0
        (said,) = found.new
        assert (said.action, said.by, said.number, said.title) == (
            "cause",
            "ann",
            12,
            "the known one",
        )
        assert said.fingerprints == ("f" * 16,)
        assert github.reactions == {good["id"]: [(OWN, "+1")]}
        replies = [each["body"] for each in github.comments[1][-2:]]
        assert "it was edited" in replies[0]
        assert f"interlock:asked-back {odd['id']}@" in replies[1]
        assert "`/interlock not-this`" in replies[1]
        shown = github.comments[1][0]["body"]
        assert f"- {CAUSE}: ann says that it is cause 12 (the known one)" in shown
        block = read_block(shown)
        assert block is not None
        assert block.said == found.new
        count = len(github.comments[1])
        with listen(github, *found.new) as listener:
            again = listener.read("1")
        assert (again.new, again.replies, again.statements) == ((), 0, found.new)
        assert len(github.comments[1]) == count


def test_a_word_is_about_what_the_report_said_then(tmp_path: Path) -> None:
    two = make_report(tmp_path / "two", "a", "b")
    assert len(list_reported(two)) == 1, "one fingerprint is one cause"
    report = render_comment(make_report(tmp_path, "a"), title="Tests", links=Links())
    with a_github() as github, listen(github) as listener:
        github.opened("a pull request", "")
        github.comment(1, "/interlock flaky")
        own = github.comment(1, report, by=OWN)
        assert listener.read("1").new == ()
        assert f"if you mean {CAUSE}, say so" in github.comments[1][-1]["body"]
        github.comment(1, f"/interlock flaky {CAUSE}")
        assert [each.action for each in listener.read("1").new] == ["flaky"]
        github.comment(1, "/interlock not-this")
        assert len(listener.read("1").new) == 1
        assert "nothing to refuse" in github.comments[1][-1]["body"]
        own["body"] = report.replace('"fingerprints":["', '"fingerprints":["<script>')
        github.comment(1, "/interlock undo", by="bob")
        assert listener.read("1", is_asked=False).reports == 0, "a block that was changed is none"


def test_trouble_on_the_way_loses_nothing(tmp_path: Path) -> None:
    """A reaction that cannot be made is a problem; what was said counts all the same."""
    report = render_comment(make_report(tmp_path, "a"), title="Tests", links=Links())
    with a_github() as github:
        github.opened("a pull request", "")
        github.comment(1, report, by=OWN)
        github.comment(1, "/interlock flaky")
        github.fault("403 Resource not accessible", "/reactions")
        with listen(github) as listener:
            found = listener.read("1")
    assert len(found.new) == 1
    assert len(found.problems) == 1
    assert TOKEN not in found.problems[0]


def test_the_same_on_gitlab(tmp_path: Path) -> None:
    report = render_comment(make_report(tmp_path, "a"), title="Tests", links=Links())

    with a_gitlab() as gitlab:
        gitlab.add(report)
        gitlab.add("/interlock flaky", author=9)
        gitlab.add("/interlock flaky", author=666)
        gitlab.edit(gitlab.add("hm", author=8), "/interlock flaky")
        odd = gitlab.add("/interlock not-this for 12345\n", author=8)
        taken = gitlab.add(f"/interlock flaky {CAUSE}", author=8)
        with listen(gitlab) as listener:
            found = listener.read("1")
            assert listener.show("1", found.statements) == 1
            assert listener.read("1").new == ()
        assert [(each.by, each.comment) for each in found.new] == [("user8", str(taken["id"]))]
        assert found.replies == 2
        assert f"asked-back {odd['id']}@" in gitlab.notes[-1]["body"]
        assert gitlab.emoji == [(str(taken["id"]), "thumbsup")]


def say(action: str, mark: str, at: float = 1.0, **news: object) -> Statement:
    fields = {"action": action, "by": "ann", "at": at, "comment": f"{action}{at}", **news}
    return Statement(**{"fingerprints": (mark,), **fields})  # type: ignore[arg-type]


def test_refused_suspects_go_and_joined_failures_are_one_cause() -> None:
    findings = example()
    outline = build_outline(findings)
    first, second = outline.causes[0], outline.causes[1]
    marks = {
        make_test_id("", case.class_name, case.test_name): f"{number:016x}"
        for number, cause in enumerate((first, second))
        for case in cause.cases
    }
    refused = first.suspects[0].commit
    no = say("not-this", f"{0:016x}", commit=refused)
    joined = say("cause", f"{1:016x}", 2.0, joined=(f"{0:016x}",))
    found = build_outline(respect_statements(findings, marks, Statements((no, joined))))
    assert len(found.causes) == len(outline.causes) - 1
    assert {case.case_id for case in found.causes[0].cases} == {
        case.case_id for case in (*first.cases, *second.cases)
    }
    shown = [each.commit for cause in found.causes for each in cause.suspects]
    assert refused not in shown
    taken_back = say("undo", f"{0:016x}", 3.0)
    again = build_outline(respect_statements(findings, marks, Statements((no, taken_back))))
    assert again.causes[0].suspects == first.suspects


def test_what_was_said_is_kept_and_shown_and_changes_no_word(tmp_path: Path) -> None:
    store = FolderStore(tmp_path / "memory")
    said = say("flaky", "f" * 16, tests=("0" * 16,), project=REPO, pr="7")
    assert store.add_statement(said)
    assert not store.add_statement(said)
    (path,) = (tmp_path / "memory" / "statements").iterdir()
    path.with_name("0" * 32 + ".statements").write_bytes(path.read_bytes())
    path.with_name("1" * 32 + ".statements").write_bytes(path.read_bytes()[:-3])
    assert store.read_statements().every == (said,)
    assert len(store.problems) == 2
    upload = Upload(make_run(9, "pull-request"), {"a": "F"})
    found = digest(tmp_path / "d", upload, statements=store.read_statements())
    assert found.verdict == "new"
    assert found.is_refused("new")
    text = render_comment(found, title="Tests", links=Links())
    assert "ann says that it is flaky in pull request 7" in text
    assert clean_text(text) == text
