"""Runs, their cases, the life of a case, and what other thresholds would change, over the API."""

import time
from collections.abc import Mapping
from typing import Annotated, Any, Final

import msgspec
from litestar import Request, get
from litestar.datastructures import State
from litestar.params import Parameter
from litestar.response import Stream

from interlock.api.browse import (
    CaseFilter,
    CaseLine,
    RunGlance,
    SortKey,
    find_case_id,
    list_case_lines,
    list_run_glances,
    read_run_view,
    read_today,
)
from interlock.api.inspect import explain_passed
from interlock.api.project import Project
from interlock.api.records import DispatchRecord
from interlock.engine.circuit import Circuit
from interlock_web.api.routes import reading, writing

_NUMBER: Final = 2**53 - 1
_Run = Annotated[int, Parameter(ge=1, le=_NUMBER, description="The run's number.")]
_Limit = Annotated[int, Parameter(ge=1, le=500)]
_Text = Annotated[str, Parameter(max_length=200)]


class RunRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A run at a glance."""

    run_id: int
    circuit: str
    source: str
    status: str
    """As `interlock runs` has it: running, waiting, done, unhealthy, interrupted, …"""
    created_at: float
    changed_at: float
    cases: int
    ends: dict[str, int]
    """Cases by their end, or by their status while they are open."""
    tokens: int
    money: float


class RunList(msgspec.Struct, frozen=True):
    runs: list[RunRecord]
    next_before: int
    """Send it as `before` for older ones; 0 if there are none."""


class Place(msgspec.Struct, frozen=True):
    """How many cases stand at a step, are stuck there, or came from it to an end."""

    step: str
    status: str
    end: str
    asked: int
    cases: int


class RoleCost(msgspec.Struct, frozen=True):
    role: str
    dispatches: int
    tokens: int
    money: float
    seconds: float


class RunDetail(msgspec.Struct, frozen=True, kw_only=True):
    """A run, where its cases are and what each role has cost."""

    run: RunRecord
    places: list[Place]
    roles: list[RoleCost]
    low_limits: list[str]
    rate_limits: dict[str, float]
    """Accounts that rest, each until when."""
    thresholds: dict[str, Any]
    worked_on_by: str
    """The process at work; empty if none is."""


class CaseRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A case as a table shows it."""

    case_no: int
    case_id: str
    status: str
    step: str
    attempt: int
    end: str
    agent: str
    liveness: str
    """working, idle, human, rate-limited, queued, resting; its end once it is over."""
    reason: str
    since: float
    """When somebody was asked; 0 if nobody is."""
    moved_at: float
    tokens: int
    money: float


class CaseList(msgspec.Struct, frozen=True):
    cases: list[CaseRecord]
    total: int


class RefusedRecord(msgspec.Struct, frozen=True):
    at: float
    reason: str
    sentence: str
    content: str


class PassedOver(msgspec.Struct, frozen=True):
    """A rule that was looked at and not taken, and why."""

    rule: str
    why: str


class DecisionRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What was made of an answer: the rule that was taken, and the values that it read."""

    signal: str
    rule: str
    to: str
    reason: str
    read: dict[str, Any]
    passed: list[PassedOver]


class TurnRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One dispatch: what was asked, what came back, what was decided."""

    dispatch_id: int
    step: str
    attempt: int
    role: str
    sent_at: float
    prompt: str
    refused: list[RefusedRecord]
    answered_at: float
    """0 while it is open."""
    answered_by: str
    answer: Any
    decision: DecisionRecord | None
    tokens: int
    money: float


class CaseDetail(msgspec.Struct, frozen=True, kw_only=True):
    """The life of a case."""

    case_no: int
    case_id: str
    run_id: int
    circuit: str
    status: str
    step: str
    end: str
    timeline: list[TurnRecord]
    known: list[str]
    """What the application knows of it beyond its decisions."""


class ReplayRequest(msgspec.Struct, frozen=True):
    """Other thresholds to decide with."""

    set: dict[str, Any]
    case: str = ""
    """Only this case."""


class ReplayRecord(msgspec.Struct, frozen=True, kw_only=True):
    case_id: str
    end_before: str
    end_after: str
    dispatches_before: int
    dispatches_after: int
    path_before: list[str]
    path_after: list[str]
    lacks: str
    """The step that no recorded answer exists for, if it came to one."""


class Replay(msgspec.Struct, frozen=True):
    cases: list[ReplayRecord]
    """Those that would go another way."""


class Cost(msgspec.Struct, frozen=True, kw_only=True):
    """What all runs together have cost today."""

    dispatches: int
    tokens: int
    money: float


@reading("/runs", "Runs", sync_to_thread=True)
def list_runs(
    project: Project,
    limit: _Limit = 50,
    before: Annotated[int, Parameter(ge=0, le=_NUMBER, description="Older than this run.")] = 0,
) -> RunList:
    """The newest first."""
    if not project.has_database:
        return RunList([], 0)
    with project.read() as connection:
        found = list_run_glances(project.db, connection, limit=limit, before=before)
    more = found[-1].run_id if len(found) == limit else 0
    return RunList([_describe_run(each, each.status) for each in found], more)


@reading("/runs/{run_id:int}", "One run", sync_to_thread=True)
def show_run(project: Project, run_id: _Run) -> RunDetail:
    """A run with the places of its cases, its limits and its costs."""
    with project.read() as connection:
        view = read_run_view(project.db, connection, run_id, _read_clock(project))
    return RunDetail(
        run=_describe_run(view.glance, view.status),
        places=[Place(*msgspec.structs.astuple(each)) for each in view.places],
        roles=[
            RoleCost(role, each.dispatches, each.tokens, each.money, each.seconds)
            for role, each in view.roles.items()
        ],
        low_limits=list(view.low_limits),
        rate_limits=dict(view.rate_limits),
        thresholds=dict(view.circuit.thresholds),
        worked_on_by=str(view.writer) if view.writer else "",
    )


@reading("/runs/{run_id:int}/cases", "The cases of a run", sync_to_thread=True)
def list_cases(
    project: Project,
    run_id: _Run,
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
    limit: _Limit = 100,
    offset: Annotated[int, Parameter(ge=0, le=10_000_000)] = 0,
) -> CaseList:
    """Filtered, searched and sorted; `total` counts all that fit."""
    wanted = CaseFilter(q, place, step, sort, descending)
    at = _read_clock(project)
    with project.read() as connection:
        view = read_run_view(project.db, connection, run_id, at)
        lines, total = list_case_lines(
            project.db, connection, view, wanted, limit=limit, offset=offset, at=at
        )
    return CaseList([_describe_case(each) for each in lines], total)


@reading("/runs/{run_id:int}/cases/{case_no:int}", "The life of a case", sync_to_thread=True)
def explain_case(
    project: Project,
    run_id: _Run,
    case_no: Annotated[int, Parameter(ge=1, le=_NUMBER, description="As the list has it.")],
) -> CaseDetail:
    """Prompts, answers, refusals with their sentences, and each decision with what it read."""
    with project.read() as connection:
        case_id = find_case_id(connection, run_id, case_no)
    life = project.explain(case_id, run_id)
    return CaseDetail(
        case_no=case_no,
        case_id=case_id,
        run_id=run_id,
        circuit=life.circuit.name,
        status=life.case.status,
        step=life.case.step,
        end=life.case.end,
        timeline=[_describe_turn(each, life.circuit) for each in life.dispatches],
        known=list(life.known),
    )


@writing(
    "/runs/{run_id:int}/replay",
    "Decide again with other thresholds",
    scopes=("read",),
    sync_to_thread=True,
)
def replay_run(project: Project, run_id: _Run, data: ReplayRequest) -> Replay:
    """Which cases would go another way. Nobody is asked, and nothing is changed."""
    found = project.replay(run_id, data.set, data.case)
    changed = [each for each in found if each.turn is not None or each.lacks]
    return Replay(
        [
            ReplayRecord(
                case_id=each.case_id,
                end_before=each.end_before,
                end_after=each.end_after,
                dispatches_before=each.dispatches_before,
                dispatches_after=each.dispatches_after,
                path_before=list(each.path_before),
                path_after=list(each.path_after),
                lacks=each.lacks,
            )
            for each in changed
        ]
    )


@reading("/costs/today", "What today costs", sync_to_thread=True)
def show_costs(project: Project) -> Cost:
    """All runs together, from midnight where the server is."""
    if not project.has_database:
        return Cost(dispatches=0, tokens=0, money=0.0)
    with project.read() as connection:
        spent = read_today(connection, _read_clock(project))
    return Cost(dispatches=spent.dispatches, tokens=spent.tokens, money=spent.money)


@get("/events", sync_to_thread=False, include_in_schema=False)
def stream_events(request: Request[Any, Any, Any], state: State) -> Stream:
    """Server-sent events, as long as the connection stands: which runs and cases changed, and how
    they stand now. `id` is how far the journal had come; who sends it as Last-Event-ID is told
    whether something was missed. OpenAPI has no words for an answer that does not end."""
    stream = state["feed"].stream(request.headers.get("last-event-id", ""))
    headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
    return Stream(stream, media_type="text/event-stream", headers=headers)


def _describe_run(glance: RunGlance, status: str) -> RunRecord:
    return RunRecord(
        run_id=glance.run_id,
        circuit=glance.circuit,
        source=glance.source,
        status=status,
        created_at=glance.created_at,
        changed_at=glance.changed_at,
        cases=glance.cases,
        ends=dict(glance.ends),
        tokens=glance.cost.tokens,
        money=glance.cost.money,
    )


def _describe_case(line: CaseLine) -> CaseRecord:
    row = line.row
    return CaseRecord(
        case_no=row.case_no,
        case_id=row.case_id,
        status=row.status,
        step=row.step,
        attempt=row.attempt,
        end=row.end,
        agent=line.agent,
        liveness=line.word,
        reason=line.reason,
        since=row.since,
        moved_at=row.moved_at,
        tokens=row.tokens,
        money=row.money,
    )


def _describe_turn(turn: DispatchRecord, circuit: Circuit) -> TurnRecord:
    decision = turn.decision
    return TurnRecord(
        dispatch_id=turn.dispatch_id,
        step=turn.step,
        attempt=turn.attempt,
        role=turn.role,
        sent_at=turn.sent_at,
        prompt=turn.prompt,
        refused=[
            RefusedRecord(each.at, each.reason, each.sentence, each.content)
            for each in turn.refused
        ],
        answered_at=turn.answered_at or 0.0,
        answered_by=turn.answered_by or "",
        answer=turn.answer,
        decision=None
        if decision is None
        else DecisionRecord(
            signal=decision.signal,
            rule=decision.rule,
            to=decision.to,
            reason=decision.reason,
            read=_to_plain(decision.read),
            passed=[
                PassedOver(each.rule, explain_passed(circuit, each.rule, each.why))
                for each in decision.passed
            ],
        ),
        tokens=turn.usage.tokens,
        money=turn.usage.money,
    )


def _to_plain(values: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = msgspec.to_builtins(dict(values))
    return found


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
