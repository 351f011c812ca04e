"""The port for database servers: the functions the journal needs, and how a driver is found.

A package provides the driver for a kind of server under the entry-point group
`interlock.databases`, as a module with these functions. Without one, the journal is a SQLite file.
"""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from functools import cache
from importlib import metadata
from typing import Any, Protocol, cast

from interlock.journal.address import PostgresAddress
from interlock.journal.connection import Connection, TableColumns
from interlock.system.errors import SourceError

GROUP = "interlock.databases"
POSTGRESQL = "postgresql"


class ServerConnection(Protocol):
    """A connection to a server, separate from a run's own."""

    @property
    def address(self) -> PostgresAddress: ...

    @property
    def driver(self) -> Any: ...

    def execute(self, sql: str, parameters: Sequence[object] = ()) -> Any: ...

    def close(self) -> None: ...


class ServerDriver(Protocol):
    """The functions of a driver's module."""

    def connect(
        self, address: PostgresAddress, mode: str
    ) -> AbstractContextManager[Connection]: ...

    def open_driver(self, address: PostgresAddress, mode: str = "rw") -> ServerConnection: ...

    def server_connection(self, connection: Connection) -> ServerConnection: ...

    def schema_transaction(self, connection: Connection) -> AbstractContextManager[None]: ...

    def run_script(self, connection: Connection, script: str) -> None: ...

    def find_tables(self, connection: Connection) -> list[str]: ...

    def describe_table(self, connection: Connection, name: str) -> TableColumns: ...

    def find_damage(self, connection: Connection) -> Iterator[str]: ...

    def find_dangling(self, connection: Connection) -> Iterator[str]: ...

    def lacks_rights(self, error: Exception) -> bool: ...

    def explain_error(self, address: PostgresAddress, error: Exception) -> str: ...


@cache
def load_driver() -> ServerDriver:
    """Return the driver for PostgreSQL; raise SourceError if no installed package provides one."""
    for entry in metadata.entry_points(group=GROUP, name=POSTGRESQL):
        return cast("ServerDriver", entry.load())
    raise SourceError("a PostgreSQL database needs its package: pip install interlock-cluster")
