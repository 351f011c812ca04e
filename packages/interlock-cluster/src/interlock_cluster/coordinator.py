"""A coordinator: a process that takes runs of a PostgreSQL database that nobody works on.

It claims due runs (the coordinator died or handed the run over, an answer came, a rate limit is
over) and works on several at once, each in its own thread. It finds them by polling; listening only
makes that quicker. A run that cannot begin here, because an agent is not installed, is left to
others for a while. Asked to stop, it gives all its runs back at once.
"""

import random
import threading
import time

from interlock.api.project import Project
from interlock.api.run import RunWork
from interlock.api.start import go_on
from interlock.api.work import RunResult
from interlock.journal.address import PostgresAddress
from interlock.journal.connection import ERRORS, Connection, transaction
from interlock.journal.database import open_writer
from interlock.journal.events import Report
from interlock.journal.journal import Journal, Refusal, TurnWrites
from interlock.journal.ownership import CHANNEL, Ownership, StaleEpochError, claim_due_run
from interlock.runtime.telemetry import show_queue
from interlock.system.errors import InterlockError, NoRightsError, StoreError, UsageError
from interlock_cluster.worker.carrier import refuse_late
from interlock_cluster.worker.database import listen

POLL = 1.0
"""Seconds between looks for runs, give or take a third: coordinators do not look in step."""
_LEFT_ALONE = 30.0
"""Seconds for which a run that could not begin here is left to others."""
_LEFT_BRIEFLY = 3.0
"""The same after a failure of the database."""
_JOURNAL_LATE = 5.0
"""Seconds between looks for late replies to runs that nobody works on."""


class Coordinator:
    """Takes runs, works on them, gives them back."""

    def __init__(self, project: Project, name: str, report: Report, *, most_runs: int = 4) -> None:
        if not isinstance(project.db, PostgresAddress):
            raise UsageError(
                f"a coordinator needs a PostgreSQL database; {project.db} is a file, which one "
                "process at a time works on: use 'interlock run' or 'interlock resume'"
            )
        self._address = project.db
        self._project = project
        self._name = name
        self._report = report
        self._most_runs = most_runs
        self._works: dict[int, RunWork] = {}
        self._left_alone: dict[int, float] = {}
        self._taken = 0
        self._late_due = 0.0
        self._awake = threading.Event()
        self._stopping = threading.Event()

    def stop(self) -> None:
        """Give all runs back and end. Safe to call from a signal handler or another thread."""
        self._stopping.set()
        self._awake.set()

    def run(self) -> int:
        """Work until `stop` is called, and return how many runs were taken. Wait for a server that
        cannot be reached; raise NoRightsError if this user may not use the database."""
        listen(self._address, CHANNEL, self._awake.set, self._stopping)
        try:
            self._claim_until_stopped()
        finally:
            for work in self._works.values():
                work.stop(now=True, hand_over=True)
            for work in self._works.values():
                work.join()
            self._collect()
        return self._taken

    def _claim_until_stopped(self) -> None:
        problem = ""
        while not self._stopping.is_set():
            try:
                self._claim_runs()
                if problem:
                    self._report("the database is back", event="database-back")
                problem = ""
            except NoRightsError:
                raise
            except StoreError as error:
                if not problem:
                    self._report(f"waiting for the database: {error}", event="database-lost")
                problem = str(error)
            # Chance only keeps coordinators out of step; no decision depends on it.
            self._awake.wait(POLL * random.uniform(2 / 3, 4 / 3))  # noqa: S311
            self._awake.clear()

    def _claim_runs(self) -> None:
        """Take due runs, as long as there is room."""
        self._collect()
        now = time.monotonic()
        if now >= self._late_due:
            self._late_due = now + _JOURNAL_LATE
            with open_writer(self._address) as connection:
                journal_late_replies(connection)
        if len(self._works) >= self._most_runs:
            return
        with open_writer(self._address) as connection:
            while len(self._works) < self._most_runs and not self._stopping.is_set():
                claimed = claim_due_run(connection, self._name, self._list_excluded())
                if claimed is None:
                    return
                self._begin(claimed)

    def _list_excluded(self) -> list[int]:
        now = time.monotonic()
        self._left_alone = {run: until for run, until in self._left_alone.items() if until > now}
        return [*self._works, *self._left_alone]

    def _begin(self, claimed: Ownership) -> None:
        run_id = claimed.run_id
        self._taken += 1
        self._report(
            f"run {run_id}: taken, epoch {claimed.epoch}",
            event="taken",
            run_id=run_id,
            epoch=claimed.epoch,
        )
        self._works[run_id] = RunWork(
            self._address,
            lambda connection, owned: go_on(
                self._project, connection, run_id, lambda config: config, claimed=owned
            ),
            self._project.display,
            claimed,
            over=self._awake.set,
        )

    def _collect(self) -> None:
        """Report the results of finished work."""
        for run_id, work in list(self._works.items()):
            if not work.is_over:
                continue
            del self._works[run_id]
            try:
                self._report_result(work.result())
            except StaleEpochError as error:
                self._report(f"run {run_id}: {error}", event="stale", run_id=run_id)
            except (StoreError, *ERRORS) as error:
                self._left_alone[run_id] = time.monotonic() + _LEFT_BRIEFLY
                self._report(f"run {run_id}: broken off: {error}", event="broken", run_id=run_id)
            except InterlockError as error:
                self._left_alone[run_id] = time.monotonic() + _LEFT_ALONE
                self._report(f"run {run_id}: left to others: {error}", event="left", run_id=run_id)

    def _report_result(self, result: RunResult) -> None:
        word = "handed over" if result.status == "running" else result.status
        self._report(f"run {result.run_id}: {word}", event=word, run_id=result.run_id)


def journal_late_replies(connection: Connection) -> int:
    """Journal as refused the late replies to runs that nobody works on; return their number."""
    from interlock_cluster import queue
    from interlock_cluster.postgres import server_connection

    server = server_connection(connection)
    if queue.describe_queue(server) is None:
        return 0
    late = queue.list_late_replies(server)
    for run_id, replies in late.items():
        refused = [refuse_late(each) for each in replies]
        rows = [
            Refusal(None, each.dispatch_id, each.refused, each.reason, each.content)
            for each in refused
        ]
        Journal(connection, run_id).commit(TurnWrites(time.time(), refusals=rows))
    with transaction(connection):
        queue.tidy_queue(server)
    show_queue(lambda: queue.count_offers(server))
    return sum(map(len, late.values()))
