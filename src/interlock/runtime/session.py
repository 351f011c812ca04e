"""One sitting: a run is taken up from the journal and worked until it ends or must wait.

Listens for SIGINT and SIGTERM: the first lets what is out come in, the second ends at once; so does
the first where answers keep until the run goes on. Either way nothing is lost; the next sitting
goes on from the journal.
"""

import asyncio
import signal
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress

from sqlalchemy import Connection

from interlock.agents.carrier import Carrier, Clock, KeepsAnswers
from interlock.engine.circuit import HUMAN, Circuit, Role
from interlock.engine.schedule import Schedule, Spent
from interlock.journal.events import Tell, silence
from interlock.journal.journal import Journal
from interlock.journal.runs import Run, RunStatus, holds_of, load_cases, open_dispatches
from interlock.journal.standstill import newest_pauses
from interlock.runtime.application import CaseHooks
from interlock.runtime.loop import RunLoop
from interlock.runtime.tally import RunCounts
from interlock.runtime.treasury import BudgetQuestion


class RunSession:
    """What a run needs beside its journal to be worked on."""

    def __init__(
        self,
        connection: Connection,
        run: Run,
        circuit: Circuit,
        carriers: Mapping[str, Carrier],
        clock: Clock,
        *,
        roles: Mapping[str, Role],
        parallel: int | None,
        treasury: BudgetQuestion | None = None,
        by_hand: Collection[str] = frozenset({HUMAN}),
        unplaced: Collection[str] = frozenset(),
        after: int = 0,
        application: CaseHooks | None = None,
        wait_for_humans: bool = False,
        wait_for_limits: bool = True,
        tell: Tell = silence,
        watch: Callable[[RunCounts, Spent], None] = lambda _tally, _spent: None,
        draining: Callable[[int], None] = lambda _out: None,
    ) -> None:
        """`draining` is told how many answers are waited for after the first signal."""
        self._draining = draining
        self._keeps = all(
            isinstance(each, KeepsAnswers) and each.keeps()
            for role, each in carriers.items()
            if role != HUMAN
        )
        self.stopped_by: signal.Signals | None = None
        self._connection = connection
        self._circuit = circuit
        self._run_id = run.run_id
        self._loop = RunLoop(
            Journal(connection, run.run_id, after),
            circuit,
            Schedule(roles, parallel, by_hand, unplaced),
            carriers,
            clock,
            treasury=treasury,
            application=application,
            wait_for_humans=wait_for_humans,
            wait_for_limits=wait_for_limits,
            pauses=newest_pauses(connection),
            tell=tell,
            watch=watch,
        )

    @property
    def tally(self) -> RunCounts:
        return self._loop.tally

    @property
    def spent(self) -> Spent:
        return self._loop.spent

    async def work(self) -> RunStatus:
        """Take the run up and go on with it."""
        self._loop.take_up(
            load_cases(self._connection, self._circuit, self._run_id),
            open_dispatches(self._connection, self._run_id),
            holds_of(self._connection, self._circuit, self._run_id),
        )
        running = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            with suppress(ValueError):
                running.add_signal_handler(number, self._stop, number)
        return await self._loop.run()

    def _stop(self, number: signal.Signals) -> None:
        if self._keeps:
            self._loop.stop()
        elif self.stopped_by is None and self.tally.in_flight:
            self._draining(self.tally.in_flight)
        self.stopped_by = self.stopped_by or number
        self._loop.stop()
