"""A coordinator's ways to the database: a thread with a connection, and threads that listen.

A server that hangs keeps only the thread waiting, never the clocks of agents.
"""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ClassVar, TypeVar

from interlock.journal.address import PostgresAddress
from interlock.journal.connection import ERRORS
from interlock.journal.database import explain_errors
from interlock.system.errors import StoreError
from interlock_cluster.postgres import PostgresConnection, open_driver
from interlock_cluster.queue import CHANNEL

_LISTEN_SECONDS = 5.0
T = TypeVar("T")


class DatabaseThread:
    """Calls functions with a connection, one after the other. A connection that broke is made anew
    for the next call; the caller gets a StoreError, and may call again."""

    def __init__(self, address: PostgresAddress, name: str) -> None:
        self._address = address
        self._executor = ThreadPoolExecutor(1, thread_name_prefix=name)
        self._server: PostgresConnection | None = None

    async def call(self, do: Callable[[PostgresConnection], T]) -> T:
        """Return the function's result; a transaction that it began is rolled back if it fails."""
        return await asyncio.get_running_loop().run_in_executor(self._executor, self._call, do)

    def _call(self, do: Callable[[PostgresConnection], T]) -> T:
        with explain_errors(self._address):
            if self._server is None or self._server.driver.closed:
                self._server = open_driver(self._address)
            server = self._server
            try:
                return do(server)
            except BaseException:
                if server.in_transaction:
                    server.rollback()
                if server.driver.broken:
                    server.close()
                raise

    async def close(self) -> None:
        await asyncio.get_running_loop().run_in_executor(None, self._executor.shutdown)
        if self._server is not None:
            self._server.close()


def listen(
    address: PostgresAddress, channel: str, wake: Callable[[], None], over: threading.Event
) -> None:
    """Call `wake` in a thread at each notification, and now and then, until `over` is set. Behind a
    pooler nothing can be heard, so nothing is called."""

    def hear() -> None:
        while not over.is_set():
            try:
                server = open_driver(address)
                if server.is_pooled:
                    server.close()
                    return
                for _ in server.listen(channel, _LISTEN_SECONDS):
                    if over.is_set():
                        break
                    wake()
                server.close()
            except (StoreError, *ERRORS):
                over.wait(_LISTEN_SECONDS)

    threading.Thread(target=hear, name=f"listen-{channel}", daemon=True).start()


class ReplyListener:
    """Wakes all carriers that wait for replies of a database's workers, over one connection per
    process. They also look now and then, so a missed notification costs only time."""

    _shared: ClassVar[dict[PostgresAddress, "ReplyListener"]] = {}
    _lock: ClassVar[threading.Lock] = threading.Lock()

    def __init__(self, address: PostgresAddress) -> None:
        self._address = address
        self._wake: dict[object, tuple[asyncio.AbstractEventLoop, Callable[[], None]]] = {}
        self._over = threading.Event()
        listen(address, CHANNEL, self._wake_all, self._over)

    @classmethod
    def add(cls, address: PostgresAddress, wake: Callable[[], None]) -> Callable[[], None]:
        """Call `wake` in this event loop at each notification; the result ends that."""
        key = object()
        with cls._lock:
            found = cls._shared.get(address)
            if found is None:
                found = cls._shared[address] = cls(address)
            found._wake[key] = (asyncio.get_running_loop(), wake)

        def remove() -> None:
            with cls._lock:
                found._wake.pop(key, None)
                if not found._wake and cls._shared.get(address) is found:
                    del cls._shared[address]
                    found._over.set()

        return remove

    def _wake_all(self) -> None:
        with self._lock:
            for loop, wake in self._wake.values():
                if not loop.is_closed():
                    loop.call_soon_threadsafe(wake)
