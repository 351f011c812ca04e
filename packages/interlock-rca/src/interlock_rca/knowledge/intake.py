"""Intake: suites, launches and failures become rows, together with the kernel's run and cases.

All of a suite, or all that is new to it, is one transaction. What the source said is kept as it was
said; fingerprints and the like come ready from the caller.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from interlock.engine.circuit import Circuit
from interlock.journal.connection import Connection, RawConnection, is_row_id, transaction
from interlock.journal.runs import NewCase, NewRun, insert_cases, insert_run, reopen_run
from interlock.system.errors import SourceError, StoreError
from interlock.system.test_output import TestCounts
from interlock.system.time import parse_timestamp
from interlock_rca.records import Failure, Job, Launch

_encode = msgspec.json.Encoder().encode
_LAUNCH = (
    "insert into launches (circuit_id, launch_key, rp_launch_id, uuid, name, status, started_at,"
    " ended_at, env_attributes, git_branch, git_commit, git_remote, url, ci_url, project, tests,"
    " failed, skipped, payload) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
    " on conflict (circuit_id, launch_key) do update set status = excluded.status,"
    " ended_at = excluded.ended_at, env_attributes = excluded.env_attributes,"
    " tests = excluded.tests, failed = excluded.failed, skipped = excluded.skipped,"
    " payload = excluded.payload returning launch_id"
)
_JOB = (
    "insert into jobs (launch_id, rp_item_id, name, clock_type, status, tests, failed, skipped,"
    " started_at, ended_at) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
    " on conflict (launch_id, name) do update set status = excluded.status,"
    " tests = excluded.tests, failed = excluded.failed, skipped = excluded.skipped,"
    " ended_at = excluded.ended_at"
)
_VERSION = "insert into versions (label) values (?) on conflict do nothing"
_PIPELINE = (
    "insert into circuits (suite_id, version_id, name, status, started_at, ended_at)"
    " values (?, ?, ?, ?, ?, ?) on conflict (suite_id, version_id, name) do update set"
    " status = excluded.status,"
    " started_at = case when circuits.started_at < excluded.started_at then circuits.started_at"
    " else coalesce(excluded.started_at, circuits.started_at) end,"
    " ended_at = case when circuits.ended_at > excluded.ended_at then circuits.ended_at"
    " else coalesce(excluded.ended_at, circuits.ended_at) end returning circuit_id"
)
_CASE = (
    "insert into rca_cases (case_no, job_id, launch_id, failure_id, rp_item_id, name, class_name,"
    " status, error_message, error_pattern, test_name_pattern, features, log_snippet,"
    " log_truncated, fingerprint, bands, started_at, ended_at, created_at, updated_at, decision,"
    " reviewed_by, is_regression, recalled, notes, draft) values (?, ?, ?, ?, ?, ?, ?, 'open', ?,"
    " ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, '', '', 0, 0, '[]', '{}')"
)


class FailedCase(NewCase, frozen=True, kw_only=True):
    """A failure as a new case, with what it is compared by."""

    failure: Failure
    fingerprint: str = ""
    error_pattern: str = ""
    """Its message, masked."""
    test_name_pattern: str = ""
    bands: tuple[int, ...] = ()
    """Numbers that similar failures share; each a signed 64-bit integer."""
    features: str = ""
    """What similarity is computed from; only the analyst can read it."""
    excerpt: str = ""
    """The lines of its log that say most."""


class Arrival(msgspec.Struct, frozen=True, kw_only=True):
    """A launch that came in, and its failures."""

    launch: Launch
    cases: Iterable[FailedCase]
    pipeline: str = ""
    """The CI pipeline it is one execution of; by default the launch's name."""
    rp_launch_id: int | None = None


class OpenedSuite(msgspec.Struct, frozen=True):
    """A new suite and its run."""

    suite_id: int
    run_id: int


class NewSuite(msgspec.Struct, frozen=True, kw_only=True):
    """A suite to begin, with its run."""

    run: NewRun
    name: str
    description: str = ""
    number: int | None = None
    """The run's number; the next one if None."""


def begin_suite(connection: Connection, new: NewSuite, arrivals: Iterable[Arrival]) -> OpenedSuite:
    """Write a new suite, its run and all that arrived, or nothing."""
    with transaction(connection) as raw:
        run_id = insert_run(raw, new.run, new.number)
        suite_id = open_suite(raw, run_id, new.name, new.description, new.run.at)
        _add_arrivals(raw, new.run.circuit, suite_id, run_id, arrivals, new.run.at)
    return OpenedSuite(suite_id, run_id)


def extend_suite(
    connection: Connection, circuit: Circuit, suite_id: int, arrivals: Iterable[Arrival], at: float
) -> list[int]:
    """What is new in the arrivals, or nothing: a failure that its launch has already is left out.
    The numbers of the new cases. Not while a Journal of the same database is open."""
    with transaction(connection) as raw:
        query = "select run_id from suites where suite_id = ?"
        row = raw.execute(query, (suite_id,)).fetchone() if is_row_id(suite_id) else None
        if row is None:
            raise StoreError(f"there is no suite {suite_id}; 'interlock runs' lists what there is")
        numbers = _add_arrivals(raw, circuit, suite_id, row[0], arrivals, at)
        if numbers:
            reopen_run(raw, row[0], at)
            raw.execute(
                "update suites set status = 'open', closed_at = null where suite_id = ?",
                (suite_id,),
            )
    return numbers


def open_suite(raw: RawConnection, run_id: int, name: str, description: str, at: float) -> int:
    """The suite of a run, under the run's own number; belongs inside the run's transaction."""
    raw.execute(
        "insert into suites (suite_id, run_id, name, description, status, created_at)"
        " values (?, ?, ?, ?, 'open', ?)",
        (run_id, run_id, name, description, at),
    )
    return run_id


def add_launch(
    raw: RawConnection,
    suite_id: int,
    launch: Launch,
    *,
    pipeline: str = "",
    rp_launch_id: int | None = None,
) -> int:
    """A launch with its jobs; one that is known is brought up to date."""
    circuit_id = _add_pipeline(raw, suite_id, launch, pipeline or launch.name)
    row = (
        circuit_id,
        launch.launch_id,
        rp_launch_id,
        launch.uuid,
        launch.name,
        launch.status,
        parse_timestamp(launch.started_at),
        parse_timestamp(launch.ended_at),
        _encode_text(launch.attributes),
        launch.branch,
        launch.commit,
        launch.remote,
        launch.url,
        launch.ci_url,
        launch.project,
        launch.tally.tests,
        launch.tally.failed,
        launch.tally.skipped,
        _encode_text(launch),
    )
    launch_id = int(raw.execute(_LAUNCH, row).fetchone()[0])
    raw.executemany(_JOB, [_build_job_row(launch_id, job) for job in _merge_jobs(launch.jobs)])
    return launch_id


def add_failures(
    raw: RawConnection,
    launch_id: int,
    numbered: Sequence[tuple[int, FailedCase]],
    at: float,
) -> None:
    """What cases of the engine are about: failures of that launch."""
    known = dict(
        raw.execute("select name, job_id from jobs where launch_id = ?", (launch_id,)).fetchall()
    )
    missing = sorted({new.failure.job for _, new in numbered} - known.keys())
    for name in missing:
        row = _build_job_row(launch_id, Job(name=name))
        (known[name],) = raw.execute(f"{_JOB} returning job_id", row).fetchone()
    raw.executemany(
        _CASE,
        [
            _build_case_row(case_no, known[new.failure.job], launch_id, new, at)
            for case_no, new in numbered
        ],
    )


def _add_arrivals(
    raw: RawConnection,
    circuit: Circuit,
    suite_id: int,
    run_id: int,
    arrivals: Iterable[Arrival],
    at: float,
) -> list[int]:
    numbers: list[int] = []
    for arrival in arrivals:
        try:
            numbers += _add_arrival(raw, circuit, suite_id, run_id, arrival, at)
        except (OverflowError, UnicodeEncodeError) as error:
            which = f"launch {arrival.launch.launch_id[:80]!r}"
            raise SourceError(f"{which} cannot be stored, fix its source: {error}") from error
    return numbers


def _add_arrival(
    raw: RawConnection,
    circuit: Circuit,
    suite_id: int,
    run_id: int,
    arrival: Arrival,
    at: float,
) -> list[int]:
    numbers: list[int] = []
    launch_id = add_launch(
        raw,
        suite_id,
        arrival.launch,
        pipeline=arrival.pipeline,
        rp_launch_id=arrival.rp_launch_id,
    )

    def write(some: list[tuple[int, FailedCase]]) -> None:
        add_failures(raw, launch_id, some, at)
        numbers.extend(number for number, _ in some)

    insert_cases(raw, circuit, run_id, _filter_unknown(raw, launch_id, arrival.cases), write)
    return numbers


def _filter_unknown(
    raw: RawConnection, launch_id: int, cases: Iterable[FailedCase]
) -> Iterator[FailedCase]:
    seen = {
        failure_id
        for (failure_id,) in raw.execute(
            "select failure_id from rca_cases where launch_id = ?", (launch_id,)
        )
    }
    for new in cases:
        if new.failure.id not in seen:
            seen.add(new.failure.id)
            yield new


def _add_pipeline(raw: RawConnection, suite_id: int, launch: Launch, name: str) -> int:
    """The stored CI pipeline of a suite, a version and a name; it spans its launches."""
    raw.execute(_VERSION, (launch.version,))
    query = "select version_id from versions where label = ?"
    (version_id,) = raw.execute(query, (launch.version,)).fetchone()
    started, ended = parse_timestamp(launch.started_at), parse_timestamp(launch.ended_at)
    row = (suite_id, version_id, name, launch.status, started, ended)
    return int(raw.execute(_PIPELINE, row).fetchone()[0])


def _merge_jobs(jobs: Iterable[Job]) -> Iterator[Job]:
    """Jobs of one name are one: failures tell no more about theirs than its name."""
    found: dict[str, Job] = {}
    for job in jobs:
        first = found.get(job.name)
        found[job.name] = job if first is None else _merge_job(first, job)
    yield from found.values()


def _merge_job(one: Job, other: Job) -> Job:
    tally = TestCounts(
        tests=one.tally.tests + other.tally.tests,
        failed=one.tally.failed + other.tally.failed,
        skipped=one.tally.skipped + other.tally.skipped,
    )
    return msgspec.structs.replace(
        one,
        tally=tally,
        status=other.status if one.tally.failed == 0 else one.status,
        ended_at=max(one.ended_at, other.ended_at),
    )


def _build_job_row(launch_id: int, job: Job) -> tuple[Any, ...]:
    return (
        launch_id,
        job.item_id or None,
        job.name,
        job.clock,
        job.status,
        job.tally.tests,
        job.tally.failed,
        job.tally.skipped,
        parse_timestamp(job.started_at),
        parse_timestamp(job.ended_at),
    )


def _build_case_row(
    case_no: int, job_id: int, launch_id: int, new: FailedCase, at: float
) -> tuple[Any, ...]:
    failure = new.failure
    return (
        case_no,
        job_id,
        launch_id,
        failure.id,
        failure.item_id or None,
        failure.test_name,
        failure.class_name,
        failure.message,
        new.error_pattern,
        new.test_name_pattern or failure.test_name,
        new.features,
        new.excerpt,
        int(failure.log_truncated),
        new.fingerprint,
        _encode_text(new.bands),
        parse_timestamp(failure.at),
        parse_timestamp(failure.ended_at),
        at,
        at,
    )


def _encode_text(value: Any) -> str:
    return _encode(value).decode()
