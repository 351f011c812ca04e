"""The verbs of the analyst's parts, and the first of them. Others add theirs in files beside this.

Each reads files and prints JSON lines: made for pipes and for scoring, not for people.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, BinaryIO

import msgspec
import typer
from typer.core import TyperGroup

from interlock.cli.door import app
from interlock.cli.show import harmless
from interlock.system.errors import SourceError

_PARTS = ("read", "templates", "evidence", "cluster", "recall", "triage", "suspect")


class _Parts(TyperGroup):
    """Shown in the order in which an analysis uses them."""

    def list_commands(self, ctx: Any) -> list[str]:
        return sorted(super().list_commands(ctx), key=_PARTS.index)


analyst = typer.Typer(
    help="The built-in analyst's parts: JSONL in, JSONL out.", no_args_is_help=True, cls=_Parts
)
app.add_typer(analyst, name="analyst")

LogFile = Annotated[str, typer.Argument(metavar="FILE", help="A log; - is stdin.")]


Against = Annotated[
    list[str] | None,
    typer.Option(
        metavar="FILE", help="Logs of good runs of the job: what they say too is left out."
    ),
]
MoreLogs = Annotated[
    list[str] | None, typer.Argument(metavar="MORE", help="More good logs, after --against.")
]


@analyst.command()
def templates(file: LogFile) -> None:
    """The template of each line of a log. Prints {line, template_id, template}."""
    from interlock.rca.analyst.templates import Miner, blocks_of

    miner, told, line = Miner(), [b""], 0
    with opened(file) as source:
        for block in blocks_of(source):
            numbers = miner.add(block)
            for number in range(len(told), len(miner) + 1):
                text = harmless(msgspec.json.encode(miner.text(number)).decode()).encode()
                told.append(b',"template_id":%d,"template":%b}\n' % (number, text))
            rows = [b'{"line":%d%b' % (at, told[n]) for at, n in enumerate(numbers, line + 1)]
            line += len(numbers)
            sys.stdout.buffer.write(b"".join(rows))


@analyst.command()
def evidence(file: LogFile, against: Against = None, more: MoreLogs = None) -> None:
    """The lines of a log that say why it failed. Prints {line, text, score, why}."""
    from interlock.rca.analyst import evidence as reading
    from interlock.system.test_output.ci_lines import lines_of

    if more and not against:
        raise SourceError("one failing log at a time; logs of good runs follow --against")

    def good_logs() -> Iterator[Iterator[str]]:
        for name in (*(against or ()), *(more or ())):
            with opened(name) as good:
                yield lines_of(good)

    with opened(file) as source:
        for line in reading.evidence(lines_of(source), good_logs()):
            sys.stdout.write(harmless(msgspec.json.encode(line).decode()) + "\n")


@contextmanager
def opened(name: str, what: str = "log file") -> Iterator[BinaryIO]:
    """A file that the user named, or stdin for -."""
    if name == "-":
        yield sys.stdin.buffer
        return
    path = Path(name)
    if not path.is_file():
        state = "is no regular file" if path.exists() else "does not exist"
        raise SourceError(f"{name} {state}; name a {what}, or - for stdin")
    try:
        with path.open("rb") as file:
            yield file
    except OSError as error:
        raise SourceError(f"{name} cannot be read: {os.strerror(error.errno or 0)}") from None
