"""The board of a delivery, drawn: a table on a terminal, a line per decision elsewhere.

Knows screens. The table is drawn once a second by a thread of its own, which reads what is
committed and never waits for the run, nor the run for it.
"""

import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from interlock.cli.show import printable, tell
from interlock.engine.schedule import Spent
from interlock.runtime.tally import RunCounts
from interlock.system.errors import InterlockError

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from sqlalchemy import Connection

    from interlock.delivery.report.board import Board, BoardRow

Watch = Callable[[RunCounts, Spent], None]
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
    from interlock.journal.history import lines_since

    seq = max((each.seq for each in lines_since(connection, run_id, 0)), default=0)
    told = 0.0

    def say_new() -> None:
        nonlocal seq
        for line in lines_since(connection, run_id, seq):
            seq, decision = line.seq, line.decision
            clock = time.strftime("%H:%M:%S", time.localtime(line.at))
            to = decision.to or decision.status
            tell(f"{clock} {line.case_id}: {decision.step} {decision.signal} -> {to}")

    def watch(_tally: RunCounts, _spent: Spent) -> None:
        nonlocal told
        if time.monotonic() - told >= _LINES_EVERY:
            told = time.monotonic()
            say_new()

    yield watch
    say_new()


@contextmanager
def _drawn(console: "Console", run_id: int, db: Path, agents: Mapping[str, str]) -> Iterator[Watch]:
    from rich.live import Live

    latest: list[tuple[RunCounts, Spent]] = [(RunCounts(), Spent())]
    over = threading.Event()

    def watch(tally: RunCounts, spent: Spent) -> None:
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
    latest: list[tuple[RunCounts, Spent]],
    over: threading.Event,
    draw: "Callable[[Board], None]",
) -> None:
    """Look and draw, once a second. A look that fails is only not drawn."""
    from interlock.agents.agents import agents_folder
    from interlock.delivery.report.lookout import BoardReader
    from interlock.journal.database import reading

    with suppress(InterlockError), reading(db) as connection:
        lookout = BoardReader(connection, run_id, agents, agents_folder(db))
        while not over.is_set():
            with suppress(InterlockError):
                draw(lookout.look(latest[0][1]))
            over.wait(_EVERY)


def picture(found: "Board", now: float, height: int, tally: RunCounts) -> "RenderableType":
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
