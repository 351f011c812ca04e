"""Verbs that look: runs, status, logs. They read what is committed and disturb nobody."""

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

from interlock.cli.door import app
from interlock.cli.run import advice
from interlock.cli.show import Db, Json, RunId, clock_time, document, say, table

if TYPE_CHECKING:
    from interlock.store.history import Line

_POLL = 0.25
_SHOWN = 20


@app.command()
def runs(db: Db = None, json: Json = False) -> None:
    """All runs in the database."""
    from interlock import wiring
    from interlock.store.database import reading
    from interlock.store.history import counts
    from interlock.store.runs import all_runs

    with reading(wiring.database(Path(), db)) as connection:
        found = [(run, counts(connection, run.run_id)) for run in all_runs(connection)]
    if json:
        document({"runs": [{**_run_fields(run), "ends": dict(ends)} for run, ends in found]})
        return
    table(
        ("RUN", "CIRCUIT", "STATUS", "CASES", "DISPATCHES", "BEGUN", "SOURCE"),
        (
            (
                *(run.run_id, f"{run.circuit} v{run.version}", run.status, ends.total()),
                *(run.spent.dispatches, clock_time(run.created_at), run.source),
            )
            for run, ends in found
        ),
    )


@app.command()
def status(run_id: RunId = None, db: Db = None, json: Json = False) -> None:
    """How a run stands, and which of its cases need a look."""
    from interlock import wiring
    from interlock.store.database import reading
    from interlock.store.history import cases_of, counts, digest_of, refusals_of
    from interlock.store.lock import writer_of
    from interlock.store.runs import find_run

    path = wiring.database(Path(), db)
    with reading(path) as connection:
        run = find_run(connection, run_id)
        cases = cases_of(connection, run.run_id)
        ends = counts(connection, run.run_id)
        refused = len(refusals_of(connection, run.run_id))
        digest = digest_of(connection, run.run_id)
    writer = writer_of(path)
    live = run.status == "running" and writer is not None
    shown = run.status if run.status != "running" or live else "interrupted"
    if json:
        fields = {**_run_fields(run), "status": shown, "ends": dict(ends), "refused": refused}
        rows = [_case_fields(line) for line in cases]
        document({**fields, "digest": digest, "worked_on_by": str(writer or ""), "cases": rows})
        return
    say(f"run {run.run_id}: {run.circuit} v{run.version}, {shown}{f' by {writer}' if live else ''}")
    say(", ".join(f"{count} {end}" for end, count in ends.most_common()))
    spent = run.spent
    say(
        f"{spent.dispatches} dispatches, {spent.tokens} tokens, {spent.money:.2f} money, "
        f"{spent.seconds:.1f} s, {refused} answers refused"
    )
    notable = [line for line in cases if line.status == "stuck" or line.status == "open"]
    table(
        ("CASE", "STATUS", "STEP", "WHY"),
        ((each.case_id, each.status, each.step, each.state.reason) for each in notable[:_SHOWN]),
    )
    if len(notable) > _SHOWN:
        say(f"… and {len(notable) - _SHOWN} more; --json lists all")
    for line in advice("stopped" if shown == "interrupted" else shown, run.run_id):
        say(line)


@app.command()
def logs(
    run_id: RunId = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on as it grows.")] = False,
    case: Annotated[str, typer.Option("--case", help="Only this case.")] = "",
    db: Db = None,
    json: Json = False,
) -> None:
    """The journal: every decision, in order. With -f and --json a line is one JSON object."""
    from interlock import wiring
    from interlock.store.database import reading
    from interlock.store.history import lines_since
    from interlock.store.lock import writer_of
    from interlock.store.runs import find_run

    path = wiring.database(Path(), db)
    with reading(path) as connection:
        run = find_run(connection, run_id)
        lines = lines_since(connection, run.run_id, 0, case)
        if json and not follow:
            document({"run_id": run.run_id, "entries": [_line_fields(line) for line in lines]})
            return
        while True:
            for line in lines:
                _say_line(line, json=json)
            working = writer_of(path) is not None
            if not follow or (not working and not lines):
                return
            sys.stdout.flush()
            seq = lines[-1].seq if lines else 0
            time.sleep(_POLL)
            lines = lines_since(connection, run.run_id, seq, case)


def _say_line(line: "Line", *, json: bool) -> None:
    if json:
        record = {"type": "decision", **_line_fields(line)}
        sys.stdout.write(msgspec.json.encode(record).decode() + "\n")
        return
    decision = line.decision
    target = decision.to or f"{decision.status}: {decision.reason}"
    say(
        f"{clock_time(line.at)}  {line.case_id}  {decision.step}#{decision.attempt} "
        f"{decision.signal} -> {target}  [{decision.rule or '-'}]  dispatch {line.dispatch_id}"
    )


def _line_fields(line: "Line") -> dict[str, Any]:
    fields: dict[str, Any] = msgspec.to_builtins(line)
    fields["decision"] = msgspec.structs.asdict(line.decision)
    return fields


def _run_fields(run: Any) -> dict[str, Any]:
    fields: dict[str, Any] = msgspec.structs.asdict(run)
    del fields["text"]
    fields["spent"] = msgspec.structs.asdict(run.spent)
    return fields


def _case_fields(line: Any) -> dict[str, Any]:
    fields = {"case_id": line.case_id, "status": line.status, "step": line.step}
    return {**fields, "dispatch_id": line.dispatch_id, **msgspec.structs.asdict(line.state)}
