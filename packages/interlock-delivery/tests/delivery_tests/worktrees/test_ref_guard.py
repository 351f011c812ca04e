"""Test the ledger after a crash, and that an agent's damage to git is found, named and repaired."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from delivery_tests.world.workspace_bench import Workbench, agent_git, kinds, write
from interlock.system.errors import SourceError
from interlock.system.git import OWN_CLONE, Git, OnStep, ignore_step
from interlock_delivery.worktrees.names import merge_ref
from interlock_delivery.worktrees.ref_guard import GONE, MovedError, RefLedger
from interlock_delivery.worktrees.tree import TaskTree
from interlock_delivery.worktrees.workspace import DeliveryWorkspace
from tests.world.git_repo import GitRepo

REF, OTHER = "refs/heads/ours", "refs/heads/other"


@pytest.fixture
def repo(tmp_path: Path) -> GitRepo:
    made = GitRepo(tmp_path / "shop")
    for number in range(3):
        made.commit(f"{number}", {"a.txt": f"{number}\n"})
    return made


def at(repo: GitRepo, back: int) -> str:
    return repo.git("rev-parse", f"main~{back}")


def ledger(repo: GitRepo, on_step: OnStep = ignore_step) -> tuple[RefLedger, Git]:
    return RefLedger(repo.folder / "ledger.json", on_step), Git(
        repo.folder / ".git", OWN_CLONE, on_step=on_step
    )


@pytest.mark.parametrize("step", [1, 2, 3])
def test_killed_at_any_step_a_move_is_done_or_was_not_begun(repo: GitRepo, step: int) -> None:
    book, git = ledger(repo)
    book.move(git, {REF: at(repo, 2), OTHER: at(repo, 2)})
    count = 0

    def on_step(_: str) -> None:
        nonlocal count
        count += 1
        if count == step:
            raise KeyboardInterrupt

    book, git = ledger(repo, on_step)
    with pytest.raises(KeyboardInterrupt):
        book.move(git, {REF: at(repo, 1), OTHER: GONE})
    again, git = ledger(repo)
    again.finish_moves(git)
    expected = {REF: at(repo, 2), OTHER: at(repo, 2)} if step == 1 else {REF: at(repo, 1)}
    assert again.refs == expected
    there = repo.git("for-each-ref", "--format=%(refname)=%(objectname)", REF, OTHER).split("\n")
    assert there == sorted(f"{ref}={sha}" for ref, sha in expected.items())
    assert ledger(repo)[0].refs == expected


def test_a_move_from_elsewhere_is_refused_and_forgotten(repo: GitRepo) -> None:
    book, git = ledger(repo)
    book.move(git, {REF: at(repo, 2)})
    with pytest.raises(MovedError):
        book.move(git, {REF: at(repo, 0)}, {REF: at(repo, 1)})
    again, git = ledger(repo)
    again.finish_moves(git)
    assert again.refs == {REF: at(repo, 2)}
    assert repo.git("rev-parse", REF) == at(repo, 2)


def test_a_move_to_nothing_is_an_error(repo: GitRepo) -> None:
    book, git = ledger(repo)
    with pytest.raises(SourceError, match="git did not move"):
        book.move(git, {REF: "f" * 40})
    assert book.refs == {}


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"refs": 1}', b"\xff"])
def test_a_damaged_ledger_is_a_sentence(repo: GitRepo, content: bytes) -> None:
    (repo.folder / "ledger.json").write_bytes(content)
    with pytest.raises(SourceError, match="cannot be read"):
        ledger(repo)


@pytest.fixture
def bench(tmp_path: Path) -> Workbench:
    return Workbench(tmp_path)


@pytest.fixture
def workspace(bench: Workbench) -> DeliveryWorkspace:
    return bench.open_workspace()


def refs(workspace: DeliveryWorkspace) -> dict[str, str]:
    rows = workspace.git.read_line("for-each-ref", "--format=%(refname) %(objectname)").split("\n")
    pairs = (row.partition(" ") for row in rows)
    return {name: at for name, _, at in pairs if "/kept/" not in name}


def test_an_agent_that_keeps_to_its_branch_violates_nothing(workspace: DeliveryWorkspace) -> None:
    tree = workspace.open_tree("one")
    workspace.open_tree("two")
    write(tree, {"a.txt": "one\n"})
    agent_git(tree, "commit", "-qam", "One")
    agent_git(tree, "commit", "-q", "--amend", "-m", "Better said")
    assert tree.check_violations(workspace.base, workspace.base) == []
    assert tree.snapshot("Work").violations == ()


def test_rewritten_history_is_put_back_with_the_files_as_they_are(
    workspace: DeliveryWorkspace,
) -> None:
    tree = workspace.open_tree("one")
    write(tree, {"a.txt": "one\n"})
    sha = tree.snapshot("One").sha
    agent_git(tree, "commit", "-q", "--amend", "-m", "Another")
    rewritten = agent_git(tree, "rev-parse", "HEAD")
    write(tree, {"b.txt": "later\n"})
    (violation,) = tree.check_violations(sha, workspace.base)
    assert violation.kind == "history-rewritten"
    assert sha[:12] in violation.sentence
    taken = tree.snapshot("Two")
    assert taken.violations == ()
    assert workspace.git.read_line("rev-parse", f"{taken.sha}^") == sha
    assert tree.diff(workspace.base, taken.sha).paths == ("a.txt", "b.txt")
    assert workspace.git.is_true("cat-file", "-e", rewritten)


def orphan(tree: TaskTree) -> None:
    agent_git(tree, "checkout", "-q", "--orphan", "fresh")
    agent_git(tree, "commit", "-qm", "No history")


def other_branch(tree: TaskTree) -> None:
    agent_git(tree, "checkout", "-q", "-b", "main")
    agent_git(tree, "commit", "-qam", "On main")


def detached(tree: TaskTree) -> None:
    agent_git(tree, "checkout", "-q", "--detach")
    agent_git(tree, "commit", "-qam", "Nowhere")


def moved_line(tree: TaskTree) -> None:
    agent_git(tree, "commit", "-qam", "Mine")
    agent_git(tree, "update-ref", merge_ref("plan"), "HEAD")


def deleted_line(tree: TaskTree) -> None:
    agent_git(tree, "update-ref", "-d", merge_ref("plan"))


def moved_origin(tree: TaskTree) -> None:
    agent_git(tree, "commit", "-qam", "Mine")
    agent_git(tree, "update-ref", "refs/remotes/origin/main", "HEAD")


def made_tag(tree: TaskTree) -> None:
    agent_git(tree, "tag", "-a", "v1", "-m", "v1")


def deleted_own_branch(tree: TaskTree) -> None:
    agent_git(tree, "update-ref", "-d", tree.branch)


def in_the_way(tree: TaskTree) -> None:
    """Make a branch where the merge branch and all tasks need a folder."""
    agent_git(tree, "checkout", "-q", "--detach")
    agent_git(tree, "update-ref", "-d", tree.branch)
    agent_git(tree, "update-ref", "refs/heads/interlock", "HEAD")


def removed_link(tree: TaskTree) -> None:
    (tree.root / ".git").unlink()


def own_repository(tree: TaskTree) -> None:
    (tree.root / ".git").unlink()
    agent_git(tree, "init", "-q")
    agent_git(tree, "add", "-A")
    agent_git(tree, "commit", "-qm", "All mine")


def led_elsewhere(tree: TaskTree) -> None:
    source = Path(tree.workspace.source.shared)
    (tree.root / ".git").write_text(f"gitdir: {source}\n")


def stashed(tree: TaskTree) -> None:
    write(tree, {"b.txt": "in a stash\n"})
    agent_git(tree, "stash", "push", "-q", "b.txt")


def lost_admin(tree: TaskTree) -> None:
    (tree.admin / "HEAD").unlink()
    (tree.admin / "commondir").write_text("/tmp\n")
    (tree.admin / "gitdir").unlink()


@pytest.mark.parametrize(
    ("act", "expected"),
    [
        (orphan, ["head-moved", "ref-made"]),
        (other_branch, ["head-moved", "ref-made"]),
        (detached, ["head-moved"]),
        (moved_line, ["line-moved"]),
        (deleted_line, ["line-moved"]),
        (moved_origin, ["ref-moved"]),
        (made_tag, ["ref-made"]),
        (deleted_own_branch, ["history-rewritten"]),
        (in_the_way, ["head-moved", "ref-made", "history-rewritten"]),
        (removed_link, ["git-file"]),
        (own_repository, ["git-file"]),
        (led_elsewhere, ["git-file"]),
        (stashed, ["stash"]),
        (lost_admin, ["head-moved"]),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_misdeed_is_named_and_put_right(
    bench: Workbench,
    workspace: DeliveryWorkspace,
    act: Callable[[TaskTree], None],
    expected: list[str],
) -> None:
    tree = workspace.open_tree("one")
    before, users = refs(workspace), bench.facts()
    write(tree, {"a.txt": "work\n"})
    act(tree)
    taken = tree.snapshot("Work")
    assert kinds(taken) == expected
    assert all(len(violation.sentence) > 30 for violation in taken.violations)
    assert tree.diff(workspace.base, taken.sha).paths == ("a.txt",)
    assert refs(workspace) == {**before, tree.branch: taken.sha}
    assert agent_git(tree, "status", "--porcelain", "--branch") == f"## {tree.branch[11:]}"
    assert tree.snapshot("Again").violations == ()
    assert bench.facts() == users


def test_stashed_work_can_be_had_again(workspace: DeliveryWorkspace) -> None:
    tree, other = workspace.open_tree("one"), workspace.open_tree("two")
    write(other, {"a.txt": "of two\n"})
    agent_git(other, "stash", "-q")
    write(tree, {"b.txt": "of one\n"})
    agent_git(tree, "stash", "-q")
    (violation,) = tree.snapshot("Work").violations
    agent_git(tree, "gc", "-q", "--prune=now")
    commit = violation.sentence.partition("git stash apply ")[2].partition(" ")[0]
    agent_git(tree, "stash", "apply", "-q", commit)
    assert (tree.root / "b.txt").read_text() == "of one\n"
    agent_git(other, "stash", "pop", "-q")
    assert (other.root / "a.txt").read_text() == "of two\n"


def test_nobody_is_blamed_for_what_another_did(workspace: DeliveryWorkspace) -> None:
    tree, other = workspace.open_tree("one"), workspace.open_tree("two")
    write(other, {"a.txt": "of two\n"})
    other_branch(other)
    made_of_two = agent_git(other, "rev-parse", "HEAD")
    agent_git(other, "tag", "theirs")
    write(tree, {"b.txt": "of one\n"})
    assert tree.snapshot("Work").violations == ()
    assert agent_git(other, "rev-parse", "HEAD") == made_of_two
    assert kinds(other.snapshot("Work")) == ["head-moved", "ref-made"]


def test_a_branch_moved_by_another_costs_no_work(workspace: DeliveryWorkspace) -> None:
    tree, other = workspace.open_tree("one"), workspace.open_tree("two")
    write(tree, {"a.txt": "of one\n"})
    write(other, {"b.txt": "of two\n"})
    agent_git(other, "commit", "-qam", "Two")
    agent_git(other, "update-ref", tree.branch, "HEAD")
    taken = tree.snapshot("Work")
    assert tree.diff(workspace.base, taken.sha).paths == ("a.txt",)


def test_an_agent_cannot_reach_the_users_repository_by_path(
    bench: Workbench, workspace: DeliveryWorkspace
) -> None:
    tree, users = workspace.open_tree("one"), bench.facts()
    write(tree, {"a.txt": "mine\n"})
    agent_git(tree, "commit", "-qam", "Mine")
    for target in (str(bench.source.folder), f"file://{bench.source.folder}", "origin"):
        agent_git(tree, "push", target, "HEAD:refs/heads/new", check=False)
    (tree.root / ".git").unlink()
    agent_git(tree, "commit", "-qam", "Into whatever is above", check=False)
    assert bench.facts() == users


def test_hooks_are_not_run(bench: Workbench) -> None:
    hooks = bench.source.folder / ".git" / "hooks"
    hooks.mkdir(exist_ok=True)
    for name in ("pre-commit", "commit-msg", "reference-transaction", "post-checkout", "update"):
        (hooks / name).write_text("#!/bin/sh\ntouch " + str(bench.folder / "ran") + "\nexit 1\n")
        (hooks / name).chmod(0o755)
    workspace = bench.open_workspace()
    tree = workspace.open_tree("one")
    write(tree, {"a.txt": "x\n"})
    agent_git(tree, "commit", "-qam", "Not held up")
    assert tree.snapshot("Work").is_new
    assert workspace.merge_branch.publish().is_done
    assert not (bench.folder / "ran").exists()


def test_hooks_are_kept_if_asked_for_and_hold_up_the_agent_only(bench: Workbench) -> None:
    hooks = bench.source.folder / ".git" / "hooks"
    hooks.mkdir(exist_ok=True)
    (hooks / "pre-commit").write_text("#!/bin/sh\nexit 1\n")
    (hooks / "pre-commit").chmod(0o755)
    workspace = DeliveryWorkspace.create(bench.source.folder, bench.home, "plan", keep_hooks=True)
    tree = workspace.open_tree("one")
    write(tree, {"a.txt": "x\n"})
    agent_git(tree, "commit", "-qam", "Held up", check=False)
    assert agent_git(tree, "rev-parse", "HEAD") == workspace.base
    assert tree.snapshot("Work").is_new


def huge(tree: TaskTree) -> None:
    with (tree.root / "huge.bin").open("wb") as opened:
        opened.truncate(2_000_000)


def grown(tree: TaskTree) -> None:
    with (tree.root / "b.txt").open("wb") as opened:
        opened.truncate(2_000_000)


def link_away(tree: TaskTree) -> None:
    (tree.root / "etc").symlink_to("/etc")


def link_up(tree: TaskTree) -> None:
    (tree.root / "src" / "up").symlink_to("../../..")


def folder_becomes_link(tree: TaskTree) -> None:
    (tree.root / "src" / "app.py").unlink()
    (tree.root / "src").rmdir()
    (tree.root / "src").symlink_to(Path(tree.workspace.source.folder) / "src")


def pipe(tree: TaskTree) -> None:
    os.mkfifo(tree.root / "pipe")


def nested(tree: TaskTree) -> None:
    (tree.root / "lib").mkdir()
    agent_git(tree, "init", "-q", "lib")


def nested_with_commit(tree: TaskTree) -> None:
    nested(tree)
    (tree.root / "lib" / "x").write_text("x")
    agent_git(tree, "-C", "lib", "add", "-A")
    agent_git(tree, "-C", "lib", "commit", "-qm", "x")


def submodule(tree: TaskTree) -> None:
    source = tree.workspace.source.folder
    agent_git(tree, "-c", "protocol.file.allow=always", "submodule", "add", "-q", source, "lib")


@pytest.mark.parametrize(
    ("act", "expected", "left"),
    [
        (huge, ["too-large"], ()),
        (grown, ["too-large"], ()),
        (link_away, ["symlink-outside"], ()),
        (link_up, ["symlink-outside"], ()),
        (folder_becomes_link, ["symlink-outside"], ("src/app.py",)),
        (pipe, [], ()),
        (nested, ["nested-repository"], ()),
        (nested_with_commit, ["nested-repository"], ()),
        (submodule, ["nested-repository"], (".gitmodules",)),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_files_that_cannot_be_recorded_are_left_out_and_named(
    bench: Workbench, act: Callable[[TaskTree], None], expected: list[str], left: tuple[str, ...]
) -> None:
    workspace = bench.open_workspace()
    tree, users = workspace.open_tree("one"), bench.facts()
    write(tree, {"a.txt": "work\n"})
    act(tree)
    taken = tree.snapshot("Work", largest=1_000_000)
    assert kinds(taken) == expected
    assert sorted(tree.diff(workspace.base, taken.sha).paths) == sorted(("a.txt", *left))
    assert (
        sum(file.stat().st_size for file in workspace.repo.rglob("*") if file.is_file()) < 1_000_000
    )
    tree.restore(taken.sha)
    assert tree.is_unchanged(taken.sha)
    assert bench.facts() == users


@pytest.mark.parametrize(
    ("act", "expected", "left"),
    [
        (grown, ["too-large"], ()),
        (huge, ["too-large"], ()),
        (link_up, ["symlink-outside"], ()),
        (folder_becomes_link, ["symlink-outside"], ("src/app.py",)),
        (nested_with_commit, ["nested-repository"], ()),
        (submodule, ["nested-repository"], (".gitmodules",)),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_nor_are_they_if_the_agent_commits_them_itself(
    workspace: DeliveryWorkspace,
    act: Callable[[TaskTree], None],
    expected: list[str],
    left: tuple[str, ...],
) -> None:
    tree = workspace.open_tree("one")
    write(tree, {"a.txt": "work\n"})
    act(tree)
    agent_git(tree, "add", "-A")
    agent_git(tree, "commit", "-qm", "All of it")
    taken = tree.snapshot("Work", largest=1_000_000)
    assert kinds(taken) == expected
    assert sorted(tree.diff(workspace.base, taken.sha).paths) == sorted(("a.txt", *left))


def test_two_hundred_megabytes_are_not_even_read(workspace: DeliveryWorkspace) -> None:
    tree = workspace.open_tree("one")
    with (tree.root / "huge.bin").open("wb") as opened:
        opened.truncate(200_000_000)
    taken = tree.snapshot("Work")
    (violation,) = taken.violations
    assert violation.sentence == (
        "'huge.bin' has 200,000,000 bytes, more than 50,000,000; make it smaller or ignore it. "
        "It is not recorded"
    )
    assert taken.sha == workspace.base


def test_links_within_the_tree_are_fine(workspace: DeliveryWorkspace) -> None:
    tree = workspace.open_tree("one")
    (tree.root / "src" / "link").symlink_to("../a.txt")
    (tree.root / "dead").symlink_to("nowhere")
    taken = tree.snapshot("Links")
    assert taken.violations == ()
    assert tree.diff(workspace.base, taken.sha).paths == ("dead", "src/link")


def test_a_tree_that_became_a_link_is_a_folder_again(
    bench: Workbench, workspace: DeliveryWorkspace
) -> None:
    tree, users = workspace.open_tree("one"), bench.facts()
    tree.root.rename(bench.folder / "away")
    tree.root.symlink_to(bench.source.folder)
    assert not tree.is_unchanged(workspace.base)
    taken = tree.snapshot("Work")
    assert kinds(taken) == ["tree-replaced", "git-file"]
    tree.restore(workspace.base)
    assert not tree.root.is_symlink()
    assert bench.facts() == users
