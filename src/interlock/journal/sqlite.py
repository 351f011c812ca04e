"""What only SQLite needs: its file, its settings, its checks, its error messages. The twin of
`postgres.py`; what both have in common is in `connection.py`.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from interlock.journal.connection import Connection, raw_connection, transaction
from interlock.system.errors import StoreError

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
    with closing(sqlite3.connect(address, uri=True, isolation_level=None, timeout=5.0)) as raw:
        raw.execute("pragma foreign_keys=on")
        yield Connection(raw)


def make_durable(connection: Connection) -> None:
    """What was acknowledged survives a power cut, and readers never wait for the writer."""
    connection.raw.execute("pragma journal_mode=wal")
    connection.raw.execute("pragma synchronous=full")


def sqlite_connection(connection: Connection) -> sqlite3.Connection:
    """The driver's own connection, with all that only SQLite's has."""
    raw = connection.raw
    if not isinstance(raw, sqlite3.Connection):
        raise StoreError(f"expected a SQLite connection, not {type(raw).__name__}")
    return raw


@contextmanager
def schema_transaction(connection: Connection) -> Iterator[None]:
    """A transaction that may make a table anew that others refer to: SQLite allows that only while
    references are not checked, so they are checked at its end."""
    connection.raw.execute("pragma foreign_keys=off")
    with transaction(connection) as raw:
        yield
        if raw.execute("pragma foreign_key_check").fetchone():
            raise StoreError("the upgrade would leave references to nothing; it was undone")
    connection.raw.execute("pragma foreign_keys=on")


def run_script(connection: Connection, script: str) -> None:
    """All statements of a script in one transaction."""
    sqlite_connection(connection).executescript(f"begin immediate;\n{script}\ncommit;")


def read_revision(connection: Connection) -> str | None:
    """The schema revision of the database, or None if it has none."""
    known = "select 1 from sqlite_master where name = 'alembic_version'"
    if connection.raw.execute(known).fetchone() is None:
        return None
    row = connection.raw.execute("select version_num from alembic_version").fetchone()
    return row[0] if row else None


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
