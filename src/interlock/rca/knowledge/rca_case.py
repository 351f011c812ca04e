"""One RCA case as its row stands, and the few ways in which effects change the row.

Linking keeps the promise of the schema: a case that has a symptom and a root cause has them linked
to each other. Knows nothing of why somebody links.
"""

import sqlite3

import msgspec

from interlock.system.errors import StoreError

_CASE = (
    "select r.case_no, c.suite_id, r.status, r.symptom_id, r.rca_id,"
    " (select a.case_no = r.case_no from rcas a where a.rca_id = r.rca_id) is 1, r.name,"
    " r.error_message, r.error_pattern, r.test_name_pattern, r.features, r.fingerprint, r.bands,"
    " v.label from rca_cases r join launches l on l.launch_id = r.launch_id"
    " join circuits c on c.circuit_id = l.circuit_id"
    " join versions v on v.version_id = c.version_id where r.case_no = ?"
)
_LINK = (
    "insert into symptom_rca (symptom_id, rca_id, case_no, confidence, notes, linked_at)"
    " values (?, ?, ?, ?, ?, ?) on conflict (symptom_id, rca_id) do update set"
    " confidence = coalesce(max(confidence, excluded.confidence), confidence, excluded.confidence)"
)
_UNLINK = (
    "delete from symptom_rca where symptom_id = ? and rca_id = ? and case_no = ? and not exists"
    " (select 1 from rca_cases c where c.symptom_id = symptom_rca.symptom_id"
    " and c.rca_id = symptom_rca.rca_id)"
)


class RcaCase(msgspec.Struct, frozen=True):
    """What effects need to know about a case."""

    case_no: int
    suite_id: int
    status: str
    symptom_id: int | None
    rca_id: int | None
    owns_rca: int
    """1 if its root cause is its own, not one it shares with the case that found it."""
    name: str
    error_message: str
    error_pattern: str
    test_name_pattern: str
    features: str
    fingerprint: str
    bands: str
    version: str


def read_case(raw: sqlite3.Connection, case_no: int) -> RcaCase:
    row = raw.execute(_CASE, (case_no,)).fetchone()
    if row is None:
        raise StoreError(f"case number {case_no} is no failed test: only an analysis has effects")
    return RcaCase(*row)


def link(
    raw: sqlite3.Connection,
    case: RcaCase,
    symptom_id: int | None,
    rca_id: int | None,
    at: float,
    *,
    confidence: float | None = None,
    notes: str = "",
) -> None:
    """Give a case that symptom and that root cause, and link the two. A link that only this case
    stood for goes: what was taken back must not be recalled again."""
    if symptom_id is not None and rca_id is not None:
        raw.execute(_LINK, (symptom_id, rca_id, case.case_no, confidence, notes, at))
    raw.execute(
        "update rca_cases set symptom_id = ?, rca_id = ?, updated_at = ? where case_no = ?",
        (symptom_id, rca_id, at, case.case_no),
    )
    if not case.owns_rca or case.symptom_id != symptom_id:
        raw.execute(_UNLINK, (case.symptom_id, case.rca_id, case.case_no))


def set_status(raw: sqlite3.Connection, case: RcaCase, status: str, at: float) -> None:
    """Move the case's status. One that is not closed any more opens its suite again."""
    raw.execute(
        "update rca_cases set status = ?, updated_at = ? where case_no = ?",
        (status, at, case.case_no),
    )
    if case.status == "closed" != status:
        raw.execute(
            "update suites set status = 'open', closed_at = null where suite_id = ?",
            (case.suite_id,),
        )


def set_decision(raw: sqlite3.Connection, case_no: int, decision: str, by: str) -> None:
    raw.execute(
        "update rca_cases set decision = ?, reviewed_by = ? where case_no = ?",
        (decision, by, case_no),
    )


def set_recalled(raw: sqlite3.Connection, case_no: int, *, recalled: bool) -> None:
    raw.execute("update rca_cases set recalled = ? where case_no = ?", (recalled, case_no))


def set_regression(raw: sqlite3.Connection, case_no: int, *, regression: bool) -> None:
    raw.execute("update rca_cases set is_regression = ? where case_no = ?", (regression, case_no))


def add_note(raw: sqlite3.Connection, case_no: int, note: str) -> None:
    raw.execute(
        "update rca_cases set notes = json_insert(notes, '$[#]', ?) where case_no = ?",
        (note, case_no),
    )
