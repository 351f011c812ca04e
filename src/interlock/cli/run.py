"""Verbs that work: run and resume."""

import hashlib
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

from interlock.api.project import (
    AgentPool,
    Agents,
    Limited,
    Limits,
    Parallel,
    RateLimitPolicy,
    RunConfig,
    Slots,
    crew_of,
    merged,
    open_run,
    usual_options,
)
from interlock.api.sitting import RunResult, sit
from interlock.cli.app import app
from interlock.cli.options import BatchSize, Dispatch, Root, Watching, files_of
from interlock.cli.show import CircuitName, Db, Json, RunId, Sets, counted, document, say, tell
from interlock.system.errors import StateError

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from interlock.engine.circuit_file import CircuitSource


New = Annotated[bool, typer.Option("--new", help="Begin anew even if such a run is unfinished.")]
Wait = Annotated[bool, typer.Option("--wait", help="Stay and wait for humans instead of exit 4.")]


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
    from interlock.cli.circuits import refuse_unsound
    from interlock.journal.database import writing
    from interlock.journal.runs import find_run, unfinished_run
    from interlock.runtime.apps import beginning
    from interlock.runtime.circuits import find_circuit, read_cases
    from interlock.runtime.settings import database, read_settings

    project = Path()
    usual = read_settings(project)
    path = database(project, db)
    bundle = find_circuit(circuit, project)
    own = bundle.open()
    written, changes = changed(own, usual.thresholds, sets or [])
    refuse_unsound(written, own.circuit)
    new_cases, content = read_cases(cases)
    files = files_of(dispatch, root, watch, batch_size)
    options = merged(usual_options(usual, changes), agent, slots, budget, parallel, files)
    crew = crew_of(written.circuit, options, path)
    text = msgspec.json.encode(bundle).decode()
    kind = msgspec.json.encode([written.circuit.name, changes], order="sorted")
    mark = hashlib.sha256(kind + content).hexdigest()
    with writing(path) as connection:
        run_id = None if new else unfinished_run(connection, mark)
        if run_id is None:
            run_id = beginning(written.circuit.name)(
                connection,
                written.circuit,
                text,
                new_cases,
                source=str(cases),
                fingerprint=mark,
                options=msgspec.to_builtins(options),
                at=time.time(),
            )
        else:
            crew = _taken_up(connection, run_id, options, path, text)
        sat = sit(connection, find_run(connection, run_id), crew, wait=wait, on_limit=on_limit)
        _report(connection, run_id, sat, json=json)


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
    from interlock.agents.wiring_files import DELIVERY
    from interlock.journal.database import reading, writing
    from interlock.journal.runs import FINISHED, find_run
    from interlock.runtime.settings import database

    path = database(Path(), db)
    with reading(path) as connection:
        find_run(connection, run_id)
    with writing(path) as connection:
        found = find_run(connection, run_id)
        if found.status in FINISHED:
            raise StateError(f"run {found.run_id} is over ({found.status}); there is nothing to do")
        before = msgspec.convert(found.options, RunConfig)
        files = files_of(dispatch, root, watch, batch_size)
        options = merged(before, agent, slots, budget, parallel, files)
        crew = _taken_up(connection, found.run_id, options, path)
        if found.circuit == DELIVERY:
            from interlock.cli.delivery import RunOptions, work_on

            manner = RunOptions(wait=wait, on_limit=on_limit, json=json)
            work_on(connection, found.run_id, crew, path, manner)
            return
        sat = sit(
            connection, find_run(connection, found.run_id), crew, wait=wait, on_limit=on_limit
        )
        _report(connection, found.run_id, sat, json=json)


def _taken_up(
    connection: "Connection", run_id: int, options: RunConfig, path: Path, text: str = ""
) -> "AgentPool":
    """A crew for a run that has begun, by its own circuit; a later `text` of it changes nothing."""
    from interlock.journal.runs import find_run, set_options

    found = find_run(connection, run_id)
    crew = crew_of(open_run(found), options, path)
    set_options(connection, run_id, msgspec.to_builtins(options))
    if text:
        notice = f"going on with run {run_id}, which is unfinished (--new begins another)"
        if text != found.text:
            notice += "; the circuit has changed since, the run keeps the one it began with"
        tell(notice)
    return crew


def changed(
    written: "CircuitSource", usual: "Mapping[str, Any]", words: list[str]
) -> "tuple[CircuitSource, dict[str, Any]]":
    """The circuit with the thresholds the project and the command line ask for, and those."""
    from interlock.cli.options import checked_thresholds, thresholds

    circuit = written.circuit
    known = {name: value for name, value in usual.items() if name in circuit.thresholds}
    changes = checked_thresholds(circuit, known) | thresholds(circuit, words)
    return msgspec.structs.replace(written, circuit=circuit.with_thresholds(changes)), changes


def _report(connection: "Connection", run_id: int, sat: RunResult, *, json: bool) -> None:
    """Say how a run stands, and leave with its exit code."""
    from interlock.journal.history import counts, digest_of
    from interlock.journal.runs import find_run

    spent = find_run(connection, run_id).spent
    ends = counts(connection, run_id)
    if json:
        fields = {"run_id": run_id, "status": sat.status, "tally": msgspec.to_builtins(sat.tally)}
        fields |= {"ends": dict(ends), "spent": msgspec.structs.asdict(spent)}
        document(fields | {"digest": digest_of(connection, run_id)})
        sat.leave()
    shown = ", ".join(f"{count} {end}" for end, count in ends.most_common())
    cost = counted(spent.dispatches, "dispatch", "dispatches")
    say(f"run {run_id}: {sat.status}; {shown}; {cost}")
    for line in sat.by_hand:
        say(line)
    if not sat.by_hand or sat.tally.questions > len(sat.by_hand):
        for line in advice(sat.status, run_id):
            say(line)
    sat.leave()


def advice(status: str, run_id: int) -> list[str]:
    """What to do next, where there is something to do."""
    return {
        "waiting": [f"a human is asked: 'interlock inbox', then 'interlock resume {run_id}'"],
        "rate-limited": [f"'interlock resume {run_id}' goes on when the limit is over"],
        "budget": [f"the budget is spent: 'interlock resume {run_id} --budget …' goes on"],
        "stopped": [f"'interlock resume {run_id}' goes on"],
        "unhealthy": [f"'interlock status {run_id}' shows which cases need a look"],
    }.get(status, [])
