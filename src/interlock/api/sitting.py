"""A sitting at the command line: a run is opened, worked on with progress shown, and left again."""

import asyncio
import signal
from collections.abc import Callable, Collection
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

import msgspec
import typer

from interlock.api.project import AgentPool, RateLimitPolicy, RunConfig, open_run
from interlock.cli.app import ExitCode
from interlock.cli.options import written_out
from interlock.cli.show import tell

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from interlock.engine.circuit import Circuit
    from interlock.engine.schedule import Spent
    from interlock.journal.runs import Run, RunStatus
    from interlock.runtime.application import CaseHooks
    from interlock.runtime.budget import BudgetLimits, BudgetQuestion, BudgetUsage
    from interlock.runtime.loop import RunCounts
    from interlock.runtime.session import RunSession
    from interlock.runtime.staff import RunSetup

View = Callable[[], AbstractContextManager["Callable[[RunCounts, Spent], None]"]]
"""What shows a run while it is worked on: it is told how the run stands, after every turn."""
_EXITS = {
    "done": ExitCode.DONE,
    "unhealthy": ExitCode.UNHEALTHY,
    "waiting": ExitCode.WAITING,
    "budget": ExitCode.BUDGET,
    "rate-limited": ExitCode.RATE_LIMITED,
}


class RunResult(msgspec.Struct, frozen=True):
    """How a sitting ended."""

    status: "RunStatus"
    tally: "RunCounts"
    spent: "Spent"
    circuit: "Circuit"
    stopped_by: signal.Signals | None
    by_hand: list[str]
    """What waits for an answer by hand, a line each."""
    application: "CaseHooks | None"

    def leave(self) -> None:
        """End the command with the exit code of the sitting."""
        stopped = 128 + (self.stopped_by or signal.SIGTERM)
        raise typer.Exit(stopped if self.status == "stopped" else _EXITS[self.status])


def sit(
    connection: "Connection",
    found: "Run",
    crew: AgentPool,
    *,
    wait: bool,
    on_limit: RateLimitPolicy = RateLimitPolicy.WAIT,
    only: Collection[int] | None = None,
    view: "View | None" = None,
    once: bool = False,
    dress: "Callable[[RunSetup], RunSetup]" = lambda ours: ours,
) -> RunResult:
    """Work on a run until it ends or waits; on `only` some of its cases, if they are named; `once`
    gives each case one agent's turn. It is shown by `view`, else by a bar; what the work needs
    beyond its staff is added by `dress`."""
    from interlock.cli.notices import crier
    from interlock.cli.progress import progress
    from interlock.runtime.agent_pool import (
        cry,
        pulled,
        roles_by_hand,
        seat,
        with_patience,
        written_by_hand,
    )
    from interlock.runtime.apps import staff
    from interlock.runtime.session import RunSession

    by_hand = roles_by_hand(crew.carriers)
    written = open_run(found)
    circuit = with_patience(written, crew.carriers)
    options = msgspec.convert(found.options, RunConfig)
    ours = dress(staff(connection, found, circuit, crew.carriers, options.terms, only=only))
    application = _for_once(ours, circuit) if once else ours.application
    seat(crew.carriers, written, crew.gauge, application)
    if pulled(crew.carriers):
        tell("asks wait for workers: an agent takes them with the tools of 'interlock mcp'")
    told = crier(crew)
    cry(crew.carriers, told)
    with (view or progress)() as watch:
        sitting = RunSession(
            connection,
            found,
            ours.circuit,
            ours.carriers,
            crew.clock,
            roles=crew.roles,
            parallel=crew.parallel,
            treasury=treasury_of(connection, found, crew),
            by_hand=by_hand,
            unplaced=ours.unplaced,
            after=options.after,
            application=application,
            wait_for_humans=wait,
            wait_for_limits=on_limit == RateLimitPolicy.WAIT,
            tell=told,
            watch=watch,
            draining=_tell_draining,
        )
        _set_gauge(crew, sitting, ours)
        status = asyncio.run(_worked(sitting, crew))
    papers = written_by_hand(crew.carriers)
    left = list(written_out(connection, found, circuit, papers))
    return RunResult(
        status, sitting.tally, sitting.spent, circuit, sitting.stopped_by, left, application
    )


def _tell_draining(out: int) -> None:
    answers = "1 answer that is" if out == 1 else f"{out:,} answers that are"
    tell(f"stopping: waiting for {answers} out; ask again to end at once, nothing is lost")


def _set_gauge(crew: AgentPool, sitting: "RunSession", ours: "RunSetup") -> None:
    """Let carriers see how far the work is, and what they may tell of it."""
    from interlock.agents.files.batch import Reading

    crew.gauge.read = lambda: Reading(
        sitting.tally.cases, sitting.tally.ended + sitting.tally.stuck, sitting.spent.tokens
    )
    crew.gauge.enrich = ours.enrich or crew.gauge.enrich


def _for_once(ours: "RunSetup", circuit: "Circuit") -> "CaseHooks":
    from interlock.engine.circuit import HUMAN
    from interlock.runtime.application import DefaultApplication
    from interlock.runtime.session import OneRound

    return OneRound(ours.application or DefaultApplication(), circuit, {HUMAN, *ours.unplaced})


async def _worked(sitting: "RunSession", crew: AgentPool) -> "RunStatus":
    """Work; then give notices that are under way their last chance."""
    try:
        return await sitting.work()
    finally:
        if crew.herald is not None:
            await crew.herald.close()


def treasury_of(connection: "Connection", found: "Run", crew: AgentPool) -> "BudgetQuestion":
    """What the run may spend, and what it, its roles and this day have cost so far."""
    from interlock.journal.usage import last_inquiry
    from interlock.runtime.budget import KIND, BudgetQuestion, RunBudget
    from interlock.system.time import local_day

    now = crew.clock.now()
    purse = RunBudget(crew.limits, spending_of(connection, found, crew.limits, now), now, local_day)
    last = last_inquiry(connection, found.run_id, KIND)
    return BudgetQuestion(purse, crew.words, crew.desk, last)


def spending_of(
    connection: "Connection", found: "Run", limits: "BudgetLimits", at: float
) -> "BudgetUsage":
    """What is spent of these limits; what nobody limits is not added up."""
    from interlock.engine.schedule import NO_LIMITS, Spent
    from interlock.journal.usage import spent_by_role, spent_on
    from interlock.runtime.budget import BudgetUsage
    from interlock.system.time import local_day

    roles = spent_by_role(connection, found.run_id) if limits.roles else {}
    counted = limits.day != NO_LIMITS
    today = spent_on(connection, *local_day(at)) if counted else Spent()
    return BudgetUsage(found.spent, roles, today)
