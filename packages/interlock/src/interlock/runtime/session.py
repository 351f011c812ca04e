"""One session: load a run from the journal and work on it until it ends or must wait.

The first SIGINT or SIGTERM lets open answers come in, the second ends at once; so does the first
where answers are kept until the run goes on. Nothing is lost either way. With `OneRound`, a session
gives each case one agent's turn.
"""

import asyncio
import signal
import threading
from collections.abc import Callable, Collection
from contextlib import suppress

from interlock.carriers.background import CrashReporter
from interlock.engine.case import Case
from interlock.engine.circuit import Circuit
from interlock.engine.schedule import Spent
from interlock.journal.connection import Connection
from interlock.journal.ownership import Ownership
from interlock.journal.runs import RunStatus
from interlock.runtime.application import Pace
from interlock.runtime.loop import RunLoop
from interlock.runtime.terms import RunCounts

_CHECK_SECONDS = 1.0
"""Seconds between checks whether a stopping run still waits for an answer."""


class RunSession:
    """One session of work on a run, with the signals and threads that may stop it."""

    def __init__(
        self,
        loop: RunLoop,
        connection: Connection,
        ownership: Ownership | None = None,
        *,
        draining: Callable[[int], None] = lambda _out: None,
        crashes: CrashReporter | None = None,
    ) -> None:
        """Prepare a session.

        `draining` is called with the number of open answers after the first signal; `crashes`
        reports unexpected failures in the background.
        """
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
        """The counts of the run; the same record, kept up to date."""
        return self._loop.counts

    @property
    def spent(self) -> Spent:
        """The cost of the run over all its sessions."""
        return self._loop.spent

    async def run(self) -> RunStatus:
        """Load the run and work on it; return the status that says why the session ended."""
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
        """Make the loop check, from another thread, whether the run is still ours."""
        with suppress(RuntimeError):  # it has ended by itself meanwhile
            if self._running is not None:
                self._running.call_soon_threadsafe(self._loop.wake_up)

    def stop_soon(self, *, now: bool, hand_over: bool = False) -> None:
        """Stop from another thread, as the first signal does or, with `now`, as the second.

        A session that has not begun stops when it begins. With `hand_over` other processes may
        continue the run at once.
        """
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
        """Check again after a while: a worker that returns its work, or dies, sends no answer that
        would wake the loop."""
        self._loop.wake_up()
        asyncio.get_running_loop().call_later(_CHECK_SECONDS, self._check_again)


class OneRound(Pace):
    """Send every case to an agent at most once; then the case rests until the next session.

    `free` names the roles of our own programs and of people. They are asked as often as necessary,
    so that what an agent answered is still checked.
    """

    def __init__(self, circuit: Circuit, free: Collection[str]) -> None:
        self._circuit = circuit
        self._free = free
        self._had_turn: set[str] = set()

    def note_dispatch(self, case: Case) -> None:
        if self._circuit.steps[case.step].role not in self._free:
            self._had_turn.add(case.case_id)

    def must_rest(self, case: Case) -> bool:
        role = self._circuit.steps[case.step].role
        return case.case_id in self._had_turn and role not in self._free
