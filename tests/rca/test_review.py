"""Reviews: a family is reviewed together, and nobody else with it."""

from pathlib import Path

import pytest
from tests.world.caseroom import PRODUCT, Caseroom, crew, launch, told

from interlock.rca.config import RcaConfig
from interlock.rca.families import reviewed_with, reviews_of
from interlock.rca.steps import F1

ANCHOR = "Keel.weigh() gave 12 tons for an anchor of 3"


@pytest.fixture
def room(tmp_path: Path) -> Caseroom:
    found = Caseroom(tmp_path)
    kin = [told(name, ANCHOR, class_name="yard.Keel") for name in ("alpha", "beta")]
    found.take_in(launch(*kin, told("omega")))
    return found


def test_cases_of_one_cause_are_one_review(room: Caseroom) -> None:
    room.sit(crew(), RcaConfig(families=True), desk=True)
    asked = room.questions()
    with room.reading() as connection:
        reviews = reviews_of(connection, 1)
        assert {tuple(each.case_ids) for each in reviews} == {("C1", "C2"), ("C3",)}
        assert {each.about[:12] for each in reviews} == {"Keel.weigh()"}
        assert sorted(number for each in reviews for number in each.question_ids) == sorted(
            asked.values()
        )
        assert reviewed_with(connection, 1, asked["C1"]) == {asked["C2"]: "C2"}
        assert reviewed_with(connection, 1, asked["C3"]) == {}
        assert reviewed_with(connection, 1, 999) == {}
        assert reviewed_with(connection, 2, asked["C1"]) == {}


def test_without_a_cause_those_alike_are_one_review(room: Caseroom) -> None:
    skipped = {F1: PRODUCT | {"symptom_category": "infra"}}
    room.sit(crew(skipped), desk=True)
    with room.reading() as connection:
        reviews = reviews_of(connection, 1)
        assert [each.case_ids for each in reviews] == [["C1", "C2"], ["C3"]]
        assert reviews[0].about == ANCHOR


def test_who_was_answered_is_asked_no_more(room: Caseroom) -> None:
    room.sit(crew(), RcaConfig(families=True), desk=True)
    room.say(room.questions()["C1"], decision="approve")
    room.sit(crew(), RcaConfig(families=True), desk=True)
    with room.reading() as connection:
        assert [each.case_ids for each in reviews_of(connection, 1)] == [["C2"], ["C3"]] or [
            each.case_ids for each in reviews_of(connection, 1)
        ] == [["C3"], ["C2"]]


def test_questions_of_another_run_are_not_touched(room: Caseroom) -> None:
    room.take_in(launch(told("omega"), launch_id="L2"), name="other")
    room.sit(crew(), desk=True)
    room.sit(crew(), run_id=2, desk=True)
    with room.reading() as connection:
        (other,) = reviews_of(connection, 2)
        assert len(reviews_of(connection, 1)) == 3
        assert reviewed_with(connection, 2, other.question_ids[0]) == {}


def test_a_run_that_is_no_investigation_has_no_reviews(tmp_path: Path) -> None:
    room = Caseroom(tmp_path)
    room.begin("A")
    with room.reading() as connection:
        assert reviews_of(connection, 1) == []
        assert reviews_of(connection, 77) == []
