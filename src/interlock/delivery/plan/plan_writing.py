"""A plan written as Markdown, in the form that plan_markdown reads back to the same plan.

A text that would be taken for more than text, such as a task's heading inside a task's work, is
indented, which makes it code. Knows records. Refuses to know files.
"""

import shlex
from collections.abc import Iterable, Iterator

from interlock.delivery.checks.records import CHECK_TIMEOUT
from interlock.delivery.plan.plan import Phase, Plan, Task
from interlock.delivery.plan.plan_lines import quiet

_INDENT = "    "


def write_markdown(plan: Plan) -> str:
    """The plan as Markdown."""
    blocks = [*_head(plan), *_tables(plan), "## Phases"]
    blocks += [_task(task) for task in plan.tasks if not task.phase]
    for phase in plan.phases:
        blocks += _phase(phase)
        blocks += [_task(task) for task in plan.tasks if task.phase == phase.id]
    return "\n\n".join(blocks) + "\n"


def _head(plan: Plan) -> Iterator[str]:
    if plan.title:
        yield f"# Plan: {plan.title}"
    if plan.overview:
        yield f"## Overview\n\n{_safe(plan.overview)}"


def _phase(phase: Phase) -> Iterator[str]:
    yield f"### {phase.label}"
    if phase.overview:
        yield _safe(phase.overview)


def _task(task: Task) -> str:
    blocks = [f"#### Task {task.id}: {task.title}".rstrip()]
    if task.work:
        blocks.append(f"**Work**:\n\n{_safe(task.work)}")
    if task.criteria:
        blocks.append(_listed("Acceptance Criteria", (f"[ ] {each}" for each in task.criteria)))
    blocks.append(f"**Blocked By**: {', '.join(task.blocked_by) or 'none'}")
    if task.reading:
        blocks.append(_listed("Required Reading", task.reading))
    if task.target_files:
        blocks.append(_listed("Target Files", task.target_files))
    if task.environment:
        blocks.append(f"**Environment**: {task.environment}")
    return "\n\n".join((*blocks, "---"))


def _listed(label: str, points: Iterable[str]) -> str:
    return "\n".join((f"**{label}**:", "", *(f"- {point}" for point in points)))


def _safe(text: str) -> str:
    if quiet(text):
        return text
    return "\n".join(f"{_INDENT}{line}" if line else "" for line in text.split("\n"))


def _tables(plan: Plan) -> Iterator[str]:
    if plan.environments:
        yield _table(
            "Environments",
            ("Name", "Description", "How to Execute"),
            (
                (each.name, each.description, _code(_joined(each.prefix)) or "directly")
                for each in plan.environments
            ),
        )
    if plan.checks:
        yield _table(
            "Verification Commands",
            ("Check", "Environment", "Command", "Exit Code", "Timeout", "Purpose"),
            (
                (
                    each.name,
                    each.environment,
                    _code(_joined(each.command)),
                    str(each.exit_code),
                    _seconds(each.timeout),
                    each.purpose,
                )
                for each in plan.checks
            ),
        )


def _joined(words: tuple[str, ...]) -> str:
    """The words as one command. Bare dots at its end would stand for what is run."""
    return " ".join("'...'" if word == "..." else shlex.quote(word) for word in words)


def _seconds(timeout: float) -> str:
    if timeout == CHECK_TIMEOUT:
        return ""
    return f"{timeout:.9f}".rstrip("0").rstrip(".")


def _table(title: str, head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [_row(head), _row("---" for _ in head), *map(_row, rows)]
    return "\n".join((f"## {title}", "", *lines))


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def _code(text: str) -> str:
    """The text between as many backticks as it needs."""
    if not text:
        return ""
    marks = "`"
    while marks in text:
        marks += "`"
    blank = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{marks}{blank}{text}{blank}{marks}"
