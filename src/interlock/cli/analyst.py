"""The verbs of the built-in analyst's parts: JSON lines out, made for pipes and for scoring.

`read`, `templates` and `evidence` take one report or log; `cluster`, `recall`, `triage` and
`suspect` take failures, and print one object for each in the order of the file. `fit`, `show` and
`use` are about what it learns from reviews.
"""

import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer
from typer.core import TyperGroup

from interlock.cli.app import app
from interlock.cli.options import open_input
from interlock.cli.output import (
    Db,
    Json,
    echo,
    echo_json,
    echo_note,
    echo_record,
    escape_json,
    open_project,
)
from interlock.system.errors import SourceError, UsageError
from interlock.system.text import plural
from interlock.system.time import format_time

if TYPE_CHECKING:
    from interlock.rca.learning import Evaluation
    from interlock.rca.records import Failure
    from interlock.rca.sources.entry import SourceEntry
    from interlock.system.test_output import TestCounts


_PARTS = (
    *("read", "templates", "evidence", "cluster", "recall", "triage", "suspect"),
    *("fit", "show", "use"),
)


class _Parts(TyperGroup):
    """Shown in the order in which an analysis uses them."""

    def list_commands(self, ctx: Any) -> list[str]:
        return sorted(super().list_commands(ctx), key=_PARTS.index)


analyst = typer.Typer(
    help="The built-in analyst's parts: JSONL in, JSONL out.",
    no_args_is_help=True,
    cls=_Parts,
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

    miner, endings, line = TemplateMiner(), [b""], 0
    with open_input(file) as source:
        for block in read_blocks(source):
            numbers = miner.add_block(block)
            for number in range(len(endings), len(miner) + 1):
                text = escape_json(msgspec.json.encode(miner.get_text(number)).decode()).encode()
                endings.append(b',"template_id":%d,"template":%b}\n' % (number, text))
            rows = [b'{"line":%d%b' % (at, endings[n]) for at, n in enumerate(numbers, line + 1)]
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
            echo_record(line)


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
    from interlock.rca.analyst.cluster import cluster_failures
    from interlock.rca.analyst.failure_lines import read_failures

    with open_input(failures, "JSONL file") as lines:
        known = list(read_failures(lines, failures))
    for failure, family in zip(known, cluster_failures(known), strict=True):
        echo_record({"id": failure.id, "family": family})


@analyst.command()
def recall(failures: Failures) -> None:
    """Whether an earlier failure is the same. Prints {id, verdict, match_id, score}."""
    from interlock.rca.analyst.cluster import recall_stream
    from interlock.rca.analyst.failure_lines import read_failures

    with open_input(failures, "JSONL file") as lines:
        for failure_id, found in recall_stream(read_failures(lines, failures)):
            echo_record(
                {
                    "id": failure_id,
                    "verdict": found.verdict,
                    "match_id": found.match_id,
                    "score": found.score,
                    "why": found.why,
                }
            )


@analyst.command()
def triage(failures: Failures, learn: Learn = None) -> None:
    """What kind each failure is; unknown is no answer.

    Prints {id, category, confidence, reasons}."""
    from interlock.rca.analyst.failure_lines import read_failures, read_labelled
    from interlock.rca.analyst.triage import TrainedTriage, triage_failure

    judge = triage_failure
    _refuse_two_stdins(failures, learn)
    if learn:
        with open_input(learn, "JSONL file") as lines:
            judge = TrainedTriage(read_labelled(lines, learn)).triage
    with open_input(failures, "JSONL file") as lines:
        for failure in read_failures(lines, failures):
            found = judge(failure)
            echo_record(
                {
                    "id": failure.id,
                    "category": found.category,
                    "confidence": found.confidence,
                    "reasons": found.reasons,
                }
            )


@analyst.command()
def suspect(failures: Failures, candidates: Candidates) -> None:
    """Which candidate brought each failure, best first.

    Prints {id, ranked: [{candidate, score, why}]}."""
    from interlock.rca.analyst.failure_lines import read_candidates, read_failures
    from interlock.rca.analyst.suspects import rank_suspects

    _refuse_two_stdins(failures, candidates)
    with open_input(candidates, "JSONL file") as lines:
        listed = read_candidates(lines, candidates)
    with open_input(failures, "JSONL file") as lines:
        for failure in read_failures(lines, failures):
            ranked = rank_suspects(failure, listed.get(failure.id, ()))
            echo_record({"id": failure.id, "ranked": msgspec.to_builtins(ranked)})


def _refuse_two_stdins(one: str, other: str | None) -> None:
    if one == other == "-":
        raise SourceError("only one of two files can be stdin; name the other")


@analyst.command("read")
def read(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="JUnit XML, or a console log.")],
) -> None:
    """The failures of one report or log, and its number of tests."""
    from interlock.rca.sources.read import find_entries

    if file.is_dir():
        raise SourceError(f"{file} is a folder: give one file.")
    entries, _ = find_entries(str(file))
    if len(entries) != 1:
        raise SourceError(f"{file} holds {len(entries)} files: give one of them.")
    counts = None
    for each in _read_entry(entries[0]):
        if hasattr(each, "tests"):
            counts = each
        else:
            echo_record(each)
    echo_record({"summary": counts})


def _read_entry(entry: "SourceEntry") -> "Iterator[Failure | TestCounts]":
    """The failures, then the counts."""
    kind = entry.detect_kind()
    if kind in ("junit", "xml"):
        yield from _read_report(entry)
    elif kind == "binary":
        raise SourceError(f"{entry.label} is neither a report nor text.")
    else:
        yield from _read_log(entry)


def _read_report(entry: "SourceEntry") -> "Iterator[Failure | TestCounts]":
    from interlock.rca.sources.junit import JUnitReport

    with entry.open() as stream:
        report = JUnitReport(stream, entry.name)
        yield from report
    for note in report.notes:
        echo_note(note)
    yield report.tally


def _read_log(entry: "SourceEntry") -> "Iterator[Failure | TestCounts]":
    from interlock.rca.records import build_failure
    from interlock.rca.sources.log_scan import scan_log

    with entry.open() as stream:
        found = scan_log(stream).tests
    yield from map(build_failure, found.failures)
    yield found.tally


@analyst.command()
def fit(db: Db = None, json: Json = False) -> None:
    """Learn kinds of failures from your reviews. Used only if it is better on newer ones."""
    from interlock.rca.learning import fit_model

    with open_project(db).write() as connection:
        evaluation, model = fit_model(connection, time.time())
    if json:
        echo_json({"model": model, "evaluation": evaluation})
        return
    for line in format_evaluation(evaluation):
        echo(line)
    if model is None:
        echo("nothing was fitted, and nothing has changed")
    elif model.status == "active":
        echo(f"model {model.model_id} is used from now on; 'interlock analyst use rules' goes back")
    else:
        echo(f"model {model.model_id} was refused; what was used before is still used")


@analyst.command()
def show(db: Db = None, json: Json = False) -> None:
    """Show what was learnt, how it was judged, and what is used."""
    from interlock.rca.learning import list_models

    with open_project(db).read() as connection:
        models = list_models(connection)
    if json:
        echo_json({"models": models})
        return
    for model in models:
        echo(f"model {model.model_id}, {format_time(model.made_at)}: {model.status}")
        for line in format_evaluation(model.evaluation):
            echo(f"  {line}")
    if not any(model.status == "active" for model in models):
        echo("the rules alone are used; 'interlock analyst fit' learns from your reviews")


@analyst.command()
def use(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="Its number, or 'rules'.")],
    db: Db = None,
) -> None:
    """Use another model from now on, or the rules alone."""
    from interlock.rca.learning import use_model

    if model != "rules" and not model.isdecimal():
        raise UsageError(f"{model!r} is no model: give a number of 'analyst show', or 'rules'")
    with open_project(db).write() as connection:
        use_model(connection, None if model == "rules" else int(model))
    echo("the rules alone are used" if model == "rules" else f"model {model} is used from now on")


def format_evaluation(found: "Evaluation") -> Iterator[str]:
    from interlock.rca.report.summary import wrap_text

    kinds = ", ".join(f"{kind} {count}" for kind, count in found.kinds.items())
    yield f"{plural(found.labels, 'reviewed cause')}{f': {kinds}' if kinds else ''}"
    if found.scores:
        yield f"trained on the older {found.trained}, tested on the newer {found.tested}:"
    room = max((len(score.name) for score in found.scores), default=0)
    for score in found.scores:
        share = f"{score.right / score.of:.2f} [{score.low:.2f}, {score.high:.2f}]"
        yield f"  {score.name:<{room}}  {share}  {score.right} of {score.of}, {score.unsure} unsure"
    if found.difference:
        low, high = found.difference
        yield f"  difference of the new model to what is used: [{low:+.2f}, {high:+.2f}]"
    if found.why:
        yield from wrap_text(found.why, 100)
