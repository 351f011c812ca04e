"""Output for people and programs: results, notes, tables, progress; one JSON object with --json.

Text from outside cannot move the cursor, ring the bell or rewrite the screen.
"""

import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TextIO

import msgspec
import typer

from interlock.system.text import align_columns

if TYPE_CHECKING:
    from interlock.api.project import Project
    from interlock.api.records import Notification
    from interlock.engine.schedule import Spent
    from interlock.runtime.terms import RunCounts

SCHEMA_VERSION = 1

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
Db = Annotated[
    str | None,
    typer.Option(
        "--db",
        metavar="FILE|URL",
        help="The database: a file, by default .interlock/interlock.db, or postgresql://…",
    ),
]
RunId = Annotated[
    int | None, typer.Argument(metavar="RUN", help="The run's number; default the newest.")
]


def complete_circuit(incomplete: str) -> list[str]:
    """Return the circuits whose names begin like this, for the shell's completion."""
    from interlock.api.circuits import list_circuits

    return [each.name for each in list_circuits(Path()) if each.name.startswith(incomplete)]


CircuitName = Annotated[
    str,
    typer.Argument(
        metavar="CIRCUIT",
        help="A circuit's name, or a path ending in .yaml.",
        autocompletion=complete_circuit,
    ),
]
Sets = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="Set a threshold; may be repeated."),
]


def echo_json(fields: Any) -> None:
    """Print the one JSON object of a verb with --json."""
    body = fields if isinstance(fields, dict) else msgspec.to_builtins(fields)
    text = msgspec.json.encode({"schema_version": SCHEMA_VERSION, **body})
    echo_json_text((msgspec.json.format(text, indent=2),))


def echo_record(record: object) -> None:
    """Print one JSON object as a line, for verbs that print many."""
    sys.stdout.write(escape_json(msgspec.json.encode(record).decode()) + "\n")


_PIECE = 1 << 20


def echo_json_text(pieces: Iterable[bytes]) -> None:
    """Print JSON that is already encoded."""
    # Many lines at once, but not all: the report of a very red night is long.
    kept = bytearray()
    for piece in pieces:
        kept += piece
        if len(kept) > _PIECE:
            end = kept.rfind(b"\n") + 1
            _echo_lines(kept[:end])
            del kept[:end]
    _echo_lines(kept)


def _echo_lines(lines: bytearray) -> None:
    if lines:
        _write(sys.stdout, escape_json(lines.decode().removesuffix("\n")))


def echo(text: str = "") -> None:
    """Print a line of the verb's result for people."""
    _write(sys.stdout, escape_text(text))


def echo_note(text: str, **fields: Any) -> None:
    """Print a line beside the result, such as a notice. With --log json it is an object with
    fields."""
    if not _logs_json:
        _write(sys.stderr, escape_text(text))
        return
    from interlock.runtime.telemetry import format_log_line

    _write(sys.stderr, escape_json(format_log_line(text, fields).decode()))


class LogFormat(StrEnum):
    """The form of notes and of a run's events on stderr."""

    TEXT = "text"
    JSON = "json"


Log = Annotated[
    LogFormat,
    typer.Option("--log", help="The form of notes on stderr: text, or a JSON object per line."),
]
Metrics = Annotated[
    str,
    typer.Option(
        "--metrics", metavar="[HOST:]PORT", help="Serve metrics for Prometheus at /metrics."
    ),
]
_logs_json = False


def start_observing(log: LogFormat, metrics: str = "") -> None:
    """Switch on structured lines, metrics and traces, as flags and OTEL_* variables ask."""
    global _logs_json  # noqa: PLW0603 - stderr belongs to the process
    _logs_json = log == LogFormat.JSON
    if not (_logs_json or metrics):
        return  # what the environment asks for is switched on when a run begins
    from interlock.runtime.telemetry import start_telemetry

    started = start_telemetry(
        metrics=metrics,
        log=(lambda text, fields: echo_note(text, **fields)) if _logs_json else None,
        complain=echo_note,
    )
    for address in started.addresses if started else ():
        echo_note(f"metrics are at {address}", event="metrics", address=address)


def _write(stream: TextIO, line: str) -> None:
    """Write to a stream; a reader that has gone, as in `interlock … | head`, does not stop the
    work."""
    try:
        stream.write(f"{line}\n")
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def echo_table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print aligned columns; nothing for no rows."""
    for line in align_columns(head, rows):
        echo(line)


def escape_text(text: str) -> str:
    """Escape text from outside, so that it cannot move the cursor, ring the bell or rewrite the
    screen."""
    return "".join(
        each if each.isprintable() or each in "\n\t" else f"\\x{ord(each):02x}" for each in text
    )


def escape_json(text: str) -> str:
    """Escape the characters of JSON that a terminal could obey."""
    return text if text.isascii() and "\x7f" not in text else "".join(map(_escape_character, text))


def _escape_character(sign: str) -> str:
    if sign.isprintable() or sign == "\n":
        return sign
    units = sign.encode("utf-16-be").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))


_SHOWN_EVENTS = ("query", "rate-limit", "budget-low")
"""Events that are shown at once; the rest is in the result, or in the inbox."""
_BELL = "\a"


def open_project(db: str | None = None) -> "Project":
    """Open the project in this folder, for a person at a terminal."""
    from interlock.api.project import Project

    project = Project(db=db)
    project.display = TerminalDisplay(project)
    return project


class TerminalDisplay:
    """Notes on stderr, a bell, and a progress bar where stderr is a terminal."""

    def __init__(self, project: "Project") -> None:
        self._bell = project.settings.notify.bell

    def note(self, text: str) -> None:
        echo_note(text)

    def notify(self, notification: "Notification") -> None:
        if notification.event in _SHOWN_EVENTS and not _logs_json:
            echo_note(notification.text)
        if self._bell and sys.stderr.isatty():
            sys.stderr.write(_BELL)

    @contextmanager
    def show_progress(self) -> "Iterator[Callable[[RunCounts, Spent], None]]":
        """Show the number of cases done, in flight, waiting and refused, and the cost."""
        if _logs_json or not sys.stderr.isatty():
            yield lambda _counts, _spent: None
            return
        with _show_bar() as move:
            yield move


_REDRAW_SECONDS = 0.1


@contextmanager
def _show_bar() -> "Iterator[Callable[[RunCounts, Spent], None]]":
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        BarColumn(bar_width=24),
        TextColumn("{task.description}"),
        TimeElapsedColumn(),
    )
    drawn = limited = 0.0
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=None)

        def move(tally: "RunCounts", spent: "Spent") -> None:
            nonlocal drawn, limited
            if time.monotonic() - drawn < _REDRAW_SECONDS and tally.limited_until == limited:
                return
            drawn, limited = time.monotonic(), tally.limited_until
            over = tally.ended + tally.stuck
            words = f"{over}/{tally.cases} cases  {tally.in_flight} in flight"
            words += f"  {tally.questions} ask a human"
            words += _format_limited(tally)
            words += f"  {tally.refused} refused  {spent.dispatches} dispatches"
            words += f"  {spent.tokens} tokens" if spent.tokens else ""
            words += f"  {spent.money:.2f} spent" if spent.money else ""
            bar.update(task, completed=over, total=tally.cases, description=words)

        yield move


def _format_limited(tally: "RunCounts") -> str:
    if not tally.limited_until:
        return ""
    from interlock.system.time import format_clock_time

    until = format_clock_time(tally.limited_until, time.time())
    return f"  {tally.limited} rate-limited until {until}"
