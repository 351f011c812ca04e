"""Test that examples/delivery runs as its README says."""

import subprocess
import sys
from pathlib import Path

from delivery_tests.world.deliver_process import Delivering
from tests.world.git_repo import git
from tests.world.places import ROOT

EXAMPLE = ROOT / "examples" / "delivery"


def test_the_example_is_delivered(tmp_path: Path) -> None:
    repo = tmp_path / "till"
    subprocess.run([sys.executable, EXAMPLE / "make_repository.py", repo], check=True)
    delivering = Delivering(repo, f"exec:{sys.executable} {EXAMPLE / 'agents.py'}")
    code, result = delivering.finish()
    assert code == 0, result
    assert "COMPLETE" in result
    assert sorted(delivering.subjects()) == [
        "Add tax",
        "Give a discount",
        "Give change",
        "Print a receipt",
        "Repair, for change",
        "Report the day",
        "Write a README",
    ]
    happened = delivering.rules()
    assert {"failing", "blocked", "fixed", "rework-review", "underspecified"} <= happened
    assert git(repo, "log", "--format=%s", "main") == "A till"
    assert git(repo, "status", "--porcelain", "--", ":!.interlock") == ""
    tested = tmp_path / "tested"
    git(repo, "worktree", "add", "-q", "--detach", str(tested), "interlock/plan")
    subprocess.run([sys.executable, "-m", "unittest", "-q"], cwd=tested, check=True)
    assert delivering.processes() == []
