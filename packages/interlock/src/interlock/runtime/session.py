"""One session: a run is loaded from the journal and worked on until it ends or must wait.

SIGINT and SIGTERM stop it: the first lets what is out come in, the second ends at once; so does the
first where answers keep until the run goes on. Either way nothing is lost; the next session goes on
from the journal. With `OneRound`, a session gives each case one agent's turn.
"""

import asyncio
import signal
import threading
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress

from interlock.carriers.background import CrashReporter
from interlock.carriers.contract import ExecutionContext
from interlock.engine.case import OPEN, Case
from interlock.engine.circuit import Circuit
from interlock.engine.schedule import Spent
from interlock.journal.connection import Connection
from interlock.journal.ownership import Ownership
from interlock.journal.runs import RunStatus
from interlock.runtime.application import CaseHooks, HooksWrapper
from interlock.runtime.loop import RunLoop
from interlock.runtime.terms import RunCounts

_CHECK_SECONDS = 1.0
"""Seconds between looks whether a run that is to end still waits for anybody."""


class RunSession:
    """One time that a run is worked on, with the signals and threads that may stop it."""

    def __init__(
        self,
        loop: RunLoop,
        connection: Connection,
        ownership: Ownership | None = None,
        *,
        draining: Callable[[int], None] = lambda _out: None,
        crashes: CrashReporter | None = None,
    ) -> None:
        """`draining` is told how many answers are waited for after the first signal; `crashes`
        reports what fails unexpectedly in the background."""
        self.stopped_by: signal.Signals | None = None
        self._loop = loop
        self._connection = connection
        self._ownership = ownership
        self._draining = draining
        self._crashes = crashes or CrashReporter(None, lambda _text: None)
        self._running: asyncio.AbstractEventLoop | None = None
        self._early_stops = 0
        self._starting = threading.Lock()

    @property
    def counts(self) -> RunCounts:
        """How the run stands; the same record, kept up to date."""
        return self._loop.counts

    @property
    def spent(self) -> Spent:
        """What the run has cost, over all its sessions."""
        return self._loop.spent

    async def run(self) -> RunStatus:
        """Load the run and work on it; the status says why it ended."""
        self._loop.restore(self._connection)
        running = asyncio.get_running_loop()
        with self._starting:
            self._running = running
        if self._ownership is not None:
            self._ownership.changed = self._wake_up
        for _ in range(self._early_stops):
            self._stop(signal.SIGTERM)
        for number in (signal.SIGINT, signal.SIGTERM):
            with suppress(ValueError, RuntimeError):  # only the main thread hears signals
                running.add_signal_handler(number, self._stop, number)
        with self._crashes.install():
            return await self._loop.run()

    def _wake_up(self) -> None:
        """From another thread: see whether the run is still ours."""
        with suppress(RuntimeError):  # it has ended by itself meanwhile
            if self._running is not None:
                self._running.call_soon_threadsafe(self._loop.wake_up)

    def stop_soon(self, *, now: bool, hand_over: bool = False) -> None:
        """Stop from another thread: as the first signal does or, `now`, as the second. A session
        that has not begun yet stops when it does. To `hand_over` leaves the run as one that others
        may go on with."""
        times = 2 if now else 1
        self._loop.is_handed_over = hand_over
        with self._starting:
            if self._running is None:
                self._early_stops += times
                return
        with suppress(RuntimeError):  # it has ended by itself meanwhile
            for _ in range(times):
                self._running.call_soon_threadsafe(self._stop, signal.SIGTERM)

    def _stop(self, number: signal.Signals) -> None:
        if self.stopped_by is None and self.counts.in_flight and not self._loop.keeps_answers():
            self._draining(self.counts.in_flight)
            self._check_again()
        self.stopped_by = self.stopped_by or number
        self._loop.stop()

    def _check_again(self) -> None:
        """A worker that gives its work back, or dies, sends no answer that would wake the loop."""
        self._loop.wake_up()
        asyncio.get_running_loop().call_later(_CHECK_SECONDS, self._check_again)


class OneRound(HooksWrapper):
    """Sends every case to an agent at most once; then it rests until the next session.

    Our own programs and humans are no agents: their roles are `free`, asked as often as it takes,
    so that what an agent answered is still checked.
    """

    def __init__(self, inner: CaseHooks, circuit: Circuit, free: Collection[str]) -> None:
        super().__init__(inner)
        self._circuit = circuit
        self._free = free
        self._had_turn: set[str] = set()
        self._steps: dict[str, str] = {}

    def context_for(self, case_no: int, case: Case, dispatch_id: int) -> ExecutionContext:
        if self._circuit.steps[case.step].role not in self._free:
            self._had_turn.add(case.case_id)
        return self._inner.context_for(case_no, case, dispatch_id)

    def must_wait(self, case_no: int, case: Case) -> bool:
        self._steps[case.case_id] = case.step
        held = self._inner.must_wait(case_no, case)
        return held or (case.status == OPEN and self._must_rest(case.case_id))

    def released_cases(self) -> Iterable[str]:
        return [case_id for case_id in self._inner.released_cases() if not self._must_rest(case_id)]

    def _must_rest(self, case_id: str) -> bool:
        role = self._circuit.steps[self._steps[case_id]].role
        return case_id in self._had_turn and role not in self._free
