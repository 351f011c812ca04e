"""The audit of investigations: silent where all is well, and a word for every kind of damage."""

import sqlite3
from pathlib import Path

import pytest

from interlock.journal.audit import Fault
from interlock_rca.effects import Closed
from rca_tests.worlds.suite_database import (
    APPROVED,
    Inquiry,
    failed,
    investigated,
    launched,
    triaged,
)


@pytest.fixture
def world(tmp_path: Path) -> Inquiry:
    """Suite 1 is closed, with its case at its end; suite 2 is not."""
    made = Inquiry(tmp_path)
    made.open(launched(failed("a", "f1")))
    made.work()
    made.effect(1, triaged(), investigated(), APPROVED, Closed())
    made.open(launched(failed("b", "f2", launch="L2"), failed("c"), launch_id="L2"))
    made.effect(2, triaged(), investigated())
    assert made.faults() == []
    return made


DAMAGE = {
    "launch": (
        "update launches set circuit_id = 1 where launch_id = 2",
        ["rca.suite", "rca.suite", "rca.closed"],
    ),
    "case gone": ("delete from rca_cases where case_no = 3", ["rca.missing"]),
    "engine": ("update cases set status = 'open' where case_no = 1", ["rca.early", "store.fold"]),
    "review": ("update rca_cases set decision = '' where case_no = 1", ["rca.unreviewed"]),
    "suite": (
        "update suites set status = 'closed', closed_at = 9e9 where suite_id = 2",
        ["rca.closed"],
    ),
    "link": ("delete from symptom_rca where rca_id = 2", ["store.dangling", "rca.unlinked"]),
    "orphan": ("update rca_cases set rca_id = null where case_no = 2", ["rca.orphan"]),
    "sighting": ("delete from sightings where case_no = 2", ["rca.uncounted"]),
    "count": ("insert into sightings values (1, 2, 1)", ["rca.count"]),
    "bands": ("update rca_cases set bands = '[' where case_no = 2", ["rca.unreadable"]),
    "repos": ("update triages set candidate_repos = '' where case_no = 2", ["rca.unreadable"]),
    "evidence": ("update rcas set evidence = '{' where rca_id = 2", ["rca.unreadable"]),
    "payload": ("update launches set payload = '{' where launch_id = 2", ["rca.unreadable"]),
    "symptom gone": ("delete from symptoms where symptom_id = 2", ["store.dangling"] * 3),
    "job gone": ("delete from jobs where job_id = 2", ["store.dangling"] * 2),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_damage_is_found(world: Inquiry, name: str) -> None:
    statement, expected = DAMAGE[name]
    raw = sqlite3.connect(world.db, isolation_level=None)
    changed = raw.execute(statement).rowcount
    raw.close()
    assert changed == 1
    assert [fault.id for fault in world.faults()] == expected


def test_a_fault_says_where_and_what(world: Inquiry) -> None:
    raw = sqlite3.connect(world.db, isolation_level=None)
    raw.execute("update rca_cases set rca_id = null where case_no = 2")
    raw.close()
    assert world.faults() == [
        Fault("rca.orphan", "root cause 2", "it is open, and its case has another one or none")
    ]
