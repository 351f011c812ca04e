"""Where people leave what a run shall find: answers at gates, replies to agents.

Messages have a name, are written whole, and only once. Beside a SQLite file they are files in a
folder, so that they can be left while a run holds the file; on PostgreSQL they are rows, so that
colleagues on any host share one inbox. Whose message it is, is the system's word: the owner of the
file, or the database's user.
"""

import stat
import time
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import msgspec

from interlock.journal.address import DatabaseAddress, PostgresAddress, beside
from interlock.journal.connection import ERRORS, RawCursor
from interlock.journal.database import explain_errors
from interlock.journal.ownership import CHANNEL
from interlock.system.files import UnreadableFile, create_file, make_private_folder, read_file

if TYPE_CHECKING:
    from interlock.journal.postgres import PostgresConnection

_SUFFIX = ".json"


class MessageName(msgspec.Struct, frozen=True):
    """A message, and what changes when another takes its name."""

    name: str
    stamp: float


class Mailbox(Protocol):
    """Messages of one kind."""

    def put(self, name: str, body: bytes, run_id: int | None = None) -> bool:
        """Leave a message for that run; False if there is one of that name."""

    def read(self, name: str, most: int) -> bytes | UnreadableFile:
        """What it says, or why it cannot be read."""

    def find_owner(self, name: str) -> str:
        """Who left it."""

    def list_names(self) -> list[MessageName]:
        """All messages, by name."""

    def remove(self, name: str) -> None:
        """Take it out, if it is there."""


class FolderMailbox:
    """Messages are files."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def put(self, name: str, body: bytes, run_id: int | None = None) -> bool:
        make_private_folder(self._folder)
        return create_file(self._path(name), body)

    def read(self, name: str, most: int) -> bytes | UnreadableFile:
        return read_file(self._path(name), most)

    def find_owner(self, name: str) -> str:
        try:
            return self._path(name).owner()
        except (KeyError, OSError):
            return "somebody unknown"

    def list_names(self) -> list[MessageName]:
        if not self._folder.is_dir():
            return []
        found = []
        for path in sorted(self._folder.glob(f"[0-9]*{_SUFFIX}")):
            try:
                about = path.stat()
            except OSError:
                continue  # taken out meanwhile
            if stat.S_ISREG(about.st_mode):
                found.append(MessageName(path.name.removesuffix(_SUFFIX), about.st_mtime))
        return found

    def remove(self, name: str) -> None:
        self._path(name).unlink(missing_ok=True)

    def _path(self, name: str) -> Path:
        return self._folder / f"{name}{_SUFFIX}"


class TableMailbox:
    """Messages are rows; over a connection of its own, made when it is needed."""

    def __init__(self, address: PostgresAddress, box: str) -> None:
        self._address = address
        self._box = box
        self._server: PostgresConnection | None = None

    def __del__(self) -> None:
        if self._server is not None:
            self._server.close()

    def put(self, name: str, body: bytes, run_id: int | None = None) -> bool:
        row = (self._box, name, body, run_id, time.time())
        put = (
            "insert into mail (box, name, body, run_id, at) values (?, ?, ?, ?, ?)"
            " on conflict do nothing"
        )
        is_new = self._execute(put, *row).rowcount == 1
        if is_new:
            self._execute("select pg_notify(?, ?)", CHANNEL, str(run_id or ""))
        return is_new

    def read(self, name: str, most: int) -> bytes | UnreadableFile:
        query = "select substr(body, 1, ?) from mail where box = ? and name = ?"
        row = self._execute(query, most + 1, self._box, name).fetchone()
        if row is None:
            return UnreadableFile(f"{name} is not there", "gone")
        found = bytes(row[0])
        if len(found) > most:
            return UnreadableFile(f"{name} has more than {most:,} bytes", "large")
        return found

    def find_owner(self, name: str) -> str:
        query = "select written_by from mail where box = ? and name = ?"
        row = self._execute(query, self._box, name).fetchone()
        return row[0] if row else "somebody unknown"

    def list_names(self) -> list[MessageName]:
        query = "select name, at from mail where box = ? order by name"
        return [MessageName(*row) for row in self._execute(query, self._box)]

    def remove(self, name: str) -> None:
        self._execute("delete from mail where box = ? and name = ?", self._box, name)

    def _execute(self, sql: str, *parameters: object) -> RawCursor:
        """A connection that broke while nobody wrote is made anew once."""
        with explain_errors(self._address):
            if self._server is not None:
                try:
                    return self._server.execute(sql, parameters)
                except ERRORS:
                    if not self._server.driver.closed:
                        raise
                self._server.close()
            from interlock.journal.postgres import open_driver

            self._server = open_driver(self._address)
            return self._server.execute(sql, parameters)


def open_mailbox(db: DatabaseAddress, box: str) -> Mailbox:
    """The messages of that kind about runs of a database."""
    if isinstance(db, Path):
        return FolderMailbox(beside(db, box))
    return TableMailbox(db, box)


def as_mailbox(place: Path | Mailbox) -> Mailbox:
    """A folder as what it is here."""
    return FolderMailbox(place) if isinstance(place, Path) else place
