"""Circuits with what is proven about them, and agents with how their answers came out."""

from pathlib import Path
from typing import Annotated, Any, Final

import msgspec
from litestar.params import Parameter

from interlock.api.agents import list_agent_clis, list_alive, list_asked, list_records
from interlock.api.circuits import Circuit, list_circuits, verify_once
from interlock.api.project import Project
from interlock.api.workers import list_workers
from interlock.system.errors import NotFoundError
from interlock_web.api.routes import reading

_RUNS_LOOKED_AT: Final = 100


class CircuitName(msgspec.Struct, frozen=True):
    name: str
    where: str
    """`project`, or `built-in`."""


class CircuitList(msgspec.Struct, frozen=True):
    circuits: list[CircuitName]


class FindingRecord(msgspec.Struct, frozen=True):
    id: str
    level: str
    message: str
    fix: str
    subject: str
    line: int


class StepRecord(msgspec.Struct, frozen=True):
    name: str
    role: str
    signals: list[str]


class RuleRecord(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    at: str
    to: str
    when: str
    why: str


class CircuitDetail(msgspec.Struct, frozen=True, kw_only=True):
    """A circuit, and what was proven about it."""

    name: str
    version: int
    where: str
    start: str
    steps: list[StepRecord]
    rules: list[RuleRecord]
    ends: dict[str, bool]
    """Each end, and whether it is a good one."""
    thresholds: dict[str, Any]
    sound: bool
    findings: list[FindingRecord]
    worst_case: int
    """The most dispatches that one case can cost."""
    worst_case_exact: bool


class InstalledAgent(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    title: str
    installed: bool
    login: str
    means: str
    """What it may do, in words."""


class LiveAgent(msgspec.Struct, frozen=True, kw_only=True):
    agent: str
    run_id: int
    case_id: str
    step: str
    liveness: str
    reasons: list[str]
    at: float


class AskedRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What an agent was asked in a run, and has not answered."""

    agent: str
    run_id: int
    roles: list[str]
    count: int
    since: float
    """When the oldest question was sent."""


class WorkerRecord(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    host: str
    state: str
    """`ready`, `draining`, or `dead`."""
    agents: dict[str, str]
    """By their roles."""
    labels: list[str]
    slots: int
    busy: int
    silent: float
    """Seconds since it was last heard."""
    started_at: float


class WorkerList(msgspec.Struct, frozen=True):
    workers: list[WorkerRecord]


class AgentScore(msgspec.Struct, frozen=True, kw_only=True):
    """How the answers of an agent came out in the newest runs."""

    agent: str
    roles: list[str]
    answers: int
    failed: int
    refused: int
    tokens: int
    money: float
    seconds: float


class Agents(msgspec.Struct, frozen=True, kw_only=True):
    installed: list[InstalledAgent]
    asked: list[AskedRecord]
    at_work: list[LiveAgent]
    records: list[AgentScore]


@reading("/circuits", "Circuits", sync_to_thread=True)
def list_known(project: Project) -> CircuitList:
    """Every circuit that can be named, the project's own first."""
    return CircuitList([CircuitName(each.name, each.where) for each in list_circuits(project.path)])


@reading("/circuits/{name:str}", "One circuit", sync_to_thread=True)
def show_circuit(
    project: Project, name: Annotated[str, Parameter(max_length=200)]
) -> CircuitDetail:
    """Its steps and rules, the findings of verify and the worst case."""
    known = {each.name: each for each in list_circuits(project.path)}
    if name not in known:  # a path, for instance: only what the project and packages have is shown
        raise NotFoundError(f"there is no circuit {name[:80]!r}; /api/v1/circuits lists them")
    circuit = Circuit.load(name, project.path)
    table, report = circuit.source.circuit, verify_once(circuit)
    return CircuitDetail(
        name=table.name,
        version=table.version,
        where=known[name].where,
        start=table.start,
        steps=[
            StepRecord(step.name, step.role, list(step.signals)) for step in table.steps.values()
        ],
        rules=[
            RuleRecord(
                id=rule.id,
                at=str(rule.at),
                to=rule.to or "",
                when=rule.guard.text if rule.guard else "",
                why=rule.why,
            )
            for rule in table.rules
        ],
        ends={end: bool(good) for end, good in table.ends.items()},
        thresholds=dict(table.thresholds),
        sound=report.sound,
        findings=[
            FindingRecord(each.id, each.level, each.message, each.fix, each.subject, each.line)
            for each in report.findings
        ],
        worst_case=report.worst_case.dispatches,
        worst_case_exact=report.worst_case.exact,
    )


@reading("/agents", "Agents", sync_to_thread=True)
def list_agents(project: Project) -> Agents:
    """Which are installed, who is at work, and how the answers of each came out."""
    records: list[Any] = []
    asked: list[Any] = []
    if project.has_database:
        with project.read() as connection:
            records = list_records(connection, runs=_RUNS_LOOKED_AT)
            asked = list_asked(connection, project.db)
    return Agents(
        installed=[
            InstalledAgent(
                name=each.name,
                title=each.title,
                installed=bool(each.program),
                login=each.login,
                means=each.means,
            )
            for each in list_agent_clis(project.path, versions=False)
        ],
        asked=[
            AskedRecord(
                agent=each.agent,
                run_id=each.run_id,
                roles=list(each.roles),
                count=each.count,
                since=each.since,
            )
            for each in asked
        ],
        at_work=[
            LiveAgent(
                agent=each.agent,
                run_id=each.run_id,
                case_id=each.case_id,
                step=each.step,
                liveness=each.word,
                reasons=list(each.reasons),
                at=each.at,
            )
            for each in list_alive(project.db)
        ],
        records=[
            AgentScore(
                agent=each.agent,
                roles=list(each.roles),
                answers=each.answers,
                failed=each.failed,
                refused=each.refused,
                tokens=each.tokens,
                money=each.money,
                seconds=each.seconds,
            )
            for each in records
        ],
    )


@reading("/workers", "Workers", sync_to_thread=True)
def list_all_workers(project: Project) -> WorkerList:
    """Those of a PostgreSQL database, on all hosts; a file has none."""
    found = (
        [] if isinstance(project.db, Path) or not project.has_database else list_workers(project.db)
    )
    return WorkerList(
        [
            WorkerRecord(
                name=each.name,
                host=each.host,
                state=each.state,
                agents=dict(each.agents),
                labels=list(each.labels),
                slots=each.slots,
                busy=len(each.dispatches),
                silent=each.silent,
                started_at=each.started_at,
            )
            for each in found
        ]
    )


HANDLERS: Final = (list_known, show_circuit, list_agents, list_all_workers)
