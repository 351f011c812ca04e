"""Test that a task's tree is recorded completely and restored exactly, whatever an agent does."""

import os
from pathlib import Path

import pytest

from delivery_tests.world.workspace_bench import Workbench, agent_git, kinds, write
from interlock.system.errors import SourceError, StateError
from interlock_delivery.worktrees.tree import TaskTree
from interlock_delivery.worktrees.workspace import DeliveryWorkspace


@pytest.fixture
def bench(tmp_path: Path) -> Workbench:
    return Workbench(tmp_path)


@pytest.fixture
def workspace(bench: Workbench) -> DeliveryWorkspace:
    return bench.open_workspace()


def files_of(tree: TaskTree, sha: str) -> list[str]:
    rows = tree.workspace.git.read_paths("ls-tree", "-r", "-z", "--name-only", sha)
    return [row.decode(errors="backslashreplace") for row in rows]


def test_a_tree_is_made_from_the_line_and_found_again(workspace: DeliveryWorkspace) -> None:
    tree = workspace.open_tree("T-1")
    assert (tree.root / "src/app.py").exists()
    assert agent_git(tree, "status", "--porcelain", "--branch") == f"## {tree.branch[11:]}"
    assert tree.tip == tree.base == workspace.base
    assert workspace.open_tree("T-1").root == tree.root
    assert [found.record.task_id for found in workspace.list_trees()] == ["T-1"]


def test_nothing_to_record_is_no_commit(workspace: DeliveryWorkspace) -> None:
    tree = workspace.open_tree("one")
    taken = tree.snapshot("Work")
    assert (taken.sha, taken.is_new, taken.violations) == (workspace.base, False, ())


def test_a_snapshot_has_all_files_but_ignored_ones(workspace: DeliveryWorkspace) -> None:
    tree = workspace.open_tree("one")
    write(tree, {"a.txt": "changed\n", "b.txt": None, "new/file.txt": "new\n", "x.log": "noise"})
    (tree.root / "src/app.py").chmod(0o755)
    taken = tree.snapshot("Work on it")
    assert taken.is_new
    assert files_of(tree, taken.sha) == [".gitignore", "a.txt", "new/file.txt", "src/app.py"]
    assert workspace.git.read_line("log", "-1", "--format=%an %cn %ct %s", taken.sha) == (
        "Interlock Interlock 1700001000 Work on it"
    )
    diff = tree.diff(tree.base, taken.sha)
    assert [(file.path, file.status, file.added) for file in diff.files] == [
        ("a.txt", "modified", ((1, "changed"),)),
        ("b.txt", "deleted", ()),
        ("new/file.txt", "added", ((1, "new"),)),
        ("src/app.py", "modified", ()),
    ]
    assert diff.files[3].is_executable
    assert agent_git(tree, "status", "--porcelain") == ""
    assert tree.is_unchanged(taken.sha)
    assert tree.snapshot("Again").sha == taken.sha


def test_a_snapshot_comes_on_top_of_the_agents_own_commits(workspace: DeliveryWorkspace) -> None:
    tree = workspace.open_tree("one")
    write(tree, {"a.txt": "mine\n"})
    agent_git(tree, "commit", "-qam", "My own")
    own = agent_git(tree, "rev-parse", "HEAD")
    clean = tree.snapshot("Work")
    assert (clean.sha, clean.is_new) == (own, True)
    write(tree, {"a.txt": "more\n"})
    assert workspace.git.read_line("rev-parse", f"{tree.snapshot('More').sha}^") == own


def test_what_is_added_by_force_is_recorded(workspace: DeliveryWorkspace) -> None:
    tree = workspace.open_tree("one")
    write(tree, {"x.log": "wanted", "y.log": "wanted too", "z.log": "noise"})
    agent_git(tree, "add", "-f", "x.log")
    agent_git(tree, "commit", "-qm", "Log")
    agent_git(tree, "add", "-f", "y.log")
    found = files_of(tree, tree.snapshot("Work").sha)
    assert [name for name in found if name.endswith(".log")] == ["x.log", "y.log"]


def test_restore_is_exact_and_leaves_ignored_files(workspace: DeliveryWorkspace) -> None:
    tree = workspace.open_tree("one")
    write(tree, {"a.txt": "good\n", "kept/x.txt": "x"})
    sha = tree.snapshot("Good").sha
    write(tree, {"a.txt": "bad\n", "b.txt": None, "new.txt": "n", "kept/x.txt": None})
    write(tree, {"build/out": "o", "kept/x.txt/y": "a folder now"})
    (tree.root / "src/app.py").chmod(0o755)
    (tree.root / "empty").mkdir()
    agent_git(tree, "add", "-A")
    agent_git(tree, "commit", "-qm", "Bad")
    assert not tree.is_unchanged(sha)
    tree.restore(sha)
    assert tree.is_unchanged(sha)
    assert (tree.root / "a.txt").read_text() == "good\n"
    assert (tree.root / "kept/x.txt").read_text() == "x"
    assert not (tree.root / "new.txt").exists()
    assert not (tree.root / "empty").exists()
    assert (tree.root / "build/out").read_text() == "o"
    assert not os.access(tree.root / "src/app.py", os.X_OK)
    assert agent_git(tree, "status", "--porcelain") == ""
    assert agent_git(tree, "rev-parse", "HEAD") == sha


def test_a_snapshot_outlives_everything_an_agent_can_do_to_history(
    workspace: DeliveryWorkspace,
) -> None:
    tree = workspace.open_tree("one")
    write(tree, {"a.txt": "good\n"})
    sha = tree.snapshot("Good").sha
    agent_git(tree, "reset", "-q", "--hard", "HEAD~1")
    agent_git(tree, "reflog", "expire", "--expire=now", "--all")
    agent_git(tree, "gc", "-q", "--prune=now")
    tree.restore(sha)
    assert (tree.root / "a.txt").read_text() == "good\n"


def test_only_commits_can_be_restored(workspace: DeliveryWorkspace) -> None:
    tree = workspace.open_tree("one")
    for word in (
        "f" * 40,
        "--help",
        "nothing",
        workspace.git.read_line("rev-parse", f"{workspace.base}^{{tree}}"),
    ):
        with pytest.raises(SourceError, match="not a commit of this workspace"):
            tree.restore(word)


@pytest.mark.parametrize("left", ["modified", "new", "deleted", "mode", "commit", "branch", "link"])
def test_is_as_left_sees_every_difference(workspace: DeliveryWorkspace, left: str) -> None:
    tree = workspace.open_tree("one")
    assert tree.is_unchanged(workspace.base)
    if left == "modified":
        write(tree, {"a.txt": "A\n"})
    elif left == "new":
        write(tree, {"c.txt": "c"})
    elif left == "deleted":
        write(tree, {"a.txt": None})
    elif left == "mode":
        (tree.root / "a.txt").chmod(0o755)
    elif left == "commit":
        agent_git(tree, "commit", "-q", "--allow-empty", "-m", "Nothing")
    elif left == "branch":
        agent_git(tree, "checkout", "-q", "-b", "other")
    else:
        (tree.root / ".git").unlink()
    assert not tree.is_unchanged(workspace.base)


def test_flags_of_the_agents_index_hide_nothing(workspace: DeliveryWorkspace) -> None:
    tree = workspace.open_tree("one")
    agent_git(tree, "update-index", "--assume-unchanged", "a.txt")
    agent_git(tree, "update-index", "--skip-worktree", "b.txt")
    write(tree, {"a.txt": "hidden\n", "b.txt": "hidden\n"})
    assert tree.diff(workspace.base, tree.snapshot("Work").sha).paths == ("a.txt", "b.txt")


def test_shared_settings_hide_nothing_and_are_put_back(workspace: DeliveryWorkspace) -> None:
    tree, other = workspace.open_tree("one"), workspace.open_tree("two")
    agent_git(tree, "config", "core.hooksPath", "/tmp/evil")
    agent_git(tree, "config", "core.excludesFile", "/tmp/evil")
    (workspace.repo / "info" / "exclude").write_text("*.py\n")
    (workspace.repo / "info" / "attributes").write_text("*.py -diff\n")
    write(tree, {"new.py": "x = 1\n"})
    assert tree.diff(workspace.base, tree.snapshot("Work").sha).paths == ("new.py",)
    assert agent_git(other, "config", "core.hooksPath") == str(workspace.home / "no-hooks")
    assert not (workspace.repo / "info" / "attributes").exists()


def test_unfinished_work_of_git_is_cleared(workspace: DeliveryWorkspace) -> None:
    tree = workspace.open_tree("one")
    write(tree, {"a.txt": "one\n"})
    agent_git(tree, "commit", "-qam", "One")
    agent_git(tree, "checkout", "-q", "HEAD~1")
    write(tree, {"a.txt": "two\n"})
    agent_git(tree, "commit", "-qam", "Two")
    two = agent_git(tree, "rev-parse", "HEAD")
    agent_git(tree, "checkout", "-q", tree.branch.removeprefix("refs/heads/"))
    agent_git(tree, "merge", "-q", two, check=False)
    assert (tree.admin / "MERGE_HEAD").exists()
    (tree.admin / "index.lock").write_bytes(b"")
    taken = tree.snapshot("Work")
    assert "<<<<<<<" in workspace.git.read_line("show", f"{taken.sha}:a.txt")
    assert not (tree.admin / "MERGE_HEAD").exists()
    assert agent_git(tree, "status", "--porcelain") == ""
    agent_git(tree, "commit", "-q", "--allow-empty", "-m", "Nothing is locked")


def test_locks_of_a_killed_git_are_no_hindrance(workspace: DeliveryWorkspace) -> None:
    tree = workspace.open_tree("one")
    write(tree, {"a.txt": "one\n"})
    for name in (f"{tree.branch}.lock", "packed-refs.lock"):
        (workspace.repo / name).write_bytes(b"")
    tree.index.with_name("one.lock").write_bytes(b"")
    assert tree.snapshot("Work").is_new


def test_a_damaged_index_costs_time_only(workspace: DeliveryWorkspace) -> None:
    tree = workspace.open_tree("one")
    for index in (tree.index, tree.admin / "index"):
        index.write_bytes(b"no index")
    write(tree, {"a.txt": "one\n"})
    assert tree.diff(workspace.base, tree.snapshot("Work").sha).paths == ("a.txt",)


def test_strange_names_survive(workspace: DeliveryWorkspace) -> None:
    tree = workspace.open_tree("one")
    names = [
        b"new\nline",
        b'quo"te',
        b"back\\slash",
        b"caf\xe9",
        b"tab\there",
        b" blank ",
        b"-dash",
    ]
    names += [b"Case", b"case", "ünï".encode(), b"*", b":(top)x", b"d/\n/deep"]
    for name in names:
        path = tree.root / os.fsdecode(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"one\ntwo\n")
    taken = tree.snapshot("Strange")
    stored = workspace.git.read_paths("ls-tree", "-r", "-z", "--name-only", taken.sha)
    assert set(names) <= set(stored)
    diff = tree.diff(workspace.base, taken.sha)
    assert len(diff.files) == len(names)
    assert {file.added for file in diff.files} == {((1, "one"), (2, "two"))}
    assert "caf\\xe9" in diff.paths
    tree.restore(workspace.base)
    assert tree.is_unchanged(workspace.base)
    tree.restore(taken.sha)
    assert tree.is_unchanged(taken.sha)


def test_closing_keeps_what_is_not_recorded(workspace: DeliveryWorkspace) -> None:
    tree = workspace.open_tree("one")
    write(tree, {"a.txt": "work\n"})
    with pytest.raises(StateError, match="not recorded"):
        tree.close()
    sha = tree.snapshot("Work").sha
    tree.close()
    assert not tree.root.exists()
    assert not tree.admin.exists()
    again = workspace.open_tree("one")
    assert (again.root / "a.txt").read_text() == "work\n"
    assert again.tip == sha


def test_a_tree_in_a_part_of_the_repository(bench: Workbench) -> None:
    folder = bench.source.folder / "src"
    workspace = DeliveryWorkspace.create(folder, bench.home, "plan")
    tree = workspace.open_tree("one")
    assert tree.folder == tree.root / "src"
    assert (tree.folder / "app.py").exists()
    (tree.folder / "app.py").unlink()
    tree.snapshot("All of it is gone")
    tree.restore(tree.tip)
    assert tree.folder.is_dir()


def test_a_vanished_tree_comes_back(workspace: DeliveryWorkspace) -> None:
    tree, other = workspace.open_tree("one"), workspace.open_tree("two")
    write(tree, {"a.txt": "work\n"})
    sha = tree.snapshot("Work").sha
    agent_git(other, "worktree", "remove", "-f", "-f", str(tree.root))
    assert not tree.root.exists()
    assert not tree.is_unchanged(sha)
    tree.restore(sha)
    assert tree.is_unchanged(sha)
    assert (tree.root / "a.txt").read_text() == "work\n"


def test_prune_by_an_agent_removes_no_tree(workspace: DeliveryWorkspace) -> None:
    tree, other = workspace.open_tree("one"), workspace.open_tree("two")
    (tree.root / ".git").unlink()
    agent_git(other, "worktree", "prune")
    write(tree, {"a.txt": "work\n"})
    taken = tree.snapshot("Work")
    assert kinds(taken) == ["git-file"]
    assert tree.diff(workspace.base, taken.sha).paths == ("a.txt",)


def test_a_tree_that_was_half_made_is_made_whole(bench: Workbench) -> None:
    def on_step(step: str) -> None:
        if step == "git clean":
            raise KeyboardInterrupt

    with bench.open_workspace(on_step) as workspace, pytest.raises(KeyboardInterrupt):
        workspace.open_tree("one")
    with bench.open_workspace() as workspace:
        tree = workspace.open_tree("one")
        assert tree.is_unchanged(workspace.base)
        assert (tree.root / "a.txt").read_text() == "a\n"
