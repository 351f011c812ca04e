"""Prompts, answers and other texts, kept once per content outside the rows that mention them.

Rows refer to a blob by its number: numbers rise, so a commit appends a few full pages instead of
touching one page per hash. The hash stands beside the text; doctor compares the two.
"""

import sqlite3
import zlib
from hashlib import blake2b

from interlock.system.errors import StoreError

_PACK_FROM = 512
_REMEMBERED = 4096

Row = tuple[int, bytes, int, bytes]


def hash_of(data: bytes) -> bytes:
    return blake2b(data, digest_size=16).digest()


class BlobWriter:
    """Gives each content a number and collects the rows that are not yet in the database."""

    def __init__(self, raw: sqlite3.Connection) -> None:
        self._next = (raw.execute("select max(blob_id) from blobs").fetchone()[0] or 0) + 1
        self._known: dict[bytes, int] = {}
        self.rows: list[Row] = []

    def put(self, data: bytes) -> int:
        digest = hash_of(data)
        number = self._known.get(digest)
        if number is not None:
            return number
        number = self._next
        self._next += 1
        if len(self._known) >= _REMEMBERED:
            self._known.clear()
        self._known[digest] = number
        packed = zlib.compress(data, 1) if len(data) >= _PACK_FROM else data
        smaller = len(packed) < len(data)
        self.rows.append((number, digest, int(smaller), packed if smaller else data))
        return number

    def flush(self, raw: sqlite3.Connection) -> None:
        """Write the collected rows; belongs inside the transaction that refers to them."""
        if self.rows:
            raw.executemany("insert into blobs values (?, ?, ?, ?)", self.rows)
            self.rows = []


def read_blob(raw: sqlite3.Connection, number: int) -> bytes:
    row = raw.execute("select packed, data from blobs where blob_id = ?", (number,)).fetchone()
    if row is None:
        raise StoreError(f"blob {number} is missing: the database is damaged, restore a copy")
    try:
        return zlib.decompress(row[1]) if row[0] else bytes(row[1])
    except (zlib.error, TypeError):
        raise StoreError(f"blob {number} is damaged: restore a copy of the database") from None
