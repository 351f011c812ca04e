"""What only SQLite needs: its file, its settings, its transactions, its JSON, its error messages.

The rest of the journal knows a `RawConnection`, for the statements that must be fast, and
SQLAlchemy's connection for all others. Statements for the first are plain SQL with `?` for each
parameter, in order; a driver that marks parameters differently translates them here.
"""

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

from sqlalchemy import Connection, create_engine, exc, pool, text

from interlock.system.errors import StoreError


class RawCursor(Protocol):
    """The rows of a statement."""

    @property
    def rowcount(self) -> int: ...

    def fetchone(self) -> Any: ...

    def fetchall(self) -> list[Any]: ...

    def __iter__(self) -> Iterator[Any]: ...

    def __next__(self) -> Any: ...


class RawConnection(Protocol):
    """The driver's own connection, as far as the journal uses it."""

    @property
    def in_transaction(self) -> bool: ...

    def execute(self, sql: str, parameters: Sequence[Any] = ..., /) -> RawCursor: ...

    def executemany(self, sql: str, parameters: Iterable[Sequence[Any]], /) -> RawCursor: ...

    def commit(self) -> None: ...

    def rollback(self) -> None: ...


ERRORS = (sqlite3.DatabaseError, exc.DBAPIError)
"""What the driver raises, bare or wrapped by SQLAlchemy."""
MERGE_OPTIONS = "update runs set options = json_patch(options, ?) where run_id = ?"
IS_JSON = "json_valid({})"
"""Whether the text of a column is JSON."""
JSON_FIELD = "json_extract({}, '$.{}')"
"""A field of the JSON object in a column, null where it has none."""
_LARGEST = 2**63 - 1
_ADVICE = {
    "readonly": "it is read-only: make the file and its folder writable, or use --db elsewhere",
    "locked": "another program holds it locked: close that program and try again",
    "full": "the disk is full: free some space, then 'interlock resume'; nothing was lost",
    "not a database": "this is not an Interlock database: move it away or name another with --db",
    "malformed": "it is damaged: restore a copy, or move it away to start over",
    "disk i/o": "the disk failed to read or write it: check the disk, then 'interlock resume'",
    "unable to open": "it cannot be opened: check that the path exists and may be read",
}
"""What to do, by a word in SQLite's message."""


@contextmanager
def connect(path: Path, mode: str) -> Iterator[Connection]:
    """A connection to the file; `mode` is "ro" or "rw"."""
    if not path.is_file():
        raise StoreError(f"{path} is not a file: move it away or name another with --db")
    quoted = str(path.resolve()).replace("%", "%25").replace("?", "%3f").replace("#", "%23")
    address = f"file:{quoted}?mode={mode}"
    engine = create_engine(
        "sqlite://",
        creator=lambda: sqlite3.connect(address, uri=True, isolation_level=None, timeout=5.0),
        poolclass=pool.NullPool,
    )
    with engine.connect() as connection:
        connection.exec_driver_sql("pragma foreign_keys=on")
        yield connection


def make_durable(connection: Connection) -> None:
    """What was acknowledged survives a power cut, and readers never wait for the writer."""
    connection.exec_driver_sql("pragma journal_mode=wal")
    connection.exec_driver_sql("pragma synchronous=full")


def raw_connection(connection: Connection) -> RawConnection:
    """The driver's own connection, for the few statements that must be fast."""
    return sqlite_connection(connection)


def sqlite_connection(connection: Connection) -> sqlite3.Connection:
    """The same with all that only SQLite's has."""
    raw = connection.connection.driver_connection
    if not isinstance(raw, sqlite3.Connection):
        raise StoreError(f"expected a SQLite connection, not {type(raw).__name__}")
    return raw


def begin(raw: RawConnection) -> None:
    """Begin to write, unless that has begun: SQLite then waits for nobody until the commit."""
    if not raw.in_transaction:
        raw.execute("begin immediate")


@contextmanager
def transaction(connection: Connection) -> Iterator[RawConnection]:
    """All of it is committed at the end, or nothing is."""
    raw = raw_connection(connection)
    raw.execute("begin immediate")
    try:
        yield raw
        raw.commit()
    except BaseException:
        raw.rollback()
        raise


@contextmanager
def schema_transaction(connection: Connection) -> Iterator[None]:
    """A transaction that may make a table anew that others refer to: SQLite allows that only while
    references are not checked, so they are checked at its end."""
    connection.exec_driver_sql("pragma foreign_keys=off")
    with transaction(connection) as raw:
        yield
        if raw.execute("pragma foreign_key_check").fetchone():
            raise StoreError("the upgrade would leave references to nothing; it was undone")
    connection.exec_driver_sql("pragma foreign_keys=on")


def run_script(connection: Connection, script: str) -> None:
    """All statements of a script in one transaction."""
    sqlite_connection(connection).executescript(f"begin immediate;\n{script}\ncommit;")


def read_revision(connection: Connection) -> str | None:
    """The schema revision of the database, or None if it has none."""
    known = text("select 1 from sqlite_master where name = 'alembic_version'")
    if connection.execute(known).first() is None:
        return None
    row = connection.execute(text("select version_num from alembic_version")).first()
    return row[0] if row else None


def is_row_id(number: int) -> bool:
    """Whether SQLite knows such a number; people and agents name others too."""
    return -_LARGEST - 1 <= number <= _LARGEST


def find_damage(connection: Connection) -> Iterator[str]:
    """What SQLite itself finds wrong with the file."""
    for (line,) in raw_connection(connection).execute("pragma integrity_check"):
        if line != "ok":
            yield str(line)


def find_dangling(connection: Connection) -> Iterator[str]:
    """Rows that refer to a row that is not there, each by its table and number."""
    for table, row, *_ in raw_connection(connection).execute("pragma foreign_key_check"):
        yield f"{table} {row}"


def explain_error(path: Path, error: Exception) -> str:
    """The driver's error, in words that say what to do."""
    cause = getattr(error, "orig", error)
    # The message tells the kind of error alone, its name which of several: "readonly" is said of a
    # file without rights as well as of one that was moved away.
    name = getattr(cause, "sqlite_errorname", "")
    problem = f"{cause}, {name}" if name.count("_") > 1 else str(cause)
    for word, advice in _ADVICE.items():
        if word in problem.lower():
            return f"{path}: {advice} (SQLite says: {problem})"
    return f"{path}: SQLite says: {problem}"
