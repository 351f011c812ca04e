"""Test that the real command, killed at many points and run again, loses and repeats nothing."""

import random
import sys
from collections import Counter
from functools import partial
from pathlib import Path

import pytest

from delivery_tests.world import delivery_agent
from delivery_tests.world.deliver_process import Delivering
from delivery_tests.world.delivery_world import TEST, plan, task
from tests.soak import again
from tests.world.git_repo import git

TASKS = {"one": "none", "two": "none", "three": "one", "four": "two, three"}
STEPS = ("PREPARE", "IMPLEMENT", "CHECK", "REVIEW", "AUDIT", "PROVE", "MERGE")


def delivering(folder: Path, check: str = "python3 -m unittest -v") -> Delivering:
    repo = folder / "repo"
    repo.mkdir(parents=True)
    (repo / "calc.py").write_text("def add(a, b):\n    return a + b\n")
    (repo / "test_calc.py").write_text(TEST)
    tasks = [task(name, after) for name, after in TASKS.items()]
    (repo / "plan.md").write_text(plan(*tasks, command=check))
    git(repo, "init", "-q", "-b", "main")
    git(repo, "add", "-A")
    git(repo, "commit", "-q", "-m", "first")
    return Delivering(repo, f"exec:{sys.executable} {delivery_agent.__file__} {folder / 'log'}")


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Delivering:
    made = delivering(tmp_path_factory.mktemp("calm"))
    code, result = made.finish()
    assert code == 0, result
    assert made.dispatches() == Counter({(name, step): 1 for name in TASKS for step in STEPS})
    return made


def same(killed: Delivering, calm: Delivering) -> None:
    """Assert the same files and, apart from the order of independent tasks, the same history."""
    assert killed.tree() == calm.tree()
    assert sorted(killed.subjects()) == sorted(calm.subjects())
    assert killed.dispatches() == calm.dispatches()
    assert killed.processes() == []
    assert git(killed.repo, "log", "--format=%s", "main") == "first"
    git(killed.repo / ".interlock" / "delivery" / "plan" / "repo.git", "fsck", "--strict")


@pytest.mark.parametrize("seed", [0, again(1)])
def test_killed_at_random(tmp_path: Path, undisturbed: Delivering, seed: int) -> None:
    killed, chance = delivering(tmp_path), random.Random(seed)
    kills = 0
    while killed.dispatches().total() < len(TASKS) * len(STEPS):
        until = killed.dispatches().total() + chance.randrange(1, 9)
        kills += killed.kill_when(partial(_has_asked, killed, until))
    assert kills > 2
    code, result = killed.finish()
    assert code == 0, result
    same(killed, undisturbed)
    asked = Counter((tmp_path / "log").read_text().splitlines())
    again = sum(count - 1 for count in asked.values())
    assert again <= kills * len(TASKS), "only what was running is asked again"


@pytest.mark.soak
@pytest.mark.parametrize("step", ["PREPARE", "CHECK", "PROVE", "MERGE"])
def test_killed_in_the_middle_of_our_own_work(
    tmp_path: Path, undisturbed: Delivering, step: str
) -> None:
    killed = delivering(tmp_path)
    for _ in range(3):
        killed.kill_when(lambda: step in killed.open_steps())
    code, result = killed.finish()
    assert code == 0, result
    same(killed, undisturbed)


def test_killed_during_a_check_it_leaves_no_check_running(tmp_path: Path) -> None:
    """Test that the check of a killed command does not run on beside ours."""
    go = tmp_path / "go"
    killed = delivering(tmp_path, _waiting(tmp_path, go))
    assert killed.kill_when((tmp_path / "runs").exists)
    assert len(killed.processes()) >= 1, "it goes on alone"
    (tmp_path / "runs").unlink()
    assert killed.kill_when((tmp_path / "runs").exists)
    left = killed.processes()
    assert len([each for each in left if "sh -c" in each]) == 1, left
    go.touch()
    code, result = killed.finish()
    assert code == 0, result
    assert killed.processes() == []


def test_killed_during_a_rework_the_developer_keeps_what_it_did(tmp_path: Path) -> None:
    """Test a rework that is killed half-way, whose changes are the developer's own."""
    killed = delivering(tmp_path)
    agent = tmp_path / "reworker.py"
    agent.write_text(REWORKER)
    (killed.repo / "plan.md").write_text(plan(task("one")))
    killed.words = ["--agent", f"exec:{sys.executable} {agent} {tmp_path}"]
    assert killed.kill_when((tmp_path / "half").exists)
    (tmp_path / "go").touch()
    code, result = killed.finish()
    assert code == 0, result
    assert "judged" not in result, result
    assert "half.txt" in git(killed.repo, "ls-tree", "--name-only", "interlock/plan")
    assert "half.txt" in (tmp_path / "seen").read_text(), "it goes on from its own work"


REWORKER = """
import os, sys, time
from pathlib import Path

folder = Path(sys.argv[1])
sys.stdin.read()
role = os.environ["INTERLOCK_ROLE"]
if role == "developer":
    Path("one.txt").write_text("done")
    if (folder / "objected").exists():
        (folder / "seen").write_text(" ".join(os.listdir(".")))
        Path("half.txt").write_text("half")
        (folder / "half").touch()
        while not (folder / "go").exists():
            time.sleep(0.01)
    print("READY_FOR_REVIEW: one\\n\\nFiles Modified:\\n- one.txt: it")
elif role == "critic" and not (folder / "objected").exists():
    (folder / "objected").touch()
    print("REVIEW_FAILED: one\\n\\nIssues Found:\\n- one.txt:1: more of it")
elif role == "critic":
    print("REVIEW_PASSED: one\\n\\nFiles Reviewed:\\n- one.txt\\n\\nSummary: good")
else:
    print("AUDIT_PASSED: one\\n\\nVerification Results:\\n- it: VERIFIED - seen\\n\\nSummary: all")
"""


def test_two_commands_at_once(tmp_path: Path) -> None:
    go = tmp_path / "go"
    both = delivering(tmp_path, _waiting(tmp_path, go))
    first = both.start()
    while not (tmp_path / "runs").exists():
        assert first.poll() is None
    code, result = both.finish()
    assert code != 0
    assert "is in use by process" in result, result
    go.touch()
    out, _ = first.communicate(timeout=120)
    assert first.returncode == 0, out


def test_two_deliveries_of_one_repository_at_once(tmp_path: Path) -> None:
    """Test that each has its own database, clone and merge branch, and a branch if possible."""
    both = delivering(tmp_path)
    others = tmp_path / "others.db"
    first = both.start()
    second = both.start("--db", str(others))
    for run in (first, second):
        result, _ = run.communicate(timeout=120)
        assert run.returncode == 0, result
    branches = git(both.repo, "branch", "--list", "--format=%(refname:short)", "interlock/*")
    for branch in branches.split():
        subjects = git(both.repo, "log", "--format=%s", f"main..{branch}").splitlines()
        assert len(subjects) == len(TASKS)
    third = Delivering(both.repo, *both.words[1::2])
    code, result = third.finish("--db", str(tmp_path / "thirds" / "third.db"))
    assert code == 0, result
    found = git(both.repo, "branch", "--list", "--format=%(refname:short)", "interlock/*")
    assert len(found.split()) == len(branches.split()) + 1, "a branch of its own"


def _has_asked(killed: Delivering, times: int) -> bool:
    return killed.dispatches().total() >= times


def _waiting(folder: Path, go: Path) -> str:
    """Return a check that reports that it runs, and ends when it may."""
    return f"sh -c 'touch {folder}/runs; until [ -e {go} ]; do sleep 0.05; done'"
