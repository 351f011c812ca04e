"""Blobs: each content once, packed when that helps, with the hash of what was meant."""

import random
import sqlite3
from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.journal.database import writing
from interlock.journal.journal import BlobWriter, hash_of, read_blob
from interlock.journal.sqlite import driver
from interlock.system.errors import StoreError

TEXT = b"the same words again and again, " * 40
NOISE = random.Random(1).randbytes(600)


@pytest.fixture
def raw(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    with writing(tmp_path / "i.db") as connection:
        yield driver(connection)


def rows(raw: sqlite3.Connection) -> list[tuple[int, int, int]]:
    return raw.execute("select blob_id, packed, length(data) from blobs").fetchall()


def test_equal_contents_are_kept_once(raw: sqlite3.Connection) -> None:
    writer = BlobWriter(raw)
    assert [writer.put(data) for data in (b"a", b"b", b"a", b"", b"")] == [1, 2, 1, 3, 3]
    writer.flush(raw)
    assert writer.put(b"b") == 2
    writer.flush(raw)
    assert rows(raw) == [(1, 0, 1), (2, 0, 1), (3, 0, 0)]


def test_what_gets_smaller_is_packed_and_nothing_else(raw: sqlite3.Connection) -> None:
    writer = BlobWriter(raw)
    for data in (TEXT, NOISE, b"short " * 80):
        writer.put(data)
    writer.flush(raw)
    (_, packed, size), *others = rows(raw)
    assert (packed, size < len(TEXT) / 10, others) == (1, True, [(2, 0, 600), (3, 0, 480)])
    assert [read_blob(raw, number) for number in (1, 2, 3)] == [TEXT, NOISE, b"short " * 80]


def test_the_hash_is_of_what_was_meant(raw: sqlite3.Connection) -> None:
    writer = BlobWriter(raw)
    writer.put(TEXT)
    writer.flush(raw)
    expected = blake2b(TEXT, digest_size=16).digest()
    assert raw.execute("select hash from blobs").fetchone() == (expected,)
    assert hash_of(TEXT) == expected


def test_numbers_go_on_with_the_next_writer(raw: sqlite3.Connection) -> None:
    writer = BlobWriter(raw)
    writer.put(b"a")
    writer.flush(raw)
    assert BlobWriter(raw).put(b"b") == 2


def test_what_is_remembered_is_bounded(raw: sqlite3.Connection) -> None:
    writer = BlobWriter(raw)
    for number in range(5_000):
        writer.put(b"%d" % number)
    assert len(writer._known) <= 4_096
    assert writer.put(b"4999") == 5_000
    assert writer.put(b"0") == 5_001


@pytest.mark.parametrize(
    ("damage", "problem"),
    [
        (
            "delete from blobs",
            "blob 1 is missing: the database is damaged, restore a copy",
        ),
        (
            "update blobs set data = x'0102'",
            "blob 1 is damaged: restore a copy of the database",
        ),
        (
            "update blobs set data = 'text'",
            "blob 1 is damaged: restore a copy of the database",
        ),
    ],
    ids=["missing", "not packed", "a text"],
)
def test_damage_is_told(raw: sqlite3.Connection, damage: str, problem: str) -> None:
    writer = BlobWriter(raw)
    writer.put(TEXT)
    writer.flush(raw)
    raw.execute(damage)
    with pytest.raises(StoreError) as caught:
        read_blob(raw, 1)
    assert str(caught.value) == problem


@given(st.lists(st.binary(max_size=40).map(lambda data: data * 30), max_size=8))
def test_what_is_put_is_read(contents: list[bytes]) -> None:
    raw = sqlite3.connect(":memory:")
    raw.execute("create table blobs (blob_id integer primary key, hash, packed, data)")
    writer = BlobWriter(raw)
    numbers = [writer.put(data) for data in contents]
    writer.flush(raw)
    assert [read_blob(raw, number) for number in numbers] == contents
    assert len({*numbers}) == len({*contents})
    raw.close()
