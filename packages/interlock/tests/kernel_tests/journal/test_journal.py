"""The journal: what a turn writes is written whole or not at all, and gives back the state it was
told. Blobs: each content once, packed when that helps, with the hash of what was meant.
"""

import json
import random
import sqlite3
from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interlock.engine.advance import advance, apply, open_case
from interlock.engine.case import OPEN, Decision, Signal, Usage
from interlock.engine.circuit import Circuit
from interlock.engine.circuit_file import CircuitSource
from interlock.journal.address import DatabaseAddress
from interlock.journal.connection import CONFLICTS, Connection, RawConnection
from interlock.journal.database import open_writer
from interlock.journal.history import list_cases
from interlock.journal.journal import (
    BlobWriter,
    CaseRow,
    Journal,
    JournalEntry,
    NewDispatch,
    Refusal,
    TurnWrites,
    build_state,
    hash_blob,
    read_blob,
)
from interlock.journal.runs import NewCase, NewRun, begin_run, load_cases
from interlock.system.errors import StoreError
from tests.world.generated_circuits import circuits, signals
from tests.world.world import World

TABLES = ("blobs", "cases", "dispatches", "journal", "questions", "refusals", "runs")
DECISION = Decision("write", 1, "artifact", "open", "judge")


@pytest.fixture
def connection(tmp_path: Path, db: DatabaseAddress) -> Iterator[Connection]:
    """A run with the cases 1 and 2."""
    world = World(tmp_path, db=db)
    world.begin("A", "B")
    with open_writer(db) as opened:
        yield opened


def everything(connection: Connection) -> dict[str, list[tuple[object, ...]]]:
    raw = connection.raw
    return {name: raw.execute(f"select * from {name} order by 1").fetchall() for name in TABLES}


def dispatch(number: int, case_no: int = 1, *, human: bool = False) -> NewDispatch:
    return NewDispatch(number, case_no, "write", 1, "author", f"prompt {number}", human)


def entry(number: int, case_no: int = 1, answer: bytes = b"{}") -> JournalEntry:
    return JournalEntry(case_no, number, DECISION, answer, Usage(3, 0.5))


def test_a_batch_is_written_whole(connection: Connection) -> None:
    case = open_case(World(Path()).circuit, "A", {})
    batch = TurnWrites(
        at=5.0,
        entries=[entry(1), JournalEntry(2, 2, DECISION, b"{}", Usage(), "ann")],
        dispatches=[dispatch(1), dispatch(2, 2, human=True), dispatch(3)],
        cases={1: CaseRow(1, case, 3)},
        refusals=[Refusal(1, 9, "Stale", "Too late.", b"?")],
        seconds=2.5,
        status="waiting",
    )
    Journal(connection, 1).commit(batch)
    found = everything(connection)
    assert [row[:4] for row in found["dispatches"]] == [
        (1, 1, "write", 1),
        (2, 2, "write", 1),
        (3, 1, "write", 1),
    ]
    assert [row[1:4] for row in found["journal"]] == [(1, 1, 5.0), (2, 2, 5.0)]
    assert found["questions"] == [(2, 2, 5.0, "ann")]
    assert [row[1:7] for row in found["refusals"]] == [(1, 1, 9, 5.0, "Stale", "Too late.")]
    assert [row[8] for row in found["cases"]] == [3, None]
    assert connection.raw.execute("select status, seconds from runs").fetchone() == (
        "waiting",
        2.5,
    )


BROKEN = {
    "an answer twice": TurnWrites(
        at=6.0,
        dispatches=[dispatch(2, 2)],
        entries=[entry(2, 2, b"new"), entry(1), entry(3, 2)],
        refusals=[Refusal(1, 9, "Stale", "Too late.", b"?")],
        status="done",
    ),
    "a dispatch twice": TurnWrites(at=6.0, dispatches=[dispatch(2), dispatch(1)]),
    "an answer to nothing": TurnWrites(at=6.0, dispatches=[dispatch(2)], entries=[entry(99)]),
    "a status that is none": TurnWrites(at=6.0, dispatches=[dispatch(2)], status="perhaps"),
    "a case that is none": TurnWrites(at=6.0, dispatches=[dispatch(2), dispatch(3, 99)]),
}


@pytest.mark.parametrize("batch", BROKEN.values(), ids=BROKEN)
def test_a_batch_that_breaks_a_key_leaves_nothing(
    connection: Connection, batch: TurnWrites
) -> None:
    journal = Journal(connection, 1)
    journal.commit(TurnWrites(at=5.0, dispatches=[dispatch(1)], entries=[entry(1)]))
    before = everything(connection)
    with pytest.raises(CONFLICTS):
        journal.commit(batch)
    assert everything(connection) == before
    journal.commit(TurnWrites(at=7.0, dispatches=[dispatch(2, 2)], entries=[entry(2, 2, b"new")]))
    assert len(everything(connection)["journal"]) == 2


def test_a_refusal_is_kept_once_per_content(connection: Connection) -> None:
    same = [Refusal(1, 9, "Stale", "Too late.", content) for content in (b"x", b"x", b"y")]
    journal = Journal(connection, 1)
    journal.commit(TurnWrites(at=5.0, refusals=same))
    journal.commit(TurnWrites(at=6.0, refusals=same))
    Journal(connection, 1).commit(TurnWrites(at=7.0, refusals=same))
    assert [row[4] for row in everything(connection)["refusals"]] == [5.0, 5.0]


def test_a_huge_refused_answer_is_kept_in_part(connection: Connection) -> None:
    journal = Journal(connection, 1)
    journal.commit(
        TurnWrites(at=5.0, refusals=[Refusal(1, 9, "Malformed", "No.", b"x" * 10_000_000)])
    )
    query = "select length(b.data) < 1000, b.packed from refusals r join blobs b on blob_id=content"
    assert connection.raw.execute(query).fetchone() == (1, 1)


def test_numbers_of_dispatches_rise_and_are_never_given_twice(connection: Connection) -> None:
    first = Journal(connection, 1)
    numbers = [first.take_dispatch_id() for _ in range(3)]
    first.commit(TurnWrites(at=5.0, dispatches=[dispatch(number) for number in numbers]))
    assert numbers == [1, 2, 3]
    assert Journal(connection, 2).take_dispatch_id() > 3
    assert first.take_dispatch_id() > 3


def test_effects_are_carried_out_in_order_and_kept_with_the_batch(connection: Connection) -> None:
    seen: list[tuple[object, ...]] = []

    def look(raw: RawConnection, at: float) -> None:
        (priority,) = raw.execute("select max(priority) from cases").fetchone()
        seen.append((priority, at, raw.in_transaction))
        raw.execute("update cases set priority = priority * 2 + ?", (len(seen),))

    journal = Journal(connection, 1)
    before = everything(connection)
    journal.apply_effect(look, 5.0)
    journal.apply_effect(look, 5.0)
    assert seen == [(0, 5.0, True), (1, 5.0, True)]
    connection.raw.rollback()
    assert everything(connection) == before
    journal.apply_effect(look, 6.0)
    journal.commit(TurnWrites(at=6.0, dispatches=[dispatch(1)], entries=[entry(1)]))
    assert not connection.raw.in_transaction
    assert [row[4] for row in everything(connection)["cases"]] == [3, 3]
    assert len(everything(connection)["journal"]) == 1


def test_an_effect_that_fails_leaves_neither_decision_nor_effect(connection: Connection) -> None:
    def half(raw: RawConnection, at: float) -> None:
        raw.execute("update cases set priority = 7")

    def fail(raw: RawConnection, at: float) -> None:
        raise ValueError("no")

    journal = Journal(connection, 1)
    before = everything(connection)
    journal.apply_effect(half, 5.0)
    with pytest.raises(ValueError, match="no"):
        journal.apply_effect(fail, 5.0)
    assert everything(connection) == before
    assert not connection.raw.in_transaction
    journal.apply_effect(half, 5.0)
    with pytest.raises(CONFLICTS):
        journal.commit(TurnWrites(at=5.0, entries=[entry(99)]))
    assert everything(connection) == before
    journal.apply_effect(half, 5.0)
    journal.commit(TurnWrites(at=5.0, dispatches=[dispatch(1)], entries=[entry(1)]))
    assert [row[4] for row in everything(connection)["cases"]] == [7, 7]


def make_started(folder: str, circuit: Circuit) -> World:
    world = World(Path(folder))
    with open_writer(world.db) as connection:
        new = NewRun(circuit=circuit, text="", source="", fingerprint="", options={}, at=0.0)
        begin_run(connection, new, [NewCase("A", {"id": "A"})])
    return world


@settings(max_examples=50)
@given(written=circuits(), data=st.data())
def test_the_fold_of_the_journal_is_the_state(written: CircuitSource, data: st.DataObject) -> None:
    circuit = written.circuit
    case = open_case(circuit, "A", {"id": "A"})
    with TemporaryDirectory() as folder:
        world = make_started(folder, circuit)
        with open_writer(world.db) as connection:
            journal = Journal(connection, 1)
            while case.status == OPEN and case.moves <= 12:
                number = journal.take_dispatch_id()
                step = circuit.steps[case.step]
                asked = NewDispatch(number, 1, case.step, case.attempt, step.role, "", step.gate)
                signal: Signal = data.draw(signals(circuit, case.step))
                decision = advance(circuit, case, signal)
                case = apply(circuit, case, decision, signal.data)
                answer = json.dumps(signal.data).encode()
                standing = CaseRow(1, case, None)
                journal.commit(
                    TurnWrites(
                        0.0, [JournalEntry(1, number, decision, answer)], [asked], {1: standing}
                    )
                )
            (loaded,) = load_cases(connection, circuit, 1, whole=True)
            (row,) = list_cases(connection, 1)
        assert loaded.case == case
        assert (row.status, row.step, row.state) == (case.status, case.step, build_state(case))


TEXT = b"the same words again and again, " * 40
NOISE = random.Random(1).randbytes(600)


@pytest.fixture
def raw(db: DatabaseAddress) -> Iterator[RawConnection]:
    with open_writer(db) as connection:
        yield connection.raw


def rows(raw: RawConnection) -> list[tuple[int, int, int]]:
    return raw.execute("select blob_id, packed, length(data) from blobs order by 1").fetchall()


def test_equal_contents_are_kept_once(raw: RawConnection) -> None:
    writer = BlobWriter(raw)
    assert [writer.put(data) for data in (b"a", b"b", b"a", b"", b"")] == [1, 2, 1, 3, 3]
    writer.flush(raw)
    assert writer.put(b"b") == 2
    writer.flush(raw)
    assert rows(raw) == [(1, 0, 1), (2, 0, 1), (3, 0, 0)]


def test_what_gets_smaller_is_packed_and_nothing_else(raw: RawConnection) -> None:
    writer = BlobWriter(raw)
    for data in (TEXT, NOISE, b"short " * 80):
        writer.put(data)
    writer.flush(raw)
    (_, packed, size), *others = rows(raw)
    assert (packed, size < len(TEXT) / 10, others) == (1, True, [(2, 0, 600), (3, 0, 480)])
    assert [read_blob(raw, number) for number in (1, 2, 3)] == [TEXT, NOISE, b"short " * 80]


def test_the_hash_is_of_what_was_meant(raw: RawConnection) -> None:
    writer = BlobWriter(raw)
    writer.put(TEXT)
    writer.flush(raw)
    expected = blake2b(TEXT, digest_size=16).digest()
    assert raw.execute("select hash from blobs").fetchone() == (expected,)
    assert hash_blob(TEXT) == expected


def test_numbers_go_on_with_the_next_writer(raw: RawConnection) -> None:
    writer = BlobWriter(raw)
    writer.put(b"a")
    writer.flush(raw)
    assert BlobWriter(raw).put(b"b") > 1


def test_what_is_remembered_is_bounded(raw: RawConnection) -> None:
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
            "update blobs set data = substr(data, 2)",
            "blob 1 is damaged: restore a copy of the database",
        ),
    ],
    ids=["missing", "not packed"],
)
def test_damage_is_told(raw: RawConnection, damage: str, problem: str) -> None:
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
