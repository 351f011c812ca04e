"""Begin a run, or continue one: programs, verbs, coordinators and packages all come through here.

The same input is the same run: without an id while it is unfinished, with an id for ever.
"""

import hashlib
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from interlock.api.circuits import Circuit
from interlock.api.work import (
    PATIENT,
    RunResult,
    SessionTerms,
    describe_run,
    load_circuit,
    work_on_run,
)
from interlock.carriers.contract import Carrier
from interlock.journal.connection import Connection, transaction
from interlock.journal.ownership import Ownership, check_free, leave_to_coordinators
from interlock.journal.runs import (
    FINISHED,
    NewCase,
    NewRun,
    find_newest_run,
    find_run,
    find_unfinished_run,
    set_options,
)
from interlock.journal.runs import Run as RunRecord
from interlock.runtime.agent_pool import AgentPool
from interlock.runtime.application import find_application
from interlock.runtime.circuits import parse_cases
from interlock.runtime.settings import RunConfig
from interlock.system.errors import StateError, UsageError

if TYPE_CHECKING:
    from interlock.api.project import Project

NOBODY: Mapping[str, Carrier] = {}


class RunRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The input of a run, before its agents are named."""

    circuit: Circuit
    """The circuit as the project's thresholds and the user's change it."""
    changes: Mapping[str, Any]
    """The thresholds that are not the circuit's own."""
    cases: Sequence[NewCase]
    source: str
    """Where the cases come from, for people."""
    digest: str
    """A digest of everything the run is started with."""
    id: str = ""
    """The name that the run is known by; empty for one that is known by its input."""
    new: bool = False
    """Begin another run although an unfinished one has the same input."""


def read_request(
    circuit: Circuit,
    changes: Mapping[str, Any],
    lines: bytes,
    source: str,
    *,
    id: str = "",  # noqa: A002 - the word users know
    new: bool = False,
) -> RunRequest:
    """Read the cases of a run, a JSON object per line; SourceError for what is no case."""
    cases = parse_cases(lines, source)
    kind = msgspec.json.encode([circuit.name, changes], order="sorted")
    digest = hashlib.sha256(kind + lines).hexdigest()
    return RunRequest(
        circuit=circuit,
        changes=changes,
        cases=cases,
        source=source,
        digest=digest,
        id=id,
        new=new,
    )


class OpenRun(NamedTuple):
    """A run that is written down, its agents, and whether it existed before."""

    run: RunRecord
    pool: AgentPool
    existed: bool


def configure(project: "Project", request: RunRequest) -> RunConfig:
    """Return the configuration that the run begins with: that of the same run, if it is unfinished.

    A run keeps its agents, slots and limits until somebody changes them.
    """
    config = msgspec.structs.replace(
        project.new_config(request.circuit.name, dict(request.changes)),
        id=request.id,
        input=request.digest,
    )
    if request.new or not project.has_database:
        return config
    with project.read() as connection:
        run = find_begun(connection, config)
    if run is None or run.status in FINISHED:
        return config
    return msgspec.convert(run.options, RunConfig)


def begin(
    project: "Project",
    connection: Connection,
    request: RunRequest,
    config: RunConfig,
    given: Mapping[str, Carrier] = NOBODY,
) -> OpenRun:
    """Write a run down, or find the one with the same input; `given` carriers answer."""
    run = None if request.new else find_begun(connection, config)
    if run is not None:
        if run.status not in FINISHED:
            check_free(connection, run.run_id)
            kept = msgspec.convert(run.options, RunConfig).thresholds
            now = msgspec.structs.replace(config, thresholds=kept)
            set_options(connection, run.run_id, msgspec.to_builtins(now))
            run = find_run(connection, run.run_id)
        return OpenRun(run, project.build_pool(load_circuit(run), config, given), True)
    circuit = request.circuit.bundle.open().circuit.with_thresholds(config.thresholds)
    pool = project.build_pool(circuit, config, given)
    new = NewRun(
        circuit=circuit,
        text=request.circuit.bundle.encode(),
        source=request.source,
        fingerprint=_build_fingerprint(config),
        options=msgspec.to_builtins(config),
        at=project.clock.now() if project.clock else time.time(),
    )
    run_id = find_application(circuit.name).begin(connection, new, request.cases)
    return OpenRun(find_run(connection, run_id), pool, False)


def go_on(
    project: "Project",
    connection: Connection,
    run_id: int,
    change: Callable[[RunConfig], RunConfig],
    *,
    given: Mapping[str, Carrier] = NOBODY,
    claimed: Ownership | None = None,
) -> OpenRun:
    """Open an unfinished run again, with its configuration changed; StateError if it is over."""
    run = find_run(connection, run_id)
    check_free(connection, run_id, claimed)
    if run.status in FINISHED:
        raise StateError(f"run {run.run_id} is over ({run.status}); there is nothing to do")
    config = change(msgspec.convert(run.options, RunConfig))
    pool = project.build_pool(load_circuit(run), config, given)
    with transaction(connection) as raw:
        if claimed is not None:
            claimed.check(raw)  # by now another may have it, and its options may have changed
        set_options(connection, run_id, msgspec.to_builtins(config))
    return OpenRun(find_run(connection, run_id), pool, True)


def work_here(
    project: "Project",
    connection: Connection,
    opened: OpenRun,
    *,
    detach: bool = False,
    terms: SessionTerms = PATIENT,
) -> RunResult:
    """Work on an open run in this thread; with `detach`, leave it to coordinators instead."""
    if not detach:
        return work_on_run(connection, opened.run, opened.pool, terms, display=project.display)
    at = project.clock.now() if project.clock else time.time()
    leave_to_coordinators(connection, opened.run.run_id, at)
    return describe_run(connection, find_run(connection, opened.run.run_id))


def check_detach(project: "Project") -> None:
    """Raise UsageError if no coordinator can work on runs of the project's database."""
    if isinstance(project.db, Path):
        raise UsageError(
            f"--detach leaves a run to coordinators, which need PostgreSQL; {project.db} is a file"
        )


def find_begun(connection: Connection, config: RunConfig) -> RunRecord | None:
    """Return the run with the same input; StateError if its id names another input."""
    mark = _build_fingerprint(config)
    find = find_newest_run if config.id else find_unfinished_run
    found = find(connection, mark)
    if found is None:
        return None
    run = find_run(connection, found)
    if config.id and msgspec.convert(run.options, RunConfig).input != config.input:
        raise StateError(
            f"run {config.id!r} was started with another circuit, other thresholds or "
            "cases; use another id for them"
        )
    return run


def find_by_id(connection: Connection, name: str) -> int | None:
    """Return the number of the run that was begun under this id."""
    return find_newest_run(connection, _digest_id(name))


def _build_fingerprint(config: RunConfig) -> str:
    return _digest_id(config.id) if config.id else config.input


def _digest_id(name: str) -> str:
    return hashlib.sha256(f"id\0{name}".encode()).hexdigest()
