"""Test git on resume with real repositories: every relation, kind of dirt, branch and operation."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from interlock.system.errors import SourceError
from interlock_epic.checkpoints.record import GitWork
from interlock_epic.recovery.git_state import compare_git, read_git_work
from interlock_epic.recovery.policy import Action, GitFinding, decide_resume
from tests.world.git_repo import GitRepo

F = GitFinding


def nothing(repo: GitRepo) -> None:
    pass


def commit(repo: GitRepo) -> None:
    repo.commit("three", {"c.txt": "c\n"})


def step_back(repo: GitRepo) -> None:
    repo.git("reset", "--quiet", "--hard", "HEAD~1")


def diverge(repo: GitRepo) -> None:
    step_back(repo)
    repo.commit("another two", {"d.txt": "d\n"})


def change(repo: GitRepo) -> None:
    repo.write({"a.txt": "changed\n"})


def stage(repo: GitRepo) -> None:
    change(repo)
    repo.git("add", "a.txt")


def remove(repo: GitRepo) -> None:
    repo.write({"b.txt": None})


def add_new(repo: GitRepo) -> None:
    repo.write({"new.txt": "new\n"})


def change_and_add(repo: GitRepo) -> None:
    change(repo)
    add_new(repo)


def other_branch(repo: GitRepo) -> None:
    repo.branch("side")


def detach(repo: GitRepo) -> None:
    repo.git("checkout", "--quiet", "--detach")


def orphan(repo: GitRepo) -> None:
    repo.git("checkout", "--quiet", "--orphan", "void")
    repo.git("rm", "-rfq", ".")


RELATIONS = [
    (nothing, (F.EQUAL,)),
    (commit, (F.AHEAD,)),
    (step_back, (F.BEHIND,)),
    (diverge, (F.DIVERGED,)),
]
DIRT = [
    (nothing, ()),
    (change, (F.DIRTY_TRACKED,)),
    (stage, (F.DIRTY_TRACKED,)),
    (add_new, (F.DIRTY_UNTRACKED,)),
    (change_and_add, (F.DIRTY_TRACKED, F.DIRTY_UNTRACKED)),
]
PLACES = [(nothing, ()), (other_branch, (F.OTHER_BRANCH,)), (detach, (F.DETACHED,))]
Deed = Callable[[GitRepo], None]
Findings = tuple[GitFinding, ...]


@pytest.mark.parametrize(("place", "where"), PLACES)
@pytest.mark.parametrize(("dirt", "dirty"), DIRT)
@pytest.mark.parametrize(("relation", "related"), RELATIONS)
def test_the_matrix(
    repo: GitRepo,
    relation: Deed,
    related: Findings,
    dirt: Deed,
    dirty: Findings,
    place: Deed,
    where: Findings,
) -> None:
    recorded = read_git_work(repo.folder)
    for deed in (relation, place, dirt):
        deed(repo)
    before = repo.git("status", "--porcelain"), repo.git("rev-parse", "HEAD")
    state = compare_git(repo.folder, recorded)
    assert state.findings == (*related, *where, *dirty)
    assert (repo.git("status", "--porcelain"), repo.git("rev-parse", "HEAD")) == before


def test_counts_and_names(repo: GitRepo) -> None:
    recorded = read_git_work(repo.folder)
    diverge(repo)
    repo.commit("three")
    change_and_add(repo)
    state = compare_git(repo.folder, recorded)
    assert (state.ahead, state.behind) == (2, 1)
    assert (state.tracked, state.untracked) == (("a.txt",), ("new.txt",))
    assert (state.recorded_commit, state.branch) == (recorded.commit, "main")


def test_a_removed_file_and_strange_names(repo: GitRepo) -> None:
    recorded = read_git_work(repo.folder)
    remove(repo)
    repo.write({"größe \n$(x).txt": "x"})
    state = compare_git(repo.folder, recorded)
    assert (state.tracked, state.untracked) == (("b.txt",), ("größe \n$(x).txt",))


def test_a_commit_that_is_not_there(repo: GitRepo) -> None:
    for commit_id in ("1" * 40, "1" * 64, "1234567"):
        assert compare_git(repo.folder, GitWork(commit=commit_id, branch="main")).findings == (
            F.MISSING_COMMIT,
        )


def test_a_blob_is_no_commit_and_a_short_hash_is_one(repo: GitRepo) -> None:
    blob = repo.git("rev-parse", "HEAD:a.txt")
    assert compare_git(repo.folder, GitWork(commit=blob)).findings == (F.MISSING_COMMIT,)
    short = repo.git("rev-parse", "--short=8", "HEAD")
    assert compare_git(repo.folder, GitWork(commit=short)).findings == (F.EQUAL,)


def test_a_commit_cut_off_from_every_branch_is_still_compared(repo: GitRepo) -> None:
    commit(repo)
    recorded = read_git_work(repo.folder)
    step_back(repo)
    assert compare_git(repo.folder, recorded).findings == (F.BEHIND,)


def test_an_orphan_branch(repo: GitRepo) -> None:
    recorded = read_git_work(repo.folder)
    orphan(repo)
    assert compare_git(repo.folder, recorded).findings == (F.DIVERGED, F.OTHER_BRANCH)


def test_a_repository_without_a_commit(tmp_path: Path) -> None:
    repo = GitRepo(tmp_path / "fresh")
    recorded = read_git_work(repo.folder)
    assert recorded == GitWork(branch="main", unborn=True)
    assert compare_git(repo.folder, recorded).findings == (F.EQUAL,)
    repo.commit("one", {"a": "a"})
    assert compare_git(repo.folder, recorded).findings == (F.AHEAD,)
    assert compare_git(repo.folder, GitWork()).findings == (F.UNRECORDED,)


def test_no_repository(tmp_path: Path) -> None:
    assert read_git_work(tmp_path) == GitWork()
    assert compare_git(tmp_path, GitWork()).findings == (F.NO_REPOSITORY,)
    gone = compare_git(tmp_path, GitWork(commit="1" * 40))
    assert gone.findings == (F.REPOSITORY_GONE,)
    assert decide_resume(gone).action == Action.REFUSE


def test_a_bare_repository_is_no_place_to_work(tmp_path: Path) -> None:
    bare = GitRepo(tmp_path / "bare", bare=True)
    assert compare_git(bare.folder, GitWork()).findings == (F.NO_REPOSITORY,)


def test_what_was_left_uncommitted_is_known_again(repo: GitRepo) -> None:
    change_and_add(repo)
    recorded = read_git_work(repo.folder)
    assert recorded.dirt
    assert compare_git(repo.folder, recorded).findings == (F.EQUAL, F.DIRTY_AS_LEFT)
    repo.write({"a.txt": "changed again\n"})
    assert compare_git(repo.folder, recorded).findings == (
        F.EQUAL,
        F.DIRTY_TRACKED,
        F.DIRTY_UNTRACKED,
    )


def test_the_tools_own_folders_are_no_dirt(repo: GitRepo) -> None:
    recorded = read_git_work(repo.folder)
    repo.write({".sage/logs/x.log": "x", ".interlock/interlock.db": "x", ".asterisk/s.json": "{}"})
    assert read_git_work(repo.folder) == recorded
    repo.write({"deep/.sage/x": "x"})
    assert compare_git(repo.folder, recorded).findings == (F.EQUAL, F.DIRTY_UNTRACKED)


def conflict(repo: GitRepo, *words: str) -> None:
    """Make two branches change one line, and stop the given command in the middle."""
    repo.git("checkout", "--quiet", "-b", "side", "HEAD~1")
    repo.commit("side", {"a.txt": "side\n"})
    repo.checkout("main")
    with pytest.raises(AssertionError):
        repo.git(*words)


@pytest.mark.parametrize(
    ("words", "operation"),
    [
        (("merge", "side"), "merge"),
        (("cherry-pick", "side"), "cherry-pick"),
        (("rebase", "side"), "rebase"),
        (("rebase", "--apply", "side"), "rebase"),
        (("revert", "HEAD~1"), "revert"),
    ],
)
def test_an_operation_in_progress(repo: GitRepo, words: tuple[str, ...], operation: str) -> None:
    recorded = read_git_work(repo.folder)
    conflict(repo, *words)
    state = compare_git(repo.folder, recorded)
    assert F.OPERATION in state.findings
    assert state.operation == operation
    found = decide_resume(state)
    assert found.action == Action.REFUSE
    assert found.reason == f"a {operation} is in progress: finish or abort it"


def test_a_bisect(repo: GitRepo) -> None:
    recorded = read_git_work(repo.folder)
    repo.git("bisect", "start")
    assert compare_git(repo.folder, recorded).operation == "bisect"


def test_a_repository_that_cannot_be_read_is_no_clean_one(repo: GitRepo) -> None:
    recorded = read_git_work(repo.folder)
    (repo.folder / ".git" / "index").write_bytes(b"broken")
    with pytest.raises(SourceError, match="git status failed"):
        compare_git(repo.folder, recorded)


def test_hooks_and_the_callers_variables_are_not_heard(
    repo: GitRepo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorded = read_git_work(repo.folder)
    other = GitRepo(tmp_path / "other")
    monkeypatch.setenv("GIT_DIR", str(other.folder / ".git"))
    monkeypatch.setenv("GIT_INDEX_FILE", "/nowhere")
    assert compare_git(repo.folder, recorded).findings == (F.EQUAL,)


def test_a_dirty_submodule_is_not_ours_to_judge(repo: GitRepo, tmp_path: Path) -> None:
    other = GitRepo(tmp_path / "other")
    other.commit("x", {"x": "x"})
    repo.git("submodule", "--quiet", "add", f"file://{other.folder}", "sub")
    repo.commit("with a submodule")
    recorded = read_git_work(repo.folder)
    (repo.folder / "sub" / "x").write_text("changed")
    assert compare_git(repo.folder, recorded).findings == (F.EQUAL,)
    subprocess.run(
        ["git", "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qam", "x"],
        cwd=repo.folder / "sub",
        check=True,
    )
    assert compare_git(repo.folder, recorded).findings == (F.EQUAL, F.DIRTY_TRACKED)
