"""Test plan check and plan show as a user types them: findings, exit codes, whole output."""

import os
from pathlib import Path

import pytest

from tests.world.command_line import CliResult, World

GOLDEN = Path(__file__).parents[1] / "plan" / "golden" / "plan.md"
CHECKS = "## Verification Commands\n\n- Tests: `pytest`\n\n"
BAD = f"""\
# Plan: Bad

{CHECKS}## Phase 1: One

### Task a: First
**Work**: Do.
**Acceptance Criteria**:
- Clean code
**Blocked By**: b

### Task b: Second
**Work**: Do.
**Blocked By**: a, x

### Task c: Third
**Work**: Do.
**Acceptance Criteria**:
- `x` exits 0
"""
SAID = """\
bad.md:9: error plan.cycle: these tasks block each other in a cycle: a → b → a; \
remove one of these blockers
bad.md:9: warning criteria.short: the criterion 'Clean code' of task 'a' says too little; \
name a command, a value, a file or a number
bad.md:15: error criteria.missing: task 'b' has no acceptance criteria, so nobody can tell when it \
is done; list what must be true, or pass --allow-untestable
bad.md:15: error task.unknown-blocker: task 'b' is blocked by 'x', which is not a task of this \
plan; write the id of a task, or none
3 tasks: 3 errors, 1 warning
"""
SHOWN = """\
A lending desk for the library
4 tasks in 2 phases; 3 checks, 2 environments

Phase 1: Loans
  TASK   TITLE                  ROUND  FREES  WAITS FOR
  1-1-1  Keep loans in a table  1      3
  1-1-2  Lend and take back     2      2      1-1-1

Phase 2: The desk
  TASK   TITLE                ROUND  FREES  WAITS FOR
  2-1-1  Say what is overdue  3      1      1-1-2
  2-1-2  A page for the wall  4      0      1-1-2, 2-1-1

critical path, 4 tasks: 1-1-1 > 1-1-2 > 2-1-1 > 2-1-2
can start now: 1-1-1
"""


@pytest.fixture
def golden(world: World) -> World:
    world.write("plan.md", GOLDEN.read_text(encoding="utf-8"))
    return world


def test_a_fit_plan(golden: World) -> None:
    result = golden.say("plan", "check", "plan.md")
    assert result == CliResult(0, "4 tasks, no findings\n", "")
    assert golden.say("plan", "check", "plan.md", "--json").json == {
        "file": "plan.md",
        "title": "A lending desk for the library",
        "tasks": 4,
        "fit": True,
        "findings": [],
    }


def test_a_plan_with_findings(world: World) -> None:
    world.write("bad.md", BAD)
    assert world.say("plan", "check", "bad.md") == CliResult(6, SAID, "")
    result = world.say("plan", "check", "bad.md", "--json")
    assert (result.code, result.json["fit"]) == (6, False)
    assert result.json["findings"][0]["path"] == ["a", "b"]
    assert {finding["task_id"] for finding in result.json["findings"]} == {"a", "b"}


def test_warnings_alone_do_not_stop_a_plan(world: World) -> None:
    world.write("p.md", f"# P\n{CHECKS}# Task a: A\n**Work**: Do.\n")
    assert world.say("plan", "check", "p.md").code == 6
    result = world.say("plan", "check", "p.md", "--allow-untestable")
    assert result.code == 0
    assert result.out.endswith("1 task: 0 errors, 1 warning; the plan can be delivered\n")


def test_show(golden: World) -> None:
    assert golden.say("plan", "show", "plan.md") == CliResult(0, SHOWN, "")
    visible = golden.say("plan", "show", "plan.md", "--json").json
    assert visible["critical_path"] == visible["order"] == ["1-1-1", "1-1-2", "2-1-1", "2-1-2"]
    assert visible["startable"] == ["1-1-1"]
    assert [task["dependents"] for task in visible["tasks"]] == [3, 2, 1, 0]
    assert [task["assessment"]["verdict"] for task in visible["tasks"]] == ["IMPLEMENTABLE"] * 4


def test_show_a_broken_plan(world: World) -> None:
    world.write("bad.md", BAD)
    out = world.say("plan", "show", "bad.md").out
    assert "  a     First   never  0      b\n" in out
    assert "can start now: c\nthe plan has 3 errors: see interlock plan check\n" in out
    world.write("empty.md", "")
    assert world.say("plan", "show", "empty.md").out.splitlines() == [
        "a plan without a title",
        "0 tasks in 0 phases; 0 checks, 0 environments",
        "",
        "can start now: nothing",
        "the plan has 2 errors: see interlock plan check",
    ]


def test_the_projects_checks_count(world: World) -> None:
    world.write(
        "p.md", "# P\n# Task a: A\n**Work**: Do.\n**Acceptance Criteria**:\n- `x` exits 0\n"
    )
    assert world.say("plan", "check", "p.md").out.count("plan.no-checks") == 1
    world.write("interlock.toml", '[[check]]\nname = "tests"\ncommand = "pytest -q"\n')
    assert "plan.no-checks" not in world.say("plan", "check", "p.md").out
    assert "1 check, 0 environments" in world.say("plan", "show", "p.md").out
    world.write("interlock.toml", '[[check]]\nname = ""\ncommand = "pytest -q"\n')
    result = world.say("plan", "check", "p.md")
    assert (result.code, result.err) == (
        2,
        "interlock: interlock.toml: a check has no name; give it one\n",
    )


@pytest.mark.parametrize("verb", ["check", "show"])
def test_what_is_no_plan(world: World, verb: str) -> None:
    os.truncate(world.write("big.md", "#"), 50_000_000)
    for name, problem in (
        ("gone.md", "gone.md does not exist; name the file that holds the plan"),
        (".", ". is a folder; name the file that holds the plan"),
        ("big.md", "big.md is larger than the 10,000,000 bytes a plan may have; split it"),
    ):
        assert world.say("plan", verb, name) == CliResult(2, "", f"interlock: {problem}\n")
    assert world.say("plan", verb).code == 2


def test_text_of_a_plan_cannot_move_the_cursor(world: World) -> None:
    world.write("p.md", f"# \x1b[2J\x07P\n{CHECKS}# Task \x1b[1mx: \x1b[31mred\n")
    for verb in ("check", "show"):
        result = world.say("plan", verb, "p.md")
        assert "\x1b" not in result.out
        assert "\\x1b" in result.out
        assert "\x1b" not in world.say("plan", verb, "p.md", "--json").out
