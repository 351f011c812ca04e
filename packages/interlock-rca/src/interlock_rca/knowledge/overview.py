"""Overviews of the team's memory: causes with where and when they were seen, and suites in numbers.

Each takes a few statements, whatever the number of cases.
"""

from typing import Any, Literal

import msgspec

from interlock.journal.connection import Connection
from interlock_rca.knowledge.causes import KnownCause, list_causes
from interlock_rca.records import Reproduction

_SEEN = (
    "select r.rca_id, s.suite_id, s.name, min(coalesce(r.started_at, l.started_at, r.created_at)),"
    " max(coalesce(r.started_at, l.started_at, r.created_at)), count(*), max(r.is_regression)"
    " from rca_cases r join launches l on l.launch_id = r.launch_id"
    " join circuits c on c.circuit_id = l.circuit_id join suites s on s.suite_id = c.suite_id"
    " where r.rca_id is not null group by r.rca_id, s.suite_id, s.name order by s.suite_id"
)
_PROOFS = "select suite_id, family, record from reproductions"
_SUITES = (
    "select s.suite_id, s.run_id, s.name, s.status, s.created_at, u.status, count(r.case_no),"
    " count(distinct r.rca_id), coalesce(max(r.is_regression), 0) from suites s"
    " join runs u on u.run_id = s.run_id left join circuits c on c.suite_id = s.suite_id"
    " left join launches l on l.circuit_id = c.circuit_id"
    " left join rca_cases r on r.launch_id = l.launch_id"
    " group by s.suite_id, s.run_id, s.name, s.status, s.created_at, u.status"
    " order by s.suite_id desc limit ?"
)
_TESTS = (
    "select r.class_name, r.name, count(*),"
    " max(coalesce(r.started_at, l.started_at, r.created_at)), max(e.run_id), max(r.case_no),"
    " coalesce(max(r.rca_id), 0), coalesce(max(a.title), '')"
    " from rca_cases r join launches l on l.launch_id = r.launch_id"
    " join cases e on e.case_no = r.case_no left join rcas a on a.rca_id = r.rca_id"
)
_TESTS_OF_CAUSE = (
    f"{_TESTS} where r.rca_id = ? group by r.class_name, r.name order by 3 desc, 1, 2 limit ?"
)
_CAUSES_OF_TEST = (
    f"{_TESTS} where r.name = ? group by r.class_name, r.name, r.rca_id order by 6 desc limit ?"
)
CauseState = Literal["regressed", "open", "fixed", "archived"]
_ORDER = ("regressed", "open", "fixed", "archived")


class SeenIn(msgspec.Struct, frozen=True):
    """A suite in which a cause was seen."""

    suite_id: int
    name: str
    first_at: float
    last_at: float
    cases: int


class CauseOverview(msgspec.Struct, frozen=True):
    """A cause with its history."""

    known: KnownCause
    state: CauseState
    first_seen: float
    last_seen: float
    suites: tuple[SeenIn, ...]
    """Suites in the order of their analysis."""
    proof: Reproduction | None
    """The newest result of running its test."""
    trend: tuple[int, ...] = ()
    """Its failures in each of the newest suites, in time order."""


class SuiteOverview(msgspec.Struct, frozen=True):
    """A suite in numbers."""

    suite_id: int
    run_id: int
    name: str
    status: str
    created_at: float
    run_status: str
    failures: int
    causes: int
    regressed: bool


class FailedTest(msgspec.Struct, frozen=True):
    """A test that failed for a cause."""

    class_name: str
    name: str
    cases: int
    last_at: float
    run_id: int
    """The run of the newest of its cases, which is `case_no`."""
    case_no: int
    rca_id: int
    """The cause, or 0."""
    title: str
    """The cause's title."""


def list_cause_overviews(
    connection: Connection, *, archived: bool = False, suites: int = 12
) -> list[CauseOverview]:
    """Return all causes: regressions first, then open ones by last sighting. The trend covers the
    newest `suites`."""
    seen: dict[int, list[tuple[Any, ...]]] = {}
    raw = connection.raw
    for row in raw.execute(_SEEN):
        seen.setdefault(row[0], []).append(row)
    newest = [
        number
        for (number,) in raw.execute(
            "select suite_id from suites order by suite_id desc limit ?", (suites,)
        )
    ][::-1]
    proofs = _read_proofs(connection)
    found = [
        _build_overview(known, seen.get(known.rca.rca_id, []), proofs, newest)
        for known in list_causes(connection, archived=archived)
    ]
    return sorted(found, key=lambda each: (_ORDER.index(each.state), -each.last_seen))


def _build_overview(
    known: KnownCause,
    rows: list[tuple[Any, ...]],
    proofs: dict[int, Reproduction],
    newest: list[int],
) -> CauseOverview:
    rca = known.rca
    regressed = any(row[6] for row in rows)
    state: CauseState = "open"
    if rca.status in ("resolved", "verified"):
        state = "fixed"
    elif rca.status == "archived":
        state = "archived"
    elif regressed:
        state = "regressed"
    by_suite = {row[1]: int(row[5]) for row in rows}
    return CauseOverview(
        known,
        state,
        min((row[3] for row in rows), default=rca.created_at),
        max((row[4] for row in rows), default=rca.created_at),
        tuple(SeenIn(*row[1:6]) for row in rows),
        proofs.get(rca.rca_id),
        tuple(by_suite.get(number, 0) for number in newest),
    )


def _read_proofs(connection: Connection) -> dict[int, Reproduction]:
    found: dict[int, Reproduction] = {}
    for _, family, record in sorted(connection.raw.execute(_PROOFS).fetchall()):
        number = family.removeprefix("rca-")
        if number.isdecimal() and family.startswith("rca-"):
            found[int(number)] = msgspec.json.decode(record, type=Reproduction)
    return found


def list_suite_overviews(connection: Connection, limit: int = 200) -> list[SuiteOverview]:
    """Return the newest suites, newest first."""
    return [
        msgspec.structs.replace(SuiteOverview(*row), regressed=bool(row[8]))
        for row in connection.raw.execute(_SUITES, (limit,))
    ]


def list_failed_tests(connection: Connection, rca_id: int, limit: int = 100) -> list[FailedTest]:
    """Return the tests that failed for a cause, most failures first."""
    return [FailedTest(*row) for row in connection.raw.execute(_TESTS_OF_CAUSE, (rca_id, limit))]


def list_failures_of_test(connection: Connection, name: str, limit: int = 100) -> list[FailedTest]:
    """Return the failures of tests of that name, by class and cause, newest first."""
    rows = connection.raw.execute(_CAUSES_OF_TEST, (name, limit))
    return [FailedTest(*row) for row in rows]
