"""Read suites: their launches, their cases with triage and root cause, and reviewed root causes."""

from collections.abc import Collection, Iterable, Iterator
from typing import Any

import msgspec

from interlock.journal.connection import Connection, is_row_id
from interlock.journal.journal import State, read_blob
from interlock_rca.knowledge.causes import Rca, read_rca
from interlock_rca.records import Launch

_SUITE = "select suite_id, run_id, name, description, status, created_at, closed_at from suites"
_LAUNCHES = (
    "select l.launch_id, l.circuit_id, l.rp_launch_id, l.payload from launches l"
    " join circuits c on c.circuit_id = l.circuit_id where c.suite_id = ? order by l.launch_id"
)
_CASES = (
    "select r.case_no, e.case_id, e.status, e.step, r.launch_id, l.launch_key, v.label, j.name,"
    " r.failure_id, r.rp_item_id, r.name, r.class_name, r.status, r.error_message, r.log_snippet,"
    " r.fingerprint, r.started_at, r.ended_at, r.decision, r.reviewed_by,"
    " e.state, r.log_truncated, r.is_regression, r.recalled, r.notes, r.draft,"
    " t.case_no, t.category, t.severity, t.hypothesis, t.candidate_repos, t.skip, t.clock_skew,"
    " t.cascade, t.notes,"
    " s.symptom_id, s.occurrence_count, s.first_seen_at, s.last_seen_at, s.status,"
    " a.rca_id, a.case_no, a.attempt, a.title, a.description, a.defect_type, a.category,"
    " a.component, a.affected_versions, a.evidence, a.convergence_score, a.jira_ticket_id,"
    " a.jira_link, a.status, a.created_at, a.resolved_at, a.verified_at, a.archived_at"
    " from circuits c join versions v on v.version_id = c.version_id"
    " join launches l on l.circuit_id = c.circuit_id"
    " join rca_cases r on r.launch_id = l.launch_id join cases e on e.case_no = r.case_no"
    " join jobs j on j.job_id = r.job_id left join triages t on t.case_no = r.case_no"
    " left join symptoms s on s.symptom_id = r.symptom_id"
    " left join rcas a on a.rca_id = r.rca_id"
)
_BRIEFS = (
    "select r.case_no, e.case_id, c.suite_id, r.launch_id, j.name, r.name, r.class_name, r.status,"
    " r.error_message, r.fingerprint, r.symptom_id, r.rca_id"
    " from rca_cases r join cases e on e.case_no = r.case_no join jobs j on j.job_id = r.job_id"
    " join launches l on l.launch_id = r.launch_id join circuits c on c.circuit_id = l.circuit_id"
)
_AT_ONCE = 500
"""The most cases that one statement asks for."""
_PLAIN = (
    "case_no",
    "case_id",
    "engine_status",
    "step",
    "launch_id",
    "launch_key",
    "version",
    "job",
    "failure_id",
    "rp_item_id",
    "name",
    "class_name",
    "status",
    "error_message",
    "excerpt",
    "fingerprint",
    "started_at",
    "ended_at",
    "decision",
    "reviewed_by",
)
"""The first columns of `_CASES`, named as in the record."""
_strings = msgspec.json.Decoder(tuple[str, ...]).decode
_draft = msgspec.json.Decoder(dict[str, Any]).decode
_state = msgspec.json.Decoder(State).decode
_launch = msgspec.json.Decoder(Launch).decode


class Suite(msgspec.Struct, frozen=True):
    """Launches that are analysed together: one run of the circuit."""

    suite_id: int
    run_id: int
    name: str
    description: str
    status: str
    """open or closed."""
    created_at: float
    closed_at: float | None


class StoredLaunch(msgspec.Struct, frozen=True):
    """A stored launch, and its numbers here and in ReportPortal."""

    launch_id: int
    circuit_id: int
    rp_launch_id: int | None
    launch: Launch


class Triage(msgspec.Struct, frozen=True):
    """The kind of a case's failure."""

    category: str
    severity: str
    hypothesis: str
    candidate_repos: tuple[str, ...]
    skip: bool
    clock_skew: bool
    cascade: bool
    notes: str


class Sighting(msgspec.Struct, frozen=True):
    """How often a case's symptom was seen, in all suites."""

    symptom_id: int
    occurrence_count: int
    first_seen_at: float
    last_seen_at: float
    status: str


class SuiteCase(msgspec.Struct, frozen=True, kw_only=True):
    """Everything stored about a case except its journal."""

    case_no: int
    case_id: str
    engine_status: str
    """open, ended or stuck."""
    step: str
    end: str
    reason: str
    """The reason why it is stuck."""
    launch_id: int
    launch_key: str
    version: str
    job: str
    failure_id: str
    rp_item_id: int | None
    name: str
    class_name: str
    status: str
    """open, triaged, investigated, reviewed or closed."""
    error_message: str
    excerpt: str
    log_truncated: bool
    fingerprint: str
    started_at: float | None
    ended_at: float | None
    decision: str
    reviewed_by: str
    is_regression: bool
    recalled: bool
    notes: tuple[str, ...]
    draft: dict[str, Any]
    triage: Triage | None
    seen: Sighting | None
    rca: Rca | None


class CaseBrief(msgspec.Struct, frozen=True):
    """The few facts about a case that others need."""

    case_no: int
    case_id: str
    suite_id: int
    launch_id: int
    job: str
    name: str
    class_name: str
    status: str
    error_message: str
    fingerprint: str
    symptom_id: int | None
    rca_id: int | None


def find_suite(
    connection: Connection,
    *,
    suite_id: int | None = None,
    run_id: int | None = None,
    name: str | None = None,
) -> Suite | None:
    """Return the newest suite that matches all given arguments."""
    if not (is_row_id(suite_id or 0) and is_row_id(run_id or 0)):
        return None
    wanted = {"suite_id": suite_id, "run_id": run_id, "name": name}
    given = {column: value for column, value in wanted.items() if value is not None}
    where = " and ".join(["1 = 1", *(f"{column} = ?" for column in given)])
    query = f"{_SUITE} where {where} order by suite_id desc limit 1"
    row = connection.raw.execute(query, tuple(given.values())).fetchone()
    return Suite(*row) if row else None


def list_launches(connection: Connection, suite_id: int) -> list[StoredLaunch]:
    """Return the launches in order of arrival."""
    rows = connection.raw.execute(_LAUNCHES, (suite_id,))
    return [
        StoredLaunch(launch_id, circuit_id, rp_launch_id, _launch(payload))
        for launch_id, circuit_id, rp_launch_id, payload in rows
    ]


def list_suite_cases(connection: Connection, suite_id: int) -> list[SuiteCase]:
    """Return the cases of a suite in order, each with its triage, root cause and symptom
    sightings."""
    return list(iterate_suite_cases(connection, suite_id))


def iterate_suite_cases(connection: Connection, suite_id: int) -> Iterator[SuiteCase]:
    """Yield the same cases one at a time."""
    query = _CASES + " where c.suite_id = ? order by r.case_no"
    return _read_suite_cases(connection.raw.execute(query, (suite_id,)))


def find_suite_case(connection: Connection, case_no: int) -> SuiteCase | None:
    """Return one case; None if it is about no failure."""
    rows = connection.raw.execute(_CASES + " where r.case_no = ?", (case_no,))
    return next(_read_suite_cases(iter(rows)), None)


def list_case_numbers(connection: Connection, launch_id: int) -> list[int]:
    """Return the numbers of a launch's cases, in order."""
    query = "select case_no from rca_cases where launch_id = ? order by case_no"
    return [number for (number,) in connection.raw.execute(query, (launch_id,))]


def list_briefs(connection: Connection, case_nos: Iterable[int]) -> list[CaseBrief]:
    """Return those cases in the given order, skipping unknown numbers."""
    raw = connection.raw
    wanted = list(case_nos)
    found: dict[int, CaseBrief] = {}
    for start in range(0, len(wanted), _AT_ONCE):
        some = wanted[start : start + _AT_ONCE]
        marks = ", ".join("?" * len(some))
        for row in raw.execute(f"{_BRIEFS} where r.case_no in ({marks})", some):
            brief = CaseBrief(*row)
            found[brief.case_no] = brief
    return [found[each] for each in wanted if each in found]


def _read_suite_cases(rows: Iterator[tuple[Any, ...]]) -> Iterator[SuiteCase]:
    """Yield cases; those with one root cause share its record."""
    known: dict[int, Rca] = {}
    for row in rows:
        triage, seen, found = row[26:35], row[35:40], row[40:]
        if found[0] is not None and found[0] not in known:
            known[found[0]] = read_rca(found)
        state = _state(row[20])
        yield SuiteCase(
            **dict(zip(_PLAIN, row[:20], strict=True)),
            end=state.end,
            reason=state.reason,
            log_truncated=bool(row[21]),
            is_regression=bool(row[22]),
            recalled=bool(row[23]),
            notes=_strings(row[24]),
            draft=_draft(row[25]),
            triage=_read_triage(triage) if triage[0] is not None else None,
            seen=Sighting(*seen) if seen[0] is not None else None,
            rca=known.get(found[0]),
        )


def _read_triage(row: tuple[Any, ...]) -> Triage:
    return Triage(
        category=row[1],
        severity=row[2],
        hypothesis=row[3],
        candidate_repos=_strings(row[4]),
        skip=bool(row[5]),
        clock_skew=bool(row[6]),
        cascade=bool(row[7]),
        notes=row[8],
    )


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
    """A case: its input, its features, and its progress."""

    case_no: int
    case_id: str
    input: dict[str, Any]
    features: str
    status: str
    step: str
    asked: bool
    """True if a dispatch is open for it."""
    visits: dict[str, int]


class CasePosition(msgspec.Struct, frozen=True):
    """The suite, launch and causes that a case belongs to."""

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


def iterate_case_views(
    connection: Connection, suite_id: int, only: Collection[int] | None = None
) -> Iterator[CaseView]:
    """Yield the cases of a suite in order, one at a time, because all inputs together are large.
    `only` restricts them to some numbers."""
    raw = connection.raw
    for row in raw.execute(_LOOKS, (suite_id,)):
        case_no, case_id, blob, features, status, step, dispatch_id, state = row
        if only is not None and case_no not in only:
            continue
        yield CaseView(
            case_no,
            case_id,
            msgspec.json.decode(read_blob(raw, blob)),
            features,
            status,
            step,
            dispatch_id is not None,
            _visits(state).visits,
        )


def read_input(connection: Connection, case_no: int) -> dict[str, Any]:
    """Return the input of a case, or an empty dict."""
    raw = connection.raw
    row = raw.execute("select input from cases where case_no = ?", (case_no,)).fetchone()
    found: dict[str, Any] = msgspec.json.decode(read_blob(raw, row[0])) if row else {}
    return found


def find_case_of_item(connection: Connection, suite_id: int, item_id: int) -> int | None:
    """Return the suite's newest case about that ReportPortal item."""
    found = connection.raw.execute(_OF_ITEM, (suite_id, item_id)) if is_row_id(item_id) else ()
    return next((int(row[0]) for row in found), None)


def find_position(connection: Connection, case_no: int) -> CasePosition | None:
    """Return the position of a case; None if it is about no failure."""
    row = connection.raw.execute(_PLACE, (case_no,)).fetchone()
    if row is None:
        return None
    launch_id, suite_id, fingerprint, bands, *rest = row
    return CasePosition(launch_id, suite_id, fingerprint, _numbers(bands), *rest)


def read_environment(connection: Connection, symptom_id: int, apart_from: int) -> dict[str, str]:
    """Return the attributes of the newest other launch in which a symptom was seen."""
    row = connection.raw.execute(_ENVIRONMENT, (symptom_id, apart_from)).fetchone()
    return _attributes(row[0]) if row and row[0] else {}


def count_cases_of_rca(connection: Connection, rca_id: int) -> int:
    """Count the cases with that root cause, in all suites."""
    (count,) = connection.raw.execute(_SHARED, (rca_id,)).fetchone()
    return int(count)


def has_agreed_cause(connection: Connection, rca_id: int) -> bool:
    """Return True if somebody has approved the root cause."""
    (found,) = connection.raw.execute(_AGREED, (rca_id,)).fetchone()
    return bool(found)


def find_open_questions(connection: Connection, run_id: int) -> dict[int, int]:
    """Return a run's questions that wait for a human: case number -> id."""
    query = (
        "select e.case_no, q.question_id from cases e"
        " join questions q on q.question_id = e.dispatch_id"
        " where e.run_id = ? and q.answered_at is null"
    )
    return dict(connection.raw.execute(query, (run_id,)).fetchall())


def find_open_reviews(connection: Connection, run_id: int) -> dict[int, CaseView]:
    """Return a run's questions that wait for a human, each with its case."""
    asked = find_open_questions(connection, run_id)
    looks = iterate_case_views(connection, run_id) if asked else ()
    return {asked[look.case_no]: look for look in looks if look.case_no in asked}
