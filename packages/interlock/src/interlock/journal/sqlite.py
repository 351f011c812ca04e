"""SQLite's part of the journal: its file, settings, checks and error messages.

`postgres.py` is the counterpart for servers; `connection.py` holds what both share.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from interlock.journal.connection import Connection, TableColumns, transaction
from interlock.system.errors import StoreError

_ADVICE = {
    "readonly": "it is read-only: make the file and its folder writable, or use --db elsewhere",
    "locked": "another program holds it locked: close that program and try again",
    "full": "the disk is full: free some space, then 'interlock resume'; nothing was lost",
    "not a database": "this is not an Interlock database: move it away or name another with --db",
    "malformed": "it is damaged: restore a copy, or move it away to start over",
    "disk i/o": "the disk failed to read or write it: check the disk, then 'interlock resume'",
    "no such table": "tables are missing: run 'interlock init-db'",
    "unable to open": "it cannot be opened: check that the path exists and may be read",
}
"""Advice by a word in SQLite's message."""


@contextmanager
def connect(path: Path, mode: str) -> Iterator[Connection]:
    """Open a connection to the file; `mode` is "ro" or "rw"."""
    if not path.is_file():
        raise StoreError(f"{path} is not a file: move it away or name another with --db")
    quoted = str(path.resolve()).replace("%", "%25").replace("?", "%3f").replace("#", "%23")
    address = f"file:{quoted}?mode={mode}"
    with closing(sqlite3.connect(address, uri=True, isolation_level=None, timeout=5.0)) as raw:
        raw.execute("pragma foreign_keys=on")
        yield Connection(raw, path)


def make_durable(connection: Connection) -> None:
    """Let commits survive a power cut, and readers never wait for the writer."""
    connection.raw.execute("pragma journal_mode=wal")
    connection.raw.execute("pragma synchronous=full")


@contextmanager
def schema_transaction(connection: Connection) -> Iterator[None]:
    """Run a transaction that may replace tables to which others refer.

    SQLite allows that only while references are not checked, so they are checked at its end.
    """
    connection.raw.execute("pragma foreign_keys=off")
    with transaction(connection) as raw:
        yield
        if raw.execute("pragma foreign_key_check").fetchone():
            raise StoreError("the upgrade would leave references to missing rows; it was undone")
    connection.raw.execute("pragma foreign_keys=on")


def run_script(connection: Connection, script: str) -> None:
    """Run all statements of a script inside a transaction, which `executescript` would commit."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            connection.raw.execute(statement)
            statement = ""


def find_tables(connection: Connection) -> list[str]:
    """Return the tables in the file."""
    query = "select name from sqlite_master where type = 'table' and name not like 'sqlite!_%'"
    return [name for (name,) in connection.raw.execute(f"{query} escape '!' order by 1")]


def describe_table(connection: Connection, name: str) -> TableColumns:
    """Return the columns, keys and references of a table."""
    raw = connection.raw
    columns = raw.execute("select name, type, pk from pragma_table_info(?)", (name,)).fetchall()
    keys = sorted((place, column) for column, _, place in columns if place)
    query = 'select distinct "table" from pragma_foreign_key_list(?)'
    return TableColumns(
        name,
        tuple(column for column, _, _ in columns),
        tuple(column for _, column in keys),
        frozenset(column for column, kind, _ in columns if kind == "TEXT"),
        frozenset(other for (other,) in raw.execute(query, (name,))),
    )


def find_damage(connection: Connection) -> Iterator[str]:
    """Yield the faults that SQLite itself finds in the file."""
    for (line,) in connection.raw.execute("pragma integrity_check"):
        if line != "ok":
            yield str(line)


def find_dangling(connection: Connection) -> Iterator[str]:
    """Yield the rows that refer to a missing row, each by its table and number."""
    for table, row, *_ in connection.raw.execute("pragma foreign_key_check"):
        yield f"{table} {row}"


def explain_error(path: Path, error: Exception) -> str:
    """Return the driver's error, with advice on what to do."""
    cause = getattr(error, "orig", error)
    # The message alone is ambiguous: "readonly" is said of a file without rights and of a moved
    # one. The error's name tells them apart.
    name = getattr(cause, "sqlite_errorname", "")
    problem = f"{cause}, {name}" if name.count("_") > 1 else str(cause)
    for word, advice in _ADVICE.items():
        if word in problem.lower():
            return f"{path}: {advice} (SQLite says: {problem})"
    return f"{path}: SQLite says: {problem}"
