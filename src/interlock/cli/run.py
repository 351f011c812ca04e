"""Verbs that work on runs: run, resume, stop; and save, for answers by hand."""

import hashlib
import os
import signal
import socket
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import msgspec
import typer

from interlock.cli.app import ExitCode, app
from interlock.cli.options import (
    Agents,
    BatchSize,
    Dispatch,
    Limited,
    Limits,
    New,
    Parallel,
    RateLimitPolicy,
    Root,
    RunFlags,
    Slots,
    Wait,
    Watching,
    files_of,
    merge_config,
    read_thresholds,
)
from interlock.cli.output import (
    CircuitName,
    Db,
    Json,
    RunId,
    Sets,
    counted,
    document,
    open_project,
    say,
    tell,
)
from interlock.system.errors import StateError

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from interlock.api.project import Project
    from interlock.api.work import RunResult
    from interlock.journal.runs import Run
    from interlock.runtime.agent_pool import AgentPool

_OWN_REPORTS = {
    "delivery": "interlock.cli.delivery",
    "epic": "interlock.cli.epic",
    "rca": "interlock.cli.rca",
}
"""Where circuits whose work is shown and reported in a way of its own are resumed."""
_EXITS = {
    "done": ExitCode.DONE,
    "unhealthy": ExitCode.UNHEALTHY,
    "waiting": ExitCode.WAITING,
    "budget": ExitCode.BUDGET,
    "rate-limited": ExitCode.RATE_LIMITED,
}


@app.command()
def run(
    circuit: CircuitName,
    cases: Annotated[
        Path, typer.Option("--cases", metavar="FILE", help="A JSON object per line, with an id.")
    ],
    agent: Agents = None,
    slots: Slots = None,
    budget: Limits = None,
    parallel: Parallel = None,
    sets: Sets = None,
    new: New = False,
    dispatch: Dispatch = None,
    root: Root = None,
    watch: Watching = None,
    batch_size: BatchSize = None,
    wait: Wait = False,
    on_limit: Limited = RateLimitPolicy.WAIT,
    db: Db = None,
    json: Json = False,
) -> None:
    """Run cases through a circuit. Run again after a stop or crash, it goes on where it was."""
    from interlock.api.circuits import Circuit
    from interlock.api.work import load_circuit, work_on_run
    from interlock.cli.circuits import refuse_unsound
    from interlock.runtime.circuits import read_cases

    project = open_project(db)
    own = Circuit.load(circuit, project.path)
    changed, changes = own.with_thresholds(project.settings.thresholds, read_thresholds(sets or ()))
    refuse_unsound(changed.source, own.source.circuit)
    new_cases, content = read_cases(cases)
    kind = msgspec.json.encode([changed.name, changes], order="sorted")
    flags = RunFlags(agent, slots, budget, parallel, files_of(dispatch, root, watch, batch_size))
    config = merge_config(project.new_config(changed.name, changes), flags)
    config = msgspec.structs.replace(config, input=hashlib.sha256(kind + content).hexdigest())
    pool = project.build_pool(changed.source.circuit, config)
    with project.write() as connection:
        found, existed = project.begin_or_find(
            connection, own.bundle, new_cases, config, name=str(cases), new=new
        )
        if existed:
            _tell_resumed(found.run_id, msgspec.json.encode(own.bundle).decode() != found.text)
            pool = project.build_pool(load_circuit(found), config)
        result = work_on_run(
            connection,
            found,
            pool,
            display=project.display,
            wait_for_humans=wait,
            wait_for_limits=on_limit == RateLimitPolicy.WAIT,
        )
        _report(connection, result, json=json)


@app.command()
def resume(
    run_id: RunId = None,
    agent: Agents = None,
    slots: Slots = None,
    budget: Limits = None,
    parallel: Parallel = None,
    dispatch: Dispatch = None,
    root: Root = None,
    watch: Watching = None,
    batch_size: BatchSize = None,
    wait: Wait = False,
    on_limit: Limited = RateLimitPolicy.WAIT,
    db: Db = None,
    json: Json = False,
) -> None:
    """Go on with an unfinished run. It was stopped, killed, waits or is out of budget."""
    from interlock.api.work import work_on_run
    from interlock.journal.runs import find_run

    project = open_project(db)
    flags = RunFlags(agent, slots, budget, parallel, files_of(dispatch, root, watch, batch_size))
    with project.read() as connection:
        found = find_run(connection, run_id)
    if found.circuit in _OWN_REPORTS:
        own = import_module(_OWN_REPORTS[found.circuit])
        own.resume_run(project, found.run_id, flags, wait=wait, on_limit=on_limit, json=json)
        return
    with project.write() as connection:
        found, pool = take_up(project, connection, found.run_id, flags)
        result = work_on_run(
            connection,
            found,
            pool,
            display=project.display,
            wait_for_humans=wait,
            wait_for_limits=on_limit == RateLimitPolicy.WAIT,
        )
        _report(connection, result, json=json)


def take_up(
    project: "Project", connection: "Connection", run_id: int, flags: RunFlags
) -> "tuple[Run, AgentPool]":
    """An unfinished run with what the flags change about it, and who answers it now."""
    from interlock.api.work import load_circuit
    from interlock.journal.runs import FINISHED, find_run, set_options
    from interlock.runtime.settings import RunConfig

    found = find_run(connection, run_id)
    if found.status in FINISHED:
        raise StateError(f"run {found.run_id} is over ({found.status}); there is nothing to do")
    config = merge_config(msgspec.convert(found.options, RunConfig), flags)
    pool = project.build_pool(load_circuit(found), config)
    set_options(connection, run_id, msgspec.to_builtins(config))
    return find_run(connection, run_id), pool


def _tell_resumed(run_id: int, changed: bool) -> None:
    notice = f"going on with run {run_id}, which is unfinished (--new begins another)"
    if changed:
        notice += "; the circuit has changed since, the run keeps the one it began with"
    tell(notice)


def _report(connection: "Connection", result: "RunResult", *, json: bool) -> None:
    """Say how a run stands, and leave with its exit code."""
    from interlock.journal.history import compute_digest, count_ends
    from interlock.journal.runs import find_run

    run_id = result.run_id
    spent = find_run(connection, run_id).spent
    ends = count_ends(connection, run_id)
    if json:
        fields = {
            "run_id": run_id,
            "status": result.status,
            "tally": msgspec.to_builtins(result.counts),
        }
        fields |= {"ends": dict(ends), "spent": msgspec.structs.asdict(spent)}
        document(fields | {"digest": compute_digest(connection, run_id)})
        exit_with(result)
    shown = ", ".join(f"{count} {end}" for end, count in ends.most_common())
    cost = counted(spent.dispatches, "dispatch", "dispatches")
    say(f"run {run_id}: {result.status}; {shown}; {cost}")
    for line in result.written_out:
        say(line)
    if not result.written_out or result.counts.questions > len(result.written_out):
        for line in advice(result.status, run_id):
            say(line)
    exit_with(result)


def advice(status: str, run_id: int) -> list[str]:
    """What to do next, where there is something to do."""
    return {
        "waiting": [f"a human is asked: 'interlock inbox', then 'interlock resume {run_id}'"],
        "rate-limited": [f"'interlock resume {run_id}' goes on when the limit is over"],
        "budget": [f"the budget is spent: 'interlock resume {run_id} --budget …' goes on"],
        "stopped": [f"'interlock resume {run_id}' goes on"],
        "unhealthy": [f"'interlock status {run_id}' shows which cases need a look"],
    }.get(status, [])


def exit_with(result: "RunResult") -> NoReturn:
    """End the command with the exit code of the work."""
    stopped = 128 + (result.stopped_by or signal.SIGTERM)
    raise typer.Exit(stopped if result.status == "stopped" else _EXITS[result.status])


@app.command()
def stop(
    db: Db = None,
    now: Annotated[bool, typer.Option("--now", help="Do not wait for answers.")] = False,
    json: Json = False,
) -> None:
    """Ask the process at work to stop. What it has is kept; resume goes on."""
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
        tell(f"{writer} has just ended by itself")
    except PermissionError:
        raise StateError(f"{writer} belongs to another user, who alone can stop it") from None
    if json:
        document({"pid": writer.pid, "host": writer.host, "now": now})
    else:
        say(f"asked {writer} to stop{' at once' if now else ''}")


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
    """Save the answer to a case's open step. The run takes it when it works or is resumed."""
    from interlock.api.manual import save_artifact
    from interlock.journal.history import find_case

    project = open_project(db)
    with project.read() as connection:
        case = find_case(connection, case_id, run_id)
        asked, left = save_artifact(connection, case, file)
    if json:
        fields = {"run_id": case.run_id, "case_id": case_id, "step": asked.step}
        document(fields | {"dispatch_id": asked.dispatch_id, "artifact_path": str(left)})
        return
    then = "the running process takes it"
    if not project.writer():
        then = f"'interlock resume {case.run_id}'"
    say(f"saved the answer of {case_id} to step {asked.step}; {then}")
