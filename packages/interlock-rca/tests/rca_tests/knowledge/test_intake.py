"""Intake: a suite and its run come in whole or not at all, and again only with what is new."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from interlock.journal.database import open_writer
from interlock.journal.runs import load_cases
from interlock.system.errors import InterlockError, SourceError, StoreError
from interlock.system.test_output import TestCounts
from interlock_rca.effects import Closed
from interlock_rca.knowledge.intake import (
    Arrival,
    FailedCase,
    OpenedSuite,
    extend_suite,
)
from interlock_rca.records import Failure, Job, Launch
from rca_tests.worlds.suite_database import APPROVED, Inquiry, failed, launched

LAUNCH = Launch(
    launch_id="42",
    name="nightly",
    uuid="u",
    status="FAILED",
    started_at="2024-05-01T10:00:00Z",
    ended_at="2024-05-01T12:00:00+02:00",
    attributes={"arch": "arm"},
    version="4.1",
    branch="main",
    commit="abc",
    remote="r",
    url="https://x",
    ci_url="https://ci",
    project="p",
    tally=TestCounts(tests=9, failed=2, skipped=1),
    jobs=(
        Job(name="unit", item_id=7, status="ok", tally=TestCounts(tests=3), clock="sut"),
        Job(name="e2e", ended_at="2024-05-01T10:00:01Z"),
        Job(name="unit", status="bad", tally=TestCounts(tests=2, failed=2)),
    ),
)
FAILURE = Failure(
    id="i1",
    test_name="test_a",
    class_name="A",
    message="boom\x00 \x1b[31m",
    log_truncated=True,
    job="unit",
    item_id=99,
    at="2024-05-01T10:00:00.5Z",
)


def arrival(*failures: Failure, launch: Launch = LAUNCH) -> Arrival:
    cases = (
        FailedCase(
            f"C-{launch.launch_id}-{each.id}",
            {"id": each.id},
            failure=each,
            fingerprint="f",
            error_pattern="boom",
            bands=(1, -(2**63), 2**63 - 1),
            features="opaque",
            excerpt="line",
        )
        for each in failures
    )
    return Arrival(launch=launch, cases=cases, pipeline="pipe", rp_launch_id=42)


def extend(world: Inquiry, suite_id: int, *arrivals: Arrival) -> list[int]:
    with open_writer(world.db) as connection:
        return extend_suite(connection, world.circuit, suite_id, arrivals, world.at + 9)


def test_a_suite_comes_in_with_all_it_has(tmp_path: Path) -> None:
    world = Inquiry(tmp_path)
    assert world.open(arrival(FAILURE), name="red") == OpenedSuite(1, 1)
    at = world.at
    assert world.rows("select * from suites") == [(1, 1, "red", "", "open", at, None)]
    assert world.rows("select * from circuits") == [
        (1, 1, 1, "pipe", "FAILED", 1714557600.0, 1714557600.0)
    ]
    assert world.one(
        "select launch_key, rp_launch_id, uuid, name, status, started_at, ended_at, env_attributes,"
        " git_branch, git_commit, git_remote, url, ci_url, project, tests, failed, skipped"
        " from launches"
    ) == (
        "42",
        42,
        "u",
        "nightly",
        "FAILED",
        1714557600.0,
        1714557600.0,
        '{"arch":"arm"}',
        "main",
        "abc",
        "r",
        "https://x",
        "https://ci",
        "p",
        9,
        2,
        1,
    )
    assert world.rows("select rp_item_id, name, clock_type, status, tests, failed from jobs") == [
        (7, "unit", "sut", "bad", 5, 2),
        (None, "e2e", "", "", 0, 0),
    ]
    assert world.one(
        "select case_no, job_id, launch_id, failure_id, rp_item_id, name, class_name, status,"
        " error_message, error_pattern, test_name_pattern, features, log_snippet, log_truncated,"
        " fingerprint, bands, started_at, ended_at, created_at, updated_at, notes, draft"
        " from rca_cases"
    ) == (
        1,
        1,
        1,
        "i1",
        99,
        "test_a",
        "A",
        "open",
        "boom\x00 \x1b[31m",
        "boom",
        "test_a",
        "opaque",
        "line",
        1,
        "f",
        "[1,-9223372036854775808,9223372036854775807]",
        1714557600.5,
        None,
        at,
        at,
        "[]",
        "{}",
    )
    with world.reading() as connection:
        (loaded,) = load_cases(connection, world.circuit, 1)
    assert (loaded.case.case_id, loaded.case_no) == ("C-42-i1", 1)
    assert world.faults() == []


def test_a_suite_may_have_nothing_to_complain_about(tmp_path: Path) -> None:
    world = Inquiry(tmp_path)
    world.open(launched())
    world.open()
    assert (world.one("select count(*) from launches"), world.faults()) == (1, [])


def test_only_what_is_new_is_added(tmp_path: Path) -> None:
    world = Inquiry(tmp_path)
    world.open(launched(failed("a"), failed("a")))
    assert world.rows("select case_id from cases") == [("L1/a",)]
    world.effect(1, APPROVED, Closed())
    world.change("update runs set status = 'done'")
    assert extend(world, 1, launched(failed("a"))) == []
    assert world.one("select status from suites") == "closed"
    more = launched(
        failed("a"), failed("b"), failed("b"), status="FAILED", tally=TestCounts(tests=5)
    )
    assert extend(world, 1, more, launched(failed("a", launch="L2"), launch_id="L2")) == [2, 3]
    assert world.rows("select status, tests from launches") == [("FAILED", 5), ("", 0)]
    assert world.one("select status, closed_at from suites") == ("open", None)
    assert world.one("select status, changed_at from runs") == ("running", world.at + 9)


def test_one_pipeline_spans_its_launches(tmp_path: Path) -> None:
    world = Inquiry(tmp_path)
    times = [
        ("", "2024-01-01T00:00:09Z"),
        ("2024-01-01T00:00:05Z", ""),
        ("2024-01-01T00:00:03Z",) * 2,
    ]
    world.open(
        *(
            launched(launch_id=str(number), started_at=start, ended_at=end)
            for number, (start, end) in enumerate(times)
        ),
        launched(version="2.0"),
    )
    first = 1704067200.0
    assert world.rows("select circuit_id, version_id, started_at, ended_at from circuits") == [
        (1, 1, first + 3, first + 9),
        (2, 2, None, None),
    ]
    assert world.rows("select circuit_id from launches order by launch_id") == [
        (1,),
        (1,),
        (1,),
        (2,),
    ]


def test_many_cases_need_no_list(tmp_path: Path) -> None:
    world = Inquiry(tmp_path)
    drawn = 0
    written = 0

    def cases() -> Iterator[FailedCase]:
        nonlocal drawn
        for number in range(1_234):
            drawn += 1
            yield failed(f"t{number}", f"f{number}")

    world.open(Arrival(launch=LAUNCH, cases=cases()))
    written = world.one("select count(*) from rca_cases r join cases c on c.case_no = r.case_no")
    assert (drawn, written) == (1_234, 1_234)


HOSTILE: dict[str, tuple[Arrival, type[InterlockError]]] = {
    "a number beyond all": (launched(tally=TestCounts(tests=2**63)), SourceError),
    "an item beyond all": (arrival(Failure(id="x", item_id=2**64)), SourceError),
    "half a character": (launched(failed("\ud800")), SourceError),
    "half a character in the name": (launched(launch_id="\udfff"), SourceError),
    "a case_id twice": (
        launched(*(FailedCase("same", {}, failure=Failure(id=each)) for each in "xy")),
        StoreError,
    ),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_what_cannot_be_kept_leaves_nothing(tmp_path: Path, name: str) -> None:
    world = Inquiry(tmp_path)
    bad, error = HOSTILE[name]
    with pytest.raises(error):
        world.open(launched(failed("a"), launch_id="good"), bad)
    for table in ("runs", "suites", "cases", "rca_cases", "launches", "blobs", "versions"):
        assert world.rows(f"select * from {table}") == []


def test_a_suite_that_is_not_there(tmp_path: Path) -> None:
    world = Inquiry(tmp_path)
    world.open()
    for number in (7, 10**30):
        with pytest.raises(StoreError, match=f"there is no suite {number}"):
            extend(world, number, launched(failed("a")))


def test_two_at_once_on_one_database(tmp_path: Path) -> None:
    world = Inquiry(tmp_path)
    world.open(launched(failed("a")))
    with open_writer(world.db), pytest.raises(StoreError, match="is in use by process"):
        world.open(launched(failed("b")))
    assert world.open(launched(failed("b"))) == OpenedSuite(2, 2)
