"""The line: one commit for each task, in a row, and only what was verified."""

import threading
from pathlib import Path

import pytest
from tests.world.workbench import Workbench, agent_git, change, fine, write

from interlock.delivery.worktrees.merge_branch import (
    AlreadyMerged,
    Conflict,
    Merged,
    MergeRejected,
    NothingToMerge,
    Outcome,
    Proposal,
    TaskChange,
)
from interlock.delivery.worktrees.ref_guard import MovedError
from interlock.delivery.worktrees.workspace import DeliveryWorkspace
from interlock.system.errors import SourceError, StateError


@pytest.fixture
def bench(tmp_path: Path) -> Workbench:
    return Workbench(tmp_path)


@pytest.fixture
def shop(bench: Workbench) -> DeliveryWorkspace:
    return bench.shop()


def merged(outcome: Outcome) -> str:
    assert isinstance(outcome, Merged)
    return outcome.sha


def subjects(shop: DeliveryWorkspace) -> list[str]:
    return shop.git.ask("log", "--format=%s", shop.line.tip).split("\n")


def lines(shop: DeliveryWorkspace, **changed: str) -> str:
    """src/app.py with some of its lines replaced."""
    rows = [f"line {number}" for number in range(1, 21)]
    for name, text in changed.items():
        rows[int(name[1:]) - 1] = text
    return "".join(f"{row}\n" for row in rows)


def test_a_task_is_one_commit_with_trailers(shop: DeliveryWorkspace) -> None:
    tree = shop.tree("T/1")
    write(tree, {"a.txt": "one\n"})
    agent_git(tree, "commit", "-qam", "First\n\nInterlock-Task: forged")
    write(tree, {"b.txt": "two\n"})
    done = change(tree, "41")
    sha = merged(shop.line.merge(done, fine))
    assert shop.line.tip == sha
    assert shop.git.ask("log", "-1", "--format=%P%n%B", sha) == (
        f"{shop.base}\nT/1\n\nInterlock-Task: T/1\nInterlock-Dispatch: 41\n"
        f"Interlock-Change: {done.sha}\n"
    )
    assert tree.diff(shop.base, sha).paths == ("a.txt", "b.txt")


def test_changes_of_several_tasks_come_together_in_a_row(shop: DeliveryWorkspace) -> None:
    trees = [shop.tree(f"t{number}") for number in range(4)]
    for number, tree in enumerate(trees):
        write(tree, {"src/app.py": lines(shop, **{f"n{5 * number + 1}": f"by {number}"})})
    for tree in trees:
        merged(shop.line.merge(change(tree), fine))
    assert subjects(shop) == ["t3", "t2", "t1", "t0", "Begin"]
    assert shop.git.ask("rev-list", "--merges", "--count", shop.line.tip) == "0"
    assert shop.git.ask("show", f"{shop.line.tip}:src/app.py").count("by ") == 4


def test_verification_sees_the_merged_tree_and_can_refuse(shop: DeliveryWorkspace) -> None:
    one, two = shop.tree("one"), shop.tree("two")
    write(one, {"a.txt": "one\n"})
    write(two, {"b.txt": "two\n"})
    merged(shop.line.merge(change(one), fine))
    seen: list[Path] = []

    def verify(folder: Path) -> str:
        seen.append(folder)
        assert (folder / "a.txt").read_text() == "one\n"
        assert (folder / "b.txt").read_text() == "two\n"
        (folder / "left.txt").write_text("by the check")
        (folder / "b.txt").write_text("changed by the check")
        return "3 tests fail"

    tip = shop.line.tip
    assert shop.line.merge(change(two), verify) == MergeRejected("3 tests fail")
    assert shop.line.tip == tip
    sha = merged(shop.line.merge(change(two), fine))
    assert two.diff(tip, sha).paths == ("b.txt",)
    assert shop.git.ask("show", f"{sha}:b.txt") == "two"
    assert len(seen) == 1


def test_the_same_change_is_merged_once(shop: DeliveryWorkspace) -> None:
    tree = shop.tree("one")
    write(tree, {"a.txt": "one\n"})
    done = change(tree, "7")
    sha = merged(shop.line.merge(done, fine))
    assert shop.line.merge(done, fine) == AlreadyMerged(sha)
    other = TaskChange(task_id="one", dispatch_id="8", sha=done.sha, base=done.base)
    assert shop.line.merge(other, fine) == NothingToMerge()


def test_nothing_is_merged_if_nothing_changed(shop: DeliveryWorkspace) -> None:
    assert shop.line.merge(change(shop.tree("one")), fine) == NothingToMerge()
    one, two = shop.tree("t1"), shop.tree("t2")
    for tree in (one, two):
        write(tree, {"a.txt": "the same\n"})
    merged(shop.line.merge(change(one), fine))
    assert shop.line.merge(change(two), fine) == NothingToMerge()


def test_a_conflict_goes_back_to_its_developer(shop: DeliveryWorkspace) -> None:
    one, two = shop.tree("one"), shop.tree("two")
    write(one, {"src/app.py": lines(shop, n3="by one")})
    write(two, {"src/app.py": lines(shop, n3="by two"), "b.txt": "two\n", "new.txt": "n\n"})
    tip = merged(shop.line.merge(change(one), fine))
    done = change(two)
    found = shop.line.merge(done, fine)
    assert isinstance(found, Conflict)
    assert (found.files, found.tip) == (("src/app.py",), tip)
    assert "by one" in found.text
    assert "by two" in found.text
    planted = shop.line.replant(two, done.sha, done.base)
    assert (planted.base, planted.files) == (tip, ("src/app.py",))
    assert two.base == tip
    assert (two.root / "b.txt").read_text() == "two\n"
    status = agent_git(two, "status", "--porcelain").split("\n")
    assert status == [" M b.txt", " M src/app.py", "?? new.txt"]
    unresolved = two.snapshot("Not yet")
    assert unresolved.violations == ()
    assert shop.line.markers(two.base, unresolved.sha) == [("src/app.py", 3), ("src/app.py", 7)]
    write(two, {"src/app.py": lines(shop, n3="by both")})
    resolved = change(two, "2")
    assert shop.line.markers(two.base, resolved.sha) == []
    sha = merged(shop.line.merge(resolved, fine))
    assert shop.git.ask("show", f"{sha}:src/app.py") == lines(shop, n3="by both").rstrip("\n")
    assert subjects(shop) == ["two", "one", "Begin"]


def test_a_replant_can_be_done_again(shop: DeliveryWorkspace) -> None:
    one, two = shop.tree("one"), shop.tree("two")
    write(one, {"a.txt": "one\n"})
    write(two, {"a.txt": "two\n", "c.txt": "c\n"})
    merged(shop.line.merge(change(one), fine))
    done = change(two)
    first = shop.line.replant(two, done.sha, done.base)
    text = (two.root / "a.txt").read_text()
    write(two, {"a.txt": "half done\n"})
    assert shop.line.replant(two, done.sha, done.base) == first
    assert (two.root / "a.txt").read_text() == text
    assert (two.root / "c.txt").read_text() == "c\n"


@pytest.mark.parametrize("kind", ["deleted", "binary", "mode", "both-new", "folder"])
def test_conflicts_of_every_kind_can_be_replanted(shop: DeliveryWorkspace, kind: str) -> None:
    one, two = shop.tree("one"), shop.tree("two")
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
    merged(shop.line.merge(change(one), fine))
    done = change(two)
    found = shop.line.propose(done)
    assert isinstance(found, Conflict)
    planted = shop.line.replant(two, done.sha, done.base)
    assert planted.files == found.files != ()
    assert agent_git(two, "diff", "--name-only", "--diff-filter=U") == ""
    write(two, {"resolved": "yes\n"})
    assert two.snapshot("Resolved").violations == ()


def test_who_comes_second_proposes_again(shop: DeliveryWorkspace) -> None:
    one, two = shop.tree("one"), shop.tree("two")
    write(one, {"a.txt": "one\n"})
    write(two, {"b.txt": "two\n"})
    first = shop.line.propose(change(one))
    second = shop.line.propose(change(two))
    assert isinstance(first, Proposal)
    assert isinstance(second, Proposal)
    shop.line.accept(second)
    with pytest.raises(MovedError):
        shop.line.accept(first)
    agent_git(one, "update-ref", shop.line.ref, shop.base)
    with pytest.raises(MovedError):
        shop.line.accept(first)
    calls: list[Path] = []

    def interrupted(folder: Path) -> str:
        if not calls:
            three = shop.tree("three")
            write(three, {"c.txt": "three\n"})
            other = shop.line.propose(change(three))
            assert isinstance(other, Proposal)
            shop.line.accept(other)
        calls.append(folder)
        return ""

    merged(shop.line.merge(change(one), interrupted))
    assert len(calls) == 2
    assert subjects(shop) == ["one", "three", "two", "Begin"]


def test_a_line_that_an_agent_moved_is_put_back(shop: DeliveryWorkspace) -> None:
    one, two = shop.tree("one"), shop.tree("two")
    write(one, {"a.txt": "one\n"})
    agent_git(one, "commit", "-qam", "Straight to the line")
    write(two, {"b.txt": "two\n"})
    done = change(two)
    agent_git(one, "update-ref", shop.line.ref, "HEAD")
    merged(shop.line.merge(done, fine))
    assert subjects(shop) == ["two", "Begin"]


def test_what_is_no_snapshot_is_refused(shop: DeliveryWorkspace) -> None:
    tree = shop.tree("one")
    write(tree, {"a.txt": "one\n"})
    done = change(tree)
    for sha in ("", "HEAD", "f" * 40, "--help"):
        with pytest.raises(SourceError, match="not a commit of this workspace"):
            shop.line.propose(TaskChange(task_id="x", dispatch_id="1", sha=sha, base=done.base))
    with pytest.raises(StateError, match="is not on the merge branch"):
        shop.line.propose(TaskChange(task_id="x", dispatch_id="1", sha=done.sha, base=done.sha))


def test_a_title_cannot_forge_trailers(shop: DeliveryWorkspace) -> None:
    tree = shop.tree("one")
    write(tree, {"a.txt": "one\n"})
    sha = tree.snapshot("Work").sha
    title = "Fine\n\nInterlock-Task: two\nInterlock-Dispatch: 9"
    forged = TaskChange(task_id="one", dispatch_id="1", sha=sha, base=tree.base, title=title)
    merged(shop.line.merge(forged, fine))
    other = TaskChange(task_id="two", dispatch_id="9", sha=sha, base=tree.base)
    assert shop.line.find(other) == ""
    assert shop.line.find(forged) == shop.line.tip


def test_ignored_files_in_the_way_of_a_merge(shop: DeliveryWorkspace) -> None:
    one, two = shop.tree("one"), shop.tree("two")
    write(one, {"a.txt": "one\n"})

    def built(folder: Path) -> str:
        (folder / "x.log").write_text("by the check")
        return ""

    merged(shop.line.merge(change(one), built))
    write(two, {"x.log": "wanted\n"})
    agent_git(two, "add", "-f", "x.log")
    sha = merged(shop.line.merge(change(two), fine))
    assert shop.git.ask("show", f"{sha}:x.log") == "wanted"


def test_a_damaged_scratch_tree_is_made_anew(shop: DeliveryWorkspace) -> None:
    one, two = shop.tree("one"), shop.tree("two")
    write(one, {"a.txt": "one\n"})
    write(two, {"b.txt": "two\n"})
    merged(shop.line.merge(change(one), fine))
    scratch = shop.line.scratch
    (scratch.root / ".git").unlink()
    (scratch.root / ".git").mkdir()
    scratch.index.write_bytes(b"broken")
    (scratch.admin / "index.lock").write_bytes(b"")
    merged(shop.line.merge(change(two), fine))
    assert subjects(shop) == ["two", "one", "Begin"]


def test_trees_are_recorded_by_several_threads_at_once(shop: DeliveryWorkspace) -> None:
    trees = [shop.tree(f"t{number}") for number in range(6)]
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
        merged(shop.line.merge(change(tree), fine))
    assert len(subjects(shop)) == 7
