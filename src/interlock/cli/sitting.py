"""A sitting at the command line: a run is opened, worked on with progress shown, and left again."""

import asyncio
import signal
from collections.abc import Collection
from typing import TYPE_CHECKING

import msgspec
import typer

from interlock.cli.crew import Crew, Options, open_run
from interlock.cli.door import Exit
from interlock.cli.filing import written_out

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from interlock.casework.application import Casework
    from interlock.core.circuit import Circuit
    from interlock.core.plan import Spent
    from interlock.runner.tally import Tally
    from interlock.store.runs import Run, RunStatus

_EXITS = {
    "done": Exit.DONE,
    "unhealthy": Exit.UNHEALTHY,
    "waiting": Exit.WAITING,
    "budget": Exit.BUDGET,
}


class Sat(msgspec.Struct, frozen=True):
    """How a sitting ended."""

    status: "RunStatus"
    tally: "Tally"
    spent: "Spent"
    circuit: "Circuit"
    stopped_by: signal.Signals | None
    by_hand: list[str]
    """What waits for an answer by hand, a line each."""
    application: "Casework | None"

    def leave(self) -> None:
        """End the command with the exit code of the sitting."""
        stopped = 128 + (self.stopped_by or signal.SIGTERM)
        raise typer.Exit(stopped if self.status == "stopped" else _EXITS[self.status])


def sit(
    connection: "Connection",
    found: "Run",
    crew: Crew,
    *,
    wait: bool,
    only: Collection[int] | None = None,
) -> Sat:
    """Work on a run until it ends or waits; on `only` some of its cases, if they are named."""
    from interlock import wiring
    from interlock.cli.progress import progress
    from interlock.dispatch.briefer import Reading
    from interlock.runner.session import Sitting
    from interlock.wiring.rca import staff

    by_hand = wiring.by_hand(crew.carriers)
    circuit = wiring.with_patience(open_run(found), crew.carriers)
    terms = msgspec.convert(found.options, Options).terms
    ours = staff(connection, found, circuit, crew.carriers, terms, only=only)
    with progress(crew.budget) as watch:
        sitting = Sitting(
            connection,
            found,
            ours.circuit,
            ours.carriers,
            crew.clock,
            roles=crew.roles,
            parallel=crew.parallel,
            budget=crew.budget,
            by_hand=by_hand,
            application=ours.application,
            wait_for_humans=wait,
            watch=watch,
        )
        crew.gauge.read = lambda: Reading(
            sitting.tally.cases, sitting.tally.ended + sitting.tally.stuck, sitting.spent.tokens
        )
        crew.gauge.enrich = ours.enrich or crew.gauge.enrich
        status = asyncio.run(sitting.work())
    written = wiring.written_by_hand(crew.carriers)
    left = list(written_out(connection, found, circuit, written))
    return Sat(
        status, sitting.tally, sitting.spent, circuit, sitting.stopped_by, left, ours.application
    )
