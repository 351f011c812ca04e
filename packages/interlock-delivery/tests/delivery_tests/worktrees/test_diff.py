"""Test that added lines are those that git adds, whatever they contain."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from interlock.system.errors import SourceError
from interlock.system.git import OWN_CLONE, Git
from interlock_delivery.worktrees.diff import read_diff
from tests.world.git_repo import GitRepo

LINES = st.lists(
    st.sampled_from(["a", "++ b/x", "-- a/x", "@@ -1 +1 @@", "diff --git a/x b/x", "", "+", "b"]),
    max_size=8,
)


def text(lines: list[str], is_ended: bool) -> str:
    return "".join(f"{line}\n" for line in lines)[: None if is_ended else -1]


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(LINES, LINES, st.booleans())
def test_old_lines_and_added_ones_make_the_new_file(
    tmp_path: Path, before: list[str], after: list[str], is_ended: bool
) -> None:
    repo = GitRepo(tmp_path / "law")
    repo.write({"x": text(before, True), "y": "same\n"})
    repo.git("add", "-A")
    first = repo.git("write-tree")
    repo.write({"x": text(after, is_ended)})
    repo.git("add", "-A")
    second = repo.git("write-tree")
    found = read_diff(Git(repo.folder / ".git", OWN_CLONE), first, second)
    counted = repo.git("diff", "--numstat", first, second, "--", "x").partition("\t")[0] or "0"
    assert sum(len(file.added) for file in found.files) == int(counted)
    rows = text(after, is_ended).split("\n")
    for file in found.files:
        assert file.path == "x"
        for number, line in file.added:
            assert rows[number - 1] == line


def test_a_patch_is_bounded(tmp_path: Path) -> None:
    repo = GitRepo(tmp_path / "shop")
    first = repo.commit("Begin", {"a": "a\n", "bin": b"\0\1"})
    repo.write({"a": "b\n" * 50_000, "bin": b"\0\2", "long": "x" * 10_000})
    repo.git("add", "-A")
    repo.git("commit", "-qm", "More")
    diff = read_diff(Git(repo.folder / ".git", OWN_CLONE), first or "HEAD~1", "HEAD", most=10_000)
    assert (len(diff.patch), diff.is_cut) == (10_000, True)
    added = {file.path: file.added for file in diff.files}
    assert len(added["a"]) == 50_000
    assert added["bin"] == ()
    assert added["long"] == ((1, "x" * 2_000),)
    assert not read_diff(Git(repo.folder / ".git", OWN_CLONE), "HEAD~1", "HEAD").is_cut


def test_a_change_that_is_none(tmp_path: Path) -> None:
    repo = GitRepo(tmp_path / "shop")
    repo.commit("Begin", {"a": "a\n"})
    with pytest.raises(SourceError):
        read_diff(Git(repo.folder / ".git", OWN_CLONE), "HEAD", "nothing")
