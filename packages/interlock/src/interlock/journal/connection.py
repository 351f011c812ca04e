"""A connection to the journal's database of either kind.

Statements are plain SQL that both databases understand, with `?` for each parameter, in order;
`postgres.py` translates the marks. Anything specific to one database is in `sqlite.py` or
`postgres.py`.
"""

import sqlite3
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Literal, Protocol

import msgspec

from interlock.journal.address import DatabaseAddress, make_absolute

_LARGEST = 2**63 - 1


class ServerError(Exception):
    """An error that a server's driver raised; `orig` is the driver's own."""

    def __init__(self, orig: BaseException) -> None:
        super().__init__(str(orig))
        self.orig = orig


class ServerConflictError(ServerError):
    """A row violates a key."""


ERRORS = (sqlite3.DatabaseError, ServerError)
"""The errors of all databases."""
CONFLICTS = (sqlite3.IntegrityError, ServerConflictError)
"""The errors for a row that violates a key."""


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


class ServerConnection(RawConnection, Protocol):
    """A connection to a server, to which other processes write at the same time."""

    def begin(self) -> None: ...

    def lock(self, name: str) -> None: ...

    def take_numbers(self, kind: str, count: int, after: int) -> list[int]: ...

    def write_many(self, statements: Iterable[tuple[str, Sequence[Sequence[Any]]]]) -> None: ...


class Connection:
    """A connection to a database: the driver's own, and the database's absolute address."""

    def __init__(self, raw: RawConnection, address: DatabaseAddress) -> None:
        self.raw = raw
        self.address = make_absolute(address)


class TableColumns(msgspec.Struct, frozen=True):
    """The columns of a table, as the database itself lists them."""

    name: str
    columns: tuple[str, ...]
    keys: tuple[str, ...]
    """The columns of the primary key, in order."""
    texts: frozenset[str]
    refers_to: frozenset[str]
    """The tables that its foreign keys name."""


def find_server(raw: RawConnection) -> ServerConnection | None:
    """Return the connection as one to a server; None if it is to a file."""
    return None if isinstance(raw, sqlite3.Connection) else raw  # type: ignore[return-value]


def begin(raw: RawConnection) -> None:
    """Begin to write, unless that has begun. In a SQLite file nothing waits until the commit."""
    if not raw.in_transaction:
        _begin(raw)


def _begin(raw: RawConnection) -> None:
    if server := find_server(raw):
        server.begin()
    else:
        raw.execute("begin immediate")


@contextmanager
def transaction(connection: Connection) -> Iterator[RawConnection]:
    """Run a transaction: all of it is committed at the end, or nothing is."""
    raw = connection.raw
    _begin(raw)
    try:
        yield raw
        raw.commit()
    except BaseException:
        raw.rollback()
        raise


def write_many(
    raw: RawConnection, statements: Sequence[tuple[str, Sequence[Sequence[Any]]]]
) -> None:
    """Execute statements with their rows, in order; requires a transaction."""
    if server := find_server(raw):
        server.write_many(statements)
    else:
        for sql, rows in statements:
            raw.executemany(sql, rows)


def lock_until_commit(raw: RawConnection, name: str) -> None:
    """Hold a named lock until the transaction ends; a SQLite file has only one writer anyway."""
    if server := find_server(raw):
        server.lock(name)


NumberKind = Literal["blob", "run", "case", "dispatch"]
_NEWEST: dict[NumberKind, str] = {
    "blob": "select max(blob_id) from blobs",
    "run": "select max(run_id) from runs",
    "case": "select max(case_no) from cases",
    # Questions about a run are numbered among the dispatches.
    "dispatch": (
        "select max(number) from (select max(dispatch_id) as number from dispatches"
        " union all select max(question_id) from inquiries) as given"
    ),
}
_MOST_RESERVED = 256


class NumberSource:
    """Give out rising numbers, each to one caller only.

    A SQLite file has one writer, who continues from its largest number. On a server with several
    writers a sequence gives out numbers in blocks, which grow with demand; unused ones are lost.
    """

    def __init__(self, raw: RawConnection, kind: NumberKind, after: int = 0) -> None:
        self._raw = raw
        self._kind = kind
        self._server = find_server(raw)
        self._after = after
        self._reserve = 1
        self._reserved: Iterator[int] = iter(())
        if self._server is None:
            newest = raw.execute(_NEWEST[kind]).fetchone()[0] or 0
            self._after = max(after, int(newest))

    def take(self) -> int:
        """Return the next number."""
        if self._server is None:
            self._after += 1
            return self._after
        number = next(self._reserved, None)
        if number is None:
            self._reserved = iter(self.take_many(self._reserve))
            self._reserve = min(2 * self._reserve, _MOST_RESERVED)
            number = next(self._reserved)
        return number

    def take_many(self, count: int) -> list[int]:
        """Return that many numbers at once."""
        if self._server is None:
            self._after += count
            return list(range(self._after - count + 1, self._after + 1))
        return self._server.take_numbers(self._kind, count, self._after)


def mark_all(values: Collection[object]) -> str:
    """Return a mark for each value, as in `where x in (…)`; `null` for none."""
    return ", ".join("?" * len(values)) or "null"


def is_row_id(number: int) -> bool:
    """Return True if the databases can hold a number; people and agents name others, too."""
    return -_LARGEST - 1 <= number <= _LARGEST
