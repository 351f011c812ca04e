"""What a suite's cases look like, and which root causes were agreed on. Reads only."""

from collections.abc import Iterator
from typing import Any

import msgspec
from sqlalchemy import Connection

from interlock.journal.blobs import read_blob
from interlock.journal.database import driver, is_number

_LOOKS = (
    "select e.case_no, e.case_id, e.input, r.features, e.status, e.step, e.dispatch_id, e.state"
    " from suites s join cases e on e.run_id = s.run_id join rca_cases r on r.case_no = e.case_no"
    " where s.suite_id = ? order by e.case_no"
)
_AGREED = (
    "select exists (select 1 from rca_cases where rca_id = ? and status in ('reviewed', 'closed'))"
)
_OF_ITEM = (
    "select e.case_no from suites s join cases e on e.run_id = s.run_id"
    " join rca_cases r on r.case_no = e.case_no where s.suite_id = ? and r.rp_item_id = ?"
    " order by e.case_no desc limit 1"
)
_PLACE = (
    "select r.launch_id, c.suite_id, r.fingerprint, r.bands, r.features, r.symptom_id, r.rca_id,"
    " r.case_no"
    " from rca_cases r join launches l on l.launch_id = r.launch_id"
    " join circuits c on c.circuit_id = l.circuit_id where r.case_no = ?"
)
_ENVIRONMENT = (
    "select l.env_attributes from sightings s join rca_cases r on r.case_no = s.case_no"
    " join launches l on l.launch_id = r.launch_id where s.symptom_id = ? and r.launch_id <> ?"
    " order by s.at desc, s.case_no desc limit 1"
)
_SHARED = "select count(*) from rca_cases where rca_id = ?"


class CaseView(msgspec.Struct, frozen=True):
    """A case: its input, what it is compared by, and where it stands."""

    case_no: int
    case_id: str
    input: dict[str, Any]
    features: str
    status: str
    step: str
    asked: bool
    """Whether a dispatch is open for it."""
    visits: dict[str, int]


class CasePosition(msgspec.Struct, frozen=True):
    """Where a case belongs."""

    launch_id: int
    suite_id: int
    fingerprint: str
    bands: tuple[int, ...]
    features: str
    symptom_id: int | None
    rca_id: int | None
    case_no: int


class _Visits(msgspec.Struct):
    visits: dict[str, int] = {}


_visits = msgspec.json.Decoder(_Visits).decode
_attributes = msgspec.json.Decoder(dict[str, str]).decode
_numbers = msgspec.json.Decoder(tuple[int, ...]).decode


def looks_of(connection: Connection, suite_id: int) -> Iterator[CaseView]:
    """The cases of a suite in their order, one at a time: all their inputs are much to hold."""
    raw = driver(connection)
    for row in raw.execute(_LOOKS, (suite_id,)):
        case_no, case_id, blob, features, status, step, dispatch_id, state = row
        yield CaseView(
            *(case_no, case_id, msgspec.json.decode(read_blob(raw, blob)), features),
            *(status, step, dispatch_id is not None, _visits(state).visits),
        )


def case_of_item(connection: Connection, suite_id: int, item_id: int) -> int | None:
    """The suite's newest case about that item of ReportPortal."""
    found = driver(connection).execute(_OF_ITEM, (suite_id, item_id)) if is_number(item_id) else ()
    return next((int(row[0]) for row in found), None)


def place_of(connection: Connection, case_no: int) -> CasePosition | None:
    """None for a case that is about no failure."""
    row = driver(connection).execute(_PLACE, (case_no,)).fetchone()
    return CasePosition(*(*row[:3], _numbers(row[3]), *row[4:])) if row else None


def environment_of(connection: Connection, symptom_id: int, apart_from: int) -> dict[str, str]:
    """The attributes of the newest other launch in which a symptom was seen."""
    row = driver(connection).execute(_ENVIRONMENT, (symptom_id, apart_from)).fetchone()
    return _attributes(row[0]) if row and row[0] else {}


def shared_by(connection: Connection, rca_id: int) -> int:
    """How many cases have that root cause, in all suites."""
    (count,) = driver(connection).execute(_SHARED, (rca_id,)).fetchone()
    return int(count)


def agreed(connection: Connection, rca_id: int) -> bool:
    """Whether somebody has reviewed the root cause."""
    (found,) = driver(connection).execute(_AGREED, (rca_id,)).fetchone()
    return bool(found)


def open_questions(connection: Connection, run_id: int) -> dict[int, int]:
    """The questions of a run that wait for a human: number of the case -> id."""
    query = (
        "select e.case_no, q.question_id from cases e"
        " join questions q on q.question_id = e.dispatch_id"
        " where e.run_id = ? and q.answered_at is null"
    )
    return dict(driver(connection).execute(query, (run_id,)).fetchall())


def open_reviews(connection: Connection, run_id: int) -> dict[int, CaseView]:
    """The questions of a run that wait for a human, each with the case it is about."""
    asked = open_questions(connection, run_id)
    looks = looks_of(connection, run_id) if asked else ()
    return {asked[look.case_no]: look for look in looks if look.case_no in asked}
