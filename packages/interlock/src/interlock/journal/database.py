"""Open a workspace's database by its address; create or upgrade it. Errors say what to do.

A SQLite file has one writer at a time, which holds a lock file that ends with its process and names
it to later ones; readers open read-only and never wait. A PostgreSQL database has any number of
writers: `ownership.py` gives each run one.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from interlock.journal import sqlite
from interlock.journal.address import DatabaseAddress, PostgresAddress, beside
from interlock.journal.connection import ERRORS, Connection, RawConnection, transaction
from interlock.journal.ownership import Writer, Writers, describe_self, read_writers
from interlock.journal.schema import (
    TableSet,
    bring_up_to_date,
    find_problem,
    list_table_sets,
    read_version,
    read_versions,
)
from interlock.journal.server import load_driver
from interlock.system.errors import NoDatabaseError, NoRightsError, StoreError
from interlock.system.files import make_own_folder, private_mode, rename_synced
from interlock.system.locks import BRIEFLY, LockHeldError, hold_lock, lock_owner


@contextmanager
def hold_writer_lock(path: Path) -> Iterator[None]:
    """Hold the writer's lock; raise StoreError with the name of its present holder."""
    me = msgspec.to_builtins(describe_self())
    del me["name"]
    try:
        # A process that checks for a writer holds the lock for a moment.
        with hold_lock(_find_lock_file(path), json.dumps(me).encode(), wait=BRIEFLY):
            yield
    except LockHeldError as held:
        who = _parse_writer(held.owner) or "another process"
        raise StoreError(
            f"{path} is in use by {who}; wait for it, or 'interlock stop' it"
        ) from None


def find_writers(db: DatabaseAddress) -> Writers:
    """Return the processes that work on the database, or on runs of it, at this moment."""
    if not isinstance(db, Path):
        with explain_errors(db):
            return read_writers(db)
    owner = lock_owner(_find_lock_file(db))
    return Writers(None if owner is None else _parse_writer(owner))


def find_writer(db: DatabaseAddress, run_id: int | None = None) -> Writer | None:
    """Return the process that works on that run, or on any if no run is named."""
    return find_writers(db).find(run_id)


def _find_lock_file(path: Path) -> Path:
    return beside(path, "lock")


def _parse_writer(owner: bytes) -> Writer | None:
    try:
        return msgspec.json.decode(owner, type=Writer)
    except msgspec.DecodeError:
        return None


@contextmanager
def open_writer(db: DatabaseAddress) -> Iterator[Connection]:
    """Open a connection that may write; create or upgrade the database if need be.

    A SQLite file has one such connection at a time.
    """
    with explain_errors(db):
        opened = _open_file(db) if isinstance(db, Path) else _open_server(db)
        with opened as connection:
            yield connection


@contextmanager
def _open_file(path: Path) -> Iterator[Connection]:
    make_own_folder(path.parent)
    with hold_writer_lock(path):
        if not path.exists():
            create_file(path)
        with sqlite.connect(path, "rw") as connection:
            _check(path, connection)
            sqlite.make_durable(connection)
            bring_up_to_date(connection, path, list_table_sets())
            yield connection


@contextmanager
def _open_server(address: PostgresAddress) -> Iterator[Connection]:
    make_own_folder(address.folder)
    with load_driver().connect(address, "rw") as connection:
        bring_up_to_date(connection, address, list_table_sets(), create=True)
        yield connection


@contextmanager
def write_beside(db: DatabaseAddress) -> Iterator[RawConnection]:
    """Open one short transaction in tables that no run writes to, even while a run holds the file.

    The database is created or upgraded first, if nobody holds it.
    """
    with explain_errors(db):
        if isinstance(db, Path):
            if not _is_current(db):
                with _open_file(db):
                    pass
            with sqlite.connect(db, "rw") as connection:
                connection.raw.execute("pragma synchronous=full")
                with transaction(connection) as raw:
                    _check_current(db, connection)  # the journal may have been moved meanwhile
                    yield raw
        else:
            with _open_server(db) as connection, transaction(connection) as raw:
                yield raw


def _is_current(path: Path) -> bool:
    if not path.exists():
        return False
    with sqlite.connect(path, "ro") as connection:
        return read_version(connection.raw) == _find_journal().version


@contextmanager
def open_reader(db: DatabaseAddress) -> Iterator[Connection]:
    """Open a connection that sees committed data and can change nothing."""
    with explain_errors(db):
        if isinstance(db, Path):
            if not db.exists():
                raise NoDatabaseError(f"there is no database at {db}")
            with sqlite.connect(db, "ro") as connection:
                _check_current(db, connection)
                yield connection
        else:
            with load_driver().connect(db, "ro") as connection:
                if not read_versions(connection.raw):
                    raise NoDatabaseError(f"there is no journal in {db} yet")
                _check_current(db, connection)
                yield connection


def has_database(db: DatabaseAddress) -> bool:
    """Return True if there is anything to read yet."""
    if isinstance(db, Path):
        return db.exists()
    with explain_errors(db), load_driver().connect(db, "ro") as connection:
        return bool(read_versions(connection.raw))


@contextmanager
def explain_errors(db: DatabaseAddress) -> Iterator[None]:
    """Turn errors of the database and of the system into sentences that say what to do."""
    try:
        yield
    except ERRORS as error:
        if isinstance(db, Path):
            raise StoreError(sqlite.explain_error(db, error)) from error
        driver = load_driver()
        kind = NoRightsError if driver.lacks_rights(error) else StoreError
        raise kind(driver.explain_error(db, error)) from error
    except BrokenPipeError:
        raise  # from our output, never from the database
    except OSError as error:
        place = error.filename or db
        problem = f"{place}: {error.strerror or error}; check the path and its rights"
        raise StoreError(problem) from error


def create_file(path: Path) -> None:
    """Create a database, whole or not at all: it is made beside its place and moved there."""
    fresh = path.with_name(f".{path.name}.new")
    for left_over in path.parent.glob(f"{fresh.name}*"):
        left_over.unlink()
    fresh.touch(mode=0o600)
    fresh.chmod(private_mode(path.parent))  # its log and index get the same rights
    with sqlite.connect(fresh, "rw") as connection:
        bring_up_to_date(connection, path, list_table_sets(), create=True)
        # Set this before the move: a process killed in the middle of the change leaves a rollback
        # journal, which a reader may not roll back (SQLITE_READONLY_ROLLBACK).
        sqlite.make_durable(connection)
    rename_synced(fresh, path)


def _find_journal() -> TableSet:
    return list_table_sets()[0]


def _check(db: DatabaseAddress, connection: Connection) -> None:
    if problem := find_problem(read_versions(connection.raw), list_table_sets()):
        raise StoreError(f"{db}: {problem}")


def _check_current(db: DatabaseAddress, connection: Connection) -> None:
    """Raise StoreError unless the journal's own tables have this version."""
    versions, journal = read_versions(connection.raw), _find_journal()
    if problem := find_problem(versions, [journal]):
        raise StoreError(f"{db}: {problem}")
    if versions[journal.part] != journal.version:
        raise StoreError(
            f"{db}: its tables have version {versions[journal.part]}, this Interlock knows "
            f"{journal.version}: 'interlock init-db' brings it up to date"
        )
