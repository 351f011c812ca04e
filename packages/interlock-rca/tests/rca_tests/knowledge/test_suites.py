"""Suites as they stand, with all that is known about their cases, asked or not."""

import sqlite3
from collections import Counter
from pathlib import Path
from typing import cast

import pytest

from interlock_rca.config import RcaConfig
from interlock_rca.effects import Closed
from interlock_rca.knowledge.causes import find_rca
from interlock_rca.knowledge.suites import (
    CaseBrief,
    Sighting,
    StoredLaunch,
    Suite,
    SuiteCase,
    Triage,
    count_cases_of_rca,
    find_open_reviews,
    find_position,
    find_suite,
    has_agreed_cause,
    iterate_case_views,
    list_briefs,
    list_case_numbers,
    list_launches,
    list_suite_cases,
)
from interlock_rca.records import Launch
from interlock_rca.steps import F0, F3, F5, F6
from rca_tests.worlds.analysis_world import AnalysisWorld, launch, make_failure, write_script
from rca_tests.worlds.suite_database import (
    APPROVED,
    Inquiry,
    correlated,
    failed,
    investigated,
    launched,
    recalled,
    triaged,
)


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


def test_launches(world: Inquiry) -> None:
    with world.reading() as connection:
        launch = Launch(launch_id="L2", name="nightly", version="1.0")
        assert list_launches(connection, 2) == [StoredLaunch(2, 2, None, launch)]
        assert list_launches(connection, 9) == []


def test_a_case_with_all_that_is_known(world: Inquiry) -> None:
    at = world.clock.time
    with world.reading() as connection:
        first, second, third = list_suite_cases(connection, 1)
        cause = find_rca(connection, 1)
        assert list_suite_cases(connection, 9) == []
        (fourth,) = list_suite_cases(connection, 2)
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
        assert {each.end for each in list_suite_cases(connection, 1)} == {"done"}
        (fourth,) = list_suite_cases(connection, 2)
    assert (fourth.engine_status, fourth.end) == ("ended", "dropped")
    world.change("""update cases set status = 'stuck', state = '{"reason":"no rule"}'""")
    with world.reading() as connection:
        (fourth,) = list_suite_cases(connection, 2)
    assert (fourth.engine_status, fourth.end, fourth.reason) == ("stuck", "", "no rule")


def test_the_little_that_others_need(world: Inquiry) -> None:
    fourth = CaseBrief(4, "L2/d", 2, 2, "unit", "d", "", "open", "d broke", "f1", 1, 1)
    with world.reading() as connection:
        assert list_case_numbers(connection, 1) == [1, 2, 3]
        assert list_briefs(connection, [4, 99]) == [fourth]


@pytest.fixture
def room(tmp_path: Path) -> AnalysisWorld:
    found = AnalysisWorld(tmp_path)
    found.begin("other")
    found.take_in(launch(make_failure("alpha"), make_failure("beta")))
    return found


def test_a_suite_has_the_number_of_its_run(room: AnalysisWorld) -> None:
    with room.reading() as connection:
        assert list(iterate_case_views(connection, 1)) == []
        assert [look.case_id for look in iterate_case_views(connection, 2)] == ["C1", "C2"]
        assert list(iterate_case_views(connection, 99)) == []


def test_a_look_tells_where_a_case_stands(room: AnalysisWorld) -> None:
    with room.reading() as connection:
        look = next(iterate_case_views(connection, 2))
    assert (look.case_no, look.step, look.status, look.asked) == (2, F0, "open", False)
    assert look.visits == {F0: 1}
    assert look.input["test_name"] == "alpha"
    assert "alpha" in look.features
    room.work_on(write_script({F5: {"silent": True}}), run_id=2)
    with room.reading() as connection:
        look = next(iterate_case_views(connection, 2))
    assert (look.step, look.asked, look.visits[F3]) == (F5, True, 1)


def test_a_place_tells_where_a_case_belongs(room: AnalysisWorld) -> None:
    with room.reading() as connection:
        assert find_position(connection, 1) is None, "it is about no failure"
        assert find_position(connection, 99) is None
        place = find_position(connection, 2)
    assert place is not None
    assert (place.suite_id, place.symptom_id, place.rca_id) == (2, None, None)
    assert place.bands
    room.work_on(write_script(), run_id=2)
    with room.reading() as connection:
        place = find_position(connection, 2)
    assert place is not None
    assert (place.symptom_id, place.rca_id) == (1, 1)


def test_a_cause_is_agreed_on_once_somebody_reviewed_it(room: AnalysisWorld) -> None:
    room.work_on(write_script({}, C2={F5: {"silent": True}}, C1={F6: {"crash": "gone"}}), run_id=2)
    with room.reading() as connection:
        assert [has_agreed_cause(connection, rca_id) for rca_id in (1, 2, 99)] == [
            True,
            False,
            False,
        ]


def test_many_cases_of_a_cause_do_not_make_the_question_dearer(tmp_path: Path) -> None:
    """Asked for each case of a red night, whether anybody has agreed must not look at all."""
    prices = []
    for count in (2, 60):
        room = AnalysisWorld(tmp_path / str(count))
        room.db.parent.mkdir()
        story = {"message": "AnchorError: the keel is 3 inches too deep", "class_name": "yard.Keel"}
        room.take_in(launch(*(make_failure(f"t{n}", **story) for n in range(count))))
        room.work_on(write_script({F5: {"silent": True}}), RcaConfig(families=True))
        with room.reading() as connection:
            assert count_cases_of_rca(connection, 1) == count
            steps = Counter[str]()
            raw = cast(sqlite3.Connection, connection.raw)
            raw.set_progress_handler(lambda: steps.update("x"), 1)  # noqa: B023
            assert not has_agreed_cause(connection, 1)
            prices.append(steps.total())
    assert prices[0] == prices[1] > 0


def test_open_reviews_are_those_of_the_run_that_nobody_answered(room: AnalysisWorld) -> None:
    with room.reading() as connection:
        assert find_open_reviews(connection, 2) == {}
    room.work_on(write_script(), run_id=2, bench=True)
    asked = room.questions()
    with room.reading() as connection:
        assert {
            number: look.case_id for number, look in find_open_reviews(connection, 2).items()
        } == {
            asked["C1"]: "C1",
            asked["C2"]: "C2",
        }
        assert find_open_reviews(connection, 1) == {}
    room.say(asked["C1"], decision="approve")
    room.work_on(write_script(), run_id=2, bench=True)
    with room.reading() as connection:
        assert list(find_open_reviews(connection, 2)) == [asked["C2"]]
