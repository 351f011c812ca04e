"""Symptoms, the writer's side: met by fingerprint or by number, and counted once per case.

A symptom that slept, or was resolved, or whose causes are all fixed, and is seen again, is a
regression. Knows nothing of root causes beyond their status.
"""

import sqlite3

import msgspec

from interlock.journal.database import is_number
from interlock.rca.knowledge.rca_case import RcaCase

_FIXED = (
    "select max(a.status in ('resolved', 'verified')) and not max(a.status = 'open')"
    " from symptom_rca l join rcas a on a.rca_id = l.rca_id where l.symptom_id = ?"
)
_NEW = (
    "insert into symptoms (fingerprint, name, error_pattern, test_name_pattern, features,"
    " component, severity, first_seen_at, last_seen_at, occurrence_count, status)"
    " values (?, ?, ?, ?, ?, ?, ?, ?, ?, 1, 'active') returning symptom_id"
)


class SymptomMatch(msgspec.Struct, frozen=True):
    """A symptom that a case reports."""

    symptom_id: int
    first: bool
    """The case had not been counted for it."""
    regression: bool


def meet(
    raw: sqlite3.Connection, case: RcaCase, at: float, component: str = "", severity: str = ""
) -> SymptomMatch | None:
    """The symptom of the case's fingerprint, made if need be; None if it has no fingerprint."""
    if not case.fingerprint:
        return None
    row = raw.execute(
        "select symptom_id from symptoms where fingerprint = ?", (case.fingerprint,)
    ).fetchone()
    if row is None:
        return SymptomMatch(_new(raw, case, at, component, severity), True, False)
    raw.execute(
        "update symptoms set component = iif(component = '', ?, component),"
        " severity = iif(severity = '', ?, severity) where symptom_id = ?",
        (component, severity, row[0]),
    )
    return sight(raw, row[0], case.case_no, at)


def sight(raw: sqlite3.Connection, symptom_id: int, case_no: int, at: float) -> SymptomMatch | None:
    """A case reports a known symptom: it counts once, and wakes it up. None if there is no such."""
    if not is_number(symptom_id):
        return None
    row = raw.execute("select status from symptoms where symptom_id = ?", (symptom_id,)).fetchone()
    if row is None:
        return None
    when = _when(raw, case_no, at)
    if not _counted(raw, symptom_id, case_no, when):
        return SymptomMatch(symptom_id, False, False)
    (fixed,) = raw.execute(_FIXED, (symptom_id,)).fetchone()
    raw.execute(
        "update symptoms set occurrence_count = occurrence_count + 1, status = 'active',"
        " first_seen_at = min(first_seen_at, ?), last_seen_at = max(last_seen_at, ?)"
        " where symptom_id = ?",
        (when, when, symptom_id),
    )
    return SymptomMatch(symptom_id, True, row[0] != "active" or bool(fixed))


def forget(raw: sqlite3.Connection, symptom_id: int, case_no: int) -> None:
    """A case does not report that symptom after all."""
    row = (symptom_id, case_no)
    if raw.execute("delete from sightings where symptom_id = ? and case_no = ?", row).rowcount:
        raw.execute(
            "update symptoms set occurrence_count = occurrence_count - 1 where symptom_id = ?",
            (symptom_id,),
        )


def _when(raw: sqlite3.Connection, case_no: int, at: float) -> float:
    """When a case was seen: when its test failed, if that is known, whenever it is looked at."""
    row = raw.execute("select started_at from rca_cases where case_no = ?", (case_no,)).fetchone()
    return min(row[0], at) if row and row[0] is not None else at


def _counted(raw: sqlite3.Connection, symptom_id: int, case_no: int, at: float) -> bool:
    """Count the case for the symptom; False if it was counted before."""
    row = (symptom_id, case_no, at)
    return raw.execute("insert or ignore into sightings values (?, ?, ?)", row).rowcount == 1


def _new(raw: sqlite3.Connection, case: RcaCase, at: float, component: str, severity: str) -> int:
    when = _when(raw, case.case_no, at)
    row = (
        *(case.fingerprint, case.name, case.error_pattern, case.test_name_pattern, case.features),
        *(component, severity, when, when),
    )
    symptom_id = int(raw.execute(_NEW, row).fetchone()[0])
    _counted(raw, symptom_id, case.case_no, when)
    bands = sorted(set(msgspec.json.decode(case.bands, type=list[int])))
    raw.executemany(
        "insert into symptom_bands values (?, ?)", [(band, symptom_id) for band in bands]
    )
    return symptom_id
