"""procrastinate's connection to the queue, for a worker that outlives its server's restarts."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeVar

import psycopg
from procrastinate import PsycopgConnector
from procrastinate.exceptions import ConnectorException

from interlock.journal.address import PostgresAddress
from interlock_cluster.postgres import build_conninfo

if TYPE_CHECKING:
    from procrastinate.connector import Notify

_PAUSE = 1.0
_OPEN_SECONDS = 10.0
_CONNECTIONS = 4
T = TypeVar("T")


class PatientConnector(PsycopgConnector):
    """A connector that repeats a statement until the server can be reached.

    procrastinate's worker stops for good when one of its statements fails: its heartbeat would end
    with it, while agents still work. Every statement of a worker may be repeated.
    """

    def __init__(
        self, address: PostgresAddress, schema: str, report: Callable[[str], None]
    ) -> None:
        """`report` is called with the reason why the server cannot be reached, and with '' when it
        can again."""
        for name in ("procrastinate", "psycopg.pool"):
            # Their failures are seen here, and reported in our own words.
            logging.getLogger(name).setLevel(logging.CRITICAL)
        super().__init__(
            conninfo=build_conninfo(address, f"-c search_path={schema}"),
            min_size=1,
            max_size=_CONNECTIONS,
            timeout=_OPEN_SECONDS,
            configure=_commit_each_statement,
        )
        self._report = report
        self._gave_up = False

    def give_up(self) -> None:
        """Fail from now on where the server cannot be reached."""
        self._gave_up = True

    async def execute_query_async(self, query: Any, **arguments: Any) -> None:
        call = super().execute_query_async
        await self._repeat(lambda: call(query, **arguments))

    async def execute_query_one_async(self, query: Any, **arguments: Any) -> dict[str, Any]:
        call = super().execute_query_one_async
        return await self._repeat(lambda: call(query, **arguments))

    async def execute_query_all_async(self, query: Any, **arguments: Any) -> list[dict[str, Any]]:
        call = super().execute_query_all_async
        return await self._repeat(lambda: call(query, **arguments))

    async def listen_notify(self, on_notification: "Notify", channels: Iterable[str]) -> None:
        call, names = super().listen_notify, list(channels)
        await self._repeat(lambda: call(on_notification, names))

    async def _repeat(self, call: Callable[[], Awaitable[T]]) -> T:
        while True:
            try:
                found = await call()
            except ConnectorException as error:
                if self._gave_up or not isinstance(
                    error.__cause__, psycopg.OperationalError | psycopg.InterfaceError
                ):
                    raise
                self._report(" ".join(f"{error.__cause__}".split()))
                await asyncio.sleep(_PAUSE)
            else:
                self._report("")
                return found


async def _commit_each_statement(connection: "psycopg.AsyncConnection[Any]") -> None:
    """Let the server commit each statement itself. A host that vanished between a statement and its
    commit would leave rows locked, and coordinators would wait for them."""
    await connection.set_autocommit(True)
