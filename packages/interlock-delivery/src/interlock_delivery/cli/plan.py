"""The verbs `plan check` and `plan show`. They read one file and change nothing."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

from interlock.cli.app import ExitCode, app
from interlock.cli.output import Json, echo, echo_json
from interlock.system.text import align_columns, plural, shorten

if TYPE_CHECKING:
    from collections.abc import Iterator

    from interlock_delivery.plan.plan import Plan, PlanFinding, Task

plan = typer.Typer(help="Plans of tasks: check and show them.", no_args_is_help=True)
app.add_typer(plan, name="plan")

_SHOWN_IDS = 12
_SHOWN_TITLE = 48

PlanFile = Annotated[Path, typer.Argument(metavar="FILE", help="The plan, as Markdown.")]
Untestable = Annotated[
    bool, typer.Option("--allow-untestable", help="Tasks may lack acceptance criteria.")
]


@plan.command()
def check(file: PlanFile, allow_untestable: Untestable = False, json: Json = False) -> None:
    """Find what is wrong with a plan. Exit 6 on errors."""
    from interlock_delivery.plan.check import check_plan, has_errors

    read = _load_plan(file)
    findings = check_plan(read, allow_untestable=allow_untestable)
    broken = has_errors(findings)
    if json:
        echo_json(
            {
                "file": str(file),
                "title": read.title,
                "tasks": len(read.tasks),
                "fit": not broken,
                "findings": [msgspec.to_builtins(finding) for finding in findings],
            }
        )
    else:
        _echo_findings(file, read, findings)
    if broken:
        raise typer.Exit(ExitCode.FINDINGS)


@plan.command()
def show(file: PlanFile, json: Json = False) -> None:
    """Show a plan's phases, graph and critical path, and what can start now."""
    read = _load_plan(file)
    if json:
        echo_json({"file": str(file), **_plan_fields(read)})
    else:
        for line in _format_plan(read):
            echo(line)


def _load_plan(file: Path) -> "Plan":
    """Read a plan, adding the checks and environments of the current project."""
    from interlock.runtime.settings import read_settings
    from interlock_delivery.config import DeliveryTables
    from interlock_delivery.plan import read_plan
    from interlock_delivery.plan.tables import add_project_checks

    tables = read_settings(Path()).read_tables(DeliveryTables)
    return add_project_checks(read_plan(file), tables.check, tables.environment)


def _echo_findings(file: Path, read: "Plan", findings: "tuple[PlanFinding, ...]") -> None:
    for finding in findings:
        place = f"{file}:{finding.line}" if finding.line else str(file)
        echo(f"{place}: {finding.level} {finding.code}: {finding.sentence}")
    errors = sum(finding.level == "error" for finding in findings)
    warnings = len(findings) - errors
    tasks = plural(len(read.tasks), "task", "tasks")
    if not findings:
        echo(f"{tasks}, no findings")
    else:
        found = plural(errors, "error", "errors"), plural(warnings, "warning", "warnings")
        echo(f"{tasks}: {', '.join(found)}{'' if errors else '; the plan can be delivered'}")


def _plan_fields(read: "Plan") -> dict[str, Any]:
    """Return the plan and everything derived from it, for --json."""
    from interlock_delivery.plan import plan as graph
    from interlock_delivery.plan.check import assess_task

    depth, waiting = graph.compute_rounds(read), graph.count_dependents(read)
    known = waiting.keys()
    facts = msgspec.to_builtins(read)
    for task, written in zip(read.tasks, facts["tasks"], strict=True):
        written["round"] = depth.get(task.id)
        written["dependents"] = waiting[task.id]
        written["assessment"] = msgspec.to_builtins(assess_task(task, known))
    return {
        **facts,
        "order": graph.order_tasks(read),
        "critical_path": graph.find_critical_path(read),
        "startable": graph.find_startable(read),
    }


def _format_plan(read: "Plan") -> "Iterator[str]":
    from interlock_delivery.plan import plan as graph
    from interlock_delivery.plan.check import check_plan

    yield read.title or "a plan without a title"
    checks = plural(len({check.name for check in read.checks}), "check", "checks")
    places = plural(len(read.environments), "environment", "environments")
    phases = plural(len(read.phases), "phase", "phases")
    yield f"{plural(len(read.tasks), 'task', 'tasks')} in {phases}; {checks}, {places}"
    yield from _format_graph(read)
    path = graph.find_critical_path(read)
    yield ""
    if path:
        yield f"critical path, {plural(len(path), 'task', 'tasks')}: {_join_names(path, ' > ')}"
    yield f"can start now: {_join_names(graph.find_startable(read), ', ') or 'nothing'}"
    errors = [each for each in check_plan(read) if each.level == "error"]
    if errors:
        found = plural(len(errors), "error", "errors")
        yield f"the plan has {found}: see interlock plan check"


def _format_graph(read: "Plan") -> "Iterator[str]":
    """Yield a table for each phase: each task's blockers, dependents and earliest round."""
    from interlock_delivery.plan import plan as graph

    depth, waiting = graph.compute_rounds(read), graph.count_dependents(read)
    groups: dict[str, list[Task]] = {"": [], **{phase.id: [] for phase in read.phases}}
    for task in read.tasks:
        groups[task.phase].append(task)
    labels = {phase.id: phase.label for phase in reversed(read.phases)}
    for phase, tasks in groups.items():
        rows = (
            (
                f"  {task.id}",
                shorten(task.title, _SHOWN_TITLE),
                depth.get(task.id, "never"),
                waiting[task.id],
                _join_names(task.blocked_by, ", "),
            )
            for task in tasks
        )
        lines = align_columns(("  TASK", "TITLE", "ROUND", "FREES", "WAITS FOR"), rows)
        if phase or lines:
            yield ""
            yield labels.get(phase, "no phase")
        yield from lines


def _join_names(names: tuple[str, ...], between: str) -> str:
    """Join names; of many, only the first and the last."""
    if len(names) <= _SHOWN_IDS:
        return between.join(names)
    half = _SHOWN_IDS // 2
    left_out = f"… {len(names) - 2 * half} more …"
    return between.join((*names[:half], left_out, *names[-half:]))
