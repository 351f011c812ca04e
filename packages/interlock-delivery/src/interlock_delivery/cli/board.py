"""Show a running delivery: a live board on a terminal, a line for each decision elsewhere.

A thread draws the board once a second from committed data. It never waits for the run, and the run
never waits for it.
"""

import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final

from interlock.cli.output import echo_note, escape_text
from interlock.engine.schedule import Spent
from interlock.system.errors import InterlockError

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.table import Table
    from rich.text import Text

    from interlock.api.records import Connection, DatabaseAddress
    from interlock.runtime.terms import RunCounts
    from interlock_delivery.report.board import Board
    from interlock_delivery.report.records import TaskRecord

Progress = Callable[["RunCounts", Spent], None]
_DRAW_EVERY: Final = 1.0
_LINES_EVERY: Final = 0.5
_STATES: Final = (
    ("complete", "complete", "green"),
    ("at work", "at work", "cyan"),
    ("asks", "waiting for a human", "magenta"),
    ("waits", "waiting", ""),
    ("blocked", "blocked", "yellow"),
    ("failed", "failed", "red"),
    ("skipped", "skipped", ""),
)
_FEWEST_ROWS: Final = 3
_OTHER_LINES: Final = 6
"""The lines of the screen that are not rows of the table."""


@contextmanager
def show_board(
    connection: "Connection", run_id: int, db: "DatabaseAddress", agents: Mapping[str, str]
) -> Iterator[Progress]:
    """Show the board; yield a function to call with the run's counts after every turn."""
    if sys.stderr.isatty():
        from rich.console import Console

        console = Console(stderr=True)
        if not console.is_dumb_terminal:
            with _draw_board(console, run_id, db, agents) as progress:
                yield progress
            return
    with _print_lines(connection, run_id) as progress:
        yield progress


@contextmanager
def _print_lines(connection: "Connection", run_id: int) -> Iterator[Progress]:
    """Print a line for each decision to stderr, in batches."""
    from interlock_delivery.report.board import DecisionLines

    lines = DecisionLines(connection, run_id)
    printed_at = 0.0

    def print_new() -> None:
        for line in lines.read_new():
            echo_note(line)

    def progress(_counts: "RunCounts", _spent: Spent) -> None:
        nonlocal printed_at
        if time.monotonic() - printed_at >= _LINES_EVERY:
            printed_at = time.monotonic()
            print_new()

    yield progress
    print_new()


@contextmanager
def _draw_board(
    console: "Console", run_id: int, db: "DatabaseAddress", agents: Mapping[str, str]
) -> Iterator[Progress]:
    from rich.live import Live

    from interlock.runtime.terms import RunCounts
    from interlock_delivery.report.board import open_board

    latest = (RunCounts(), Spent())
    over = threading.Event()

    def progress(counts: "RunCounts", spent: Spent) -> None:
        nonlocal latest
        latest = (counts, spent)

    def draw() -> None:
        """Read and draw once a second, skipping a board that cannot be read."""
        with suppress(InterlockError), open_board(db, run_id, agents) as reader:
            while not over.is_set():
                counts, spent = latest
                with suppress(InterlockError):
                    board = reader.read(spent)
                    live.update(render_board(board, time.time(), console.size.height, counts))
                    live.refresh()
                over.wait(_DRAW_EVERY)

    with Live(console=console, auto_refresh=False, transient=True) as live:
        painter = threading.Thread(target=draw, daemon=True)
        painter.start()
        try:
            yield progress
        finally:
            over.set()
            painter.join()


def render_board(board: "Board", now: float, height: int, counts: "RunCounts") -> "RenderableType":
    """Return the whole board in at most `height` lines."""
    from rich.console import Group

    parts: list[RenderableType] = [_render_head(board)]
    if board.repairing:
        text = f"repairing: {board.repairing}; all other tasks wait"
        parts.append(_one_line(text, "bold yellow"))
    if counts.limited_until > now:
        until = time.strftime("%H:%M", time.localtime(counts.limited_until))
        parts.append(_one_line(f"{counts.limited} rate-limited until {until}", "yellow"))
    room = max(_FEWEST_ROWS, height - _OTHER_LINES)
    parts.append(_render_table(board.rows[:room], now))
    if hidden := len(board.rows[room:]) + board.left_out:
        parts.append(_one_line(f"… and {hidden} more", "dim"))
    if board.questions:
        first, count = board.questions[0], len(board.questions)
        text = (
            f"{count} question{'s' if count > 1 else ''}: 'interlock inbox' shows them; "
            f"'interlock answer {first.question_id} …' answers {first.task_id}"
        )
        parts.append(_one_line(text, "magenta"))
    return Group(*parts)


def _one_line(text: str, style: str) -> "Text":
    from rich.text import Text

    return Text(escape_text(text), style, no_wrap=True, overflow="ellipsis")


def _render_head(board: "Board") -> "Text":
    line = _one_line(f"run {board.run_id} {board.outcome}", "bold")
    numbers = {str(word): number for word, number in board.counts.items()}
    for word, name, style in _STATES:
        if number := numbers.get(word, 0):
            line.append("  ").append(f"{number} {name}", f"not bold {style}".strip())
    line.append(f"  {board.spent.dispatches} dispatches", "not bold dim")
    if board.spent.money:
        line.append(f"  {board.spent.money:.2f} spent", "not bold dim")
    return line


def _render_table(rows: "tuple[TaskRecord, ...]", now: float) -> "Table":
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
        table.add_row(*_render_cells(row, now))
    return table


def _render_cells(row: "TaskRecord", now: float) -> "list[Text]":
    from rich.text import Text

    style = {"at work": "", "asks": "magenta"}.get(row.word, "dim")
    waits = row.word == "waits"
    sign = row.standing or ("-" if row.word == "at work" else "")
    texts = (
        row.task_id,
        row.title,
        row.step,
        "" if waits else row.role,
        row.why if waits else row.agent,
        format_age(now - row.since) if row.since else "",
        f"{row.standing} {format_age(now - row.sign)}".strip() if row.sign else sign,
        f"{row.money:.2f}" if row.money else f"{row.tokens:,}t" if row.tokens else "",
    )
    return [Text(escape_text(text), style) for text in texts]


def format_age(seconds: float) -> str:
    """Return a duration in at most five characters, for anything up to a day."""
    whole = max(0, int(seconds))
    if whole < 60:
        return f"{whole}s"
    if whole < 3600:
        return f"{whole // 60}m{whole % 60:02d}"
    return f"{whole // 3600}h{whole // 60 % 60:02d}"
