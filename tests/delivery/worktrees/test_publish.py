"""The user's repository gets one branch; whatever else is there belongs to the user."""

from pathlib import Path

import pytest
from tests.world.workbench import Workbench, change, fine, write

from interlock.delivery.worktrees.merge_branch import Merged
from interlock.delivery.worktrees.workspace import DeliveryWorkspace
from interlock.system.errors import SourceError

BRANCH = "refs/heads/interlock/plan"


@pytest.fixture
def bench(tmp_path: Path) -> Workbench:
    return Workbench(tmp_path)


@pytest.fixture
def shop(bench: Workbench) -> DeliveryWorkspace:
    return bench.shop()


def work(shop: DeliveryWorkspace, task_id: str) -> str:
    tree = shop.tree(task_id)
    write(tree, {f"{task_id}.txt": "done\n"})
    outcome = shop.line.merge(change(tree), fine)
    assert isinstance(outcome, Merged)
    return outcome.sha


def test_one_branch_and_nothing_else(bench: Workbench, shop: DeliveryWorkspace) -> None:
    bench.source.write({"a.txt": "dirty\n"})
    before = bench.facts()
    listed = {path.name for path in (bench.source.folder / ".git").iterdir()}
    sha = work(shop, "one")
    said = shop.line.publish()
    assert (said.branch, said.sha, said.is_done, said.is_new) == ("interlock/plan", sha, True, True)
    after = bench.facts()
    assert after.pop("REFS") == f"{sha} commit\t{BRANCH}\n{before.pop('REFS')}"
    assert after == before
    assert {path.name for path in (bench.source.folder / ".git").iterdir()} == listed
    bench.source.git("fsck", "--strict")


def test_doing_it_again_changes_nothing_and_it_goes_forward(
    bench: Workbench, shop: DeliveryWorkspace
) -> None:
    first = work(shop, "one")
    shop.line.publish()
    again = shop.line.publish()
    assert (again.is_done, again.is_new, again.sha) == (True, False, first)
    second = work(shop, "two")
    assert shop.line.publish().sha == second
    assert bench.source.git("rev-parse", BRANCH) == second


def test_a_branch_of_that_name_that_is_not_ours(bench: Workbench, shop: DeliveryWorkspace) -> None:
    bench.source.git("branch", "interlock/plan")
    work(shop, "one")
    said = shop.line.publish()
    assert not said.is_done
    assert said.sentence == (
        "the branch interlock/plan is there already and not as Interlock left it; rename it "
        "(git branch -m interlock/plan another-name) and run it again"
    )
    assert bench.source.git("rev-parse", BRANCH) == shop.base
    bench.source.git("branch", "-m", "interlock/plan", "another-name")
    assert shop.line.publish().is_done


def test_a_branch_that_the_user_went_on_with(bench: Workbench, shop: DeliveryWorkspace) -> None:
    work(shop, "one")
    shop.line.publish()
    bench.source.git("checkout", "-q", "interlock/plan")
    bench.source.commit("By hand", {"hand.txt": "x\n"})
    bench.source.git("checkout", "-q", "main")
    by_hand = bench.source.git("rev-parse", BRANCH)
    work(shop, "two")
    assert "not as Interlock left it" in shop.line.publish().sentence
    assert bench.source.git("rev-parse", BRANCH) == by_hand


def test_a_branch_that_the_user_deleted_is_made_again(
    bench: Workbench, shop: DeliveryWorkspace
) -> None:
    sha = work(shop, "one")
    shop.line.publish()
    bench.source.git("branch", "-D", "interlock/plan")
    assert shop.line.publish().is_new
    assert bench.source.git("rev-parse", BRANCH) == sha


@pytest.mark.parametrize("where", ["here", "aside"])
def test_a_checked_out_branch_is_not_moved(
    bench: Workbench, shop: DeliveryWorkspace, where: str
) -> None:
    first = work(shop, "one")
    shop.line.publish()
    if where == "here":
        bench.source.git("checkout", "-q", "interlock/plan")
    else:
        bench.source.git("worktree", "add", "-q", str(bench.folder / "aside"), "interlock/plan")
    second = work(shop, "two")
    said = shop.line.publish()
    assert (said.is_done, said.sha) == (False, first)
    assert "is checked out; switch to another one" in said.sentence
    assert bench.source.git("rev-parse", BRANCH) == first
    bench.source.git(
        "worktree", "remove", "-f", str(bench.folder / "aside")
    ) if where == "aside" else (bench.source.git("checkout", "-q", "main"))
    assert shop.line.publish().sha == second


@pytest.mark.parametrize("name", ["interlock", "interlock/plan/mine"])
def test_a_name_that_leaves_no_room(bench: Workbench, shop: DeliveryWorkspace, name: str) -> None:
    bench.source.git("branch", name)
    said = shop.line.publish()
    assert not said.is_done
    assert "leaves no room for interlock/plan; rename it" in said.sentence


def test_a_repository_that_is_gone(bench: Workbench, shop: DeliveryWorkspace) -> None:
    bench.source.folder.rename(bench.folder / "elsewhere")
    with pytest.raises(SourceError, match="not there any more"):
        shop.line.publish()


def test_a_lock_in_the_users_repository_is_not_broken(
    bench: Workbench, shop: DeliveryWorkspace
) -> None:
    lock = bench.source.folder / ".git" / "refs" / "heads" / "interlock"
    lock.mkdir(parents=True)
    (lock / "plan.lock").write_bytes(b"")
    said = shop.line.publish()
    assert not said.is_done
    assert "git did not move interlock/plan" in said.sentence
    assert (lock / "plan.lock").exists()
    (lock / "plan.lock").unlink()
    assert shop.line.publish().is_done


def test_killed_between_the_branch_and_the_ledger_it_is_still_ours(bench: Workbench) -> None:
    with bench.shop() as shop:
        work(shop, "one")
        shop.line.publish()
        second = work(shop, "two")
    told: list[str] = []

    def heed(step: str) -> None:
        told.append(step)
        if told[-2:] == ["git update-ref", "ledger"]:
            raise KeyboardInterrupt

    with bench.shop(heed) as shop, pytest.raises(KeyboardInterrupt):
        shop.line.publish()
    assert bench.source.git("rev-parse", BRANCH) == second
    with bench.shop() as shop:
        assert shop.line.publish().is_done
