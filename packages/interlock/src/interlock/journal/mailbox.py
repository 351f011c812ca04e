"""The mail of runs: answers at gates, questions of agents, and the replies.

Messages are rows of the table `mail`. Each has a name, and is written whole and once: the first of
a name counts. They can be left while a run works on the database, which looks for them a few times
a second. The system names the author: the user of the process, or of the server.
"""

import os
import pwd
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from interlock.journal.address import DatabaseAddress, PostgresAddress
from interlock.journal.connection import ERRORS
from interlock.journal.database import explain_errors, open_reader, write_beside
from interlock.journal.ownership import CHANNEL
from interlock.journal.server import ServerConnection, load_driver
from interlock.system.errors import NoDatabaseError

_RECENT = 2.0
"""Seconds, far longer than the resolution of file times."""
_PUT = (
    "insert into mail (box, name, body, run_id, at, written_by) values (?, ?, ?, ?, ?, ?)"
    " on conflict do nothing"
)
_PUT_ON_SERVER = (
    "insert into mail (box, name, body, run_id, at) values (?, ?, ?, ?, ?) on conflict do nothing"
)


class MessageName(msgspec.Struct, frozen=True):
    """A message's name, and a stamp that changes when another message takes the name."""

    name: str
    stamp: float


class Message(msgspec.Struct, frozen=True):
    """A message's text, and the user who left it."""

    body: bytes
    written_by: str
    is_cut: bool
    """True if the message is longer than requested."""


class Mailbox:
    """The messages of one kind about all runs of a database."""

    def __init__(self, db: DatabaseAddress, box: str) -> None:
        self._db = db
        self._box = box
        self._server: ServerConnection | None = None
        self._looked_at: tuple[object, ...] | None = None
        self._names: list[MessageName] = []

    def __del__(self) -> None:
        if self._server is not None:
            self._server.close()

    def put(self, name: str, body: bytes, run_id: int | None = None) -> bool:
        """Leave a message for that run; return False if its name is taken."""
        return bool(self.put_all({name: body}, run_id))

    def put_all(self, bodies: Mapping[str, bytes], run_id: int | None = None) -> list[str]:
        """Leave messages for that run, by name; return the names that were free."""
        on_server = not isinstance(self._db, Path)
        put = _PUT_ON_SERVER if on_server else _PUT
        user = () if on_server else (_find_user(),)
        with write_beside(self._db) as raw:
            found = [
                name
                for name, body in bodies.items()
                if raw.execute(put, (self._box, name, body, run_id, time.time(), *user)).rowcount
            ]
            if found and on_server:
                raw.execute("select pg_notify(?, ?)", (CHANNEL, str(run_id or "")))
        return found

    def find(self, name: str, most: int) -> Message | None:
        """Return a message with at most `most` bytes of its body, or None if it does not exist."""
        rows = self._read(
            "select substr(body, 1, ?), written_by, length(body) from mail"
            " where box = ? and name = ?",
            *(most, self._box, name),
        )
        for body, written_by, length in rows:
            return Message(bytes(body or b""), written_by, length > most)
        return None

    def list_names(self) -> list[MessageName]:
        """Return all messages, by name; cheap while nobody writes to a SQLite file."""
        now = _stat(self._db) if isinstance(self._db, Path) else None
        if now is None or now != self._looked_at:
            query = "select name, at from mail where box = ? order by name"
            self._names = [MessageName(*row) for row in self._read(query, self._box)]
            self._looked_at = now
        return self._names

    def remove(self, name: str) -> None:
        """Delete a message, if it exists."""
        if self.find(name, 0) is not None:
            with write_beside(self._db) as raw:
                raw.execute("delete from mail where box = ? and name = ?", (self._box, name))

    def _read(self, sql: str, *parameters: object) -> list[Any]:
        if not isinstance(self._db, Path):
            return self._read_server(self._db, sql, *parameters)
        try:
            with open_reader(self._db) as connection:
                return connection.raw.execute(sql, parameters).fetchall()
        except NoDatabaseError:
            return []

    def _read_server(self, address: PostgresAddress, sql: str, *parameters: object) -> list[Any]:
        """Read over a kept connection; replace one that broke in the meantime."""
        with explain_errors(address):
            if self._server is not None:
                try:
                    return list(self._server.execute(sql, parameters))
                except ERRORS:
                    if not self._server.driver.closed:
                        raise
                self._server.close()
            self._server = load_driver().open_driver(address)
            return list(self._server.execute(sql, parameters))


def _stat(path: Path) -> tuple[object, ...] | None:
    """Return a stamp of a SQLite file and its log; None if one was changed a moment ago.

    Such a file may change again within the resolution of its time.
    """
    found = []
    for file in (path, path.with_name(f"{path.name}-wal")):
        try:
            about = file.stat()
        except OSError:
            found.append((0, 0, 0))
            continue
        if abs(time.time() - about.st_mtime) < _RECENT:
            return None
        found.append((about.st_ino, about.st_size, about.st_mtime_ns))
    return tuple(found)


def _find_user() -> str:
    """Return the user that the process runs as, regardless of its environment."""
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return f"user {os.geteuid()}"
