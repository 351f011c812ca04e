"""Known causes: what the store knows that may be about a failure, exact and agreed ones first.

F0 by the analyst: what a memory is worth, and what is never taken for the same.
"""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock_rca.knowledge.suites import find_position
from interlock_rca.known_causes import (
    EXACT_CONFIDENCE,
    MAX_MATCHES,
    MAX_REGRESSION_CONFIDENCE,
    OTHER_VERSION_FACTOR,
    UNSURE_THRESHOLD,
    KnownCauses,
    PriorMatch,
    StoredMatch,
    build_recall_answer,
)
from interlock_rca.steps import F3, F5
from rca_tests.worlds.analysis_world import CAUSE, AnalysisWorld, launch, make_failure, write_script

ANCHOR = "Keel.weigh() gave 12 tons for an anchor of 3"


@pytest.fixture
def room(tmp_path: Path) -> AnalysisWorld:
    return AnalysisWorld(tmp_path)


def memories(room: AnalysisWorld, case_no: int, most: int = MAX_MATCHES) -> list[StoredMatch]:
    with room.reading() as connection:
        place = find_position(connection, case_no)
        assert place is not None
        return KnownCauses(connection).find_matches(place, most)


def test_where_nothing_is_known_there_are_no_memories(room: AnalysisWorld) -> None:
    room.take_in(launch(make_failure("alpha")))
    assert memories(room, 1) == []


def test_the_same_fingerprint_comes_first_then_the_nearest(room: AnalysisWorld) -> None:
    room.take_in(
        launch(
            make_failure("alpha", ANCHOR, class_name="yard.Keel"),
            make_failure("beta", ANCHOR, class_name="yard.Keel"),
            make_failure("omega"),
        )
    )
    room.work_on(write_script())
    room.take_in(launch(make_failure("beta", ANCHOR, class_name="yard.Keel"), launch_id="L2"))
    found = memories(room, 4)
    assert found[0].exact
    assert found[0].likeness == 1.0
    assert not any(each.exact for each in found[1:])
    assert [each.likeness for each in found] == sorted(
        (each.likeness for each in found), reverse=True
    )
    assert len({each.symptom.symptom_id for each in found}) == len(found)
    assert memories(room, 4, most=1) == found[:1]


def test_causes_that_were_agreed_on_come_first(room: AnalysisWorld) -> None:
    room.take_in(launch(make_failure("alpha")), name="one")
    room.work_on(write_script())
    room.take_in(launch(make_failure("alpha"), launch_id="L2"), name="two")
    later = CAUSE | {"rca_message": "Crane.lift() is off by one"}
    room.work_on(write_script({F3: later, F5: {"silent": True}}), run_id=2)
    (found,) = memories(room, 2)
    assert [(each.rca_id, each.title[:5]) for each in found.rcas] == [(1, "Keel."), (2, "Crane")]
    assert found.agreed == 1


def test_a_cause_nobody_agreed_on_is_told_and_not_counted(room: AnalysisWorld) -> None:
    room.take_in(launch(make_failure("alpha")))
    room.work_on(write_script({F5: {"silent": True}}))
    (found,) = memories(room, 1)
    assert (len(found.rcas), found.agreed) == (1, 0)


def test_a_failure_that_says_nothing_remembers_nothing(room: AnalysisWorld) -> None:
    room.take_in(launch(make_failure("alpha")))
    room.work_on(write_script())
    silent = make_failure("omega").__class__(id="x")
    room.take_in(launch(silent, launch_id="L2"))
    assert memories(room, 2) == []


HIT = 0.8
"""From here on the circuit takes a memory for the same."""


def memory(**more: Any) -> PriorMatch:
    given_fields: dict[str, Any] = {
        "symptom_id": 3,
        "name": "alpha",
        "likeness": 1.0,
        "why": "message 1.00",
        "is_exact": True,
        "is_dormant": False,
        "is_resolved": False,
        "seen": 4,
        "rca_id": 7,
        "title": "the anchor is counted twice",
    }
    return PriorMatch(**given_fields | more)


def near(likeness: float, **more: Any) -> PriorMatch:
    return memory(is_exact=False, likeness=likeness, **more)


def test_the_same_fingerprint_is_a_hit() -> None:
    assert build_recall_answer([memory()]) == {
        "match": True,
        "prior_rca_id": 7,
        "symptom_id": 3,
        "confidence": EXACT_CONFIDENCE,
        "reasoning": "root cause 7 (the anchor is counted twice) explained symptom 3; "
        "its fingerprint is the same",
        "is_regression": False,
    }


def test_in_another_version_it_is_worth_less_and_a_hit_all_the_same() -> None:
    found = build_recall_answer([memory(is_other_version=True)])
    assert found["confidence"] == pytest.approx(EXACT_CONFIDENCE * OTHER_VERSION_FACTOR)
    assert HIT < found["confidence"] < EXACT_CONFIDENCE
    assert "it was seen in another version" in found["reasoning"]


def test_what_slept_is_worth_half_and_a_regression() -> None:
    found = build_recall_answer([memory(is_dormant=True)])
    assert found["confidence"] == round(EXACT_CONFIDENCE / 2, 3) < HIT
    assert found["is_regression"]
    assert "worth half" in found["reasoning"]


@pytest.mark.parametrize("gone", ["is_resolved", "passed_since"])
@given(st.floats(UNSURE_THRESHOLD, 1), st.booleans(), st.booleans(), st.booleans())
def test_what_was_gone_is_never_a_hit(
    gone: str, likeness: float, exact: bool, dormant: bool, other_version: bool
) -> None:
    resolved = memory(
        likeness=likeness,
        is_exact=exact,
        is_dormant=dormant,
        is_other_version=other_version,
        **{gone: True},
    )
    found = build_recall_answer([resolved])
    assert found["match"]
    assert found["is_regression"]
    assert found["confidence"] <= MAX_REGRESSION_CONFIDENCE < HIT


def test_a_near_one_is_as_sure_as_it_is_alike() -> None:
    found = build_recall_answer([near(0.6)])
    assert (found["match"], found["confidence"]) == (True, 0.6)
    assert "alike in message 1.00" in found["reasoning"]
    assert build_recall_answer([near(0.999)])["confidence"] == EXACT_CONFIDENCE


def test_of_several_the_surest_is_named() -> None:
    found = build_recall_answer([memory(is_resolved=True), near(0.9, symptom_id=5, rca_id=9)])
    assert (found["symptom_id"], found["prior_rca_id"]) == (5, 9)
    tie = build_recall_answer([memory(symptom_id=1), memory(symptom_id=2)])
    assert tie["symptom_id"] == 1


def test_what_is_too_far_or_unknown_is_no_match() -> None:
    nothing = {"match": False, "confidence": 0.0, "reasoning": "nothing like it is known"}
    assert build_recall_answer([]) == nothing
    assert build_recall_answer([near(UNSURE_THRESHOLD - 0.01)]) == nothing


def test_seen_but_never_explained_is_no_match_and_said() -> None:
    found = build_recall_answer([memory(rca_id=0)])
    assert not found["match"]
    assert found["reasoning"] == "seen 4 times before, but nobody has agreed on a cause"
