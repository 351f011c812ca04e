"""The audit: silent on a sound database, and a word for every kind of damage."""

import sqlite3
from pathlib import Path

import pytest

from interlock.journal.audit import Fault
from tests.world.world import World

SCRIPT = """\
"*": {write: {answer: {words: 5}}, judge: {answer: {mark: 4}}}
B: {write: [{raw: "?"}, {answer: {words: 6}}]}
"""


@pytest.fixture
def world(tmp_path: Path) -> World:
    """A is done, B waits to be signed, C was never asked; one answer was refused."""
    made = World(tmp_path)
    made.begin("A", "B")
    made.work(SCRIPT, inbox=True)
    for question_id, case_no in made.rows("select question_id, case_no from questions"):
        if case_no == 1:
            made.answer(int(str(question_id)), "approve")
    made.work(SCRIPT, inbox=True)
    made.begin("C")
    assert made.ends() == {"A": "done", "B": "open"}
    return made


def spoil(world: World, statement: str) -> None:
    raw = sqlite3.connect(world.db, isolation_level=None)
    changed = raw.execute(statement).rowcount
    raw.close()
    assert changed == 1


def test_a_sound_database_is_not_complained_about(world: World) -> None:
    assert world.faults() == []


LAST = "(select max(seq) from journal)"
OPEN = "(select dispatch_id from cases where case_id = 'B')"
FIRST_ANSWER = "(select answer from journal where seq = 1)"
ANSWERED_FOR_C = (
    "insert into journal select null, 3, dispatch_id, at, answer, 0, 0, decision, epoch"
    " from journal where seq = 1"
)
DAMAGE = {
    "blobs: content": (
        f"update blobs set data = x'7b7d' where blob_id = {FIRST_ANSWER}",
        ["store.altered"],
    ),
    "blobs: hash": ("update blobs set hash = x'00' where blob_id = 1", ["store.altered"]),
    "blobs: packing": (
        "update blobs set packed = 1 - packed where blob_id = 2",
        ["store.altered", "store.unreadable"],
    ),
    "blobs: gone": (
        f"delete from blobs where blob_id = {FIRST_ANSWER}",
        ["store.dangling", "store.fold"],
    ),
    "runs: circuit": ("update runs set text = 2 where run_id = 1", ["store.unreadable"]),
    "runs: options": ("update runs set options = '{' where run_id = 1", ["store.unreadable"]),
    "runs: gone": ("delete from runs where run_id = 2", ["store.dangling", "store.dangling"]),
    "cases: step": ("update cases set step = 'write' where case_id = 'B'", ["store.fold"]),
    "cases: status": ("update cases set status = 'stuck' where case_id = 'A'", ["store.fold"]),
    "cases: state": (
        "update cases set state = replace(state, '\"moves\":3', '\"moves\":2') where case_id = 'A'",
        ["store.fold"],
    ),
    "cases: unreadable state": (
        "update cases set state = '{' where case_id = 'A'",
        ["store.unreadable"],
    ),
    "cases: waits no more": (
        "update cases set dispatch_id = null where case_id = 'B'",
        ["store.lost"],
    ),
    "cases: waits for what is settled": (
        "update cases set dispatch_id = 1 where case_id = 'A'",
        ["store.unsettled"],
    ),
    "cases: waits for another's": (
        f"update cases set dispatch_id = {OPEN} where case_id = 'C'",
        ["store.missing"],
    ),
    "cases: waits for nothing": (
        "update cases set dispatch_id = 99 where case_id = 'C'",
        ["store.missing"],
    ),
    "cases: input": ("update cases set input = 99 where case_id = 'C'", None),
    "cases: gone": ("delete from cases where case_id = 'B'", None),
    "dispatches: case": (
        "update dispatches set case_no = 2 where dispatch_id = 1",
        ["store.lost", "store.foreign"],
    ),
    "dispatches: step": (
        "update dispatches set step = 'sign' where dispatch_id = 1",
        ["store.foreign"],
    ),
    "dispatches: attempt": (
        "update dispatches set attempt = 7 where dispatch_id = 1",
        ["store.foreign"],
    ),
    "dispatches: role": (
        "update dispatches set role = 'human' where dispatch_id = 1",
        ["store.question"],
    ),
    "dispatches: prompt": ("update dispatches set prompt = 99 where dispatch_id = 1", None),
    "dispatches: gone": ("delete from dispatches where dispatch_id = 1", ["store.dangling"]),
    "dispatches: one too many": (
        "insert into dispatches values (99, 3, 'write', 1, 'author', 1, 0)",
        ["store.lost"],
    ),
    "journal: gone": (
        f"delete from journal where seq = {LAST}",
        ["store.lost", "store.fold"],
    ),
    "journal: case": (
        "update journal set case_no = 2 where seq = 1",
        ["store.lost", "store.foreign", "store.fold", "store.fold"],
    ),
    "journal: dispatch": (
        f"update journal set dispatch_id = {OPEN} where seq = 1",
        None,
    ),
    "journal: decision": (
        "update journal set decision = replace(decision, 'judge', 'write') where seq = 1",
        ["store.fold"],
    ),
    "journal: unreadable decision": ("update journal set decision = '{' where seq = 1", None),
    "journal: answered for another": (
        ANSWERED_FOR_C,
        ["store.foreign", "store.epoch", "store.fold"],
    ),
    "journal: an epoch that was over": (
        f"update journal set epoch = 0 where seq = {LAST}",
        ["store.epoch"],
    ),
    "journal: an epoch to come": (
        f"update journal set epoch = 9 where seq = {LAST}",
        ["store.epoch"],
    ),
    "questions: gone": (
        f"delete from questions where question_id = {OPEN}",
        ["store.question"],
    ),
    "questions: one too many": (
        "insert into questions (question_id, case_no) values (1, 1)",
        ["store.question"],
    ),
    "refusals: content": ("update refusals set content = 1", ["store.altered"]),
    "refusals: gone content": ("update refusals set content = 99", ["store.dangling"]),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_damage_is_found(world: World, name: str) -> None:
    statement, expected = DAMAGE[name]
    spoil(world, statement)
    found = [fault.id for fault in world.faults()]
    if expected is None:
        assert found != []
    else:
        assert found == expected


def test_a_fault_says_where_and_what(world: World) -> None:
    spoil(world, "update cases set step = 'write' where case_id = 'B'")
    assert world.faults() == [
        Fault(
            "store.fold",
            "run 1, case B",
            "the journal says open at sign, its row says open at write, or they differ in loops, "
            "visits or context",
        )
    ]


def test_a_damaged_page_is_a_fault(world: World) -> None:
    ((page,),) = world.rows("select rootpage from sqlite_master where name = 'journal'")
    with world.db.open("r+b") as file:
        file.seek((int(str(page)) - 1) * 4096)
        file.write(b"\xff" * 16)
    found = {(fault.id, fault.message) for fault in world.faults()}
    assert ("store.unreadable", "database disk image is malformed") in found
