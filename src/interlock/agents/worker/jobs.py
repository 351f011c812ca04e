"""procrastinate, as far as workers need it: it wakes them up and brings dispatches, one at a time.

A job is over as soon as its dispatch is taken and there is room for another. So procrastinate holds
no job while an agent works, and none of its own rules matters for that: a worker of it that fails,
as it does whenever its connection breaks, is made anew at once.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from interlock.journal.address import PostgresAddress
from interlock.journal.postgres import build_conninfo
from interlock.journal.queue import TASK

if TYPE_CHECKING:
    from procrastinate import App
    from procrastinate.worker import Worker

POLL = 0.5
"""Seconds between looks for jobs, where notifications do not come."""
_AFTER_FAILURE = 1.0
_OPEN_SECONDS = 10.0

TakeJob = Callable[[int, int], Awaitable[None]]
"""Takes a dispatch under a fence, and returns when another may come."""


class JobPuller:
    """Pulls jobs of some queues until it is stopped."""

    def __init__(self, address: PostgresAddress, schema: str, take: TakeJob) -> None:
        for name in ("procrastinate", "psycopg.pool"):
            # What goes wrong there is seen here, and said in our own words.
            logging.getLogger(name).setLevel(logging.CRITICAL)
        self._address = address
        self._schema = schema
        self._take = take
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
        async with app.open_async():
            self._worker = worker = Worker(
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

        connector = PsycopgConnector(
            conninfo=build_conninfo(self._address, f"-c search_path={self._schema}"),
            min_size=1,
            max_size=2,
            timeout=_OPEN_SECONDS,
        )
        app = App(connector=connector)
        take = self._take

        @app.task(name=TASK)
        async def work_on(dispatch_id: int, fence: int) -> None:
            await take(dispatch_id, fence)

        return app
