"""The queue's database from an event loop: threads that have a connection, and one that listens.

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


class DatabaseThreads:
    """Calls functions with a connection: one after the other or, with more threads, some at once.
    A connection that broke is made anew for the next call; whoever called is told by a StoreError,
    and may call again."""

    def __init__(self, address: PostgresAddress, name: str, threads: int = 1) -> None:
        self._address = address
        self._name = name
        self._threads = threads
        self._executor: ThreadPoolExecutor | None = None
        self._own = threading.local()
        self._opened: list[PostgresConnection] = []

    async def call(self, do: Callable[[PostgresConnection], T]) -> T:
        """What the function returns; one that begins a transaction has it rolled back if it
        fails."""
        if self._executor is None:
            self._executor = ThreadPoolExecutor(self._threads, thread_name_prefix=self._name)
        return await asyncio.get_running_loop().run_in_executor(self._executor, self._call, do)

    def _call(self, do: Callable[[PostgresConnection], T]) -> T:
        with explain_errors(self._address):
            server: PostgresConnection | None = getattr(self._own, "server", None)
            if server is None or server.driver.closed:
                self._own.server = server = open_driver(self._address)
                self._opened.append(server)
            try:
                return do(server)
            except BaseException:
                if server.in_transaction:
                    server.rollback()
                if server.driver.broken:
                    server.close()
                raise

    async def close(self) -> None:
        if self._executor is not None:
            executor, self._executor = self._executor, None
            await asyncio.get_running_loop().run_in_executor(None, executor.shutdown)
        for server in self._opened:
            server.close()
        self._opened.clear()
        self._own = threading.local()


class ReplyListener:
    """Wakes all who wait for replies of a database's workers, over one connection per process. Only
    makes it quicker: everybody looks now and then anyway."""

    _shared: ClassVar[dict[PostgresAddress, "ReplyListener"]] = {}
    _lock: ClassVar[threading.Lock] = threading.Lock()

    def __init__(self, address: PostgresAddress) -> None:
        self._address = address
        self._wake: dict[object, tuple[asyncio.AbstractEventLoop, Callable[[], None]]] = {}
        self._over = threading.Event()
        threading.Thread(target=self._hear, name="interlock-replies", daemon=True).start()

    @classmethod
    def add(cls, address: PostgresAddress, wake: Callable[[], None]) -> Callable[[], None]:
        """Call `wake` in this event loop whenever something is said; returns what ends that."""
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

    def _hear(self) -> None:
        while not self._over.is_set():
            try:
                server = open_driver(self._address)
                if server.is_pooled:
                    server.close()
                    return
                for _ in server.listen(CHANNEL, _LISTEN_SECONDS):
                    if self._over.is_set():
                        break
                    self._wake_all()
                server.close()
            except (StoreError, *ERRORS):
                self._over.wait(_LISTEN_SECONDS)

    def _wake_all(self) -> None:
        with self._lock:
            for loop, wake in self._wake.values():
                if not loop.is_closed():
                    loop.call_soon_threadsafe(wake)
