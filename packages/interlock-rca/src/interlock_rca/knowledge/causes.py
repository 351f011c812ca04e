"""Knowledge over all suites: symptoms, root causes, their links, and how they age.

Unknown numbers give None or nothing, never an error: agents invent numbers. Symptoms become dormant
or resolved, root causes are fixed and archived, by legal moves only; a root cause's dates follow
its status.
"""

from collections import Counter
from collections.abc import Collection
from typing import Any

import msgspec

from interlock.journal.connection import (
    Connection,
    RawConnection,
    is_row_id,
    transaction,
)
from interlock.system.errors import StateError, StoreError
from interlock_rca.knowledge.cause_writer import change_status

_PER_BAND = 500
"""A band of more symptoms says little; only its newest ones are compared."""
_SYMPTOM = (
    "select symptom_id, fingerprint, name, error_pattern, test_name_pattern, features, component,"
    " severity, first_seen_at, last_seen_at, occurrence_count, status from symptoms"
)
_BY_ID = _SYMPTOM + " where symptom_id = ?"
_BY_FINGERPRINT = _SYMPTOM + " where fingerprint = ?"
_RCA = (
    "select a.rca_id, a.case_no, a.attempt, a.title, a.description, a.defect_type, a.category,"
    " a.component, a.affected_versions, a.evidence, a.convergence_score, a.jira_ticket_id,"
    " a.jira_link, a.status, a.created_at, a.resolved_at, a.verified_at, a.archived_at"
)
_RCA_BY_ID = _RCA + " from rcas a where a.rca_id = ?"
_RCAS_OF_SYMPTOM = (
    _RCA + ", l.confidence from symptom_rca l join rcas a on a.rca_id = l.rca_id"
    " where l.symptom_id = ? and a.status != 'archived' order by a.rca_id desc"
)
_IN_SUITE = (
    " from rcas a where exists (select 1 from rca_cases r"
    " join launches l on l.launch_id = r.launch_id join circuits c on c.circuit_id = l.circuit_id"
    " where r.rca_id = a.rca_id and c.suite_id = ?) order by a.rca_id"
)
_RCAS_OF_SUITE = _RCA + _IN_SUITE
_COUNTED = (
    ", null, (select count(*) from rca_cases r where r.rca_id = a.rca_id),"
    " (select count(*) from rca_cases r where r.rca_id = a.rca_id"
    " and r.status in ('reviewed', 'closed')) from rcas a order by a.rca_id"
)
_CAUSES = _RCA + _COUNTED
_OCCURRENCES = (
    "select l.launch_id, l.launch_key, l.name, v.label, min(coalesce(r.started_at, l.started_at,"
    " r.created_at)) as at, count(*) from rca_cases r join launches l on l.launch_id = r.launch_id"
    " join circuits c on c.circuit_id = l.circuit_id"
    " join versions v on v.version_id = c.version_id"
    " where r.symptom_id = ? group by l.launch_id, v.label"
    " order by at desc, l.launch_id desc limit ?"
)
_VERSIONS = (
    "select distinct v.label from rca_cases r join launches l on l.launch_id = r.launch_id"
    " join circuits c on c.circuit_id = l.circuit_id"
    " join versions v on v.version_id = c.version_id"
    " where r.symptom_id = ? and v.label != '' order by v.label"
)
_strings = msgspec.json.Decoder(tuple[str, ...]).decode
_evidence = msgspec.json.Decoder(tuple[dict[str, str], ...]).decode


class Symptom(msgspec.Struct, frozen=True):
    """A failure that was seen, perhaps many times."""

    symptom_id: int
    fingerprint: str
    name: str
    error_pattern: str
    test_name_pattern: str
    features: str
    component: str
    severity: str
    first_seen_at: float
    last_seen_at: float
    occurrence_count: int
    status: str
    """active, dormant or resolved."""


class SymptomCandidate(msgspec.Struct, frozen=True):
    """A symptom that may be similar, and the number of shared bands."""

    symptom: Symptom
    shared: int


class Rca(msgspec.Struct, frozen=True):
    """A root cause."""

    rca_id: int
    case_no: int
    """The case that it is of; others may share it."""
    attempt: int
    """The attempt of the investigation; 0 if a review made it."""
    title: str
    description: str
    defect_type: str
    category: str
    component: str
    affected_versions: tuple[str, ...]
    evidence: tuple[dict[str, str], ...]
    convergence_score: float | None
    jira_ticket_id: str
    jira_link: str
    status: str
    """open, resolved, verified or archived."""
    created_at: float
    resolved_at: float | None
    verified_at: float | None
    archived_at: float | None
    confidence: float | None = None
    """The confidence of its link to the symptom, if it was looked up by symptom."""


class Occurrence(msgspec.Struct, frozen=True):
    """A launch in which a symptom was seen."""

    launch_id: int
    launch_key: str
    launch_name: str
    version: str
    at: float
    cases: int


class CauseHistory(msgspec.Struct, frozen=True):
    """Where and when a symptom was seen; newest launches first."""

    symptom: Symptom
    occurrences: tuple[Occurrence, ...]
    versions: tuple[str, ...]


def find_symptom_by_fingerprint(connection: Connection, fingerprint: str) -> Symptom | None:
    row = connection.raw.execute(_BY_FINGERPRINT, (fingerprint,)).fetchone()
    return Symptom(*row) if row else None


def list_symptoms_by_bands(
    connection: Connection, bands: Collection[int], most: int = 20
) -> list[SymptomCandidate]:
    """Return the symptoms that share most bands; the newest win ties."""
    raw = connection.raw
    shared: Counter[int] = Counter()
    for band in {band for band in bands if is_row_id(band)}:
        query = (
            "select symptom_id from symptom_bands where band = ? order by symptom_id desc limit ?"
        )
        shared.update(number for (number,) in raw.execute(query, (band, _PER_BAND)))
    best = sorted(shared.items(), key=lambda item: (-item[1], -item[0]))[:most]
    found = [(_read_symptom(raw, number), count) for number, count in best]
    return [SymptomCandidate(each, count) for each, count in found if each]


def find_rca(connection: Connection, rca_id: int) -> Rca | None:
    row = _read_row(connection.raw, _RCA_BY_ID, rca_id)
    return read_rca(row) if row else None


def list_rcas(connection: Connection, symptom_id: int) -> list[Rca]:
    """Return the unarchived root causes of a symptom, newest first."""
    if not is_row_id(symptom_id):
        return []
    return [read_rca(row) for row in connection.raw.execute(_RCAS_OF_SYMPTOM, (symptom_id,))]


def list_suite_rcas(connection: Connection, suite_id: int) -> list[Rca]:
    """Return the root causes of a suite's cases."""
    return [read_rca(row) for row in connection.raw.execute(_RCAS_OF_SUITE, (suite_id,))]


def read_history(connection: Connection, fingerprint: str, most: int = 50) -> CauseHistory | None:
    """Return where a symptom was seen in the newest launches; None if never."""
    found = find_symptom_by_fingerprint(connection, fingerprint)
    if found is None:
        return None
    raw = connection.raw
    rows = raw.execute(_OCCURRENCES, (found.symptom_id, most))
    versions = raw.execute(_VERSIONS, (found.symptom_id,))
    return CauseHistory(
        found, tuple(Occurrence(*row) for row in rows), tuple(label for (label,) in versions)
    )


def read_rca(row: tuple[Any, ...]) -> Rca:
    """Return a root cause from its row's columns, in order."""
    values = (*row[:8], _strings(row[8]), _evidence(row[9]), *row[10:])
    return Rca(*values)


def _read_symptom(raw: RawConnection, symptom_id: int) -> Symptom | None:
    row = _read_row(raw, _BY_ID, symptom_id)
    return Symptom(*row) if row else None


def _read_row(raw: RawConnection, query: str, number: int) -> tuple[Any, ...] | None:
    found: tuple[Any, ...] | None = None
    if is_row_id(number):
        found = raw.execute(query, (number,)).fetchone()
    return found


class KnownCause(msgspec.Struct, frozen=True):
    """A root cause, the number of its cases, and whether somebody approved it."""

    rca: Rca
    cases: int
    reviewed: int


def list_causes(connection: Connection, *, archived: bool = False) -> list[KnownCause]:
    """Return all root causes, oldest first, without archived ones unless asked for."""
    rows = connection.raw.execute(_CAUSES)
    found = [KnownCause(read_rca(row[:-2]), row[-2], row[-1]) for row in rows]
    return [each for each in found if archived or each.rca.status != "archived"]


DAY = 86_400.0
DORMANT_AFTER = 90
"""Days without a sighting."""
_MOVES = {
    "open": ("resolved", "archived"),
    "resolved": ("verified", "archived", "open"),
    "verified": ("archived", "open"),
    "archived": ("open",),
}


def sweep_dormant(connection: Connection, now: float, days: float = DORMANT_AFTER) -> int:
    """Make active symptoms dormant that were not seen for so many days; return their number."""
    with transaction(connection) as raw:
        return raw.execute(
            "update symptoms set status = 'dormant' where status = 'active' and last_seen_at < ?",
            (now - days * DAY,),
        ).rowcount


def set_rca_status(connection: Connection, rca_id: int, status: str, at: float) -> None:
    """Move a root cause on: open, resolved, verified, archived; or reopen it."""
    with transaction(connection) as raw:
        before, case_no = _read_status(raw, rca_id)
        if status == before:
            return
        if status not in _MOVES[before]:
            choice = " or ".join(_MOVES[before])
            raise StateError(f"root cause {rca_id} is {before}: next it can be {choice}")
        if status == "open":
            _check_may_reopen(raw, rca_id, case_no)
        change_status(raw, rca_id, status, at)


def _read_status(raw: RawConnection, rca_id: int) -> tuple[str, int]:
    query = "select status, case_no from rcas where rca_id = ?"
    row = raw.execute(query, (rca_id,)).fetchone() if is_row_id(rca_id) else None
    if row is None:
        raise StoreError(f"there is no root cause {rca_id}")
    return row[0], row[1]


def _check_may_reopen(raw: RawConnection, rca_id: int, case_no: int) -> None:
    query = "select 1 from rca_cases where case_no = ? and rca_id = ?"
    if raw.execute(query, (case_no, rca_id)).fetchone() is None:
        raise StateError(
            f"root cause {rca_id} was replaced: its case has another one, open that instead"
        )


def set_ticket(connection: Connection, rca_id: int, ticket_id: str, link: str) -> None:
    """Store the tracker's ticket of a root cause."""
    with transaction(connection) as raw:
        query = "update rcas set jira_ticket_id = ?, jira_link = ? where rca_id = ?"
        if raw.execute(query, (ticket_id, link, rca_id)).rowcount == 0:
            raise StoreError(f"there is no root cause {rca_id}")
