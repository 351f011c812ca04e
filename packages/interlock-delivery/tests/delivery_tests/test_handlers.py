"""Test what must not pass silently: weakened tests, work outside the task, moved branches."""

from pathlib import Path

import pytest

from delivery_tests.test_rework import in_turn
from delivery_tests.world.delivery_world import (
    TEST,
    Agent,
    DeliveryWorld,
    audit,
    develop,
    plan,
    review,
    task,
)
from interlock.carriers.contract import Ask
from tests.world.git_repo import git

EMPTIED = TEST.replace("self.assertEqual(calc.add(1, 2), 3)", "calc.add(1, 2)")


def empties(ask: Ask, folder: Path) -> str:
    (folder / "test_calc.py").write_text(EMPTIED)
    return develop(ask, folder)


def answers(verdict: Agent, finding: str) -> Agent:
    """Return the verdict with a remark on the finding where its sections allow one."""

    def answer(ask: Ask, folder: Path) -> str:
        result = verdict(ask, folder)
        return result.replace("Summary: ", f"Summary: {finding} is right as it is; ")

    return answer


def test_an_emptied_test_is_not_passed_over_by_the_critic(tmp_path: Path) -> None:
    project = DeliveryWorld(tmp_path, plan(task("sub")))
    project.begin()
    critic = in_turn(review, answers(review, "test_calc.py"))
    assert project.work({"developer": empties, "critic": critic}) == "done"
    assert project.rules("sub")[2:5] == ["checked", "strike", "reviewed"]
    first, second = project.prompts("sub", "REVIEW")
    finding = "test_calc.py:7: Calc.test_add makes no assertion any more; it made 1 before"
    assert finding in first
    assert "Answer every one of these findings" in first
    assert "test_calc.py" in second.split("could not be used")[1][:600]


def test_a_critic_who_never_answers_leads_to_a_human(tmp_path: Path) -> None:
    project = DeliveryWorld(tmp_path, plan(task("sub")))
    project.begin()
    limits = {"max_strikes": 0, "max_lost": 1}
    assert project.work({"developer": empties}, thresholds=limits) == "waiting"
    assert project.rules("sub")[-1] == "judge-lost"
    assert git(project.repo, "branch", "--list", "interlock/*") == ""


def test_work_outside_the_target_files_is_for_the_auditor_to_answer(tmp_path: Path) -> None:
    project = DeliveryWorld(tmp_path, plan(task("sub", files="calc.py")))
    project.begin()

    def strays(ask: Ask, folder: Path) -> str:
        (folder / "other.py").write_text("other = 1\n")
        return develop(ask, folder)

    auditor = in_turn(audit, answers(audit, "other.py"))
    assert project.work({"developer": strays, "auditor": auditor}) == "done"
    assert project.rules("sub")[4:6] == ["strike", "audited"]
    first = project.prompts("sub", "AUDIT")[0]
    assert "other.py: it is outside the target files of the task" in first
    assert "test_sub.py: it is outside" not in first, "new tests belong to every task"


@pytest.mark.parametrize("checked_out", [True, False])
def test_a_branch_of_the_users_that_moved_is_held_for_a_human(
    tmp_path: Path, checked_out: bool
) -> None:
    project = DeliveryWorld(tmp_path, plan(task("sub"), task("dif", "sub")))
    if not checked_out:
        git(project.repo, "switch", "-q", "-c", "elsewhere")
    project.begin()
    before = git(project.repo, "rev-parse", "main")

    def astray(ask: Ask, folder: Path) -> str:
        if git(project.repo, "rev-parse", "main") == before and ask.case_id == "sub":
            tree = git(project.repo, "rev-parse", "main^{tree}")
            commit = git(project.repo, "commit-tree", tree, "-p", "main", "-m", "I was here")
            git(project.repo, "update-ref", "refs/heads/main", commit)
        return develop(ask, folder)

    assert project.work({"developer": astray}) == "waiting"
    assert project.rules("sub")[-1] == "branch-moved"
    assert git(project.repo, "branch", "--list", "interlock/*") == ""
    now = git(project.repo, "rev-parse", "main")
    (found,) = project.findings("sub", "CHECK")
    back = f"git -C {project.repo} update-ref refs/heads/main {before} {now}"
    assert back in found["summary"]
    git(project.repo, *back.split()[3:])
    assert git(project.repo, "rev-parse", "main") == before
    project.answer(text="put back")
    assert project.work() == "done"


def test_a_branch_that_the_user_moved_themselves_is_asked_about_once(tmp_path: Path) -> None:
    project = DeliveryWorld(tmp_path, plan(task("sub"), task("dif", "sub")))
    project.begin()

    def meanwhile(ask: Ask, folder: Path) -> str:
        if ask.case_id == "sub" and not (project.repo / "mine.py").exists():
            (project.repo / "mine.py").write_text("mine = 1\n")
            project.commit("mine")
        return develop(ask, folder)

    assert project.work({"developer": meanwhile}) == "waiting"
    project.answer(text="that was me")
    assert project.work() == "done"
    assert project.rules("sub").count("branch-moved") == 1
    assert "branch-moved" not in project.rules("dif")
