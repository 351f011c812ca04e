"""Circuits with what is proven about them, and agents with how their answers came out."""

from pathlib import Path
from typing import Annotated, Any, Final

import msgspec
from litestar.params import Parameter

from interlock.api.agents import (
    AgentListing,
    AgentRecord,
    AskedAgent,
    list_agent_clis,
    list_alive,
    list_asked,
    list_records,
)
from interlock.api.circuits import Circuit, CircuitInfo, list_circuits, verify_once
from interlock.api.project import Project
from interlock.api.workers import WorkerStatus, list_workers
from interlock.carriers.status import AgentStatus
from interlock.engine.verify.finding import VerifyReport
from interlock.system.errors import NotFoundError
from interlock_web.api.routes import reading

_RUNS_LOOKED_AT: Final = 100


class CircuitList(msgspec.Struct, frozen=True):
    circuits: list[CircuitInfo]


class CircuitDetail(msgspec.Struct, frozen=True):
    """A circuit as its file defines it, and what was proven about it."""

    info: CircuitInfo
    table: dict[str, Any]
    sound: bool
    report: VerifyReport


class Agents(msgspec.Struct, frozen=True):
    installed: list[AgentListing]
    asked: list[AskedAgent]
    at_work: list[AgentStatus]
    records: list[AgentRecord]


class WorkerList(msgspec.Struct, frozen=True):
    workers: list[WorkerStatus]


@reading("/circuits", "Circuits", sync_to_thread=True)
def list_known(project: Project) -> CircuitList:
    """List every circuit that has a name, the project's own first."""
    return CircuitList(list_circuits(project.path))


@reading("/circuits/{name:str}", "One circuit", sync_to_thread=True)
def show_circuit(
    project: Project, name: Annotated[str, Parameter(max_length=200)]
) -> CircuitDetail:
    """Show a circuit's table, the findings of verify and the worst case."""
    known = {each.name: each for each in list_circuits(project.path)}
    if name not in known:  # a path, for instance: only what the project and packages have is shown
        raise NotFoundError(f"there is no circuit {name[:80]!r}; /api/v1/circuits lists them")
    circuit = Circuit.load(name, project.path)
    report = verify_once(circuit)
    return CircuitDetail(known[name], circuit.source.document.value, report.sound, report)


@reading("/agents", "Agents", sync_to_thread=True)
def list_agents(project: Project) -> Agents:
    """List the installed agents, the agents at work, and how the answers of each came out."""
    records: list[AgentRecord] = []
    asked: list[AskedAgent] = []
    if project.has_database:
        with project.read() as connection:
            records = list_records(connection, runs=_RUNS_LOOKED_AT)
            asked = list_asked(connection, project.db)
    installed = list_agent_clis(project.path, versions=False)
    return Agents(installed, asked, list_alive(project.db), records)


@reading("/workers", "Workers", sync_to_thread=True)
def list_all_workers(project: Project) -> WorkerList:
    """List the workers of a PostgreSQL database on all hosts; a file has none."""
    is_file = isinstance(project.db, Path) or not project.has_database
    return WorkerList([] if is_file else list_workers(project.db))


HANDLERS: Final = (list_known, show_circuit, list_agents, list_all_workers)
