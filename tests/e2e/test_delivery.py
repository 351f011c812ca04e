"""`interlock deliver` with the real Claude Code as developer, and scripts as its judges."""

import json
import sys

from delivery_tests.world.delivery_world import TEST, plan, task
from tests.e2e.project import Project
from tests.world.agent_cli import Claude, living
from tests.world.git_repo import git
from tests.world.models.script import Answer, Asked, Call, Says

JUDGE = """\
import os, sys
sys.stdin.read()
task = os.environ["INTERLOCK_CASE_ID"]
if os.environ["INTERLOCK_ROLE"] == "critic":
    print(f"REVIEW_PASSED: {task}\\n\\nFiles Reviewed:\\n- calc.py")
else:
    print(f"AUDIT_PASSED: {task}\\n\\nVerification Results:\\n- it: VERIFIED - a test shows it")
"""
CALC = "def add(a, b):\n    return a + b\n"
SUB = "\n\ndef sub(a, b):\n    return a - b\n"
DONE = (
    "READY_FOR_REVIEW: sub\n\nFiles Modified:\n- calc.py: sub\n\n"
    "Verification Results (self-verified):\n- Unit Tests: PASS (native)\n\nSummary: done\n"
)


def shop(claude: Claude) -> Project:
    project = Project(claude)
    folder = project.folder
    (folder / "red.xml").unlink()
    (folder / "calc.py").write_text(CALC)
    (folder / "test_calc.py").write_text(TEST)
    (folder / "plan.md").write_text(plan(task("sub")))
    (folder / ".gitignore").write_text("__pycache__/\n.interlock/\n")
    judge = claude.home / "judge.py"
    judge.write_text(JUDGE)
    (folder / "interlock.toml").write_text(
        '[roles.developer]\nagent = "claude"\n\n[agent.claude]\npermission_mode = "acceptEdits"\n'
    )
    git(folder, "init", "-q", "-b", "main")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "first")
    return project


def deliver(project: Project) -> list[str]:
    judge = project.cli.home / "judge.py"
    return ["deliver", "plan.md", "--agent", f"exec:{sys.executable} {judge}"]


def edits(asked: Asked) -> Answer:
    """Reads the file with its tools, changes it, and says so."""
    done = [result for result in asked.results if not result.failed]
    if not done:
        return Says("I read.", (Call("Read", {"file_path": _path(asked)}),))
    if len(done) == 1:
        words = {"file_path": _path(asked), "old_string": CALC, "new_string": CALC + SUB}
        return Says("I write.", (Call("Edit", words),))
    return Says(DONE)


def _path(asked: Asked) -> str:
    """Where the file is, as the client told its model where it works."""
    text = json.dumps(asked.body)
    at = text.index("/.interlock/delivery/plan/trees/sub")
    begin = max(text.rfind(mark, 0, at) for mark in (" ", '"', "\\n"))
    return text[begin:at].lstrip(' "n\\') + "/.interlock/delivery/plan/trees/sub/calc.py"


def test_claude_code_writes_and_it_is_merged(claude: Claude) -> None:
    claude.model.script = edits
    project = shop(claude)
    outcome = project.do(*deliver(project))
    assert "COMPLETE" in outcome
    assert "def sub" in git(project.folder, "show", "interlock/plan:calc.py")
    assert git(project.folder, "status", "--porcelain") == ""
    assert git(project.folder, "log", "--format=%s", "main") == "first"
    assert living(claude.home) == []


def test_claude_code_that_only_talks_completes_nothing(claude: Claude) -> None:
    claude.model.script = lambda _asked: Says(DONE)
    project = shop(claude)
    outcome = project.do(*deliver(project), code=3)
    assert "FAILED" in outcome
    assert git(project.folder, "branch", "--list", "interlock/plan") == ""
    assert living(claude.home) == []
