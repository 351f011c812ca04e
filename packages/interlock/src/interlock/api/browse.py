"""Read for pages: runs at a glance, a run with its cases, and costs.

Answers come from a few statements each, also for runs of ten thousand cases. `inspect` tells a
case's whole life, `inbox` what waits for people, `changes` what is new.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

import msgspec

from interlock.api.inspect import list_low_limits, list_paused_dispatches, list_rate_limits
from interlock.api.work import load_circuit
from interlock.carriers.queries import list_open_queries
from interlock.carriers.registry import agents_folder
from interlock.carriers.status import AgentStatus, read_agent_status
from interlock.engine.case import OPEN
from interlock.engine.circuit import HUMAN, Circuit
from interlock.engine.schedule import Spent
from interlock.journal.address import DatabaseAddress
from interlock.journal.browse import (
    CaseFilter,
    CostedCase,
    PlaceCount,
    RunGlance,
    SortKey,
    count_places,
    count_waiting,
    find_case_id,
    has_running,
    list_case_numbers,
    list_case_rows,
    list_glances,
)
from interlock.journal.connection import Connection
from interlock.journal.database import find_writers
from interlock.journal.history import find_case, list_open_dispatch_ids
from interlock.journal.journal import Pause
from interlock.journal.ownership import Writer, Writers
from interlock.journal.runs import FINISHED, Run, find_run
from interlock.journal.usage import sum_day_usage, sum_role_usage
from interlock.runtime.application import find_application
from interlock.runtime.case_overview import CaseOverview, Item, Passage
from interlock.runtime.settings import RunConfig, open_queries
from interlock.system.time import find_local_day, format_clock_time

__all__ = [
    "CaseFilter",
    "CaseLine",
    "CaseOverview",
    "CostedCase",
    "Item",
    "Passage",
    "PlaceCount",
    "RunGlance",
    "RunView",
    "SortKey",
    "count_places",
    "find_case",
    "find_case_id",
    "list_case_lines",
    "list_run_glances",
    "name_cases",
    "read_overview",
    "read_run_view",
    "read_today",
]


class CaseLine(msgspec.Struct, frozen=True):
    """A case with its agent, the agent's state, and the reason."""

    row: CostedCase
    agent: str
    word: str
    """`working`, `idle`, `human`, `rate-limited`, `queued`, `resting`, …; the case's end once it is
    over."""
    reason: str
    healthy: bool = True
    """True if the case came to a healthy end."""


class RunView(msgspec.Struct, frozen=True):
    """A run, and the steps at which its cases stand."""

    run: Run
    glance: RunGlance
    status: str
    """The run's status, or `interrupted` if the process that worked on it has died."""
    writer: Writer | None
    circuit: Circuit
    config: RunConfig
    places: tuple[PlaceCount, ...]
    low_limits: tuple[str, ...]
    rate_limits: Mapping[str, float]
    roles: Mapping[str, Spent]

    @property
    def is_over(self) -> bool:
        return self.status in FINISHED


def list_run_glances(
    db: DatabaseAddress, connection: Connection, *, limit: int, before: int = 0
) -> list[RunGlance]:
    """Return the newest runs, each with the status it has now."""
    writers = find_writers(db)
    return [
        msgspec.structs.replace(each, status=writers.find_status(each.run_id, each.status))
        for each in list_glances(connection, limit=limit, before=before)
    ]


def read_run_view(db: DatabaseAddress, connection: Connection, run_id: int, at: float) -> RunView:
    """Return a run as its page shows it."""
    run = find_run(connection, run_id)
    writers = find_writers(db)
    (glance,) = list_glances(connection, limit=1, only=[run_id])
    return RunView(
        run=run,
        glance=glance,
        status=writers.find_status(run_id, run.status),
        writer=_find_writer(connection, run, writers),
        circuit=load_circuit(run),
        config=msgspec.convert(run.options, RunConfig),
        places=tuple(count_places(connection, run_id)),
        low_limits=tuple(list_low_limits(connection, run, at)),
        rate_limits=list_rate_limits(connection, run_id, at),
        roles=sum_role_usage(connection, run_id),
    )


def _find_writer(connection: Connection, run: Run, writers: Writers) -> Writer | None:
    """Return the process that works on a run.

    A file has one writer for all of its runs, so another running run may have it.
    """
    if run.status in FINISHED:
        return None
    is_elsewhere = writers.of_all and run.status != "running" and has_running(connection)
    return None if is_elsewhere else writers.find(run.run_id)


def list_case_lines(
    db: DatabaseAddress,
    connection: Connection,
    view: RunView,
    wanted: CaseFilter,
    *,
    limit: int,
    offset: int = 0,
    at: float,
) -> tuple[list[CaseLine], int]:
    """Return some cases of a run, and how many there are in all."""
    run_id = view.run.run_id
    if wanted.text:
        named = tuple(_find_named(connection, view.run, wanted.text.lower()))
        wanted = msgspec.structs.replace(wanted, named=named)
    rows, total = list_case_rows(connection, run_id, wanted, limit=limit, offset=offset)
    agents = read_agent_status(agents_folder(db)) if view.status == "running" else []
    pauses = list_paused_dispatches(connection, run_id, at)
    ends = view.circuit.ends
    return describe_cases(view.status, view.config, ends, rows, agents, pauses, at), total


def describe_cases(
    status: str,
    config: RunConfig,
    ends: Mapping[str, bool],
    rows: Iterable[CostedCase],
    agents: Sequence[AgentStatus],
    pauses: Mapping[int, Pause],
    at: float,
) -> list[CaseLine]:
    """Describe the state of each case, and the reason."""
    alive = {each.dispatch_id: each for each in agents}
    return [
        _describe_end(row, ends)
        if row.status != OPEN
        else _describe_case(status, config, row, alive, pauses, at)
        for row in rows
    ]


def _describe_end(row: CostedCase, ends: Mapping[str, bool]) -> CaseLine:
    return CaseLine(row, "", row.end or row.status, row.reason, healthy=bool(ends.get(row.end)))


def _describe_case(
    status: str,
    config: RunConfig,
    row: CostedCase,
    alive: Mapping[int, AgentStatus],
    pauses: Mapping[int, Pause],
    at: float,
) -> CaseLine:
    agent = config.agents.get(row.role, "")
    if row.role not in ("", HUMAN):
        agent = agent or config.agents.get("", "")
    if row.dispatch_id is None:
        if status != "running":
            return CaseLine(row, agent, "resting", f"nobody works on the run ({status})")
        after = f"comes after {', '.join(row.needs[:3])}" if row.needs else "waits for its turn"
        return CaseLine(row, agent, "queued", after)
    if row.dispatch_id in pauses:
        until = format_clock_time(pauses[row.dispatch_id].until, at)
        return CaseLine(row, agent, "rate-limited", f"until {until}")
    if row.role == HUMAN and not agent:
        return CaseLine(row, "", "human", f"question {row.dispatch_id} waits for an answer")
    if status != "running":
        return CaseLine(row, agent, "resting", f"nobody works on the run ({status})")
    seen = alive.get(row.dispatch_id)
    if seen is not None:
        return CaseLine(row, seen.agent, seen.word, "; ".join(seen.reasons))
    return CaseLine(row, agent or row.role, "asked", f"waits for the {row.role}")


def _find_named(connection: Connection, run: Run, text: str) -> Iterator[int]:
    """Return the cases whose name, as people see it, has the text."""
    names = name_cases(connection, run, list_case_numbers(connection, run.run_id))
    return (number for number, name in names.items() if text in name.lower())


def name_cases(connection: Connection, run: Run, case_nos: Collection[int]) -> Mapping[int, str]:
    """Return what some cases of a run are about, where their ids say little."""
    return find_application(run.circuit).name_cases(connection, case_nos)


def read_overview(connection: Connection, run_id: int, case_no: int) -> CaseOverview | None:
    """Return what a person should know about a case, as its application tells it."""
    run = find_run(connection, run_id, brief=True)
    config = msgspec.convert(run.options, RunConfig).application_config
    return find_application(run.circuit).read_overview(connection, case_no, config)


def read_today(connection: Connection, at: float) -> Spent:
    """Return what all runs together have cost today."""
    return sum_day_usage(connection, *find_local_day(at))


def count_open_questions(db: DatabaseAddress, connection: Connection) -> int:
    """Return how many questions wait for people, those of agents too."""
    queries = list_open_queries(open_queries(db), list_open_dispatch_ids(connection))
    return count_waiting(connection) + len(queries)
