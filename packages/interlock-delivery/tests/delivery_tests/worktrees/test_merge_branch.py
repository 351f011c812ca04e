"""Test the merge branch: one verified commit for each task, and one branch for the user."""

import threading
from pathlib import Path

import pytest

from delivery_tests.world.workspace_bench import (
    MergeOutcome,
    MergeRejected,
    Workbench,
    agent_git,
    change,
    fine,
    merge,
    write,
)
from interlock.system.errors import SourceError, StateError
from interlock_delivery.worktrees.merge_branch import (
    AlreadyMerged,
    Conflict,
    Merged,
    NothingToMerge,
    Proposal,
    TaskChange,
)
from interlock_delivery.worktrees.ref_guard import MovedError
from interlock_delivery.worktrees.workspace import DeliveryWorkspace


@pytest.fixture
def bench(tmp_path: Path) -> Workbench:
    return Workbench(tmp_path)


@pytest.fixture
def workspace(bench: Workbench) -> DeliveryWorkspace:
    return bench.open_workspace()


def merged(outcome: MergeOutcome) -> str:
    assert isinstance(outcome, Merged)
    return outcome.sha


def subjects(workspace: DeliveryWorkspace) -> list[str]:
    return workspace.git.read_line("log", "--format=%s", workspace.merge_branch.tip).split("\n")


def lines(workspace: DeliveryWorkspace, **changed: str) -> str:
    """Return src/app.py with some of its lines replaced."""
    rows = [f"line {number}" for number in range(1, 21)]
    for name, text in changed.items():
        rows[int(name[1:]) - 1] = text
    return "".join(f"{row}\n" for row in rows)


def test_a_task_is_one_commit_with_trailers(workspace: DeliveryWorkspace) -> None:
    tree = workspace.open_tree("T/1")
    write(tree, {"a.txt": "one\n"})
    agent_git(tree, "commit", "-qam", "First\n\nInterlock-Task: forged")
    write(tree, {"b.txt": "two\n"})
    done = change(tree, "41")
    sha = merged(merge(workspace.merge_branch, done, fine))
    assert workspace.merge_branch.tip == sha
    assert workspace.git.read_line("log", "-1", "--format=%P%n%B", sha) == (
        f"{workspace.base}\nT/1\n\nInterlock-Task: T/1\nInterlock-Dispatch: 41\n"
        f"Interlock-Change: {done.sha}\n"
    )
    assert tree.diff(workspace.base, sha).paths == ("a.txt", "b.txt")


def test_changes_of_several_tasks_come_together_in_a_row(workspace: DeliveryWorkspace) -> None:
    trees = [workspace.open_tree(f"t{number}") for number in range(4)]
    for number, tree in enumerate(trees):
        write(tree, {"src/app.py": lines(workspace, **{f"n{5 * number + 1}": f"by {number}"})})
    for tree in trees:
        merged(merge(workspace.merge_branch, change(tree), fine))
    assert subjects(workspace) == ["t3", "t2", "t1", "t0", "Begin"]
    assert (
        workspace.git.read_line("rev-list", "--merges", "--count", workspace.merge_branch.tip)
        == "0"
    )
    assert (
        workspace.git.read_line("show", f"{workspace.merge_branch.tip}:src/app.py").count("by ")
        == 4
    )


def test_verification_sees_the_merged_tree_and_can_refuse(workspace: DeliveryWorkspace) -> None:
    one, two = workspace.open_tree("one"), workspace.open_tree("two")
    write(one, {"a.txt": "one\n"})
    write(two, {"b.txt": "two\n"})
    merged(merge(workspace.merge_branch, change(one), fine))
    seen: list[Path] = []

    def verify(folder: Path) -> str:
        seen.append(folder)
        assert (folder / "a.txt").read_text() == "one\n"
        assert (folder / "b.txt").read_text() == "two\n"
        (folder / "left.txt").write_text("by the check")
        (folder / "b.txt").write_text("changed by the check")
        return "3 tests fail"

    tip = workspace.merge_branch.tip
    assert merge(workspace.merge_branch, change(two), verify) == MergeRejected("3 tests fail")
    assert workspace.merge_branch.tip == tip
    sha = merged(merge(workspace.merge_branch, change(two), fine))
    assert two.diff(tip, sha).paths == ("b.txt",)
    assert workspace.git.read_line("show", f"{sha}:b.txt") == "two"
    assert len(seen) == 1


def test_the_same_change_is_merged_once(workspace: DeliveryWorkspace) -> None:
    tree = workspace.open_tree("one")
    write(tree, {"a.txt": "one\n"})
    done = change(tree, "7")
    sha = merged(merge(workspace.merge_branch, done, fine))
    assert merge(workspace.merge_branch, done, fine) == AlreadyMerged(sha)
    other = TaskChange(task_id="one", dispatch_id="8", sha=done.sha, base=done.base)
    assert merge(workspace.merge_branch, other, fine) == NothingToMerge()


def test_nothing_is_merged_if_nothing_changed(workspace: DeliveryWorkspace) -> None:
    assert (
        merge(workspace.merge_branch, change(workspace.open_tree("one")), fine) == NothingToMerge()
    )
    one, two = workspace.open_tree("t1"), workspace.open_tree("t2")
    for tree in (one, two):
        write(tree, {"a.txt": "the same\n"})
    merged(merge(workspace.merge_branch, change(one), fine))
    assert merge(workspace.merge_branch, change(two), fine) == NothingToMerge()


def test_a_conflict_goes_back_to_its_developer(workspace: DeliveryWorkspace) -> None:
    one, two = workspace.open_tree("one"), workspace.open_tree("two")
    write(one, {"src/app.py": lines(workspace, n3="by one")})
    write(two, {"src/app.py": lines(workspace, n3="by two"), "b.txt": "two\n", "new.txt": "n\n"})
    tip = merged(merge(workspace.merge_branch, change(one), fine))
    done = change(two)
    found = merge(workspace.merge_branch, done, fine)
    assert isinstance(found, Conflict)
    assert (found.files, found.tip) == (("src/app.py",), tip)
    assert "by one" in found.text
    assert "by two" in found.text
    planted = workspace.merge_branch.rebase(two, done.sha, done.base)
    assert (planted.base, planted.files) == (tip, ("src/app.py",))
    assert two.base == tip
    assert (two.root / "b.txt").read_text() == "two\n"
    status = agent_git(two, "status", "--porcelain").split("\n")
    assert status == [" M b.txt", " M src/app.py", "?? new.txt"]
    unresolved = two.snapshot("Not yet")
    assert unresolved.violations == ()
    write(two, {"src/app.py": lines(workspace, n3="by both")})
    resolved = change(two, "2")
    sha = merged(merge(workspace.merge_branch, resolved, fine))
    assert workspace.git.read_line("show", f"{sha}:src/app.py") == lines(
        workspace, n3="by both"
    ).rstrip("\n")
    assert subjects(workspace) == ["two", "one", "Begin"]


def test_a_replant_can_be_done_again(workspace: DeliveryWorkspace) -> None:
    one, two = workspace.open_tree("one"), workspace.open_tree("two")
    write(one, {"a.txt": "one\n"})
    write(two, {"a.txt": "two\n", "c.txt": "c\n"})
    merged(merge(workspace.merge_branch, change(one), fine))
    done = change(two)
    first = workspace.merge_branch.rebase(two, done.sha, done.base)
    text = (two.root / "a.txt").read_text()
    write(two, {"a.txt": "half done\n"})
    assert workspace.merge_branch.rebase(two, done.sha, done.base) == first
    assert (two.root / "a.txt").read_text() == text
    assert (two.root / "c.txt").read_text() == "c\n"


@pytest.mark.parametrize("kind", ["deleted", "binary", "mode", "both-new", "folder"])
def test_conflicts_of_every_kind_can_be_replanted(workspace: DeliveryWorkspace, kind: str) -> None:
    one, two = workspace.open_tree("one"), workspace.open_tree("two")
    sides: dict[str, list[dict[str, str | bytes | None]]] = {
        "deleted": [{"a.txt": None}, {"a.txt": "changed\n"}],
        "binary": [{"x": b"\0\1one"}, {"x": b"\0\1two"}],
        "mode": [{"a.txt": "one\n"}, {"a.txt": "two\n"}],
        "both-new": [{"new": "one\n"}, {"new": "two\n"}],
        "folder": [{"new": "a file\n"}, {"new/x": "in a folder\n"}],
    }
    write(one, sides[kind][0])
    write(two, sides[kind][1])
    (two.root / "a.txt").chmod(0o755 if kind == "mode" else 0o644)
    merged(merge(workspace.merge_branch, change(one), fine))
    done = change(two)
    found = workspace.merge_branch.propose(done)
    assert isinstance(found, Conflict)
    planted = workspace.merge_branch.rebase(two, done.sha, done.base)
    assert planted.files == found.files != ()
    assert agent_git(two, "diff", "--name-only", "--diff-filter=U") == ""
    write(two, {"resolved": "yes\n"})
    assert two.snapshot("Resolved").violations == ()


def test_who_comes_second_proposes_again(workspace: DeliveryWorkspace) -> None:
    one, two = workspace.open_tree("one"), workspace.open_tree("two")
    write(one, {"a.txt": "one\n"})
    write(two, {"b.txt": "two\n"})
    first = workspace.merge_branch.propose(change(one))
    second = workspace.merge_branch.propose(change(two))
    assert isinstance(first, Proposal)
    assert isinstance(second, Proposal)
    workspace.merge_branch.accept(second)
    with pytest.raises(MovedError):
        workspace.merge_branch.accept(first)
    agent_git(one, "update-ref", workspace.merge_branch.ref, workspace.base)
    with pytest.raises(MovedError):
        workspace.merge_branch.accept(first)
    calls: list[Path] = []

    def interrupted(folder: Path) -> str:
        if not calls:
            three = workspace.open_tree("three")
            write(three, {"c.txt": "three\n"})
            other = workspace.merge_branch.propose(change(three))
            assert isinstance(other, Proposal)
            workspace.merge_branch.accept(other)
        calls.append(folder)
        return ""

    merged(merge(workspace.merge_branch, change(one), interrupted))
    assert len(calls) == 2
    assert subjects(workspace) == ["one", "three", "two", "Begin"]


def test_a_line_that_an_agent_moved_is_put_back(workspace: DeliveryWorkspace) -> None:
    one, two = workspace.open_tree("one"), workspace.open_tree("two")
    write(one, {"a.txt": "one\n"})
    agent_git(one, "commit", "-qam", "Straight to the line")
    write(two, {"b.txt": "two\n"})
    done = change(two)
    agent_git(one, "update-ref", workspace.merge_branch.ref, "HEAD")
    merged(merge(workspace.merge_branch, done, fine))
    assert subjects(workspace) == ["two", "Begin"]


def test_what_is_no_snapshot_is_refused(workspace: DeliveryWorkspace) -> None:
    tree = workspace.open_tree("one")
    write(tree, {"a.txt": "one\n"})
    done = change(tree)
    for sha in ("", "HEAD", "f" * 40, "--help"):
        with pytest.raises(SourceError, match="not a commit of this workspace"):
            workspace.merge_branch.propose(
                TaskChange(task_id="x", dispatch_id="1", sha=sha, base=done.base)
            )
    with pytest.raises(StateError, match="is not on the merge branch"):
        workspace.merge_branch.propose(
            TaskChange(task_id="x", dispatch_id="1", sha=done.sha, base=done.sha)
        )


def test_a_title_cannot_forge_trailers(workspace: DeliveryWorkspace) -> None:
    tree = workspace.open_tree("one")
    write(tree, {"a.txt": "one\n"})
    sha = tree.snapshot("Work").sha
    title = "Fine\n\nInterlock-Task: two\nInterlock-Dispatch: 9"
    forged = TaskChange(task_id="one", dispatch_id="1", sha=sha, base=tree.base, title=title)
    merged(merge(workspace.merge_branch, forged, fine))
    other = TaskChange(task_id="two", dispatch_id="9", sha=sha, base=tree.base)
    assert workspace.merge_branch.find_merged(other) == ""
    assert workspace.merge_branch.find_merged(forged) == workspace.merge_branch.tip


def test_ignored_files_in_the_way_of_a_merge(workspace: DeliveryWorkspace) -> None:
    one, two = workspace.open_tree("one"), workspace.open_tree("two")
    write(one, {"a.txt": "one\n"})

    def built(folder: Path) -> str:
        (folder / "x.log").write_text("by the check")
        return ""

    merged(merge(workspace.merge_branch, change(one), built))
    write(two, {"x.log": "wanted\n"})
    agent_git(two, "add", "-f", "x.log")
    sha = merged(merge(workspace.merge_branch, change(two), fine))
    assert workspace.git.read_line("show", f"{sha}:x.log") == "wanted"


def test_a_damaged_scratch_tree_is_made_anew(workspace: DeliveryWorkspace) -> None:
    one, two = workspace.open_tree("one"), workspace.open_tree("two")
    write(one, {"a.txt": "one\n"})
    write(two, {"b.txt": "two\n"})
    merged(merge(workspace.merge_branch, change(one), fine))
    scratch = workspace.merge_branch.merge_tree
    (scratch.root / ".git").unlink()
    (scratch.root / ".git").mkdir()
    scratch.index.write_bytes(b"broken")
    (scratch.admin / "index.lock").write_bytes(b"")
    merged(merge(workspace.merge_branch, change(two), fine))
    assert subjects(workspace) == ["two", "one", "Begin"]


def test_trees_are_recorded_by_several_threads_at_once(workspace: DeliveryWorkspace) -> None:
    trees = [workspace.open_tree(f"t{number}") for number in range(6)]
    failed: list[BaseException] = []

    def work(number: int) -> None:
        try:
            for turn in range(3):
                write(trees[number], {f"f{number}.txt": f"{turn}\n"})
                assert trees[number].snapshot("Work").violations == ()
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert failed == []
    for tree in trees:
        merged(merge(workspace.merge_branch, change(tree), fine))
    assert len(subjects(workspace)) == 7


BRANCH = "refs/heads/interlock/plan"


def work(workspace: DeliveryWorkspace, task_id: str) -> str:
    tree = workspace.open_tree(task_id)
    write(tree, {f"{task_id}.txt": "done\n"})
    outcome = merge(workspace.merge_branch, change(tree), fine)
    assert isinstance(outcome, Merged)
    return outcome.sha


def test_one_branch_and_nothing_else(bench: Workbench, workspace: DeliveryWorkspace) -> None:
    bench.source.write({"a.txt": "dirty\n"})
    before = bench.facts()
    listed = {path.name for path in (bench.source.folder / ".git").iterdir()}
    sha = work(workspace, "one")
    result = workspace.merge_branch.publish()
    assert (result.branch, result.sha, result.is_done, result.is_new) == (
        "interlock/plan",
        sha,
        True,
        True,
    )
    after = bench.facts()
    assert after.pop("REFS") == f"{sha} commit\t{BRANCH}\n{before.pop('REFS')}"
    assert after == before
    assert {path.name for path in (bench.source.folder / ".git").iterdir()} == listed
    bench.source.git("fsck", "--strict")


def test_doing_it_again_changes_nothing_and_it_goes_forward(
    bench: Workbench, workspace: DeliveryWorkspace
) -> None:
    first = work(workspace, "one")
    workspace.merge_branch.publish()
    again = workspace.merge_branch.publish()
    assert (again.is_done, again.is_new, again.sha) == (True, False, first)
    second = work(workspace, "two")
    assert workspace.merge_branch.publish().sha == second
    assert bench.source.git("rev-parse", BRANCH) == second


def test_a_branch_of_that_name_that_is_not_ours(
    bench: Workbench, workspace: DeliveryWorkspace
) -> None:
    bench.source.git("branch", "interlock/plan")
    work(workspace, "one")
    result = workspace.merge_branch.publish()
    assert not result.is_done
    assert "git branch -m interlock/plan another-name" in result.sentence
    assert bench.source.git("rev-parse", BRANCH) == workspace.base
    bench.source.git("branch", "-m", "interlock/plan", "another-name")
    assert workspace.merge_branch.publish().is_done


def test_a_branch_that_the_user_went_on_with(
    bench: Workbench, workspace: DeliveryWorkspace
) -> None:
    work(workspace, "one")
    workspace.merge_branch.publish()
    bench.source.git("checkout", "-q", "interlock/plan")
    bench.source.commit("By hand", {"hand.txt": "x\n"})
    bench.source.git("checkout", "-q", "main")
    by_hand = bench.source.git("rev-parse", BRANCH)
    work(workspace, "two")
    assert "not as Interlock left it" in workspace.merge_branch.publish().sentence
    assert bench.source.git("rev-parse", BRANCH) == by_hand


def test_a_branch_that_the_user_deleted_is_made_again(
    bench: Workbench, workspace: DeliveryWorkspace
) -> None:
    sha = work(workspace, "one")
    workspace.merge_branch.publish()
    bench.source.git("branch", "-D", "interlock/plan")
    assert workspace.merge_branch.publish().is_new
    assert bench.source.git("rev-parse", BRANCH) == sha


@pytest.mark.parametrize("where", ["here", "aside"])
def test_a_checked_out_branch_is_not_moved(
    bench: Workbench, workspace: DeliveryWorkspace, where: str
) -> None:
    first = work(workspace, "one")
    workspace.merge_branch.publish()
    if where == "here":
        bench.source.git("checkout", "-q", "interlock/plan")
    else:
        bench.source.git("worktree", "add", "-q", str(bench.folder / "aside"), "interlock/plan")
    second = work(workspace, "two")
    result = workspace.merge_branch.publish()
    assert (result.is_done, result.sha) == (False, first)
    assert "is checked out; switch to another one" in result.sentence
    assert bench.source.git("rev-parse", BRANCH) == first
    bench.source.git(
        "worktree", "remove", "-f", str(bench.folder / "aside")
    ) if where == "aside" else (bench.source.git("checkout", "-q", "main"))
    assert workspace.merge_branch.publish().sha == second


@pytest.mark.parametrize("name", ["interlock", "interlock/plan/mine"])
def test_a_name_that_leaves_no_room(
    bench: Workbench, workspace: DeliveryWorkspace, name: str
) -> None:
    bench.source.git("branch", name)
    result = workspace.merge_branch.publish()
    assert not result.is_done
    assert "leaves no room for interlock/plan; rename it" in result.sentence


def test_a_repository_that_is_gone(bench: Workbench, workspace: DeliveryWorkspace) -> None:
    bench.source.folder.rename(bench.folder / "elsewhere")
    with pytest.raises(SourceError, match="no longer exists"):
        workspace.merge_branch.publish()


def test_a_lock_in_the_users_repository_is_not_broken(
    bench: Workbench, workspace: DeliveryWorkspace
) -> None:
    lock = bench.source.folder / ".git" / "refs" / "heads" / "interlock"
    lock.mkdir(parents=True)
    (lock / "plan.lock").write_bytes(b"")
    result = workspace.merge_branch.publish()
    assert not result.is_done
    assert "git did not move interlock/plan" in result.sentence
    assert (lock / "plan.lock").exists()
    (lock / "plan.lock").unlink()
    assert workspace.merge_branch.publish().is_done


def test_killed_between_the_branch_and_the_ledger_it_is_still_ours(bench: Workbench) -> None:
    with bench.open_workspace() as workspace:
        work(workspace, "one")
        workspace.merge_branch.publish()
        second = work(workspace, "two")
    output: list[str] = []

    def on_step(step: str) -> None:
        output.append(step)
        if output[-2:] == ["git update-ref", "ledger"]:
            raise KeyboardInterrupt

    with bench.open_workspace(on_step) as workspace, pytest.raises(KeyboardInterrupt):
        workspace.merge_branch.publish()
    assert bench.source.git("rev-parse", BRANCH) == second
    with bench.open_workspace() as workspace:
        assert workspace.merge_branch.publish().is_done
