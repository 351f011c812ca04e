"""Runs, their cases, the life of a case, and what other thresholds would change, over the API."""

import time
from collections.abc import Mapping
from typing import Annotated, Any, Final

import msgspec
from litestar import Request, get
from litestar.datastructures import State
from litestar.di import Provide
from litestar.params import Parameter
from litestar.response import Stream

from interlock.api.browse import (
    CaseFilter,
    CaseLine,
    PlaceCount,
    RunGlance,
    SortKey,
    find_case_id,
    list_case_lines,
    list_run_glances,
    read_run_view,
    read_today,
)
from interlock.api.project import Project
from interlock.api.records import CaseSummary, DispatchRecord
from interlock.engine.replay import ReplayedCase
from interlock.engine.schedule import Spent
from interlock_web.api.routes import reading, writing

_NUMBER: Final = 2**53 - 1
_Run = Annotated[int, Parameter(ge=1, le=_NUMBER, description="The run's number.")]
_Limit = Annotated[int, Parameter(ge=1, le=500)]
_Text = Annotated[str, Parameter(max_length=200)]


class RunList(msgspec.Struct, frozen=True):
    runs: list[RunGlance]
    next_before: int
    """Send it as `before` for older runs; 0 if there are none."""


class RunDetail(msgspec.Struct, frozen=True, kw_only=True):
    """A run, the places of its cases and the costs of its roles."""

    run: RunGlance
    places: tuple[PlaceCount, ...]
    roles: Mapping[str, Spent]
    low_limits: tuple[str, ...]
    rate_limits: Mapping[str, float]
    """Accounts that rest, each until when."""
    thresholds: Mapping[str, Any]
    worked_on_by: str
    """The process at work; empty if none is."""


class CaseList(msgspec.Struct, frozen=True):
    cases: list[CaseLine]
    total: int


class CaseDetail(msgspec.Struct, frozen=True):
    """The life of a case."""

    case: CaseSummary
    circuit: str
    dispatches: tuple[DispatchRecord, ...]
    known: tuple[str, ...]
    """Lines of the application about it, beyond its decisions."""


class ReplayRequest(msgspec.Struct, frozen=True):
    """Other thresholds to decide with."""

    set: dict[str, Any]
    case: str = ""
    """Only this case."""


class Replay(msgspec.Struct, frozen=True):
    cases: list[ReplayedCase]
    """The cases that would go another way."""


@reading("/runs", "Runs", sync_to_thread=True)
def list_runs(
    project: Project,
    limit: _Limit = 50,
    before: Annotated[int, Parameter(ge=0, le=_NUMBER, description="Older than this run.")] = 0,
) -> RunList:
    """List runs, the newest first."""
    if not project.has_database:
        return RunList([], 0)
    with project.read() as connection:
        found = list_run_glances(project.db, connection, limit=limit, before=before)
    return RunList(found, found[-1].run_id if len(found) == limit else 0)


@reading("/runs/{run_id:int}", "One run", sync_to_thread=True)
def show_run(project: Project, run_id: _Run) -> RunDetail:
    """Show a run with the places of its cases, its limits and its costs."""
    with project.read() as connection:
        view = read_run_view(project.db, connection, run_id, _read_clock(project))
    return RunDetail(
        run=msgspec.structs.replace(view.glance, status=view.status),
        places=view.places,
        roles=view.roles,
        low_limits=view.low_limits,
        rate_limits=view.rate_limits,
        thresholds=view.circuit.thresholds,
        worked_on_by=str(view.writer) if view.writer else "",
    )


def _read_filter(
    q: _Text = "",
    place: Annotated[
        str,
        Parameter(
            max_length=200, description="`open`, `asked`, `human`, `stuck`, or the name of an end."
        ),
    ] = "",
    step: _Text = "",
    sort: SortKey = "case",
    descending: bool = False,
) -> CaseFilter:
    """Return the choice of cases that a query names."""
    return CaseFilter(q, place, step, sort, descending)


@reading(
    "/runs/{run_id:int}/cases",
    "The cases of a run",
    dependencies={"wanted": Provide(_read_filter, sync_to_thread=False)},
    sync_to_thread=True,
)
def list_cases(
    project: Project,
    run_id: _Run,
    wanted: CaseFilter,
    limit: _Limit = 100,
    offset: Annotated[int, Parameter(ge=0, le=10_000_000)] = 0,
) -> CaseList:
    """List cases, filtered, searched and sorted; `total` counts all that fit."""
    at = _read_clock(project)
    with project.read() as connection:
        view = read_run_view(project.db, connection, run_id, at)
        lines, total = list_case_lines(
            project.db, connection, view, wanted, limit=limit, offset=offset, at=at
        )
    return CaseList(lines, total)


@reading("/runs/{run_id:int}/cases/{case_no:int}", "The life of a case", sync_to_thread=True)
def explain_case(
    project: Project,
    run_id: _Run,
    case_no: Annotated[int, Parameter(ge=1, le=_NUMBER, description="As the list has it.")],
) -> CaseDetail:
    """Show prompts, answers, refusals with their sentences, and each decision with what it read."""
    with project.read() as connection:
        case_id = find_case_id(connection, run_id, case_no)
    life = project.explain(case_id, run_id)
    return CaseDetail(life.case, life.circuit.name, life.dispatches, life.known)


@writing(
    "/runs/{run_id:int}/replay",
    "Decide again with other thresholds",
    scopes=("read",),
    sync_to_thread=True,
)
def replay_run(project: Project, run_id: _Run, data: ReplayRequest) -> Replay:
    """List the cases that would go another way. Nobody is asked, and nothing is changed."""
    found = project.replay(run_id, data.set, data.case)
    return Replay([each for each in found if each.turn is not None or each.lacks])


@reading("/costs/today", "What today costs", sync_to_thread=True)
def show_costs(project: Project) -> Spent:
    """Sum up all runs, from midnight where the server is."""
    if not project.has_database:
        return Spent()
    with project.read() as connection:
        return read_today(connection, _read_clock(project))


@get("/events", sync_to_thread=False, include_in_schema=False)
def stream_events(request: Request[Any, Any, Any], state: State) -> Stream:
    """Stream server-sent events while the connection stands: which runs changed, and how many
    questions wait. A client that sends the last `id` as Last-Event-ID learns whether it missed
    something. OpenAPI cannot describe a response that does not end."""
    stream = state["feed"].stream(request.headers.get("last-event-id", ""))
    headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
    return Stream(stream, media_type="text/event-stream", headers=headers)


def _read_clock(project: Project) -> float:
    return project.clock.now() if project.clock else time.time()


HANDLERS: Final = (
    list_runs,
    show_run,
    list_cases,
    explain_case,
    replay_run,
    show_costs,
    stream_events,
)
