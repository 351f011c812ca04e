"""A delivery in words for a terminal, and as the object that --json prints.

Knows what fits on a screen. Everything is made from the records of `apps/delivery/delivered.py`.
"""

from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

import msgspec

from interlock.cli.show import aligned, counted

if TYPE_CHECKING:
    from interlock.delivery.checks.claims import ClaimComparison
    from interlock.delivery.report.records import CheckEvidence, Delivered, TaskReport

_TASKS: Final = 60
_NEEDS: Final = 20
_SAID: Final = 90
_NEED: Final = 240
_WORDS: Final = ("complete", "at work", "asks", "waits", "blocked", "failed")


def summary(told: "Delivered", report: str = "") -> Iterator[str]:
    """How a run came out, task by task, and what there is to do next."""
    yield heading(told)
    yield from _few(told, [(each.task_id, _state(each), _outline(each)) for each in told.tasks])
    yield from claims(told.accounts)
    yield from needs(told)
    yield from _where(told)
    if report:
        yield f"report: {report}"


def status(told: "Delivered") -> Iterator[str]:
    """How each task stands: its step, its tries, its evidence, its last decision."""
    yield heading(told)
    rows = [
        (
            each.task_id,
            _state(each),
            each.step or "-",
            each.attempts or "-",
            evidence(each.proofs),
            each.commit[:10] or "-",
            _last(each),
        )
        for each in _shown(told)
    ]
    yield from aligned(("TASK", "STATE", "STEP", "TRIES", "CHECKS", "COMMIT", "LAST"), rows)
    yield from _rest(told)
    yield from claims(told.accounts)
    yield from needs(told)
    yield from _where(told)
    if told.outcome == "PAUSED" and not told.count("asks"):
        yield f"nobody works on it; 'interlock deliver {told.plan}' goes on"


def heading(told: "Delivered") -> str:
    counts = ", ".join(f"{told.count(word)} {word}" for word in _WORDS if told.count(word))
    cost = [counted(told.dispatches, "dispatch", "dispatches"), lasted(told.seconds)]
    cost += [f"{told.tokens:,} tokens"] if told.tokens else []
    cost += [f"{told.money:.2f} spent"] if told.money else []
    repair = f"; repairing: {told.repairing}" if told.repairing else ""
    tasks = counted(len(told.tasks), "task", "tasks")
    return f"run {told.run_id} {told.outcome}: {tasks}: {counts}; {', '.join(cost)}{repair}"


def claims(accounts: "Sequence[ClaimComparison]") -> list[str]:
    """How far each agent's word could be relied on."""
    rows = [
        (each.agent, each.role, each.claimed, each.verified, each.refuted, each.unchecked)
        for each in accounts
    ]
    head = ("AGENT", "ROLE", "CLAIMED", "VERIFIED", "REFUTED", "UNCHECKED")
    lines = aligned(head, rows)
    return ["", *lines] if lines else []


def needs(told: "Delivered") -> Iterator[str]:
    """What only a human can settle, with the exact commands."""
    if not told.needs:
        return
    yield ""
    yield f"needs a human ({len(told.needs)}):"
    for need in told.needs[:_NEEDS]:
        yield f"  {need.task_id}: {_line(need.sentence, _NEED)}"
        for command in need.commands:
            yield f"    {command}"
    if len(told.needs) > _NEEDS:
        yield f"  … and {len(told.needs) - _NEEDS} more; --json lists all"
    if any(task.question_id for task in told.tasks):
        yield f"  then 'interlock deliver {told.plan}' goes on"


def evidence(proofs: "Sequence[CheckEvidence]") -> str:
    """How many of the checks that were run came out well."""
    return f"{sum(each.passed for each in proofs)}/{len(proofs)}" if proofs else "-"


def lasted(seconds: float) -> str:
    from interlock.system.text import span

    return span(timedelta(seconds=seconds))


def as_json(told: "Delivered") -> dict[str, Any]:
    fields: dict[str, Any] = msgspec.to_builtins(told)
    fields["counts"] = {word: told.count(word) for word in _WORDS}
    fields["tasks"] = [_task_json(each) for each in told.tasks]
    return fields


def _task_json(task: "TaskReport") -> dict[str, Any]:
    fields: dict[str, Any] = msgspec.to_builtins(task)
    del fields["moves"], fields["proofs"], fields["claims"]
    found = [each.claim.found for each in task.claims]
    passed = sum(each.passed for each in task.proofs)
    return {
        **fields,
        "last": msgspec.to_builtins(task.last),
        "evidence": {"passed": passed, "failed": len(task.proofs) - passed},
        "claims": {
            "claimed": len(found),
            **{word: found.count(word) for word in ("verified", "refuted", "unchecked")},
        },
    }


def _where(told: "Delivered") -> Iterator[str]:
    if told.is_merged:
        count = counted(sum(bool(each.commit) for each in told.tasks), "task", "tasks")
        yield ""
        yield f"{count} merged on branch {told.branch}; take it with: git merge {told.branch}"


def _shown(told: "Delivered") -> "list[TaskReport]":
    """All tasks in their order; of many, the ones that need a look first."""
    tasks = list(told.tasks)
    if len(tasks) > _TASKS:
        tasks.sort(key=lambda each: each.word in ("complete", "waits"))
    return tasks[:_TASKS]


def _few(told: "Delivered", rows: Sequence[tuple[str, str, str]]) -> Iterator[str]:
    shown = {each.task_id for each in _shown(told)}
    lines = aligned(("TASK", "STATE", "WHAT"), [row for row in rows if row[0] in shown])
    yield from lines
    yield from _rest(told)


def _rest(told: "Delivered") -> Iterator[str]:
    if len(told.tasks) > _TASKS:
        yield f"… and {len(told.tasks) - _TASKS} more; --json lists all"


def _state(task: "TaskReport") -> str:
    return task.end or task.word.upper()


def _outline(task: "TaskReport") -> str:
    if task.word == "complete":
        return f"{task.commit[:10]}  {_line(task.summary)}".rstrip()
    if task.word == "failed":
        return _line(f"at {task.step}: {task.why}")
    return _line(f"question {task.question_id}: {task.question}" if task.question_id else task.why)


def _last(task: "TaskReport") -> str:
    last = task.last
    if task.question_id or last is None:
        return _outline(task)
    return _line(f"{last.step} {last.rule or last.signal}: {last.why}")


def _line(text: str, most: int = _SAID) -> str:
    whole = " ".join(text.split())
    return whole if len(whole) <= most else whole[: most - 1].rstrip() + "…"
