"""Test files that several tasks want, and trees that other agents edit."""

import threading
from pathlib import Path

import pytest

from delivery_tests.test_rework import in_turn, says
from delivery_tests.world import messages
from delivery_tests.world.delivery_world import DeliveryWorld, audit, develop, plan, review, task
from interlock.carriers.contract import Ask
from tests.world.git_repo import git


def own_file(ask: Ask, folder: Path) -> str:
    (folder / f"{ask.case_id}.py").write_text("done = True\n")
    return f"READY_FOR_REVIEW: {ask.case_id}\n\nFiles Modified:\n- {ask.case_id}.py\n"


def order(project: DeliveryWorld) -> list[tuple[str, str]]:
    return [(ask.case_id, ask.step) for ask in project.asked]


def test_tasks_that_declare_the_same_file_take_turns(tmp_path: Path) -> None:
    project = DeliveryWorld(
        tmp_path, plan(task("sub", files="calc.py"), task("dif", files="calc.py"))
    )
    project.begin()
    assert project.work() == "done"
    asked = order(project)
    first = {name: asked.index((name, "IMPLEMENT")) for name in ("sub", "dif")}
    last = {name: asked.index((name, "AUDIT")) for name in ("sub", "dif")}
    one, two = sorted(first, key=lambda name: first[name])
    assert last[one] < first[two]
    assert "unmerged" not in project.rules("sub") + project.rules("dif")


@pytest.mark.parametrize("can_wait", ["YES", "NO"])
def test_a_conflict_that_can_wait_waits_for_its_holder(tmp_path: Path, can_wait: str) -> None:
    project = DeliveryWorld(tmp_path, plan(task("sub", files="shared.py"), task("dif")))
    project.begin()
    reports = in_turn(says(messages.conflict("shared.py", can_wait)), own_file)

    def developer(ask: Ask, folder: Path) -> str:
        return reports(ask, folder) if ask.case_id == "dif" else own_file(ask, folder)

    assert project.work({"developer": developer}) == "done"
    assert project.rules("dif")[1] == "conflict"
    (found, *_) = [each for each in project.findings("dif", "IMPLEMENT") if "holder" in each]
    assert found["holder"] == "sub"
    asked = order(project)
    again = [place for place, each in enumerate(asked) if each == ("dif", "IMPLEMENT")][1]
    if can_wait == "YES":
        assert asked.index(("sub", "AUDIT")) < again


def test_a_task_that_waited_is_told_when_the_file_is_free_and_finds_it_merged(
    tmp_path: Path,
) -> None:
    """Test a file that nobody declared: the holder is the one that the report names."""
    project = DeliveryWorld(tmp_path, plan(task("sub"), task("dif")))
    project.begin()
    found: list[str] = []

    def developer(ask: Ask, folder: Path) -> str:
        if ask.case_id == "sub":
            (folder / "shared.py").write_text("one = 1\n")
            return own_file(ask, folder)
        if ask.attempt == 1:
            return messages.conflict("shared.py", "YES", "sub")
        found.append((folder / "shared.py").read_text())
        return own_file(ask, folder)

    assert project.work({"developer": developer}) == "done"
    assert found == ["one = 1\n"]
    again = project.prompts("dif", "IMPLEMENT")[1]
    assert "`shared.py` is free now: task `sub` is COMPLETE" in again


def test_a_file_that_is_being_changed_has_a_holder(tmp_path: Path) -> None:
    """Test a file that is not declared, named or recorded: the worktrees show its holder."""
    project = DeliveryWorld(tmp_path, plan(task("sub"), task("dif")))
    project.begin()
    written, reported = threading.Event(), threading.Event()

    def developer(ask: Ask, folder: Path) -> str:
        if ask.case_id == "sub":
            (folder / "shared.py").write_text("one = 1\n")
            written.set()
            assert reported.wait(120)
        elif ask.attempt == 1:
            assert written.wait(120)
            return messages.conflict("shared.py")
        return own_file(ask, folder)

    def release(ask: Ask, folder: Path) -> str:
        if ask.case_id == "dif" and ask.attempt == 1:
            result = developer(ask, folder)
            threading.Timer(0.5, reported.set).start()
            return result
        return developer(ask, folder)

    assert project.work({"developer": release}) == "done"
    (found, *_) = [each for each in project.findings("dif", "IMPLEMENT") if "holder" in each]
    assert found["holder"] == "sub"
    asked = order(project)
    again = [place for place, each in enumerate(asked) if each == ("dif", "IMPLEMENT")][1]
    assert asked.index(("sub", "AUDIT")) < again


def test_a_conflict_that_cannot_wait_is_merged_in_coordination(tmp_path: Path) -> None:
    project = DeliveryWorld(tmp_path, plan(task("sub", files="shared.py"), task("dif")))
    project.begin()
    started, reported = threading.Event(), threading.Event()

    def developer(ask: Ask, folder: Path) -> str:
        if ask.case_id == "sub":
            started.set()
            assert reported.wait(120)
        elif ask.attempt == 1:
            assert started.wait(120)
            return messages.conflict("shared.py", "NO")
        reported.set()
        return own_file(ask, folder)

    assert project.work({"developer": developer}) == "done"
    again = project.prompts("dif", "IMPLEMENT")[1]
    assert "Task `sub` has `shared.py` too" in again
    assert "the merge combines both changes" in again


def test_a_file_of_a_task_that_has_not_begun_is_reassigned(tmp_path: Path) -> None:
    project = DeliveryWorld(
        tmp_path, plan(task("sub", "dif", files="shared.py"), task("dif"), task("later", "dif"))
    )
    project.begin()
    reports = in_turn(says(messages.conflict("shared.py", "NO")), own_file)

    def developer(ask: Ask, folder: Path) -> str:
        return reports(ask, folder) if ask.case_id == "dif" else own_file(ask, folder)

    assert project.work({"developer": developer}) == "done"
    assert (
        "`shared.py` is yours now; task `sub`, which has not begun, waits for you"
        in (project.prompts("dif", "IMPLEMENT")[1])
    )


def test_a_task_that_is_held_back_waits_for_the_new_holder_of_its_file(tmp_path: Path) -> None:
    """Test that `sub` waits for `one`, which shares a file with it, while its other file goes to
    `dif`.
    """
    tasks = task("one", files="a.py"), task("sub", files="a.py\n- shared.py"), task("dif")
    project = DeliveryWorld(tmp_path, plan(*tasks))
    project.begin()
    reported, go = threading.Event(), threading.Event()

    def developer(ask: Ask, folder: Path) -> str:
        if ask.case_id == "one":
            assert reported.wait(120)
        if ask.case_id == "dif" and ask.attempt == 1:
            threading.Timer(0.3, reported.set).start()
            return messages.conflict("shared.py", "NO")
        if ask.case_id == "dif":
            assert go.wait(120)
        return own_file(ask, folder)

    def auditor(ask: Ask, folder: Path) -> str:
        if ask.case_id == "one":
            threading.Timer(0.5, go.set).start()
        return audit(ask, folder)

    assert project.work({"developer": developer, "auditor": auditor}) == "done"
    asked = order(project)
    assert asked.index(("dif", "AUDIT")) < asked.index(("sub", "IMPLEMENT"))


def test_a_file_that_nobody_has_is_the_reporters(tmp_path: Path) -> None:
    project = DeliveryWorld(tmp_path, plan(task("sub")))
    project.begin()
    developer = in_turn(says(messages.conflict("shared.py")), develop)
    assert project.work({"developer": developer}) == "done"
    assert "No other task has `shared.py`" in project.prompts("sub", "IMPLEMENT")[1]


def test_two_that_wait_for_each_other_are_both_let_go(tmp_path: Path) -> None:
    project = DeliveryWorld(tmp_path, plan(task("sub", files="a.py"), task("dif", files="b.py")))
    project.begin()

    def developer(ask: Ask, folder: Path) -> str:
        wanted = "b.py" if ask.case_id == "sub" else "a.py"
        if ask.attempt == 1:
            return messages.conflict(wanted)
        return own_file(ask, folder)

    assert project.work({"developer": developer}) == "done"


def test_a_reported_conflict_may_then_be_changed(tmp_path: Path) -> None:
    project = DeliveryWorld(tmp_path, plan(task("sub", files="shared.py"), task("dif")))
    project.begin()

    def developer(ask: Ask, folder: Path) -> str:
        if ask.case_id == "dif" and ask.attempt == 1:
            return messages.conflict("shared.py", "NO")
        if ask.case_id == "dif":
            (folder / "shared.py").write_text("one = 1\n")
        return own_file(ask, folder)

    assert project.work({"developer": developer}, parallel=1) == "done"
    assert "violated" not in project.rules("dif")


def test_a_tree_that_another_agent_edits_is_put_back(tmp_path: Path) -> None:
    """Test that a change in a tree where nobody works is undone and reported."""
    project = DeliveryWorld(tmp_path, plan(task("sub"), task("dif")))
    project.begin()

    def critic(ask: Ask, folder: Path) -> str:
        (folder.parent / "dif" / "evil.py").write_text("evil = 1\n")
        return review(ask, folder)

    assert project.work({"developer": own_file, "critic": critic}) == "done"
    found = project.findings("dif", "PROVE")[-1]
    assert any("were changed" in note for note in found["notes"])
    names = git(project.repo, "ls-tree", "--name-only", "interlock/calc").split()
    assert "evil.py" not in names
