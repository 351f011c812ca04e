"""Format the report of a delivery for a terminal, and build the object that --json prints."""

from collections.abc import Iterator, Sequence
from typing import Any, Final, get_args

import msgspec

from interlock.system.text import align_columns, format_line, plural
from interlock.system.time import format_duration
from interlock_delivery.report.records import DeliveryReport, TaskReport, Word

_MOST_TASKS: Final = 60
_MOST_NEEDS: Final = 20
_LINE_WIDTH: Final = 90
_NEED_WIDTH: Final = 240


def format_summary(report: DeliveryReport, path: str = "") -> Iterator[str]:
    """Yield the result of each task and the next steps."""
    yield _format_heading(report)
    rows = [(task.task_id, _format_state(task), _outline(task)) for task in _select_tasks(report)]
    yield from align_columns(("TASK", "STATE", "WHAT"), rows)
    yield from _format_rest(report)
    if path:
        yield f"report: {path}"


def format_status(report: DeliveryReport) -> Iterator[str]:
    """Yield the state of each task: its step, tries, evidence and last decision."""
    yield _format_heading(report)
    rows = [
        (
            task.task_id,
            _format_state(task),
            task.step or "-",
            task.attempts or "-",
            f"{task.passed}/{task.checks}" if task.checks else "-",
            task.commit[:10] or "-",
            _format_last_move(task),
        )
        for task in _select_tasks(report)
    ]
    yield from align_columns(("TASK", "STATE", "STEP", "TRIES", "CHECKS", "COMMIT", "LAST"), rows)
    yield from _format_rest(report)
    if report.outcome == "PAUSED" and not report.count_tasks("asks"):
        yield f"no process works on it; 'interlock deliver {report.plan}' continues it"


def build_json(report: DeliveryReport) -> dict[str, Any]:
    return {
        **msgspec.to_builtins(report),
        "counts": {state: report.count_tasks(state) for state in get_args(Word)},
        "tasks": [_build_task_json(task) for task in report.tasks],
    }


def _build_task_json(task: TaskReport) -> dict[str, Any]:
    fields: dict[str, Any] = msgspec.to_builtins(task)
    del fields["moves"], fields["proofs"], fields["claims"]
    found = [each.claim.found for each in task.claims]
    return {
        **fields,
        "last": msgspec.to_builtins(task.last),
        "evidence": {"passed": task.passed, "failed": task.checks - task.passed},
        "claims": {
            "claimed": len(found),
            **{word: found.count(word) for word in ("verified", "refuted", "unchecked")},
        },
    }


def _format_heading(report: DeliveryReport) -> str:
    counts = ", ".join(
        f"{number} {state}" for state in get_args(Word) if (number := report.count_tasks(state))
    )
    cost = [
        plural(report.dispatches, "dispatch", "dispatches"),
        format_duration(report.seconds),
        *([f"{report.tokens:,} tokens"] if report.tokens else []),
        *([f"{report.money:.2f} spent"] if report.money else []),
    ]
    repair = f"; repairing: {report.repairing}" if report.repairing else ""
    tasks = plural(len(report.tasks), "task")
    return f"run {report.run_id} {report.outcome}: {tasks}: {counts}; {', '.join(cost)}{repair}"


def _format_rest(report: DeliveryReport) -> Iterator[str]:
    """Yield the lines below the tasks: claims, questions for a human, the branch."""
    if len(report.tasks) > _MOST_TASKS:
        yield f"… and {len(report.tasks) - _MOST_TASKS} more; --json lists all"
    claims = [
        (each.agent, each.role, each.claimed, each.verified, each.refuted, each.unchecked)
        for each in report.accounts
    ]
    if claims:
        yield ""
    yield from align_columns(
        ("AGENT", "ROLE", "CLAIMED", "VERIFIED", "REFUTED", "UNCHECKED"), claims
    )
    yield from _format_needs(report)
    if report.is_merged:
        count = plural(sum(bool(task.commit) for task in report.tasks), "task")
        yield ""
        yield f"{count} merged on branch {report.branch}; take it with: git merge {report.branch}"


def _format_needs(report: DeliveryReport) -> Iterator[str]:
    """Yield what only a human can settle, with the exact commands."""
    if not report.needs:
        return
    yield ""
    yield f"needs a human ({len(report.needs)}):"
    for need in report.needs[:_MOST_NEEDS]:
        yield f"  {need.task_id}: {format_line(need.sentence, _NEED_WIDTH)}"
        for command in need.commands:
            yield f"    {command}"
    if len(report.needs) > _MOST_NEEDS:
        yield f"  … and {len(report.needs) - _MOST_NEEDS} more; --json lists all"
    if any(task.question_id for task in report.tasks):
        yield f"  then 'interlock deliver {report.plan}' continues"


def _select_tasks(report: DeliveryReport) -> Sequence[TaskReport]:
    """Return all tasks in their order; of many, those that need attention."""
    tasks = list(report.tasks)
    if len(tasks) > _MOST_TASKS:
        tasks.sort(key=lambda task: task.word in ("complete", "waits", "skipped"))
    return tasks[:_MOST_TASKS]


def _format_state(task: TaskReport) -> str:
    return task.end or task.word.upper()


def _outline(task: TaskReport) -> str:
    if task.word == "complete":
        return f"{task.commit[:10]}  {format_line(task.summary, _LINE_WIDTH)}".rstrip()
    if task.question_id:
        return format_line(f"question {task.question_id}: {task.question}", _LINE_WIDTH)
    step = f"at {task.step}: " if task.word == "failed" else ""
    return format_line(f"{step}{task.why}", _LINE_WIDTH)


def _format_last_move(task: TaskReport) -> str:
    last = task.last
    if task.question_id or last is None:
        return _outline(task)
    return format_line(f"{last.step} {last.rule or last.signal}: {last.why}", _LINE_WIDTH)
