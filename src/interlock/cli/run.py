"""Verbs that work: run and resume."""

import asyncio
import hashlib
import signal
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

from interlock.cli.door import Exit, app
from interlock.cli.filing import BatchSize, Dispatch, Root, Watching, files_of, written_out
from interlock.cli.show import CircuitName, Db, Json, RunId, Sets, counted, document, say, tell
from interlock.core.errors import SourceError, StateError

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from interlock.core.circuit import Circuit, Role
    from interlock.core.notation import Written
    from interlock.core.plan import Budget
    from interlock.dispatch.briefer import Gauge
    from interlock.dispatch.carrier import Carrier, Clock
    from interlock.runner.loop import Tally
    from interlock.store.runs import Run


Agents = Annotated[
    list[str] | None,
    typer.Option(
        "--agent",
        metavar="[ROLE=]AGENT",
        help="Who answers a role, or all: exec:COMMAND or script:FILE; may be repeated.",
    ),
]
Slots = Annotated[
    list[str] | None,
    typer.Option("--slots", metavar="ROLE=N", help="Dispatches of a role at once."),
]
Limits = Annotated[
    list[str] | None,
    typer.Option(
        "--budget",
        metavar="NAME=LIMIT",
        help="dispatches=N, tokens=N, money=X or time=2h; may be repeated.",
    ),
]
Parallel = Annotated[
    int | None,
    typer.Option("--parallel", metavar="N", min=1, help="Dispatches of all roles at once."),
]
New = Annotated[bool, typer.Option("--new", help="Begin anew even if such a run is unfinished.")]
Wait = Annotated[bool, typer.Option("--wait", help="Stay and wait for humans instead of exit 4.")]
_EXITS = {
    "done": Exit.DONE,
    "unhealthy": Exit.UNHEALTHY,
    "waiting": Exit.WAITING,
    "budget": Exit.BUDGET,
}


class Options(msgspec.Struct, frozen=True):
    """What a run was begun with, beside its circuit; a later sitting may change it."""

    agents: dict[str, str] = {}
    slots: dict[str, int] = {}
    budget: dict[str, str | int | float] = {}
    thresholds: dict[str, Any] = {}
    parallel: int | None = None
    files: dict[str, str | int] = {}


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
    db: Db = None,
    json: Json = False,
) -> None:
    """Run cases through a circuit. Run again after a stop or crash, it goes on where it was."""
    from interlock import wiring
    from interlock.cli.verdict import refuse_unsound
    from interlock.runner.casefile import read_cases
    from interlock.runner.library import find_circuit
    from interlock.store.database import writing
    from interlock.store.runs import begin_run, find_run, unfinished_run

    project = Path()
    usual = wiring.settings(project)
    path = wiring.database(project, db)
    bundle = find_circuit(circuit, project)
    written, changes = _changed(bundle.open(), usual.thresholds, sets or [])
    refuse_unsound(written)
    new_cases, content = read_cases(cases)
    options = _merged(
        Options(dict(usual.agents), dict(usual.slots), dict(usual.budget), changes, usual.parallel),
        *(agent, slots, budget, parallel),
        files_of(dispatch, root, watch, batch_size),
    )
    crew = _crew(written.circuit, options, path)
    text = msgspec.json.encode(bundle).decode()
    kind = msgspec.json.encode([written.circuit.name, changes], order="sorted")
    mark = hashlib.sha256(kind + content).hexdigest()
    with writing(path) as connection:
        run_id = None if new else unfinished_run(connection, mark)
        if run_id is None:
            run_id = begin_run(
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
        _sit(connection, find_run(connection, run_id), crew, wait=wait, json=json)


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
    db: Db = None,
    json: Json = False,
) -> None:
    """Go on with an unfinished run. It was stopped, killed, waits or is out of budget."""
    from interlock import wiring
    from interlock.store.database import reading, writing
    from interlock.store.runs import FINISHED, find_run

    path = wiring.database(Path(), db)
    with reading(path) as connection:
        find_run(connection, run_id)
    with writing(path) as connection:
        found = find_run(connection, run_id)
        if found.status in FINISHED:
            raise StateError(f"run {found.run_id} is over ({found.status}); there is nothing to do")
        before = msgspec.convert(found.options, Options)
        files = files_of(dispatch, root, watch, batch_size)
        options = _merged(before, agent, slots, budget, parallel, files)
        crew = _taken_up(connection, found.run_id, options, path)
        _sit(connection, found, crew, wait=wait, json=json)


def open_run(found: "Run") -> "Circuit":
    """The circuit a run was begun with, thresholds and prompts included."""
    from interlock.runner.library import Bundle

    bundle = msgspec.json.decode(found.text, type=Bundle)
    return bundle.open().circuit.with_thresholds(found.options.get("thresholds", {}))


def _taken_up(
    connection: "Connection", run_id: int, options: Options, path: Path, text: str = ""
) -> "Crew":
    """A crew for a run that has begun, by its own circuit; a later `text` of it changes nothing."""
    from interlock.store.runs import find_run, set_options

    found = find_run(connection, run_id)
    crew = _crew(open_run(found), options, path)
    set_options(connection, run_id, msgspec.to_builtins(options))
    if text:
        notice = f"going on with run {run_id}, which is unfinished (--new begins another)"
        if text != found.text:
            notice += "; the circuit has changed since, the run keeps the one it began with"
        tell(notice)
    return crew


def _changed(
    written: "Written", usual: "Mapping[str, Any]", words: list[str]
) -> "tuple[Written, dict[str, Any]]":
    """The circuit with the thresholds the project and the command line ask for, and those."""
    from interlock.cli.words import checked_thresholds, thresholds

    circuit = written.circuit
    known = {name: value for name, value in usual.items() if name in circuit.thresholds}
    changes = checked_thresholds(circuit, known) | thresholds(circuit, words)
    return msgspec.structs.replace(written, circuit=circuit.with_thresholds(changes)), changes


def _merged(
    before: Options,
    agent: list[str] | None,
    slots: list[str] | None,
    budget: list[str] | None,
    parallel: int | None,
    files: dict[str, str | int],
) -> Options:
    from interlock.cli.words import counts, pairs
    from interlock.wiring import split_agent

    limits: Mapping[str, str | int | float] = pairs(budget or (), "--budget")
    given = dict(split_agent(word) for word in agent or ())
    usual = before.agents
    if "dispatch" in files:
        if "" in given:
            raise SourceError("--dispatch is for roles without an agent, but --agent names all")
        usual = {role: spec for role, spec in usual.items() if role}
    return msgspec.structs.replace(
        before,
        agents=usual | given,
        files=before.files | files,
        slots=before.slots | counts(slots or (), "--slots"),
        budget={**before.budget, **limits},
        parallel=parallel or before.parallel,
    )


class Crew(msgspec.Struct, frozen=True):
    """Who answers, in how many places, at what cost: settled before a run is touched."""

    carriers: "Mapping[str, Carrier]"
    roles: "Mapping[str, Role]"
    parallel: int
    budget: "Budget"
    clock: "Clock"
    gauge: "Gauge"


def _crew(circuit: "Circuit", options: Options, path: Path) -> Crew:
    from interlock import wiring
    from interlock.cli.words import budget
    from interlock.dispatch.briefer import Gauge
    from interlock.runner.clock import RealClock

    clock, gauge = RealClock(), Gauge()
    limits = budget(options.budget)
    files = msgspec.convert(options.files, wiring.Files)
    specs = wiring.agents_by_role(circuit, options.agents, files.dispatch)
    filed = wiring.file_carrier(files, circuit, clock, gauge, limits.tokens or 0)
    return Crew(
        carriers=wiring.carriers(specs, path, clock, filed),
        roles=wiring.roles_with(circuit, options.slots),
        parallel=options.parallel or wiring.PARALLEL,
        budget=limits,
        clock=clock,
        gauge=gauge,
    )


def _sit(connection: "Connection", found: "Run", crew: Crew, *, wait: bool, json: bool) -> None:
    """Work on a run until it ends or waits, say how it stands, and leave with its exit code."""
    from interlock import wiring
    from interlock.cli.progress import progress
    from interlock.dispatch.briefer import Reading
    from interlock.runner.session import Sitting

    by_hand = wiring.by_hand(crew.carriers)
    with progress(crew.budget) as watch:
        sitting = Sitting(
            connection,
            found,
            wiring.with_patience(open_run(found), crew.carriers),
            crew.carriers,
            crew.clock,
            roles=crew.roles,
            parallel=crew.parallel,
            budget=crew.budget,
            by_hand=by_hand,
            wait_for_humans=wait,
            watch=watch,
        )
        crew.gauge.read = lambda: Reading(
            sitting.tally.cases, sitting.tally.ended + sitting.tally.stuck, sitting.spent.tokens
        )
        status = asyncio.run(sitting.work())
    left = list(written_out(connection, found, open_run(found), by_hand))
    _report(connection, found.run_id, status, sitting.tally, left, json=json)
    by = sitting.stopped_by
    raise typer.Exit(_EXITS[status] if status != "stopped" else 128 + (by or signal.SIGTERM))


def _report(
    connection: "Connection",
    run_id: int,
    status: str,
    tally: "Tally",
    left: list[str],
    *,
    json: bool,
) -> None:
    from interlock.store.history import counts, digest_of
    from interlock.store.runs import find_run

    spent = find_run(connection, run_id).spent
    ends = counts(connection, run_id)
    if json:
        fields = {"run_id": run_id, "status": status, "tally": msgspec.to_builtins(tally)}
        fields |= {"ends": dict(ends), "spent": msgspec.structs.asdict(spent)}
        document(fields | {"digest": digest_of(connection, run_id)})
        return
    shown = ", ".join(f"{count} {end}" for end, count in ends.most_common())
    cost = counted(spent.dispatches, "dispatch", "dispatches")
    say(f"run {run_id}: {status}; {shown}; {cost}")
    for line in left:
        say(line)
    if not left or tally.questions > len(left):
        for line in advice(status, run_id):
            say(line)


def advice(status: str, run_id: int) -> list[str]:
    """What to do next, where there is something to do."""
    return {
        "waiting": [f"a human is asked: 'interlock inbox', then 'interlock resume {run_id}'"],
        "budget": [f"the budget is spent: 'interlock resume {run_id} --budget …' goes on"],
        "stopped": [f"'interlock resume {run_id}' goes on"],
        "unhealthy": [f"'interlock status {run_id}' shows which cases need a look"],
    }.get(status, [])
