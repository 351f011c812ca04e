"""The analyst's judgement as verbs: cluster, recall, triage, suspect.

Failures in, one JSON object a failure out, in the order of the file. Says what was judged; how is
the analyst's own business.
"""

from typing import Annotated, Any

import typer

from interlock.cli.analyst import analyst, opened
from interlock.system.errors import SourceError

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
    from interlock.rca.analyst.cluster import cluster as clustered
    from interlock.rca.analyst.failure_lines import read_failures

    with opened(failures, "JSONL file") as lines:
        known = list(read_failures(lines, failures))
    for failure, family in zip(known, clustered(known), strict=True):
        _line({"id": failure.id, "family": family})


@analyst.command()
def recall(failures: Failures) -> None:
    """Whether an earlier failure is the same. Prints {id, verdict, match_id, score}."""
    from interlock.rca.analyst.failure_lines import read_failures
    from interlock.rca.analyst.recall import recall_stream

    with opened(failures, "JSONL file") as lines:
        for failure_id, found in recall_stream(read_failures(lines, failures)):
            said = {"verdict": found.verdict, "match_id": found.match_id, "score": found.score}
            _line({"id": failure_id, **said, "why": found.why})


@analyst.command()
def triage(failures: Failures, learn: Learn = None) -> None:
    """What kind each failure is; unknown is no answer.

    Prints {id, category, confidence, reasons}."""
    from interlock.rca.analyst.failure_lines import read_failures, read_labelled
    from interlock.rca.analyst.triage import Teacher
    from interlock.rca.analyst.triage import triage as triaged

    judge = triaged
    _one_stdin(failures, learn)
    if learn:
        with opened(learn, "JSONL file") as lines:
            judge = Teacher(read_labelled(lines, learn)).triage
    with opened(failures, "JSONL file") as lines:
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
    from interlock.rca.analyst.suspect import suspects

    _one_stdin(failures, candidates)
    with opened(candidates, "JSONL file") as lines:
        listed = read_candidates(lines, candidates)
    with opened(failures, "JSONL file") as lines:
        for failure in read_failures(lines, failures):
            ranked = suspects(failure, listed.get(failure.id, ()))
            _line({"id": failure.id, "ranked": msgspec.to_builtins(ranked)})


def _one_stdin(one: str, other: str | None) -> None:
    if one == other == "-":
        raise SourceError("only one of two files can be stdin; name the other")


def _line(row: dict[str, Any]) -> None:
    import sys

    import msgspec

    from interlock.cli.show import harmless

    sys.stdout.write(harmless(msgspec.json.encode(row).decode()) + "\n")
