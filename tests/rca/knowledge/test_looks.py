"""What a suite's cases look like: read back as they stand, asked or not."""

from collections import Counter
from pathlib import Path

import pytest
from tests.world.caseroom import Caseroom, crew, launch, told

from interlock.journal.sqlite import driver
from interlock.rca.config import RcaConfig
from interlock.rca.knowledge.suites import agreed, looks_of, open_reviews, place_of, shared_by
from interlock.rca.steps import F0, F3, F5, F6


@pytest.fixture
def room(tmp_path: Path) -> Caseroom:
    found = Caseroom(tmp_path)
    found.begin("other")
    found.take_in(launch(told("alpha"), told("beta")))
    return found


def test_a_suite_has_the_number_of_its_run(room: Caseroom) -> None:
    with room.reading() as connection:
        assert list(looks_of(connection, 1)) == []
        assert [look.case_id for look in looks_of(connection, 2)] == ["C1", "C2"]
        assert list(looks_of(connection, 99)) == []


def test_a_look_tells_where_a_case_stands(room: Caseroom) -> None:
    with room.reading() as connection:
        look = next(looks_of(connection, 2))
    assert (look.case_no, look.step, look.status, look.asked) == (2, F0, "open", False)
    assert look.visits == {F0: 1}
    assert look.input["test_name"] == "alpha"
    assert "alpha" in look.features
    room.sit(crew({F5: {"silent": True}}), run_id=2)
    with room.reading() as connection:
        look = next(looks_of(connection, 2))
    assert (look.step, look.asked, look.visits[F3]) == (F5, True, 1)


def test_a_place_tells_where_a_case_belongs(room: Caseroom) -> None:
    with room.reading() as connection:
        assert place_of(connection, 1) is None, "it is about no failure"
        assert place_of(connection, 99) is None
        place = place_of(connection, 2)
    assert place is not None
    assert (place.suite_id, place.symptom_id, place.rca_id) == (2, None, None)
    assert place.bands
    room.sit(crew(), run_id=2)
    with room.reading() as connection:
        place = place_of(connection, 2)
    assert place is not None
    assert (place.symptom_id, place.rca_id) == (1, 1)


def test_a_cause_is_agreed_on_once_somebody_reviewed_it(room: Caseroom) -> None:
    room.sit(crew({}, C2={F5: {"silent": True}}, C1={F6: {"crash": "gone"}}), run_id=2)
    with room.reading() as connection:
        assert [agreed(connection, rca_id) for rca_id in (1, 2, 99)] == [True, False, False]


def test_many_cases_of_a_cause_do_not_make_the_question_dearer(tmp_path: Path) -> None:
    """Asked for each case of a red night, whether anybody has agreed must not look at all."""
    prices = []
    for count in (2, 60):
        room = Caseroom(tmp_path / str(count))
        room.db.parent.mkdir()
        story = {"message": "AnchorError: the keel is 3 inches too deep", "class_name": "yard.Keel"}
        room.take_in(launch(*(told(f"t{n}", **story) for n in range(count))))
        room.sit(crew({F5: {"silent": True}}), RcaConfig(families=True))
        with room.reading() as connection:
            assert shared_by(connection, 1) == count
            steps = Counter[str]()
            driver(connection).set_progress_handler(lambda: steps.update("x"), 1)  # noqa: B023
            assert not agreed(connection, 1)
            prices.append(steps.total())
    assert prices[0] == prices[1] > 0


def test_open_reviews_are_those_of_the_run_that_nobody_answered(room: Caseroom) -> None:
    with room.reading() as connection:
        assert open_reviews(connection, 2) == {}
    room.sit(crew(), run_id=2, desk=True)
    asked = room.questions()
    with room.reading() as connection:
        assert {number: look.case_id for number, look in open_reviews(connection, 2).items()} == {
            asked["C1"]: "C1",
            asked["C2"]: "C2",
        }
        assert open_reviews(connection, 1) == {}
    room.say(asked["C1"], decision="approve")
    room.sit(crew(), run_id=2, desk=True)
    with room.reading() as connection:
        assert list(open_reviews(connection, 2)) == [asked["C2"]]
