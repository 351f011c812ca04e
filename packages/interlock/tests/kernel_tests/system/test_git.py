"""git is run for reading only, with an end; nothing in a repository or around it redirects it."""

import sys
from pathlib import Path

import pytest

from interlock.system.errors import SourceError
from interlock.system.git import (
    OWN_CLONE,
    READ,
    SEED,
    USER_TREE,
    Git,
    GitPlaces,
    GitResult,
    build_environment,
    read_user_setting,
)
from tests.world.git_repo import GitRepo


@pytest.fixture
def world(tmp_path: Path) -> GitRepo:
    made = GitRepo(tmp_path / "shop")
    made.commit("Begin", {"cart.py": "total = 1\n" * 1_000})
    made.commit("Go on", {"cart.py": "total = 2\n" * 1_000})
    return made


def test_output_is_bounded_and_says_that_it_was_cut(world: GitRepo) -> None:
    ran = Git(world.folder).run("show", "HEAD:cart.py", max_output=100)
    assert (len(ran.stdout), ran.cut, ran.is_ok) == (100, True, True)


def test_output_of_just_the_bound_is_whole_or_cut_but_never_more(world: GitRepo) -> None:
    assert len(Git(world.folder).run("show", "HEAD:cart.py", max_output=10_000).stdout) == 10_000


def test_patience_ends(world: GitRepo) -> None:
    with pytest.raises(SourceError, match="git log took longer than 0 s and was stopped"):
        Git(world.folder).run("log", timeout=0.0)


def test_a_bad_end_of_a_stream_is_told_in_git_s_own_words(world: GitRepo) -> None:
    with pytest.raises(SourceError, match=r"git rev-list failed in .*: bad revision 'nothing'"):
        list(Git(world.folder).stream("rev-list", "nothing", "--"))


def test_a_stream_may_be_left_early(world: GitRepo) -> None:
    stream = Git(world.folder).stream("log", "-p")
    assert next(iter(stream))


def test_a_folder_that_is_gone_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"git cannot be run in .*gone"):
        Git(tmp_path / "gone").run("status")


def test_much_input_and_much_output_do_not_stop_each_other(world: GitRepo) -> None:
    head = world.git("rev-parse", "HEAD")
    ran = Git(world.folder).run("cat-file", "--batch-check", stdin=f"{head}\n".encode() * 20_000)
    assert ran.stdout.count(b"\n") == 20_000


def test_the_surroundings_do_not_redirect_git() -> None:
    around = {"PATH": "/bin", "GIT_DIR": "/x", "GIT_EXTERNAL_DIFF": "/x", "HOME": "/root"}
    assert build_environment(READ, around).keys() & around.keys() == {"PATH"}
    assert build_environment(READ, around)["GIT_CONFIG_GLOBAL"] == "/dev/null"


def test_the_line_that_tells_most_of_a_complaint() -> None:
    assert GitResult(1, b"", "warning: x\nfatal: it broke\nhint: y").reason == "it broke"
    assert GitResult(1, b"").reason == "no reason was given"


@pytest.fixture
def clone(world: GitRepo) -> Git:
    return Git(world.folder / ".git", OWN_CLONE, places=GitPlaces(world.folder))


def test_output_is_cut_and_said_to_be(clone: Git) -> None:
    ran = clone.run("show", "HEAD:cart.py", max_output=1_000)
    assert (len(ran.stdout), ran.cut, ran.is_ok) == (1_000, True, True)
    exact = clone.run("show", "HEAD:cart.py", max_output=10_000)
    assert (len(exact.stdout), exact.cut) == (10_000, False)


def test_a_failure_is_a_sentence(clone: Git) -> None:
    with pytest.raises(SourceError, match=r"git rev-parse failed in .*Needed a single revision"):
        clone.read_line("rev-parse", "--verify", "nothing")
    with pytest.raises(SourceError, match="git ls-tree failed"):
        clone.read_paths("ls-tree", "-z", "nothing")
    with pytest.raises(SourceError, match="cannot be run"):
        clone.run("show", "nul\0")


def test_what_does_not_end_is_ended(clone: Git) -> None:
    command = f"{sys.executable} -c 'import time; time.sleep(600)'"
    with pytest.raises(SourceError, match=r"git -c took longer than 0\.5 s and was stopped"):
        clone.run("-c", f"alias.hang=!{command}", "hang", timeout=0.5)


def test_the_user_s_settings_count_in_their_own_tree_alone(
    world: GitRepo, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / ".gitconfig").write_text(
        "[user]\n\tname = Ada\n[core]\n\thooksPath = /h\n"
    )
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("GIT_CONFIG_GLOBAL", raising=False)
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))
    asked = ("config", "--get", "user.name")
    assert Git(world.folder, USER_TREE).try_line(*asked) == "Ada"
    assert Git(world.folder, USER_TREE).try_line("config", "--get", "core.hooksPath") == "/dev/null"
    assert read_user_setting(world.folder, "core.hooksPath") == "/h"
    for policy in (READ, SEED):
        assert Git(world.folder, policy).try_line(*asked) == ""
    assert read_user_setting(tmp_path / "gone", "user.name") == ""


def test_a_step_is_told_before_it_is_taken(world: GitRepo) -> None:
    output: list[str] = []
    Git(world.folder / ".git", OWN_CLONE, on_step=output.append).read_line("rev-parse", "HEAD")
    assert output == ["git rev-parse"]
