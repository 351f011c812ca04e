"""Verbs that work on runs: run, resume, stop; and save, for answers by hand."""

import os
import signal
import socket
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import msgspec
import typer

from interlock.cli.app import app, exit_with
from interlock.cli.options import (
    DispatchFlags,
    New,
    WaitFlags,
    expand_options,
    read_thresholds,
)
from interlock.cli.output import (
    CircuitName,
    Db,
    Json,
    Log,
    LogFormat,
    Metrics,
    RunId,
    Sets,
    echo,
    echo_json,
    echo_note,
    open_project,
    start_observing,
)
from interlock.cli.verbs import find_resume
from interlock.system.errors import StateError
from interlock.system.text import plural

if TYPE_CHECKING:
    from interlock.api.circuits import Circuit
    from interlock.api.project import Project
    from interlock.api.records import RunRecord
    from interlock.api.work import RunResult

Detach = Annotated[
    bool,
    typer.Option("--detach", help="Leave the work to coordinators; needs PostgreSQL."),
]


@app.command()
@expand_options("flags", DispatchFlags)
@expand_options("waits", WaitFlags)
def run(
    circuit: CircuitName,
    cases: Annotated[
        Path, typer.Option("--cases", metavar="FILE", help="A JSON object per line, with an id.")
    ],
    flags: DispatchFlags,
    waits: WaitFlags,
    sets: Sets = None,
    new: New = False,
    detach: Detach = False,
    metrics: Metrics = "",
    log: Log = LogFormat.TEXT,
    db: Db = None,
    json: Json = False,
) -> None:
    """Run cases through a circuit. Run it again after a stop or crash to continue."""
    from interlock.api.circuits import Circuit
    from interlock.api.start import begin, check_detach, configure, read_request, work_here
    from interlock.api.work import SessionTerms
    from interlock.runtime.circuits import read_case_file

    start_observing(log, metrics)
    project = open_project(db)
    if detach:
        check_detach(project)
    own = Circuit.load(circuit, project.path)
    changed, changes = project.prepare_circuit(own, read_thresholds(sets or ()))
    request = read_request(changed, changes, read_case_file(cases), str(cases), new=new)
    config = flags.change_config(configure(project, request))
    project.build_pool(changed.source.circuit, config)  # a missing agent leaves no trace
    with project.write() as connection:
        opened = begin(project, connection, request, config)
        if opened.existed:
            _note_resumed(opened.run, own)
        terms = SessionTerms(**waits.choices)
        result = work_here(project, connection, opened, detach=detach, terms=terms)
    _report(project, result, json=json)


def _note_resumed(run: "RunRecord", own: "Circuit") -> None:
    notice = f"continuing run {run.run_id}, which is unfinished (--new starts another)"
    if own.bundle.encode() != run.text:
        notice += "; the circuit has changed since, the run keeps the one it began with"
    echo_note(notice)


@app.command()
@expand_options("flags", DispatchFlags)
@expand_options("waits", WaitFlags)
def resume(
    flags: DispatchFlags,
    waits: WaitFlags,
    run_id: RunId = None,
    detach: Detach = False,
    metrics: Metrics = "",
    log: Log = LogFormat.TEXT,
    db: Db = None,
    json: Json = False,
) -> None:
    """Continue a run. It may have been stopped or killed, be waiting, or be out of budget."""
    from interlock.api.start import check_detach, go_on, work_here
    from interlock.api.work import SessionTerms

    start_observing(log, metrics)
    project = open_project(db)
    if detach:
        check_detach(project)
    found = project.run(run_id)
    if (resume_run := find_resume(found.circuit)) is not None:
        resume_run(project, found.number, flags, waits, json=json)
        return
    with project.write() as connection:
        opened = go_on(project, connection, found.number, flags.change_config)
        terms = SessionTerms(**waits.choices)
        result = work_here(project, connection, opened, detach=detach, terms=terms)
    _report(project, result, json=json)


def _report(project: "Project", result: "RunResult", *, json: bool) -> NoReturn:
    """Print the state of a run, and exit with its code."""
    run_id, spent = result.run_id, result.spent
    if json:
        from interlock.api.inspect import read_digest

        fields = {
            "run_id": run_id,
            "status": result.status,
            "tally": msgspec.to_builtins(result.counts),
            "ends": result.ends,
            "spent": msgspec.structs.asdict(spent),
            "digest": read_digest(project.db, run_id),
        }
        echo_json(fields)
        exit_with(result)
    cost = plural(spent.dispatches, "dispatch", "dispatches")
    echo(f"run {run_id}: {result.status}; {format_ends(result.ends)}; {cost}")
    for line in result.written_out:
        echo(line)
    if not result.written_out or result.counts.questions > len(result.written_out):
        for line in list_next_steps(result.status, run_id):
            echo(line)
    exit_with(result)


def format_ends(ends: Mapping[str, int]) -> str:
    """Return the number of cases per end, most first."""
    return ", ".join(f"{count} {end}" for end, count in Counter(ends).most_common())


def list_next_steps(status: str, run_id: int) -> list[str]:
    """Return what to do next, if there is anything."""
    return {
        "running": [f"coordinators continue it: 'interlock logs {run_id} -f' follows"],
        "waiting": [f"a human is asked: 'interlock inbox', then 'interlock resume {run_id}'"],
        "rate-limited": [f"'interlock resume {run_id}' continues when the limit is over"],
        "budget": [f"the budget is spent: 'interlock resume {run_id} --budget …' continues"],
        "stopped": [f"'interlock resume {run_id}' continues"],
        "unhealthy": [f"'interlock status {run_id}' shows which cases need a look"],
    }.get(status, [])


@app.command()
def stop(
    db: Db = None,
    now: Annotated[bool, typer.Option("--now", help="Do not wait for answers.")] = False,
    json: Json = False,
) -> None:
    """Ask the running process to stop. Nothing is lost; resume continues."""
    project = open_project(db)
    writer = project.writer()
    if writer is None:
        raise StateError(f"nobody works on {project.db}, so there is nothing to stop")
    if writer.host != socket.gethostname():
        raise StateError(f"{project.db} is worked on by {writer}; stop it there")
    try:
        os.kill(writer.pid, signal.SIGTERM)
        if now:
            # The kernel may merge two pending signals of one kind, but not two kinds.
            os.kill(writer.pid, signal.SIGINT)
    except ProcessLookupError:
        echo_note(f"{writer} has just ended by itself")
    except PermissionError:
        raise StateError(f"{writer} belongs to another user, who alone can stop it") from None
    if json:
        echo_json({"pid": writer.pid, "host": writer.host, "now": now})
    else:
        echo(f"asked {writer} to stop{' at once' if now else ''}")


@app.command()
def save(
    case_id: Annotated[str, typer.Argument(metavar="CASE", help="The case, see status.")],
    file: Annotated[
        Path, typer.Option("-f", "--file", help="The artifact: JSON, with or without its wrapper.")
    ],
    run_id: Annotated[
        int | None, typer.Option("--run", help="The run; default the newest that has the case.")
    ] = None,
    db: Db = None,
    json: Json = False,
) -> None:
    """Save the answer to a case's open step. The run takes it at once, or when it is resumed."""
    from interlock.api.manual import save_answer

    project = open_project(db)
    saved = save_answer(project.db, case_id, run_id, file)
    if json:
        echo_json(saved)
        return
    then = "the running process takes it"
    if not project.writer():
        then = f"'interlock resume {saved.run_id}'"
    echo(f"saved the answer of {case_id} to step {saved.step}; {then}")
