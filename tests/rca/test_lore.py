"""Lore: what the store knows that may be about a failure, the exact first, agreed causes first."""

from pathlib import Path

import pytest
from tests.world.caseroom import CAUSE, Caseroom, crew, launch, told

from interlock.rca.knowledge.suites import place_of
from interlock.rca.known_causes import NEAREST, KnownCauses, StoredMatch
from interlock.rca.steps import F3, F5

ANCHOR = "Keel.weigh() gave 12 tons for an anchor of 3"


@pytest.fixture
def room(tmp_path: Path) -> Caseroom:
    return Caseroom(tmp_path)


def memories(room: Caseroom, case_no: int, most: int = NEAREST) -> list[StoredMatch]:
    with room.reading() as connection:
        place = place_of(connection, case_no)
        assert place is not None
        return KnownCauses(connection).memories(place, most)


def test_where_nothing_is_known_there_are_no_memories(room: Caseroom) -> None:
    room.take_in(launch(told("alpha")))
    assert memories(room, 1) == []


def test_the_same_fingerprint_comes_first_then_the_nearest(room: Caseroom) -> None:
    room.take_in(
        launch(
            told("alpha", ANCHOR, class_name="yard.Keel"),
            told("beta", ANCHOR, class_name="yard.Keel"),
            told("omega"),
        )
    )
    room.sit(crew())
    room.take_in(launch(told("beta", ANCHOR, class_name="yard.Keel"), launch_id="L2"))
    found = memories(room, 4)
    assert found[0].exact
    assert found[0].likeness == 1.0
    assert not any(each.exact for each in found[1:])
    assert [each.likeness for each in found] == sorted(
        (each.likeness for each in found), reverse=True
    )
    assert len({each.symptom.symptom_id for each in found}) == len(found)
    assert memories(room, 4, most=1) == found[:1]


def test_causes_that_were_agreed_on_come_first(room: Caseroom) -> None:
    room.take_in(launch(told("alpha")), name="one")
    room.sit(crew())
    room.take_in(launch(told("alpha"), launch_id="L2"), name="two")
    later = CAUSE | {"rca_message": "Crane.lift() is off by one"}
    room.sit(crew({F3: later, F5: {"silent": True}}), run_id=2)
    (found,) = memories(room, 2)
    assert [(each.rca_id, each.title[:5]) for each in found.rcas] == [(1, "Keel."), (2, "Crane")]
    assert found.agreed == 1


def test_a_cause_nobody_agreed_on_is_told_and_not_counted(room: Caseroom) -> None:
    room.take_in(launch(told("alpha")))
    room.sit(crew({F5: {"silent": True}}))
    (found,) = memories(room, 1)
    assert (len(found.rcas), found.agreed) == (1, 0)


def test_a_failure_that_says_nothing_remembers_nothing(room: Caseroom) -> None:
    room.take_in(launch(told("alpha")))
    room.sit(crew())
    silent = told("omega").__class__(id="x")
    room.take_in(launch(silent, launch_id="L2"))
    assert memories(room, 2) == []
