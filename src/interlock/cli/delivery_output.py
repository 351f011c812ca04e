"""A delivery in words for a terminal, and as the object that --json prints.

Knows what fits on a screen. Everything is made from the records of `apps/delivery/delivered.py`.

The board of a delivery, drawn: a table on a terminal, a line per decision elsewhere.

Knows screens. The table is drawn once a second by a thread of its own, which reads what is
committed and never waits for the run, nor the run for it.
"""

import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from interlock.cli.output import counted, printable, tell
from interlock.engine.schedule import Spent
from interlock.system.errors import InterlockError
from interlock.system.text import align_columns

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from sqlalchemy import Connection

    from interlock.delivery.checks.claims import ClaimComparison
    from interlock.delivery.report.board import Board, BoardRow
    from interlock.delivery.report.records import CheckEvidence, DeliveryReport, TaskReport
    from interlock.runtime.loop import RunCounts


_TASKS: Final = 60
_NEEDS: Final = 20
_SAID: Final = 90
_NEED: Final = 240
_WORDS: Final = ("complete", "at work", "asks", "waits", "blocked", "failed")


def summary(told: "DeliveryReport", report: str = "") -> Iterator[str]:
    """How a run came out, task by task, and what there is to do next."""
    yield heading(told)
    yield from _few(told, [(each.task_id, _state(each), _outline(each)) for each in told.tasks])
    yield from claims(told.accounts)
    yield from needs(told)
    yield from _where(told)
    if report:
        yield f"report: {report}"


def format_status(told: "DeliveryReport") -> Iterator[str]:
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
    yield from align_columns(("TASK", "STATE", "STEP", "TRIES", "CHECKS", "COMMIT", "LAST"), rows)
    yield from _rest(told)
    yield from claims(told.accounts)
    yield from needs(told)
    yield from _where(told)
    if told.outcome == "PAUSED" and not told.count_tasks("asks"):
        yield f"nobody works on it; 'interlock deliver {told.plan}' goes on"


def heading(told: "DeliveryReport") -> str:
    counts = ", ".join(
        f"{told.count_tasks(word)} {word}" for word in _WORDS if told.count_tasks(word)
    )
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
    lines = align_columns(head, rows)
    return ["", *lines] if lines else []


def needs(told: "DeliveryReport") -> Iterator[str]:
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
    from interlock.system.text import format_duration

    return format_duration(timedelta(seconds=seconds))


def as_json(told: "DeliveryReport") -> dict[str, Any]:
    fields: dict[str, Any] = msgspec.to_builtins(told)
    fields["counts"] = {word: told.count_tasks(word) for word in _WORDS}
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


def _where(told: "DeliveryReport") -> Iterator[str]:
    if told.is_merged:
        count = counted(sum(bool(each.commit) for each in told.tasks), "task", "tasks")
        yield ""
        yield f"{count} merged on branch {told.branch}; take it with: git merge {told.branch}"


def _shown(told: "DeliveryReport") -> "list[TaskReport]":
    """All tasks in their order; of many, the ones that need a look first."""
    tasks = list(told.tasks)
    if len(tasks) > _TASKS:
        tasks.sort(key=lambda each: each.word in ("complete", "waits"))
    return tasks[:_TASKS]


def _few(told: "DeliveryReport", rows: Sequence[tuple[str, str, str]]) -> Iterator[str]:
    shown = {each.task_id for each in _shown(told)}
    lines = align_columns(("TASK", "STATE", "WHAT"), [row for row in rows if row[0] in shown])
    yield from lines
    yield from _rest(told)


def _rest(told: "DeliveryReport") -> Iterator[str]:
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


Watch = Callable[["RunCounts", Spent], None]
_EVERY: Final = 1.0
_LINES_EVERY: Final = 0.5
_COUNTED: Final = (
    ("complete", "complete", "green"),
    ("at work", "at work", "cyan"),
    ("asks", "waiting for a human", "magenta"),
    ("waits", "waiting", ""),
    ("blocked", "blocked", "yellow"),
    ("failed", "failed", "red"),
)
_LEAST: Final = 3
_AROUND: Final = 6
"""Lines of the screen that are no rows."""


@contextmanager
def watched(
    connection: "Connection", run_id: int, db: Path, agents: Mapping[str, str]
) -> Iterator[Watch]:
    """A function that is told after every turn how the run stands, while its board is shown."""
    if sys.stderr.isatty():
        from rich.console import Console

        console = Console(stderr=True)
        if not console.is_dumb_terminal:
            with _drawn(console, run_id, db, agents) as watch:
                yield watch
            return
    with _lines(connection, run_id) as watch:
        yield watch


@contextmanager
def _lines(connection: "Connection", run_id: int) -> Iterator[Watch]:
    """A line for each decision, on stderr, some at once."""
    from interlock.journal.history import list_lines

    seq = max((each.seq for each in list_lines(connection, run_id, 0)), default=0)
    told = 0.0

    def say_new() -> None:
        nonlocal seq
        for line in list_lines(connection, run_id, seq):
            seq, decision = line.seq, line.decision
            clock = time.strftime("%H:%M:%S", time.localtime(line.at))
            to = decision.to or decision.status
            tell(f"{clock} {line.case_id}: {decision.step} {decision.signal} -> {to}")

    def watch(_tally: "RunCounts", _spent: Spent) -> None:
        nonlocal told
        if time.monotonic() - told >= _LINES_EVERY:
            told = time.monotonic()
            say_new()

    yield watch
    say_new()


@contextmanager
def _drawn(console: "Console", run_id: int, db: Path, agents: Mapping[str, str]) -> Iterator[Watch]:
    from rich.live import Live

    from interlock.runtime.loop import RunCounts

    latest: list[tuple[RunCounts, Spent]] = [(RunCounts(), Spent())]
    over = threading.Event()

    def watch(tally: "RunCounts", spent: Spent) -> None:
        latest[0] = (tally, spent)

    with Live(console=console, auto_refresh=False, transient=True) as live:

        def draw(found: "Board") -> None:
            live.update(picture(found, time.time(), console.size.height, latest[0][0]))
            live.refresh()

        painter = threading.Thread(
            target=_paint, args=(run_id, db, agents, latest, over, draw), daemon=True
        )
        painter.start()
        try:
            yield watch
        finally:
            over.set()
            painter.join()


def _paint(
    run_id: int,
    db: Path,
    agents: Mapping[str, str],
    latest: "list[tuple[RunCounts, Spent]]",
    over: threading.Event,
    draw: "Callable[[Board], None]",
) -> None:
    """Look and draw, once a second. A look that fails is only not drawn."""
    from interlock.agents.registry import agents_folder
    from interlock.delivery.report.board import BoardReader
    from interlock.journal.database import open_reader

    with suppress(InterlockError), open_reader(db) as connection:
        lookout = BoardReader(connection, run_id, agents, agents_folder(db))
        while not over.is_set():
            with suppress(InterlockError):
                draw(lookout.read(latest[0][1]))
            over.wait(_EVERY)


def picture(found: "Board", now: float, height: int, tally: "RunCounts") -> "RenderableType":
    """The whole board, in at most that many lines."""
    from rich.console import Group
    from rich.text import Text

    parts: list[Any] = [_head(found)]
    if found.repairing:
        said = f"repairing: {found.repairing}; all others wait until it is done"
        parts.append(Text(printable(said), "bold yellow", no_wrap=True, overflow="ellipsis"))
    if tally.limited_until > now:
        until = time.strftime("%H:%M", time.localtime(tally.limited_until))
        parts.append(Text(f"{tally.limited} rate-limited until {until}", "yellow"))
    room = max(_LEAST, height - _AROUND)
    parts.append(_table(found.rows[:room], now))
    if hidden := len(found.rows[room:]) + found.left_out:
        parts.append(Text(f"… and {hidden} more", "dim"))
    if found.questions:
        parts.append(_asked(found))
    return Group(*parts)


def _head(found: "Board") -> Any:
    from rich.text import Text

    line = Text(f"run {found.run_id} {found.outcome}", "bold", no_wrap=True, overflow="ellipsis")
    for word, name, style in _COUNTED:
        if number := found.counts.get(word, 0):  # type: ignore[call-overload]
            line.append("  ").append(f"{number} {name}", f"not bold {style}".strip())
    spent = found.spent
    line.append(f"  {spent.dispatches} dispatches", "not bold dim")
    if spent.money:
        line.append(f"  {spent.money:.2f} spent", "not bold dim")
    return line


def _table(rows: "tuple[BoardRow, ...]", now: float) -> Any:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, expand=True, header_style="dim", show_edge=False)
    table.add_column("TASK", no_wrap=True, max_width=20, overflow="ellipsis")
    table.add_column("TITLE", no_wrap=True, ratio=3, overflow="ellipsis")
    table.add_column("STEP", no_wrap=True)
    table.add_column("ROLE", no_wrap=True, max_width=16, overflow="ellipsis")
    table.add_column("AGENT", no_wrap=True, ratio=2, overflow="ellipsis")
    table.add_column("IN STEP", no_wrap=True, justify="right", min_width=7)
    table.add_column("SIGN", no_wrap=True, justify="right", min_width=11)
    table.add_column("COST", no_wrap=True, justify="right", min_width=6)
    for row in rows:
        table.add_row(*_cells(row, now))
    return table


def _cells(row: "BoardRow", now: float) -> list[Any]:
    from rich.text import Text

    style = {"at work": "", "asks": "magenta"}.get(row.word, "dim")
    waits = row.word == "waits"
    words = (
        row.task_id,
        row.title,
        row.step,
        "" if waits else row.role,
        row.why if waits else row.agent,
        age(now - row.since) if row.since else "",
        _sign(row, now),
        f"{row.money:.2f}" if row.money else f"{row.tokens:,}t" if row.tokens else "",
    )
    return [Text(printable(word), style) for word in words]


def _sign(row: "BoardRow", now: float) -> str:
    if row.sign:
        return f"{row.standing} {age(now - row.sign)}".strip()
    return row.standing or ("-" if row.word == "at work" else "")


def age(seconds: float) -> str:
    """Short, and as wide at most as four or five letters for a day's work."""
    whole = max(0, int(seconds))
    if whole < 60:
        return f"{whole}s"
    if whole < 3600:
        return f"{whole // 60}m{whole % 60:02d}"
    return f"{whole // 3600}h{whole // 60 % 60:02d}"


def _asked(found: "Board") -> Any:
    from rich.text import Text

    first = found.questions[0]
    many = "1 question" if len(found.questions) == 1 else f"{len(found.questions)} questions"
    said = (
        f"{many}: 'interlock inbox' shows them; "
        f"'interlock answer {first.question_id} …' answers {first.task_id}"
    )
    return Text(printable(said), "magenta", no_wrap=True, overflow="ellipsis")
