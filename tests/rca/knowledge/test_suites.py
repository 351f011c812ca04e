"""Suites as they stand, with all that is known about their cases."""

from pathlib import Path

import pytest
from tests.world.inquiry import (
    APPROVED,
    Inquiry,
    correlated,
    failed,
    investigated,
    launched,
    recalled,
    triaged,
)

from interlock.rca.effects import Closed
from interlock.rca.knowledge.causes import rca
from interlock.rca.knowledge.suites import (
    CaseBrief,
    Pipeline,
    Sighting,
    StoredLaunch,
    Suite,
    SuiteCase,
    Triage,
    cases_by_rca,
    find_suite,
    launches_of,
    pipelines_of,
    regressions,
    siblings,
    suite_case,
    suite_cases,
    suites,
)
from interlock.rca.records import Launch


@pytest.fixture
def world(tmp_path: Path) -> Inquiry:
    made = Inquiry(tmp_path)
    made.open(
        launched(failed("a", "f1", excerpt="line"), failed("b", "f1"), failed("c")), name="red"
    )
    made.open(launched(failed("d", "f1", launch="L2"), launch_id="L2"), name="blue")
    made.effect(
        1, triaged(cascade=True, notes="n"), investigated(), APPROVED, Closed(draft={"a": 1})
    )
    made.effect(2, triaged(), correlated(1))
    made.effect(4, recalled(1, 1, regression=True), recalled(9, 9))
    return made


def test_suites_are_found(world: Inquiry) -> None:
    at = world.clock.time
    red, blue = Suite(1, 1, "red", "", "open", at, None), Suite(2, 2, "blue", "", "open", at, None)
    world.open(name="red")
    with world.reading() as connection:
        assert suites(connection)[:2] == [red, blue]
        assert find_suite(connection, suite_id=1) == red
        assert find_suite(connection, run_id=2) == blue
        assert find_suite(connection, name="blue") == blue
        newest = find_suite(connection, name="red")
        assert newest is not None
        assert newest.suite_id == 3
        assert find_suite(connection) == newest
        assert find_suite(connection, name="red", run_id=2) is None
        for number in (9, 0, -1, 2**63, 10**40):
            assert find_suite(connection, suite_id=number) is None
            assert find_suite(connection, run_id=number) is None
        assert find_suite(connection, name="' or 1=1 --") is None


def test_pipelines_and_launches(world: Inquiry) -> None:
    with world.reading() as connection:
        assert pipelines_of(connection, 1) == [Pipeline(1, 1, "1.0", "nightly", "", None, None)]
        launch = Launch(launch_id="L2", name="nightly", version="1.0")
        assert launches_of(connection, 2) == [StoredLaunch(2, 2, None, launch)]
        assert (pipelines_of(connection, 9), launches_of(connection, 9)) == ([], [])


def test_a_case_with_all_that_is_known(world: Inquiry) -> None:
    at = world.clock.time
    with world.reading() as connection:
        first, second, third = suite_cases(connection, 1)
        cause = rca(connection, 1)
        assert suite_case(connection, 1) == first
        assert suite_case(connection, 99) is None
        assert suite_cases(connection, 9) == []
        (fourth,) = suite_cases(connection, 2)
    assert first == SuiteCase(
        case_no=1,
        case_id="L1/a",
        engine_status="open",
        step="write",
        end="",
        reason="",
        launch_id=1,
        launch_key="L1",
        version="1.0",
        job="unit",
        failure_id="a",
        rp_item_id=None,
        name="a",
        class_name="",
        status="closed",
        error_message="a broke",
        excerpt="line",
        log_truncated=False,
        fingerprint="f1",
        started_at=None,
        ended_at=None,
        decision="approve",
        reviewed_by="ann",
        is_regression=False,
        recalled=False,
        notes=(),
        draft={"a": 1},
        triage=Triage("product", "high", "pb001", ("engine", "door"), False, False, True, "n"),
        seen=Sighting(1, 3, at + 1, at + 3, "active"),
        rca=cause,
    )
    assert (second.rca, second.status) == (cause, "investigated")
    assert (third.triage, third.seen, third.rca, third.status) == (None, None, None, "open")
    assert (fourth.recalled, fourth.is_regression, len(fourth.notes)) == (True, True, 2)


def test_where_the_engine_stands(world: Inquiry) -> None:
    world.work()
    world.work('"*": {write: {answer: {mark: oh}}}', run_id=2)
    with world.reading() as connection:
        assert {each.end for each in suite_cases(connection, 1)} == {"done"}
        (fourth,) = suite_cases(connection, 2)
    assert (fourth.engine_status, fourth.end) == ("ended", "dropped")
    world.change("""update cases set status = 'stuck', state = '{"reason":"no rule"}'""")
    with world.reading() as connection:
        (fourth,) = suite_cases(connection, 2)
    assert (fourth.engine_status, fourth.end, fourth.reason) == ("stuck", "", "no rule")


def test_the_little_that_others_need(world: Inquiry) -> None:
    fourth = CaseBrief(4, "L2/d", 2, 2, "unit", "d", "", "open", "d broke", "f1", 1, 1)
    with world.reading() as connection:
        assert [each.case_no for each in siblings(connection, 1)] == [1, 2, 3]
        assert [each.case_no for each in siblings(connection, 1, 2)] == [1, 2]
        assert siblings(connection, 2) == [fourth]
        assert [each.case_no for each in cases_by_rca(connection, 1)] == [1, 2, 4]
        assert (regressions(connection, 1), regressions(connection, 2)) == ([], [fourth])
