"""The workspace: which revision was tested, what is new since green, and what cannot be read."""

from pathlib import Path

import pytest

from interlock_rca.config import RcaConfig
from interlock_rca.records import Checkout, Launch, Repo
from interlock_rca.workspace import CheckoutSet
from tests.world.git_repo import GitRepo


@pytest.fixture
def boat(tmp_path: Path) -> GitRepo:
    repo = GitRepo(tmp_path / "boat")
    repo.commit("One", {"keel.py": "1\n"})
    repo.git("tag", "green")
    repo.commit("Two", {"keel.py": "2\n"})
    repo.branch("release")
    repo.commit("Three", {"keel.py": "3\n"})
    repo.checkout("main")
    return repo


def workspace(boat: GitRepo, green: str = "") -> CheckoutSet:
    repo = Repo(name="boat", path=str(boat.folder))
    return CheckoutSet(RcaConfig(repos=(repo,), last_green={"boat": green} if green else {}))


def subjects(room: CheckoutSet, launch: Launch | None) -> list[str]:
    return [each.subject for each in room.list_new_commits(room.repositories["boat"], launch)]


def launched(**more: object) -> Launch:
    return Launch(launch_id="L1", **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("launch", "tested"),
    [
        (None, ""),
        (launched(), ""),
        (launched(branch="release"), "release"),
        (launched(branch="nowhere"), ""),
        (launched(commit="green", branch="release"), "green"),
        (launched(commit="0" * 40, branch="release"), "release"),
        (launched(attributes={"boat.commit": "green"}, branch="release"), "green"),
        (launched(attributes={"BOAT_SHA": "green"}), "green"),
        (launched(attributes={"yard.commit": "green"}), ""),
        (launched(attributes={"boat.commit": "--upload-pack=x"}), ""),
    ],
)
def test_what_was_tested_is_what_the_launch_says_if_it_is_known(
    boat: GitRepo, launch: Launch | None, tested: str
) -> None:
    assert workspace(boat).find_tested("boat", launch) == tested


def test_what_is_new_is_counted_from_the_last_green_to_the_tested(boat: GitRepo) -> None:
    room = workspace(boat, "green")
    assert subjects(room, None) == ["Two"]
    assert subjects(room, launched(branch="release")) == ["Three", "Two"]
    assert subjects(room, launched(commit="green")) == []


def test_what_passed_itself_has_nothing_new_but_what_is_older_has_its_own_past(
    boat: GitRepo,
) -> None:
    room = workspace(boat, "main")
    assert subjects(room, launched(branch="main")) == []
    assert subjects(room, launched(commit="green")) == ["One"]


def test_a_green_revision_for_all_counts_where_none_is_named(boat: GitRepo) -> None:
    repo = Repo(name="boat", path=str(boat.folder))
    for_all = CheckoutSet(RcaConfig(repos=(repo,), last_green={"": "green"}))
    own = CheckoutSet(RcaConfig(repos=(repo,), last_green={"": "green", "boat": "main"}))
    assert subjects(for_all, None) == ["Two"]
    assert subjects(own, None) == []


def test_without_a_green_revision_the_newest_are_looked_at_and_it_is_said(boat: GitRepo) -> None:
    room = workspace(boat)
    assert subjects(room, None) == ["Two", "One"]
    assert any("no last green commit is known" in each for each in room.list_problems())


def test_what_cannot_be_read_is_there_and_says_why(tmp_path: Path) -> None:
    room = CheckoutSet(RcaConfig(repos=(Repo(name="boat", path=str(tmp_path / "gone")),)))
    repository = room.repositories["boat"]
    assert room.list_new_commits(repository, launched(branch="main")) == []
    assert room.find_tested("boat", launched(branch="main")) == ""
    assert room.find_tested("unheard-of", launched(branch="main")) == ""
    (problem,) = room.list_problems()
    assert problem.startswith("repository boat: ")


def test_evidence_is_looked_up_at_what_was_tested(boat: GitRepo) -> None:
    room = workspace(boat)
    refs = ["boat:keel.py:1", "boat:keel.py:2", "boat:gone.py:1"]
    found = room.check_evidence(refs, launched(branch="release"), "")
    assert [each.verdict for each in found] == ["found", "missing", "missing"]
    assert room.check_evidence([], None, "") == []


def test_a_launch_may_name_the_revision_of_each_repository(boat: GitRepo) -> None:
    (boat.folder / "keel.py").write_text("2\n2\n")
    longer = boat.commit("Longer", {})
    room = workspace(boat)
    at_release = launched(attributes={"boat.commit": "release"}, commit="main")
    assert room.check_evidence(["boat:keel.py:2"], at_release, "")[0].verdict == "missing"
    assert (
        room.check_evidence(["boat:keel.py:2"], launched(commit=longer), "")[0].verdict == "found"
    )


def test_without_repositories_nothing_is_checked() -> None:
    (found,) = CheckoutSet(RcaConfig()).check_evidence(["boat:keel.py:1"], None, "")
    assert found.verdict == "unchecked"


def test_agents_are_told_what_is_looked_at_what_last_passed_and_where_to_browse(
    boat: GitRepo,
) -> None:
    boat.git("remote", "add", "origin", "git@github.com:yard/boat.git")
    (output,) = workspace(boat, "green").list_checkouts(launched(branch="release"))
    assert output.url == "https://github.com/yard/boat"
    assert output.commit == boat.git("rev-parse", "release").strip()
    assert output.last_green == boat.git("rev-parse", "green^{commit}").strip()
    (output,) = workspace(boat).list_checkouts(None)
    assert (output.commit, output.last_green) == (boat.git("rev-parse", "HEAD").strip(), "")


def test_of_a_repository_that_cannot_be_read_no_revision_is_told(tmp_path: Path) -> None:
    repo = Repo(name="boat", path=str(tmp_path / "none"))
    (output,) = CheckoutSet(RcaConfig(repos=(repo,), last_green={"": "green"})).list_checkouts(None)
    assert output == Checkout(name="boat", path=repo.path)
