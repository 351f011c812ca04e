"""A workspace's database: opened, made or upgraded, with one writer at a time.

The writer holds a lock file that dies with its process and names it to whoever comes second.
Readers open read-only and never wait. Errors say what to do.
"""

import json
import os
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
from sqlalchemy import Connection

from interlock.journal.sqlite import (
    ERRORS,
    connect,
    explain_error,
    make_durable,
    read_revision,
    run_script,
    schema_transaction,
)
from interlock.system.errors import NoDatabaseError, StoreError
from interlock.system.files import make_own_folder, private_mode, rename_synced
from interlock.system.locks import BRIEFLY, LockHeldError, hold_lock, lock_owner

HEAD = "0005"
"""The newest revision in migrations/versions; a database at HEAD opens without loading alembic."""
_HERE = Path(__file__).parent


class Writer(msgspec.Struct, frozen=True):
    """The process that holds a database."""

    pid: int
    host: str
    command: str

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host} ({self.command})"


@contextmanager
def hold_writer_lock(path: Path) -> Iterator[None]:
    """Be the one writer, or StoreError with the name of the one who is."""
    command = " ".join([Path(sys.argv[0]).name, *sys.argv[1:3]])
    me = {"pid": os.getpid(), "host": socket.gethostname(), "command": command}
    try:
        # Somebody who only looks whether there is a writer holds it for a moment.
        with hold_lock(_find_lock_file(path), json.dumps(me).encode(), wait=BRIEFLY):
            yield
    except LockHeldError as held:
        who = _parse_writer(held.owner) or "another process"
        raise StoreError(
            f"{path} is in use by {who}; wait for it, or 'interlock stop' it"
        ) from None


def find_writer(path: Path) -> Writer | None:
    """Who writes to the database at this moment."""
    owner = lock_owner(_find_lock_file(path))
    return None if owner is None else _parse_writer(owner)


def _find_lock_file(path: Path) -> Path:
    return path.with_name(f"{path.name}.lock")


def _parse_writer(owner: bytes) -> Writer | None:
    try:
        return msgspec.json.decode(owner, type=Writer)
    except msgspec.DecodeError:
        return None


@contextmanager
def open_writer(path: Path) -> Iterator[Connection]:
    """The one connection that may write, made and brought up to date if need be."""
    with explain_errors(path):
        make_own_folder(path.parent)
        with hold_writer_lock(path):
            if not path.exists():
                _create(path)
            with connect(path, "rw") as connection:
                found = read_revision(connection)
                if found not in _list_revisions():
                    raise StoreError(_describe_foreign(path, found))
                make_durable(connection)
                if found != HEAD:
                    _migrate(connection)
                yield connection


@contextmanager
def open_reader(path: Path) -> Iterator[Connection]:
    """A connection that sees what is committed and can change nothing."""
    if not path.exists():
        raise NoDatabaseError(f"there is no database at {path}")
    with explain_errors(path), connect(path, "ro") as connection:
        found = read_revision(connection)
        if found != HEAD:
            raise StoreError(_describe_foreign(path, found))
        yield connection


@contextmanager
def explain_errors(path: Path) -> Iterator[None]:
    """Errors of the database and of the system, in words that say what to do."""
    try:
        yield
    except ERRORS as error:
        raise StoreError(explain_error(path, error)) from error
    except BrokenPipeError:
        raise  # somebody's output, never the database
    except OSError as error:
        place = error.filename or path
        problem = f"{place}: {error.strerror or error}; check the path and its rights"
        raise StoreError(problem) from error


def _create(path: Path) -> None:
    """A new database appears whole or not at all: it is made beside and moved into place.

    Its tables come from a script, which a test keeps equal to what the migrations make.
    """
    fresh = path.with_name(f".{path.name}.new")
    for left_over in path.parent.glob(f"{fresh.name}*"):
        left_over.unlink()
    fresh.touch(mode=0o600)
    fresh.chmod(private_mode(path.parent))  # its log and index get the same rights
    with connect(fresh, "rw") as connection:
        run_script(connection, (_HERE / "schema.sql").read_text(encoding="utf-8"))
    rename_synced(fresh, path)


def _describe_foreign(path: Path, found: str | None) -> str:
    if found is None:
        return f"{path}: this is not an Interlock database: move it away or name another with --db"
    return (
        f"{path}: it has schema {found}, this Interlock knows {HEAD}: "
        "use the newer Interlock that made it, or run any writing command to upgrade an older one"
    )


def _list_revisions() -> list[str]:
    versions = _HERE / "migrations" / "versions"
    return sorted(file.name.split("_")[0] for file in versions.glob("[0-9]*.py"))


def _migrate(connection: Connection) -> None:
    """Alembic is loaded only when there is something to migrate: it costs time and memory."""
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(_HERE / "migrations"))
    config.attributes["connection"] = connection
    with schema_transaction(connection):
        command.upgrade(config, "head")
