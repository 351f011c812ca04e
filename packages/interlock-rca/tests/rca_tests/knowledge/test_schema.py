"""The tables of investigations and knowledge refuse what must never be."""

import sqlite3
from pathlib import Path

import pytest

from interlock.system.errors import StoreError
from rca_tests.worlds.suite_database import (
    APPROVED,
    Inquiry,
    failed,
    investigated,
    launched,
    triaged,
)

FOREIGN = "FOREIGN KEY constraint failed"
CHECK = "CHECK constraint failed: "
UNIQUE = "UNIQUE constraint failed: "
SYMPTOM = "insert into symptoms values (9, {}, 'n', '', '', '', '', '', {}, {}, {}, {})"
RCA = (
    "insert into rcas values (9, {case_no}, {attempt}, '', '', '', '{category}', '', '[]', '[]',"
    " {score}, '', '', '{status}', 5, {dates})"
)


def symptom(
    mark: str = "'f9'", first: int = 1, last: int = 2, count: int = 1, status: str = "active"
) -> str:
    return SYMPTOM.format(mark, first, last, count, f"'{status}'")


def rca(
    status: str = "archived",
    dates: str = "null, null, 6",
    *,
    case_no: int = 2,
    attempt: int = 1,
    category: str = "product",
    score: str = "0.5",
) -> str:
    return RCA.format(
        case_no=case_no, attempt=attempt, category=category, score=score, status=status, dates=dates
    )


def case(**columns: object) -> str:
    changes = ", ".join(f"{name} = {value}" for name, value in columns.items())
    return f"update rca_cases set {changes} where case_no = 2"


REFUSED = {
    "a suite of no run": ("insert into suites values (9, 9, '', '', 'open', 1, null)", FOREIGN),
    "two suites of a run": ("insert into suites values (9, 1, '', '', 'open', 1, null)", UNIQUE),
    "a suite half closed": ("update suites set status = 'closed'", CHECK + "suite_closed"),
    "a suite of no status": ("update suites set status = 'active'", CHECK + "suite_status"),
    "a suite closed too early": (
        "update suites set status = 'closed', closed_at = 1",
        CHECK + "suite_times",
    ),
    "a version twice": ("insert into versions values (9, '1.0')", UNIQUE),
    "a circuit of no suite": ("insert into circuits values (9, 9, 1, '', '', 1, 1)", FOREIGN),
    "a circuit of no version": ("insert into circuits values (9, 1, 9, '', '', 1, 1)", FOREIGN),
    "a launch of no circuit": ("update launches set circuit_id = 9", FOREIGN),
    "a job of no launch": ("insert into jobs values (9, 9, 1, '', '', '', 0, 0, 0, 1, 1)", FOREIGN),
    "a case of no engine case": ("update rca_cases set case_no = 9 where case_no = 2", FOREIGN),
    "a case of no job": (case(job_id=9), FOREIGN),
    "a case in another launch than its job": (case(launch_id=2), FOREIGN),
    "one failure twice": (case(failure_id="'a'"), UNIQUE),
    "a case of no symptom": (case(symptom_id=9), FOREIGN),
    "a case of no root cause": (case(rca_id=9), FOREIGN),
    "a case of what is not linked": (case(symptom_id=2, rca_id=1), FOREIGN),
    "a case of no status": (case(status="'active'"), CHECK + "rca_case_status"),
    "a case reviewed by nobody": (case(status="'reviewed'"), CHECK + "rca_case_reviewed"),
    "a decision of no meaning": (case(decision="'maybe'"), CHECK + "rca_case_decision"),
    "a triage of no case": (
        "insert into triages values (9, 'product', '', '', '[]', 0, 0, 0, '', 1)",
        FOREIGN,
    ),
    "a triage of no category": (
        "update triages set category = 'timeout'",
        CHECK + "triage_category",
    ),
    "a second triage": (
        "insert into triages values (1, 'product', '', '', '[]', 0, 0, 0, '', 1)",
        UNIQUE,
    ),
    "a fingerprint twice": (symptom("'f1'"), UNIQUE),
    "no fingerprint": (symptom("''"), CHECK + "symptom_fingerprint"),
    "a symptom never seen": (symptom(count=0), CHECK + "symptom_count"),
    "a symptom seen last before first": (symptom(first=3), CHECK + "symptom_times"),
    "a symptom of no status": (symptom(status="gone"), CHECK + "symptom_status"),
    "a band of no symptom": ("insert into symptom_bands values (1, 9)", FOREIGN),
    "a sighting of no symptom": ("insert into sightings values (9, 1, 1)", FOREIGN),
    "a sighting by no case": ("insert into sightings values (1, 9, 1)", FOREIGN),
    "a case counted twice": ("insert into sightings values (1, 1, 1)", UNIQUE),
    "a link to no symptom": ("insert into symptom_rca values (9, 1, 1, 1, '', 1)", FOREIGN),
    "a link to no root cause": ("insert into symptom_rca values (1, 9, 1, 1, '', 1)", FOREIGN),
    "a link twice": ("insert into symptom_rca values (1, 1, 1, 1, '', 1)", UNIQUE),
    "too sure a link": ("update symptom_rca set confidence = 1.01", CHECK + "link_confidence"),
    "a link a case relies on": ("delete from symptom_rca", FOREIGN),
    "a symptom a case relies on": ("delete from symptoms where symptom_id = 1", FOREIGN),
    "a root cause of no case": (rca(case_no=9), FOREIGN),
    "a root cause twice": (rca(case_no=1), UNIQUE),
    "two open root causes": (rca("open", "null, null, null", case_no=1, attempt=2), UNIQUE),
    "an attempt below none": (rca(attempt=-1), CHECK + "rca_attempt"),
    "a cause of no category": (rca(category="system"), CHECK + "rca_category"),
    "a score above one": (rca(score="1.5"), CHECK + "rca_score"),
    "a score below none": (rca(score="-0.1"), CHECK + "rca_score"),
    "a cause of no status": (rca("fixed"), CHECK + "rca_status"),
    "archived and never": (rca("archived", "null, null, null"), CHECK + "rca_archived"),
    "open and archived": (rca("open", "null, null, 6"), CHECK + "rca_archived"),
    "open and resolved": (rca("open", "6, null, null"), CHECK + "rca_resolved"),
    "resolved and never": (rca("resolved", "null, null, null"), CHECK + "rca_resolved"),
    "resolved and verified": (rca("resolved", "6, 7, null"), CHECK + "rca_verified"),
    "verified and never resolved": (rca("verified", "null, 7, null"), CHECK + "rca_resolved"),
    "resolved before it was found": (rca("resolved", "4, null, null"), CHECK + "rca_times"),
    "verified before it was resolved": (rca("verified", "7, 6, null"), CHECK + "rca_times"),
}


@pytest.fixture
def world(tmp_path: Path) -> Inquiry:
    """Case 1 has all there is; 2 nothing; 3 another symptom, in another launch."""
    made = Inquiry(tmp_path)
    other = launched(failed("c", "f2", launch="L2"), launch_id="L2")
    made.open(launched(failed("a", "f1", bands=(1,)), failed("b")), other)
    made.effect(1, triaged(), investigated(), APPROVED)
    made.effect(3, triaged())
    return made


@pytest.mark.parametrize("name", REFUSED)
def test_what_must_never_be_is_refused(world: Inquiry, name: str) -> None:
    statement, problem = REFUSED[name]
    with pytest.raises(StoreError) as caught:
        world.change(statement)
    assert f"SQLite says: {problem}" in str(caught.value)
    assert isinstance(caught.value.__cause__, sqlite3.IntegrityError)


@pytest.mark.parametrize(
    "statement",
    [
        symptom(),
        rca(),
        rca("archived", "6, 7, 8"),
        rca("verified", "6, 6, null", score="null"),
        rca("resolved", "5, null, null", score="1"),
        rca("open", "null, null, null", score="0"),
        rca("archived", case_no=1, attempt=0),
        case(symptom_id=1, rca_id=1),
        case(symptom_id=2),
        case(rca_id=1),
        "insert into symptom_rca values (2, 1, 3, null, '', 1)",
    ],
)
def test_what_may_be_is_not(world: Inquiry, statement: str) -> None:
    world.change(statement)
