"""The verbs of the analyst's parts, and the first of them. Others add theirs in files beside this.

Each reads files and prints JSON lines: made for pipes and for scoring, not for people.

The analyst's judgement as verbs: cluster, recall, triage, suspect.

Failures in, one JSON object a failure out, in the order of the file. Says what was judged; how is
the analyst's own business.

The verb `analyst read`: one report or log as failure records and a tally.

Decides by the content which reader it needs. Prints each failure as soon as it is read.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO

import msgspec
import typer
from typer.core import TyperGroup

from interlock.cli.app import app
from interlock.cli.output import echo_note, escape_json
from interlock.system.errors import SourceError

if TYPE_CHECKING:
    from interlock.rca.records import Failure
    from interlock.rca.sources.entry import SourceEntry
    from interlock.system.test_output import TestCounts


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
    from interlock.rca.analyst.templates import TemplateMiner, read_blocks

    miner, told, line = TemplateMiner(), [b""], 0
    with open_input(file) as source:
        for block in read_blocks(source):
            numbers = miner.add_block(block)
            for number in range(len(told), len(miner) + 1):
                text = escape_json(msgspec.json.encode(miner.get_text(number)).decode()).encode()
                told.append(b',"template_id":%d,"template":%b}\n' % (number, text))
            rows = [b'{"line":%d%b' % (at, told[n]) for at, n in enumerate(numbers, line + 1)]
            line += len(numbers)
            sys.stdout.buffer.write(b"".join(rows))


@analyst.command()
def evidence(file: LogFile, against: Against = None, more: MoreLogs = None) -> None:
    """The lines of a log that say why it failed. Prints {line, text, score, why}."""
    from interlock.rca.analyst import evidence as reading
    from interlock.system.test_output.counts import read_lines

    if more and not against:
        raise SourceError("one failing log at a time; logs of good runs follow --against")

    def good_logs() -> Iterator[Iterator[str]]:
        for name in (*(against or ()), *(more or ())):
            with open_input(name) as good:
                yield read_lines(good)

    with open_input(file) as source:
        for line in reading.choose_evidence(read_lines(source), good_logs()):
            sys.stdout.write(escape_json(msgspec.json.encode(line).decode()) + "\n")


@contextmanager
def open_input(name: str, what: str = "log file") -> Iterator[BinaryIO]:
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


Failures = Annotated[
    str, typer.Argument(metavar="FAILURES.jsonl", help="One failure a line; - is stdin.")
]
Learn = Annotated[
    str | None,
    typer.Option(metavar="LABELLED.jsonl", help="Failures with a `label`: their kinds are learnt."),
]
Candidates = Annotated[
    str, typer.Option(metavar="FILE.jsonl", help="{id, candidates: [strings]} a line.")
]


@analyst.command()
def cluster(failures: Failures) -> None:
    """Which failures are one family. Prints {id, family} a line."""
    from interlock.rca.analyst.cluster import cluster_failures as clustered
    from interlock.rca.analyst.failure_lines import read_failures

    with open_input(failures, "JSONL file") as lines:
        known = list(read_failures(lines, failures))
    for failure, family in zip(known, clustered(known), strict=True):
        _line({"id": failure.id, "family": family})


@analyst.command()
def recall(failures: Failures) -> None:
    """Whether an earlier failure is the same. Prints {id, verdict, match_id, score}."""
    from interlock.rca.analyst.cluster import recall_stream
    from interlock.rca.analyst.failure_lines import read_failures

    with open_input(failures, "JSONL file") as lines:
        for failure_id, found in recall_stream(read_failures(lines, failures)):
            said = {"verdict": found.verdict, "match_id": found.match_id, "score": found.score}
            _line({"id": failure_id, **said, "why": found.why})


@analyst.command()
def triage(failures: Failures, learn: Learn = None) -> None:
    """What kind each failure is; unknown is no answer.

    Prints {id, category, confidence, reasons}."""
    from interlock.rca.analyst.failure_lines import read_failures, read_labelled
    from interlock.rca.analyst.triage import TrainedTriage
    from interlock.rca.analyst.triage import triage_failure as triaged

    judge = triaged
    _one_stdin(failures, learn)
    if learn:
        with open_input(learn, "JSONL file") as lines:
            judge = TrainedTriage(read_labelled(lines, learn)).triage
    with open_input(failures, "JSONL file") as lines:
        for failure in read_failures(lines, failures):
            found = judge(failure)
            said = {"category": found.category, "confidence": found.confidence}
            _line({"id": failure.id, **said, "reasons": found.reasons})


@analyst.command()
def suspect(failures: Failures, candidates: Candidates) -> None:
    """Which candidate brought each failure, best first.

    Prints {id, ranked: [{candidate, score, why}]}."""
    import msgspec

    from interlock.rca.analyst.failure_lines import read_candidates, read_failures
    from interlock.rca.analyst.suspects import rank_suspects

    _one_stdin(failures, candidates)
    with open_input(candidates, "JSONL file") as lines:
        listed = read_candidates(lines, candidates)
    with open_input(failures, "JSONL file") as lines:
        for failure in read_failures(lines, failures):
            ranked = rank_suspects(failure, listed.get(failure.id, ()))
            _line({"id": failure.id, "ranked": msgspec.to_builtins(ranked)})


def _one_stdin(one: str, other: str | None) -> None:
    if one == other == "-":
        raise SourceError("only one of two files can be stdin; name the other")


def _line(row: dict[str, Any]) -> None:
    import sys

    import msgspec

    from interlock.cli.output import escape_json

    sys.stdout.write(escape_json(msgspec.json.encode(row).decode()) + "\n")


@analyst.command("read")
def read(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="JUnit XML, or a console log.")],
) -> None:
    """The failures of one report or log, and its number of tests."""
    from interlock.rca.sources.read import find_entries

    if file.is_dir():
        raise SourceError(f"{file} is a folder: give one file.")
    leaves, _ = find_entries(str(file))
    if len(leaves) != 1:
        raise SourceError(f"{file} holds {len(leaves)} files: give one of them.")
    tally = None
    for each in _read(leaves[0]):
        if hasattr(each, "tests"):
            tally = each
        else:
            _print(each)
    _print({"summary": tally})


def _read(leaf: "SourceEntry") -> "Iterator[Failure | TestCounts]":
    """The failures, then the tally."""
    kind = leaf.detect_kind()
    if kind in ("junit", "xml"):
        yield from _report(leaf)
    elif kind == "binary":
        raise SourceError(f"{leaf.label} is neither a report nor text.")
    else:
        yield from _log(leaf)


def _report(leaf: "SourceEntry") -> "Iterator[Failure | TestCounts]":
    from interlock.rca.sources.junit import JUnitReport

    with leaf.open() as stream:
        report = JUnitReport(stream, leaf.name)
        yield from report
    for note in report.notes:
        echo_note(note)
    yield report.tally


def _log(leaf: "SourceEntry") -> "Iterator[Failure | TestCounts]":
    from interlock.rca.records import build_failure
    from interlock.system.test_output.counts import read_lines
    from interlock.system.test_output.failures import read_log

    with leaf.open() as stream:
        found = read_log(read_lines(stream))
    yield from map(build_failure, found.failures)
    yield found.tally


def _print(record: object) -> None:
    sys.stdout.write(escape_json(msgspec.json.encode(record).decode()) + "\n")
