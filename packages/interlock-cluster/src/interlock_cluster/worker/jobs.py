"""procrastinate, as far as workers need it: it wakes them up and brings dispatches.

A job is over as soon as its dispatch is taken and there is a slot for another. So procrastinate
holds no job while an agent works, and none of its own rules matters for that: a worker of it that
fails, as it does whenever its connection breaks, is made anew at once.

procrastinate fetches jobs one by one. So whoever takes the dispatch of a job takes others with it
that wait, as far as there are slots, and their jobs are gone.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from interlock.journal.address import PostgresAddress
from interlock_cluster.postgres import build_conninfo
from interlock_cluster.queue import TASK

if TYPE_CHECKING:
    from procrastinate import App
    from procrastinate.worker import Worker
    from psycopg import AsyncConnection

POLL = 0.5
"""Seconds between looks for jobs, where notifications do not come."""
_AFTER_FAILURE = 1.0
_OPEN_SECONDS = 10.0

_MOST = 20
"""Dispatches that are taken at the same time."""
_CONNECTIONS = 2

TakeJob = Callable[[int, int, Sequence[str], int], Awaitable[int]]
"""Takes a dispatch under a fence, if nobody has, and up to so many others of these queues; how many
it took. The slot of each is free when it is over."""


class JobPuller:
    """Pulls jobs of some queues until it is stopped."""

    def __init__(
        self, address: PostgresAddress, schema: str, slots: asyncio.Semaphore, take: TakeJob
    ) -> None:
        for name in ("procrastinate", "psycopg.pool"):
            # What goes wrong there is seen here, and said in our own words.
            logging.getLogger(name).setLevel(logging.CRITICAL)
        self._address = address
        self._schema = schema
        self._slots = slots
        self._take = take
        self._spare = 0
        """Slots that are held for jobs to come."""
        self._queues: tuple[str, ...] = ()
        self._worker: Worker | None = None
        self._changed = asyncio.Event()
        self._stopping = False

    def set_queues(self, queues: Sequence[str]) -> None:
        """Pull from these from now on; from none, nothing is pulled."""
        if tuple(queues) != self._queues:
            self._queues = tuple(queues)
            self._restart()

    def stop(self) -> None:
        """Pull nothing more."""
        self._stopping = True
        self._restart()

    def _restart(self) -> None:
        self._changed.set()
        if self._worker is not None:
            self._worker.stop()  # type: ignore[no-untyped-call]

    async def run(self, report: Callable[[str], None]) -> None:
        """Pull until stopped. `report` is told why nothing can be pulled, or '' when it can."""
        while not self._stopping:
            self._changed.clear()
            try:
                if self._queues:
                    await self._pull(report)
                else:
                    await self._changed.wait()
            except Exception as error:  # whatever procrastinate and its pool raise
                cause = error.__cause__ or error
                report(" ".join(f"{type(cause).__name__}: {cause}".split()))
            if not self._stopping and not self._changed.is_set():
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._changed.wait(), _AFTER_FAILURE)

    async def _pull(self, report: Callable[[str], None]) -> None:
        from procrastinate.worker import Worker

        app = self._make_app()
        if not await self._hold_slot():
            return
        try:
            async with app.open_async():
                await self._run_worker(Worker, app, report)
        finally:
            self._free_slots(0)

    def _free_slots(self, apart_from: int) -> None:
        while self._spare > apart_from:
            self._slots.release()
            self._spare -= 1

    async def _hold_slot(self) -> bool:
        """Hold a slot for the next job, when one is free; False if we are to stop or begin anew."""
        taking = asyncio.ensure_future(self._slots.acquire())
        changing = asyncio.ensure_future(self._changed.wait())
        await asyncio.wait({taking, changing}, return_when=asyncio.FIRST_COMPLETED)
        changing.cancel()
        if not taking.done():
            taking.cancel()
            return False
        self._spare += 1
        return True

    async def _run_worker(
        self, make: "type[Worker]", app: "App", report: Callable[[str], None]
    ) -> None:
        self._worker = worker = make(
            app,
            queues=list(self._queues),
            concurrency=1,
            fetch_job_polling_interval=POLL,
            delete_jobs="always",
            install_signal_handlers=False,
        )
        try:
            report("")
            if not self._changed.is_set():
                await worker.run()  # type: ignore[no-untyped-call]
        finally:
            self._worker = None

    def _make_app(self) -> "App":
        from procrastinate import App, PsycopgConnector

        # A job that a crash of the server brings back, or takes away, does no harm: whether its
        # dispatch is still to be had, our own rows say. So nobody waits for its disk.
        options = f"-c search_path={self._schema} -c synchronous_commit=off"
        connector = PsycopgConnector(
            conninfo=build_conninfo(self._address, options),
            min_size=1,
            max_size=_CONNECTIONS,
            timeout=_OPEN_SECONDS,
            configure=_begin_no_transactions,
        )
        app = App(connector=connector)

        @app.task(name=TASK)
        async def work_on(dispatch_id: int, fence: int) -> None:
            while self._spare < _MOST and not self._slots.locked():
                await self._hold_slot()
            more = max(0, self._spare - 1)
            self._spare -= await self._take(dispatch_id, fence, self._queues, more)
            self._free_slots(1)
            if not self._spare:
                await self._hold_slot()

        return app


async def _begin_no_transactions(connection: "AsyncConnection[Any]") -> None:
    """Each statement is committed by the server itself. A host that vanishes between a statement
    and its commit would leave rows locked, for which coordinators wait when they tidy up."""
    await connection.set_autocommit(True)
