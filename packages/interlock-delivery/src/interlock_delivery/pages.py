"""The window's pages of deliveries: board, branches, checks and claims."""

from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, Final

import msgspec
from jinja2 import PackageLoader
from litestar import Response, get
from litestar.params import Parameter

from interlock.api.browse import RunGlance, list_run_glances
from interlock.api.project import Project
from interlock.carriers.registry import agents_folder
from interlock.journal.address import DatabaseAddress
from interlock.journal.database import open_reader
from interlock.journal.runs import find_run
from interlock.runtime.settings import RunConfig
from interlock.system.errors import NotFoundError
from interlock_delivery.checks.claims import ClaimComparison
from interlock_delivery.report.records import DeliveryReport, Outcome, TaskRecord
from interlock_web.extend import NavLink, Section, Window, reading, send_document

if TYPE_CHECKING:
    from interlock_delivery.report.board import Board

_CIRCUIT: Final = "delivery"
_LOOKED_AT: Final = 1_000
_MOST_TASKS: Final = 500
_SUMMED: Final = 20
"""The newest deliveries, whose claims are summed."""


@get("/deliveries", sync_to_thread=True)
def show_deliveries(window: Window) -> Response[str]:
    runs = _list_deliveries(window.project)
    accounts = _sum_claims(window.project, runs[:_SUMMED])
    return window.render(
        "delivery/deliveries.html",
        title="Deliveries",
        path="/deliveries",
        runs=runs,
        accounts=accounts,
        summed=min(len(runs), _SUMMED),
    )


@get("/deliveries/{run_id:int}", sync_to_thread=True)
def show_delivery(window: Window, run_id: int) -> Response[str]:
    """Show each task, its checks, and the claims of agents."""
    from interlock_delivery.report.render import build_matrix, sort_tasks

    report, board = _read_delivery(window.project, run_id)
    tasks = sort_tasks(report)[:_MOST_TASKS]
    return window.render(
        "delivery/delivery.html",
        title=report.title or f"Delivery {run_id}",
        path="/deliveries",
        report=report,
        board=board,
        tasks=[(task, build_matrix(task.proofs)) for task in tasks],
        left_out=len(report.tasks) - len(tasks),
    )


@get("/deliveries/{run_id:int}/report", sync_to_thread=True)
def show_report(window: Window, run_id: int) -> Response[bytes]:
    """Send the whole report, as `interlock deliver` writes it."""
    from interlock_delivery.report.render import render_html

    return send_document(render_html(_read_delivery(window.project, run_id)[0]))


def _list_deliveries(project: Project) -> list[RunGlance]:
    if not project.has_database:
        return []
    with project.read() as connection:
        found = list_run_glances(project.db, connection, limit=_LOOKED_AT)
    return [run for run in found if run.circuit == _CIRCUIT]


def _sum_claims(project: Project, runs: Sequence[RunGlance]) -> "list[ClaimComparison]":
    """Return the sums of the claims in these deliveries, by agent and role."""
    sums: dict[tuple[str, str], Counter[str]] = {}
    for run in runs:
        for each in _read_claims(project.db, run.run_id, run.changed_at):
            counts = {name: getattr(each, name) for name in _COUNTS}
            sums.setdefault((each.agent, each.role), Counter()).update(counts)
    return [
        ClaimComparison(agent=agent, role=role, **{name: counts[name] for name in _COUNTS})
        for (agent, role), counts in sorted(sums.items())
    ]


_COUNTS: Final = ("claimed", "verified", "refuted", "unchecked")


@lru_cache(maxsize=256)
def _read_claims(
    db: DatabaseAddress, run_id: int, _changed_at: float
) -> "tuple[ClaimComparison, ...]":
    """Return the claims of a run; cached until the run changes."""
    from interlock_delivery.report.collect import load_report

    with open_reader(db) as connection:
        return load_report(connection, run_id).accounts


def _read_delivery(project: Project, run_id: int) -> "tuple[DeliveryReport, Board]":
    from interlock_delivery.report.board import BoardReader
    from interlock_delivery.report.collect import load_report

    with project.read() as connection:
        run = find_run(connection, run_id)
        if run.circuit != _CIRCUIT:
            raise NotFoundError(f"run {run_id} is not a delivery; its circuit is {run.circuit}")
        is_active = project.writer() is not None
        report = load_report(connection, run_id, is_active=is_active)
        config = msgspec.convert(run.options, RunConfig)
        reader = BoardReader(connection, run_id, config.agents, agents_folder(project.db))
        status = run.status if is_active or run.status != "running" else "interrupted"
        return report, reader.read(run.spent, status)


class DeliveryRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A delivery in a list."""

    run_id: int
    plan: str
    status: str
    tasks: dict[str, int]
    """The number of tasks by their end, or by their status while they are open."""
    money: float
    changed_at: float


class DeliveryList(msgspec.Struct, frozen=True):
    deliveries: list[DeliveryRecord]


class DeliveryDetail(msgspec.Struct, frozen=True, kw_only=True):
    run_id: int
    title: str
    outcome: Outcome
    branch: str
    tasks: list[TaskRecord]
    claims: list[ClaimComparison]


@reading("/deliveries", "Deliveries", sync_to_thread=True)
def list_deliveries(
    project: Project, limit: Annotated[int, Parameter(ge=1, le=_LOOKED_AT)] = 100
) -> DeliveryList:
    """Return the newest deliveries, newest first."""
    return DeliveryList(
        [
            DeliveryRecord(
                run_id=each.run_id,
                plan=each.source,
                status=each.status,
                tasks=dict(each.ends),
                money=each.cost.money,
                changed_at=each.changed_at,
            )
            for each in _list_deliveries(project)[:limit]
        ]
    )


@reading("/deliveries/{run_id:int}", "One delivery", sync_to_thread=True)
def find_delivery(
    project: Project, run_id: Annotated[int, Parameter(ge=1, le=2**53 - 1)]
) -> DeliveryDetail:
    """Return each task with its checks, and the claims of agents."""
    from interlock_delivery.report.render import sort_tasks

    report, board = _read_delivery(project, run_id)
    return DeliveryDetail(
        run_id=run_id,
        title=report.title,
        outcome=board.outcome,
        branch=report.branch,
        tasks=[
            msgspec.convert(each, TaskRecord, from_attributes=True) for each in sort_tasks(report)
        ],
        claims=list(report.accounts),
    )


SECTION: Final = Section(
    "Work",
    (NavLink("/deliveries", "Deliveries", "d"),),
    (show_deliveries, show_delivery, show_report),
    PackageLoader("interlock_delivery", "templates"),
    api=(list_deliveries, find_delivery),
    rank=20,
)
