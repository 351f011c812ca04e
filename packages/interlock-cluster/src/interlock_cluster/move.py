"""Carry a journal from one database to another, row by row, and compare what arrived.

The target is marked as being moved to until all is there, so that nobody works on half a journal;
begun again, the copy continues where it was. Rows that never change are copied once, all
others as they are now. At the end the source is marked as moved, so that nobody goes on with it
by mistake.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from graphlib import TopologicalSorter
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec

from interlock.journal import sqlite
from interlock.journal.address import DatabaseAddress
from interlock.journal.connection import (
    Connection,
    RawConnection,
    TableColumns,
    find_server,
    transaction,
)
from interlock.journal.database import (
    create_file,
    explain_errors,
    find_writers,
    hold_writer_lock,
)
from interlock.journal.schema import (
    JOURNAL,
    MOVED,
    MOVING,
    bring_up_to_date,
    list_table_sets,
    read_version,
    read_versions,
    write_version,
)
from interlock.system.errors import StateError
from interlock.system.files import make_own_folder

_ROWS = 1_000
_ADDED_TO = ("blobs", "dispatches", "journal", "refusals", "pauses", "calls")
"""Tables whose rows are never changed."""
_KEPT = ("runs", "cases", "questions", "inquiries")
"""Tables whose rows are changed and never removed."""
_NUMBERED = {"blob": "blobs.blob_id", "run": "runs.run_id", "case": "cases.case_no"}

Report = Callable[[str], None]


class Moved(msgspec.Struct, frozen=True):
    """A journal that was carried over."""

    source: str
    target: str
    runs: int
    rows: int


@contextmanager
def open_both(
    source: DatabaseAddress, target: DatabaseAddress
) -> Iterator[tuple[Connection, Connection]]:
    """Open both databases to be written, while nobody works on either."""
    if str(source) == str(target):
        raise StateError(f"{source} is named twice; name another database to move to")
    with ExitStack() as held:
        for db in (source, target):
            who = find_writers(db).find()
            if who is not None:
                raise StateError(f"{db} is worked on by {who}; wait for it, or 'interlock stop' it")
        yield (_open(source, held, create=False), _open(target, held, create=True))


def _open(db: DatabaseAddress, held: ExitStack, *, create: bool) -> Connection:
    held.enter_context(explain_errors(db))
    if isinstance(db, Path):
        make_own_folder(db.parent)
        held.enter_context(hold_writer_lock(db))
        if create and not db.exists():
            create_file(db)
        connection = held.enter_context(sqlite.connect(db, "rw"))
        sqlite.make_durable(connection)
        return connection
    from interlock_cluster import postgres

    connection = held.enter_context(postgres.connect(db, "rw"))
    if create and not read_versions(connection.raw):
        bring_up_to_date(connection, db, list_table_sets(), create=True)
    return connection


def check_source(source: Connection, db: DatabaseAddress, target: Connection) -> None:
    """Raise StateError unless the source is complete and current, or a move of it was begun."""
    versions = read_versions(source.raw)
    if versions[JOURNAL] == MOVED and read_version(target.raw) != MOVING:
        raise StateError(f"{db} was moved before; go on with the database it was moved to")
    for each in list_table_sets():
        found = versions.get(each.part, each.version)
        if found not in (each.version, MOVED):
            raise StateError(
                f"{db}: its {each.part} tables have version {found}, this Interlock knows "
                f"{each.version}; run 'interlock init-db' on it first"
            )


def mark_target(connection: Connection, target: DatabaseAddress) -> None:
    """Let nobody use the target before all is there; StateError if it has runs of its own."""
    raw = connection.raw
    found, known = read_version(raw), list_table_sets()[0].version
    if found == MOVING:
        return
    if found == MOVED:
        raise StateError(
            f"{target}: its journal was moved to another database before; use an empty one"
        )
    if found != known:
        raise StateError(
            f"{target}: its tables have version {found}, this Interlock knows {known}; use an "
            "empty database"
        )
    if raw.execute("select count(*) from runs").fetchone()[0]:
        raise StateError(f"{target} has runs of its own; move to an empty database")
    _set_version(connection, MOVING)


def _set_version(connection: Connection, version: int) -> None:
    with transaction(connection) as raw:
        write_version(raw, version)


def finish(source: Connection, target: Connection) -> None:
    """Let nobody open the source any more, and everybody the target."""
    _set_version(source, MOVED)
    _set_version(target, list_table_sets()[0].version)


def copy_rows(source: Connection, target: Connection, report: Report) -> int:
    """Copy everything that the source has, and return how many rows that is."""
    tables = _list_tables(source, target)
    rest = [table for table in tables if table.name not in (*_ADDED_TO, *_KEPT)]
    with transaction(target) as raw:
        for table in reversed(rest):
            raw.execute(f"delete from {table.name}")  # noqa: S608 - names of our own tables
    count = 0
    for table in tables:
        rows = _copy_table(table, source.raw, target)
        count += rows
        report(f"{table.name}: {rows:,} rows")
    with transaction(target) as raw:
        raw.execute("update owners set owner = null, lease_until = 0.0")
    _set_sequences(target.raw, tables)
    return count


def _list_tables(source: Connection, target: Connection) -> list[TableColumns]:
    """List the tables of the source, those first that others refer to."""
    tables = {table.name: table for table in _read_tables(source)}
    missing = sorted(tables.keys() - {table.name for table in _read_tables(target)})
    if missing:
        raise StateError(
            f"the target lacks the table {missing[0]!r}; install the package that brings it here"
        )
    order = TopologicalSorter({name: table.refers_to for name, table in tables.items()})
    return [tables[name] for name in order.static_order()]


def _read_tables(connection: Connection) -> list[TableColumns]:
    driver: Any = sqlite
    if find_server(connection.raw):
        from interlock_cluster import postgres

        driver = postgres
    names = [each for each in driver.find_tables(connection) if each != "schema_versions"]
    return [driver.describe_table(connection, each) for each in names]


def _copy_table(table: TableColumns, source: RawConnection, target: Connection) -> int:
    names, keys = table.columns, table.keys
    listed = ", ".join(f'"{name}"' for name in names)
    order = ", ".join(f'"{key}"' for key in keys)
    changes = ", ".join(f'"{name}" = excluded."{name}"' for name in names if name not in keys)
    then = "do nothing" if table.name in _ADDED_TO or not changes else f"do update set {changes}"
    insert = (
        f"insert into {table.name} ({listed}) values ({', '.join('?' * len(names))})"  # noqa: S608
        f" on conflict ({order}) {then}"
    )
    where: str = ""
    if table.name in _ADDED_TO:
        newest = f"select max({keys[0]}) from {table.name}"  # noqa: S608
        (last,) = target.raw.execute(newest).fetchone()
        where = f" where {keys[0]} > {int(last)}" if last is not None else ""
    query = f"select {listed} from {table.name}{where} order by {order}"  # noqa: S608
    rows = iter(source.execute(query))
    while some := list(islice(rows, _ROWS)):
        with transaction(target) as raw:
            raw.executemany(insert, some)
    (count,) = source.execute(f"select count(*) from {table.name}").fetchone()  # noqa: S608
    return int(count)


def _set_sequences(raw: RawConnection, tables: Sequence[TableColumns]) -> None:
    """Let a server give out numbers beyond those that arrived."""
    if find_server(raw) is None:
        return
    for kind, place in _NUMBERED.items():
        name, _, key = place.partition(".")
        newest = f"(select max({key}) from {name})"  # noqa: S608
        raw.execute(f"select setval('{kind}_numbers', coalesce({newest}, 1))")
    dispatches = (
        "(select max(n) from (select max(dispatch_id) as n from dispatches"
        " union all select max(question_id) from inquiries) as given)"
    )
    raw.execute(f"select setval('dispatch_numbers', coalesce({dispatches}, 1))")
    for table in tables:
        for key in table.keys:
            query = "select pg_get_serial_sequence(?, ?)"
            (sequence,) = raw.execute(query, (table.name, key)).fetchone()
            if sequence:
                newest = f"(select max({key}) from {table.name})"  # noqa: S608
                raw.execute(f"select setval('{sequence}', coalesce({newest}, 1))")


def find_differences(source: Connection, target: Connection) -> list[str]:
    """Return the tables that are not the same in both."""
    return [
        table.name
        for table in _list_tables(source, target)
        if table.name != "owners" and _hash_table(table, source) != _hash_table(table, target)
    ]


def _hash_table(table: TableColumns, connection: Connection) -> str:
    names = ", ".join(f'"{name}"' for name in sorted(table.columns))
    collate = "" if find_server(connection.raw) is None else ' collate "C"'
    order = ", ".join(f'"{key}"{collate if key in table.texts else ""}' for key in table.keys)
    digest = blake2b(digest_size=16)
    query = f"select {names} from {table.name} order by {order}"  # noqa: S608
    for row in connection.raw.execute(query):
        digest.update(repr([_normalize(value) for value in row]).encode())
    return digest.hexdigest()


def _normalize(value: Any) -> Any:
    """Return a value as both databases keep it: a text without NUL, and 1.0 as 1."""
    if isinstance(value, str):
        return value.replace("\0", "\ufffd")
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return bytes(value) if isinstance(value, memoryview) else value
