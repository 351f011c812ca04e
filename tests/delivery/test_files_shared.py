"""Files that several tasks want: declared, reported, waited for; and trees that others edit."""

from pathlib import Path

import pytest
from tests.delivery.test_rework import in_turn, says
from tests.world import sayings
from tests.world.yard import Yard, develop, git, plan, review, task

from interlock.agents.carrier import Ask


def own_file(ask: Ask, folder: Path) -> str:
    (folder / f"{ask.case_id}.py").write_text("done = True\n")
    return f"READY_FOR_REVIEW: {ask.case_id}\n\nFiles Modified:\n- {ask.case_id}.py\n"


def order(yard: Yard) -> list[tuple[str, str]]:
    return [(ask.case_id, ask.step) for ask in yard.asked]


def test_tasks_that_declare_the_same_file_take_turns(tmp_path: Path) -> None:
    yard = Yard(tmp_path, plan(task("sub", files="calc.py"), task("dif", files="calc.py")))
    yard.begin()
    assert yard.work() == "done"
    asked = order(yard)
    first = {name: asked.index((name, "IMPLEMENT")) for name in ("sub", "dif")}
    last = {name: asked.index((name, "AUDIT")) for name in ("sub", "dif")}
    one, two = sorted(first, key=lambda name: first[name])
    assert last[one] < first[two]
    assert "unmerged" not in yard.rules("sub") + yard.rules("dif")


@pytest.mark.parametrize("can_wait", ["YES", "NO"])
def test_a_conflict_that_can_wait_waits_for_its_holder(tmp_path: Path, can_wait: str) -> None:
    yard = Yard(tmp_path, plan(task("sub", files="shared.py"), task("dif")))
    yard.begin()
    reports = in_turn(says(sayings.conflict("shared.py", can_wait)), own_file)

    def developer(ask: Ask, folder: Path) -> str:
        return reports(ask, folder) if ask.case_id == "dif" else own_file(ask, folder)

    assert yard.work({"developer": developer}) == "done"
    assert yard.rules("dif")[1] == "conflict"
    (found, *_) = [each for each in yard.findings("dif", "IMPLEMENT") if "holder" in each]
    assert found["holder"] == "sub"
    asked = order(yard)
    again = [place for place, each in enumerate(asked) if each == ("dif", "IMPLEMENT")][1]
    if can_wait == "YES":
        assert asked.index(("sub", "AUDIT")) < again


def test_two_that_wait_for_each_other_are_both_let_go(tmp_path: Path) -> None:
    yard = Yard(tmp_path, plan(task("sub", files="a.py"), task("dif", files="b.py")))
    yard.begin()

    def developer(ask: Ask, folder: Path) -> str:
        wanted = "b.py" if ask.case_id == "sub" else "a.py"
        if ask.attempt == 1:
            return sayings.conflict(wanted)
        return own_file(ask, folder)

    assert yard.work({"developer": developer}) == "done"


def test_a_reported_conflict_may_then_be_changed(tmp_path: Path) -> None:
    yard = Yard(tmp_path, plan(task("sub", files="shared.py"), task("dif")))
    yard.begin()

    def developer(ask: Ask, folder: Path) -> str:
        if ask.case_id == "dif" and ask.attempt == 1:
            return sayings.conflict("shared.py", "NO")
        if ask.case_id == "dif":
            (folder / "shared.py").write_text("one = 1\n")
        return own_file(ask, folder)

    assert yard.work({"developer": developer}, parallel=1) == "done"
    assert "violated" not in yard.rules("dif")


def test_a_tree_that_another_agent_edits_is_put_back(tmp_path: Path) -> None:
    """While nobody writes in a tree, any change of it is somebody else's: put back, and told."""
    yard = Yard(tmp_path, plan(task("sub"), task("dif")))
    yard.begin()

    def critic(ask: Ask, folder: Path) -> str:
        (folder.parent / "dif" / "evil.py").write_text("evil = 1\n")
        return review(ask, folder)

    assert yard.work({"developer": own_file, "critic": critic}) == "done"
    found = yard.findings("dif", "PROVE")[-1]
    assert any("somebody changed its files" in note for note in found["notes"])
    names = git(yard.repo, "ls-tree", "--name-only", "interlock/calc").split()
    assert "evil.py" not in names


def test_an_agent_on_the_users_own_branch_changes_nothing_of_ours(tmp_path: Path) -> None:
    yard = Yard(tmp_path, plan(task("sub")))
    yard.begin()

    def astray(ask: Ask, folder: Path) -> str:
        (yard.repo / "evil.py").write_text("evil = 1\n")
        git(yard.repo, "add", "evil.py")
        git(yard.repo, "commit", "-q", "-m", "I was here")
        return develop(ask, folder)

    assert yard.work({"developer": astray}) == "done"
    names = git(yard.repo, "ls-tree", "--name-only", "interlock/calc").split()
    assert "evil.py" not in names
    assert any("your branch main moved" in note for note in yard.notes), yard.notes
