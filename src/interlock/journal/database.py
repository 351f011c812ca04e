"""A workspace's database: opened by its address, made or upgraded. Errors say what to do.

A SQLite file has one writer at a time, who holds a lock file that dies with its process and names
it to whoever comes second; readers open read-only and never wait. A PostgreSQL database has as many
writers as come: `ownership.py` sees to it that each run has one.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from interlock.journal import sqlite
from interlock.journal.address import DatabaseAddress, PostgresAddress, beside, make_absolute
from interlock.journal.connection import (
    ERRORS,
    Connection,
    RawConnection,
    ServerError,
    open_sqlalchemy,
    transaction,
)
from interlock.journal.ownership import Writer, Writers, describe_self, read_writers
from interlock.system.errors import NoDatabaseError, NoRightsError, StoreError
from interlock.system.files import make_own_folder, private_mode, rename_synced
from interlock.system.locks import BRIEFLY, LockHeldError, hold_lock, lock_owner

HEAD = "0008"
"""The newest revision in migrations/versions; a database at HEAD opens without loading alembic."""
MOVED = "moved"
"""The revision of a database whose journal was moved to another."""
_ADDRESS = "interlock.address"
_HERE = Path(__file__).parent


@contextmanager
def hold_writer_lock(path: Path) -> Iterator[None]:
    """Be the one writer, or StoreError with the name of the one who is."""
    me = msgspec.to_builtins(describe_self())
    del me["name"]
    try:
        # Somebody who only looks whether there is a writer holds it for a moment.
        with hold_lock(_find_lock_file(path), json.dumps(me).encode(), wait=BRIEFLY):
            yield
    except LockHeldError as held:
        who = _parse_writer(held.owner) or "another process"
        raise StoreError(
            f"{path} is in use by {who}; wait for it, or 'interlock stop' it"
        ) from None


def find_writers(db: DatabaseAddress) -> Writers:
    """Who works on the database, or on runs of it, at this moment."""
    if not isinstance(db, Path):
        with explain_errors(db):
            return read_writers(db)
    owner = lock_owner(_find_lock_file(db))
    return Writers(None if owner is None else _parse_writer(owner))


def find_writer(db: DatabaseAddress, run_id: int | None = None) -> Writer | None:
    """Who works on that run at this moment; on any, if none is named."""
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
    """A connection that may write; the database is made or brought up to date if need be. Of a
    SQLite file there is one at a time."""
    with explain_errors(db):
        if isinstance(db, Path):
            with _open_file(db) as connection:
                connection.info[_ADDRESS] = make_absolute(db)
                yield connection
        else:
            with _open_server(db) as connection:
                connection.info[_ADDRESS] = db
                yield connection


def find_address(connection: Connection) -> DatabaseAddress:
    """The database that a writer was opened on."""
    found: DatabaseAddress = connection.info[_ADDRESS]
    return found


@contextmanager
def _open_file(path: Path) -> Iterator[Connection]:
    make_own_folder(path.parent)
    with hold_writer_lock(path):
        if not path.exists():
            _create_file(path)
        with sqlite.connect(path, "rw") as connection:
            found = sqlite.read_revision(connection)
            _check_revision(path, found)
            sqlite.make_durable(connection)
            if found != HEAD:
                open_sqlalchemy(connection)
                with sqlite.schema_transaction(connection):
                    _migrate(connection)
            yield connection


@contextmanager
def _open_server(address: PostgresAddress) -> Iterator[Connection]:
    from interlock.journal import postgres

    make_own_folder(address.folder)
    with postgres.connect(address, "rw") as connection:
        found = postgres.read_revision(connection)
        if found is None:
            _create_tables(connection, address)
        elif found != HEAD:
            _check_revision(address, found)
            open_sqlalchemy(connection)
            with postgres.schema_transaction(connection):
                if postgres.read_revision(connection) != HEAD:  # another may have been faster
                    _migrate(connection)
        yield connection


@contextmanager
def write_beside(db: DatabaseAddress) -> Iterator[RawConnection]:
    """One short transaction in tables that no run writes to, also while a run holds a SQLite file;
    the database is made or brought up to date first, if nobody holds it."""
    with explain_errors(db):
        if isinstance(db, Path):
            if not _is_current(db):
                with _open_file(db):
                    pass
            with sqlite.connect(db, "rw") as connection:
                connection.raw.execute("pragma synchronous=full")
                with transaction(connection) as raw:
                    _check_head(db, sqlite.read_revision(connection))  # it may be moved meanwhile
                    yield raw
        else:
            with _open_server(db) as connection, transaction(connection) as raw:
                yield raw


def _is_current(path: Path) -> bool:
    if not path.exists():
        return False
    with sqlite.connect(path, "ro") as connection:
        return sqlite.read_revision(connection) == HEAD


@contextmanager
def open_reader(db: DatabaseAddress) -> Iterator[Connection]:
    """A connection that sees what is committed and can change nothing."""
    with explain_errors(db):
        if isinstance(db, Path):
            if not db.exists():
                raise NoDatabaseError(f"there is no database at {db}")
            with sqlite.connect(db, "ro") as connection:
                _check_head(db, sqlite.read_revision(connection))
                yield connection
        else:
            from interlock.journal import postgres

            with postgres.connect(db, "ro") as connection:
                found = postgres.read_revision(connection)
                if found is None:
                    raise NoDatabaseError(f"there is no journal in {db} yet")
                _check_head(db, found)
                yield connection


def has_database(db: DatabaseAddress) -> bool:
    """Whether there is anything to read yet."""
    if isinstance(db, Path):
        return db.exists()
    from interlock.journal import postgres

    with explain_errors(db), postgres.connect(db, "ro") as connection:
        return postgres.read_revision(connection) is not None


class ServerCheck(msgspec.Struct, frozen=True):
    """One thing that was looked at on a server; a `note` is only worth knowing."""

    name: str
    ok: bool
    message: str
    note: bool = False


def describe_server(address: PostgresAddress) -> list[ServerCheck]:
    """How fit a server is for a journal."""
    from interlock.journal import postgres

    with explain_errors(address), postgres.connect(address, "ro") as connection:
        server = postgres.server_connection(connection)
        facts, size = server.facts, postgres.read_size(connection)
        fsync, encrypted = postgres.read_safety(connection)
    major = facts.version // 10_000
    found = [
        ServerCheck(
            "server", not facts.read_only, f"{address}, PostgreSQL {major}, {size:,} bytes"
        ),
        ServerCheck(
            "durable",
            fsync,
            "what is committed is on disk" if fsync else "fsync is off: a power cut loses work",
        ),
    ]
    if not encrypted:
        plain = "the connection is not encrypted: use sslmode=verify-full beyond this machine"
        found.append(ServerCheck("tls", True, plain, note=True))
    if server.is_pooled:
        pooled = "a pooler is between: nothing is prepared, and coordinators hear by polling only"
        found.append(ServerCheck("pooler", True, pooled, note=True))
    return found


@contextmanager
def explain_errors(db: DatabaseAddress) -> Iterator[None]:
    """Errors of the database and of the system, in words that say what to do."""
    try:
        yield
    except ERRORS as error:
        kind = NoRightsError if _lacks_rights(db, error) else StoreError
        raise kind(_explain_error(db, error)) from error
    except BrokenPipeError:
        raise  # somebody's output, never the database
    except OSError as error:
        place = error.filename or db
        problem = f"{place}: {error.strerror or error}; check the path and its rights"
        raise StoreError(problem) from error


def _explain_error(db: DatabaseAddress, error: Exception) -> str:
    if isinstance(db, Path):
        return sqlite.explain_error(db, error)
    from interlock.journal import postgres

    return postgres.explain_error(db, error)


def _lacks_rights(db: DatabaseAddress, error: Exception) -> bool:
    if isinstance(db, Path):
        return False
    from interlock.journal import postgres

    return postgres.lacks_rights(error)


def _create_file(path: Path) -> None:
    """A new database appears whole or not at all: it is made beside and moved into place.

    Its tables come from a script, which a test keeps equal to what the migrations make.
    """
    fresh = path.with_name(f".{path.name}.new")
    for left_over in path.parent.glob(f"{fresh.name}*"):
        left_over.unlink()
    fresh.touch(mode=0o600)
    fresh.chmod(private_mode(path.parent))  # its log and index get the same rights
    with sqlite.connect(fresh, "rw") as connection:
        sqlite.run_script(connection, (_HERE / "schema.sql").read_text(encoding="utf-8"))
        # Here, not once it is in place: a process killed in the middle of that change leaves a
        # rollback journal, which a reader may not roll back (SQLITE_READONLY_ROLLBACK).
        sqlite.make_durable(connection)
    rename_synced(fresh, path)


def _create_tables(connection: Connection, address: PostgresAddress) -> None:
    """All tables appear at once, in a schema that is empty: others' tables may have our names."""
    from interlock.journal import postgres

    with postgres.schema_transaction(connection):
        if postgres.read_revision(connection) is not None:
            return  # another process was faster
        if others := postgres.find_tables(connection):
            raise StoreError(
                f"{address}: this is no Interlock database, and not empty either (it has the table "
                f"{others[0]!r}): create a new one, or name another with --db"
            )
        script = (_HERE / "schema_postgres.sql").read_text(encoding="utf-8")
        postgres.run_script(connection, script)


def _check_revision(db: DatabaseAddress, found: str | None) -> None:
    if found not in _list_revisions():
        raise StoreError(_describe_foreign(db, found))


def _check_head(db: DatabaseAddress, found: str | None) -> None:
    if found != HEAD:
        raise StoreError(_describe_foreign(db, found))


def create_database(db: DatabaseAddress, connection: Connection | None = None) -> None:
    """A new database with all tables; on a server, over that connection."""
    if isinstance(db, Path):
        _create_file(db)
    elif connection is not None:
        _create_tables(connection, db)


def _describe_foreign(db: DatabaseAddress, found: str | None) -> str:
    if found == MOVED:
        return f"{db}: its journal was moved to another database: name that one with --db"
    if found == "moving":
        return f"{db}: a journal is being moved here: finish it with 'interlock db move FROM TO'"
    if found is None:
        return f"{db}: this is not an Interlock database: move it away or name another with --db"
    return (
        f"{db}: it has schema {found}, this Interlock knows {HEAD}: "
        "use the newer Interlock that made it, or run any writing command to upgrade an older one"
    )


def _list_revisions() -> list[str]:
    versions = _HERE / "migrations" / "versions"
    return sorted(file.name.split("_")[0] for file in versions.glob("[0-9]*.py"))


def _migrate(connection: Connection) -> None:
    """Alembic is loaded only when there is something to migrate: it costs time and memory."""
    from alembic import command
    from alembic.config import Config
    from sqlalchemy import exc

    config = Config()
    config.set_main_option("script_location", str(_HERE / "migrations"))
    config.attributes["connection"] = open_sqlalchemy(connection)
    try:
        command.upgrade(config, "head")
    except exc.DBAPIError as error:
        raise ServerError(error.orig or error) from error
