"""The tables of a plan: any order of columns, bars in commands, lists, and bad rows."""

from interlock.delivery.checks.records import Check
from interlock.delivery.plan.markdown import read_markdown
from interlock.delivery.plan.plan import Plan


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
