"""Test the tables of a plan: any order of columns, bars in commands, lists, and bad rows."""

import msgspec
import pytest

from interlock.system.errors import SourceError
from interlock_delivery.checks.records import Check, CheckText, Environment, EnvironmentText
from interlock_delivery.plan.markdown import read_markdown
from interlock_delivery.plan.plan import Plan
from interlock_delivery.plan.tables import add_project_checks


def read(*lines: str) -> Plan:
    return read_markdown("\n".join(("# P", "## Verification Commands", *lines)))


def test_columns_in_any_order_and_rows_that_are_short() -> None:
    plan = read(
        "Command | Timeout | Check",
        "--- | :-: | ---",
        "`pytest -q` | 90s | Tests",
        "| `ruff check` |",
        "",
        "| Name | Purpose |",
        "|---|---|",
        "| other | table |",
    )
    assert plan.checks == (
        Check("Tests", ("pytest", "-q"), timeout=90.0, line=5),
        Check("ruff check", ("ruff", "check"), line=6),
    )
    assert plan.remarks == ()


def test_bars_in_commands() -> None:
    plan = read(
        "| Check | Command | Purpose |",
        "|---|---|---|",
        r"| a | `grep 'x\|y' f` | p |",
        "| b | `grep 'x|y' f` | p |",
    )
    assert [(each.command[1], each.purpose) for each in plan.checks] == [("x|y", "p")] * 2


def test_a_list_of_commands() -> None:
    plan = read(
        "- **Tests**: `pytest -q`, always", "- `ruff check`", "* [ ] words only", "1. `a;b`"
    )
    assert [(each.name, each.command) for each in plan.checks] == [
        ("Tests", ("pytest", "-q")),
        ("ruff check", ("ruff", "check")),
    ]
    assert [(remark.code, remark.line) for remark in plan.remarks] == [("table.row", 6)]


def test_a_row_that_cannot_be_used_is_an_error_with_its_line() -> None:
    plan = read(
        "| Check | Environment | Command | Exit Code |",
        "|---|---|---|---|",
        "| a | | | 0 |",
        "| b | | `x` | none |",
        "| c | Mac, Box, Mac | `x` | 3 |",
        "",
        "| Name | How to Execute |",
        "|---|---|",
        "| | `x` |",
        "| Box | Open the devcontainer |",
    )
    assert [(each.name, each.environment, each.exit_code) for each in plan.checks] == [
        ("c", "Mac", 3),
        ("c", "Box", 3),
    ]
    assert [(each.level, each.line) for each in plan.remarks] == [
        ("error", 5),
        ("error", 6),
        ("error", 11),
        ("error", 12),
    ]


def test_tables_inside_a_task_or_a_fence_are_theirs() -> None:
    table = "| Check | Command |\n|---|---|\n| a | `x` |\n"
    plan = read_markdown(f"# P\n## Notes\n```\n{table}```\n### Task 1: T\n{table}")
    assert plan.checks == ()
    assert "| a | `x` |" in plan.tasks[0].work


PLAN = Plan(checks=(Check("Tests", ("pytest",), line=5),), environments=(Environment("Box"),))


def test_a_project_adds_and_the_plan_goes_before() -> None:
    checks = msgspec.convert(
        [
            {"name": "Tests", "command": "make test"},
            {"name": "Lint", "command": ["ruff", "check"], "environment": ["Box", "Mac"]},
            {"name": "Old", "command": "old", "exit_code": 1, "timeout": "2m"},
        ],
        list[CheckText],
    )
    places = msgspec.convert(
        [{"name": "Box", "prefix": "other"}, {"name": "Mac", "prefix": ["ssh", "mac"]}],
        list[EnvironmentText],
    )
    merged = add_project_checks(PLAN, checks, places)
    assert [(each.name, each.command, each.environment) for each in merged.checks] == [
        ("Lint", ("ruff", "check"), "Box"),
        ("Lint", ("ruff", "check"), "Mac"),
        ("Old", ("old",), ""),
        ("Tests", ("pytest",), ""),
    ]
    assert (merged.checks[2].exit_code, merged.checks[2].timeout) == (1, 120.0)
    assert merged.environments == (Environment("Mac", ("ssh", "mac")), Environment("Box"))


def test_nothing_to_add_changes_nothing() -> None:
    assert add_project_checks(PLAN, (), ()) == PLAN


def test_a_wrong_line_of_the_project_names_the_file() -> None:
    with pytest.raises(
        SourceError, match=r"^interlock.toml: the command 'a && b' uses '&&', which needs a shell"
    ):
        add_project_checks(PLAN, [CheckText("x", "a && b")], ())
    with pytest.raises(SourceError, match=r"^interlock.toml: a check has no name"):
        add_project_checks(PLAN, [CheckText(" ", "a")], ())
    with pytest.raises(SourceError, match=r"^interlock.toml: 'any' cannot name"):
        add_project_checks(PLAN, (), [EnvironmentText("any")])
