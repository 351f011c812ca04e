"""Opening a database: settings, version, one writer at a time, and errors a user can act on.

SQLite in WAL mode with synchronous=FULL: what was acknowledged survives a power cut. The writer
holds a lock file that dies with its process; readers open read-only and never wait.

The writer's lock: one process writes to a database, and a second one is told who it is.

The lock is the kernel's (flock), so it ends with its process however that ends; what is written in
the file only says who holds it.
"""

import json
import os
import socket
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
from sqlalchemy import Connection, create_engine, exc, pool, text

from interlock.rca.knowledge.schema import all_tables
from interlock.system.errors import StoreError
from interlock.system.files import place_file
from interlock.system.locks import BRIEFLY, LockHeldError, hold_lock, lock_owner


class Writer(msgspec.Struct, frozen=True):
    """The process that holds a database."""

    pid: int
    host: str
    command: str

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host} ({self.command})"


@contextmanager
def only_writer(path: Path) -> Iterator[None]:
    """Be the one writer, or StoreError with the name of the one who is."""
    command = " ".join([Path(sys.argv[0]).name, *sys.argv[1:3]])
    me = {"pid": os.getpid(), "host": socket.gethostname(), "command": command}
    try:
        # Somebody who only looks whether there is a writer holds it for a moment.
        with hold_lock(_lock_file(path), json.dumps(me).encode(), wait=BRIEFLY):
            yield
    except LockHeldError as held:
        who = _parse_writer(held.owner) or "another process"
        raise StoreError(
            f"{path} is in use by {who}; wait for it, or 'interlock stop' it"
        ) from None


def writer_of(path: Path) -> Writer | None:
    """Who writes to the database at this moment."""
    owner = lock_owner(_lock_file(path))
    return None if owner is None else _parse_writer(owner)


def _lock_file(path: Path) -> Path:
    return path.with_name(f"{path.name}.lock")


def _parse_writer(owner: bytes) -> Writer | None:
    try:
        return msgspec.json.decode(owner, type=Writer)
    except msgspec.DecodeError:
        return None


OWN_FOLDER = ".interlock"
HEAD = "0004"
"""The newest revision in migrations/versions; a database at HEAD opens without loading alembic."""


@contextmanager
def writing(path: Path) -> Iterator[Connection]:
    """The one connection that may write, made and brought up to date if need be."""
    with told_plainly(path):
        _make_room(path.parent)
        with only_writer(path):
            if not path.exists():
                _create(path)
            with _connected(path, "rw") as connection:
                found = revision(connection)
                if found not in _revisions():
                    raise StoreError(_foreign(path, found))
                for setting in ("journal_mode=wal", "synchronous=full"):
                    connection.exec_driver_sql(f"pragma {setting}")
                if found != HEAD:
                    _migrate(connection)
                yield connection


def _make_room(folder: Path) -> None:
    """The folder of the database. One of our own name is nobody's work: git need not see it."""
    if not folder.exists():
        folder.mkdir(parents=True, exist_ok=True)
        if folder.name == OWN_FOLDER:
            (folder / ".gitignore").write_text("*\n", encoding="utf-8")


@contextmanager
def reading(path: Path) -> Iterator[Connection]:
    """A connection that sees what is committed and can change nothing."""
    if not path.exists():
        raise StoreError(f"there is no database at {path}; 'interlock run' makes one")
    with told_plainly(path), _connected(path, "ro") as connection:
        found = revision(connection)
        if found != HEAD:
            raise StoreError(_foreign(path, found))
        yield connection


def driver(connection: Connection) -> sqlite3.Connection:
    """The driver's own connection, for the few statements that must be fast."""
    raw = connection.connection.driver_connection
    if not isinstance(raw, sqlite3.Connection):
        raise StoreError(f"no SQLite connection, but {type(raw).__name__}")
    return raw


@contextmanager
def transaction(connection: Connection) -> Iterator[sqlite3.Connection]:
    """All of it is committed at the end, or nothing is."""
    raw = driver(connection)
    raw.execute("begin immediate")
    try:
        yield raw
        raw.commit()
    except BaseException:
        raw.rollback()
        raise


def is_number(number: int) -> bool:
    """Whether SQLite knows such a number; people and agents name others too."""
    return -(2**63) <= number < 2**63


def revision(connection: Connection) -> str | None:
    """The schema revision of the database, or None if it has none."""
    known = text("select 1 from sqlite_master where name = 'alembic_version'")
    if connection.execute(known).first() is None:
        return None
    row = connection.execute(text("select version_num from alembic_version")).first()
    return row[0] if row else None


@contextmanager
def told_plainly(path: Path) -> Iterator[None]:
    """SQLite's and the system's errors, in words that say what to do."""
    try:
        yield
    except (sqlite3.DatabaseError, exc.DBAPIError) as error:
        raise StoreError(_plain(path, str(getattr(error, "orig", error)))) from error
    except BrokenPipeError:
        raise  # somebody's output, never the database
    except OSError as error:
        place = error.filename or path
        problem = f"{place}: {error.strerror or error}; check the path and its rights"
        raise StoreError(problem) from error


def _plain(path: Path, problem: str) -> str:
    advice = {
        "readonly": "it is read-only: make the file and its folder writable, or use --db elsewhere",
        "locked": "another program holds it locked: close that program and try again",
        "full": "the disk is full: free some space, then 'interlock resume'; nothing was lost",
        "not a database": "this is no Interlock database: move it away or name another with --db",
        "malformed": "it is damaged: restore a copy, or move it away to start anew",
        "disk i/o": "the disk failed to read or write it: check the disk, then 'interlock resume'",
        "unable to open": "it cannot be opened: check that the path exists and may be read",
    }
    for sign, words in advice.items():
        if sign in problem.lower():
            return f"{path}: {words} (SQLite says: {problem})"
    return f"{path}: SQLite says: {problem}"


@contextmanager
def _connected(path: Path, mode: str) -> Iterator[Connection]:
    if not path.is_file():
        raise StoreError(f"{path} is no file: move it away or name another with --db")
    address = f"file:{_quoted(path)}?mode={mode}"
    engine = create_engine(
        "sqlite://",
        creator=lambda: sqlite3.connect(address, uri=True, isolation_level=None, timeout=5.0),
        poolclass=pool.NullPool,
    )
    with engine.connect() as connection:
        connection.exec_driver_sql("pragma foreign_keys=on")
        yield connection


def _quoted(path: Path) -> str:
    return str(path.resolve()).replace("%", "%25").replace("?", "%3f").replace("#", "%23")


def _create(path: Path) -> None:
    """A new database appears whole or not at all: it is made beside and moved into place.

    Its tables come straight from the schema, which a test keeps equal to what the migrations make.
    """
    fresh = path.with_name(f".{path.name}.new")
    for left_over in path.parent.glob(f"{fresh.name}*"):
        left_over.unlink()
    fresh.touch(mode=0o600)
    with _connected(fresh, "rw") as connection, transaction(connection):
        all_tables.create_all(connection)
        connection.execute(text("create table alembic_version (version_num varchar(32) not null)"))
        connection.execute(text("insert into alembic_version values (:head)"), {"head": HEAD})
    place_file(fresh, path)


def _foreign(path: Path, found: str | None) -> str:
    if found is None:
        return f"{path}: this is no Interlock database: move it away or name another with --db"
    return (
        f"{path}: it has schema {found}, this Interlock knows {HEAD}: "
        "use the newer Interlock that made it, or run any writing command to upgrade an older one"
    )


def _revisions() -> list[str]:
    versions = Path(__file__).parent / "migrations" / "versions"
    return sorted(file.name.split("_")[0] for file in versions.glob("[0-9]*.py"))


def _migrate(connection: Connection) -> None:
    """Alembic is loaded only when there is something to migrate: it costs time and memory."""
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
    config.attributes["connection"] = connection
    # A table that others refer to can be made anew only while references are not checked.
    connection.exec_driver_sql("pragma foreign_keys=off")
    with transaction(connection) as raw:
        command.upgrade(config, "head")
        if raw.execute("pragma foreign_key_check").fetchone():
            raise StoreError("the upgrade would leave references to nothing; it was undone")
    connection.exec_driver_sql("pragma foreign_keys=on")
