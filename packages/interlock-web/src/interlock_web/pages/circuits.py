"""Circuits: drawn, with what verify finds and the worst case. Agents: installed, alive, spent."""

from pathlib import Path
from typing import Final

import msgspec
from litestar import Response, get

from interlock.api.agents import list_agent_clis, list_alive, list_asked, list_records
from interlock.api.circuits import Circuit, CircuitInfo, list_circuits, verify_once
from interlock.api.workers import WorkerStatus, list_workers
from interlock.engine.draw import draw_text
from interlock.system.errors import InterlockError, NotFoundError
from interlock_web.circuit_map import map_circuit
from interlock_web.window import Window

_RUNS_LOOKED_AT: Final = 100


class Listed(msgspec.Struct, frozen=True):
    """A circuit in the list, or why it cannot be read."""

    info: CircuitInfo
    steps: int = 0
    gates: int = 0
    rules: int = 0
    problem: str = ""


@get("/circuits", sync_to_thread=True)
def show_circuits(window: Window) -> Response[str]:
    found = [_read_listed(each, window.project.path) for each in list_circuits(window.project.path)]
    return window.render("circuits.html", title="Circuits", path="/circuits", circuits=found)


def _read_listed(info: CircuitInfo, project: Path) -> Listed:
    try:
        table = Circuit.load(info.name, project).source.circuit
    except InterlockError as error:
        return Listed(info, problem=str(error))
    gates = sum(step.gate for step in table.steps.values())
    return Listed(info, len(table.steps), gates, len(table.rules))


@get("/circuits/{name:str}", sync_to_thread=True)
def show_circuit(window: Window, name: str) -> Response[str]:
    known = {each.name: each for each in list_circuits(window.project.path)}
    if name not in known:  # a path, for instance: pages show what the project and packages have
        raise NotFoundError(f"there is no circuit {name[:80]!r}; 'interlock circuit list' has them")
    circuit = Circuit.load(name, window.project.path)
    return window.render(
        "circuit.html",
        title=f"Circuit {name}",
        path="/circuits",
        info=known[name],
        circuit=circuit.source.circuit,
        map=map_circuit(circuit.source.circuit),
        report=verify_once(circuit),
        table=draw_text(circuit.source.circuit),
    )


@get("/agents", sync_to_thread=True)
def show_agents(window: Window) -> Response[str]:
    project = window.project
    records, asked = [], []
    workers: list[WorkerStatus] | None = None
    if project.has_database:
        with project.read() as connection:
            records = list_records(connection, runs=_RUNS_LOOKED_AT)
            asked = list_asked(connection, project.db)
        workers = list_workers(project.db) if not isinstance(project.db, Path) else None
    return window.render(
        "agents.html",
        title="Agents",
        path="/agents",
        installed=list_agent_clis(project.path, versions=False),
        alive=list_alive(project.db),
        asked=asked,
        workers=workers,
        records=records,
        runs=_RUNS_LOOKED_AT,
    )
