"""The memory of results in a PostgreSQL database: one table of blobs, which are only added to.

The same frames as in a folder, so that histories can be merged between both. What is worked out
from them stays on this machine, in the project's `.interlock/`.
"""

import weakref
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Final

from interlock.journal.address import PostgresAddress, beside, parse_address
from interlock.journal.connection import ERRORS, RawCursor
from interlock.journal.database import explain_errors
from interlock.rca.history.store import BlobKind, HistoryStore
from interlock.system.errors import UsageError

if TYPE_CHECKING:
    from interlock.journal.postgres import PostgresConnection

_LOCK: Final = "interlock history"
_TABLE: Final = """
CREATE TABLE IF NOT EXISTS interlock_history (
    kind TEXT NOT NULL, key TEXT NOT NULL, number BIGINT GENERATED ALWAYS AS IDENTITY,
    data BYTEA NOT NULL, PRIMARY KEY (kind, key))
"""


class PostgresStore(HistoryStore):
    """A memory that several machines share."""

    def __init__(self, word: str, project: Path = Path()) -> None:
        address = parse_address(word, project)
        if not isinstance(address, PostgresAddress):
            raise UsageError(
                f"{word} is neither a folder, postgresql://USER@HOST/NAME nor https://…"
            )
        super().__init__(str(address), beside(address, "history"))
        self._address = address
        self._server: PostgresConnection | None = None
        self._connect()

    def _connect(self) -> "PostgresConnection":
        from interlock.journal.postgres import open_driver

        with explain_errors(self._address):
            server = open_driver(self._address)
            if server.execute("SELECT to_regclass('interlock_history')").fetchone() == (None,):
                server.begin()
                server.lock(_LOCK)  # of two who come first, one makes the table
                server.execute(_TABLE)
                server.commit()
        self._server = server
        weakref.finalize(self, server.close)  # whoever asks the memory has nothing to close
        return server

    def _execute(self, sql: str, *parameters: object) -> RawCursor:
        """Every statement is a transaction. A connection that broke in between is made anew
        once."""
        with explain_errors(self._address):
            if self._server is not None:
                try:
                    return self._server.execute(sql, parameters)
                except ERRORS:
                    if not self._server.driver.closed:
                        raise
            return self._connect().execute(sql, parameters)

    def _list_keys(self, kind: BlobKind) -> list[str]:
        rows = self._execute(
            "SELECT key FROM interlock_history WHERE kind = ? ORDER BY number", kind
        )
        return [str(key) for (key,) in rows.fetchall()]

    def _read_blob(self, kind: BlobKind, key: str) -> bytes | None:
        select = "SELECT data FROM interlock_history WHERE kind = ? AND key = ?"
        row = self._execute(select, kind, key).fetchone()
        if row is None:
            self._add_problem(f"{self._describe(kind, key)} is not there")
            return None
        return bytes(row[0])

    def _create_blob(self, kind: BlobKind, key: str, data: bytes) -> bool:
        insert = (
            "INSERT INTO interlock_history (kind, key, data) VALUES (?, ?, ?) "
            "ON CONFLICT DO NOTHING RETURNING key"
        )
        return self._execute(insert, kind, key, data).fetchone() is not None

    def _replace_blob(self, kind: BlobKind, key: str, data: bytes) -> None:
        update = "UPDATE interlock_history SET data = ? WHERE kind = ? AND key = ?"
        self._execute(update, data, kind, key)

    def _remove_blobs(self, kind: BlobKind, keys: Iterable[str]) -> None:
        for key in keys:
            self._execute("DELETE FROM interlock_history WHERE kind = ? AND key = ?", kind, key)

    def _describe(self, kind: BlobKind, key: str) -> str:
        return f"{self.name}: {kind} {key}"
