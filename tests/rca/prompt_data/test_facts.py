"""Facts for prompts: launch, siblings and past of a case, as the store knows them."""

from pathlib import Path
from typing import Any

import pytest
from tests.world.caseroom import CAUSE, Caseroom, crew, launch, told

from interlock.engine.case import Case
from interlock.rca.config import RcaConfig
from interlock.rca.knowledge.suites import place_of
from interlock.rca.prompt_data.parameters import PromptFacts
from interlock.rca.prompt_data.parameters import told as spelled
from interlock.rca.records import Failure
from interlock.rca.steps import F4, F5
from interlock.rca.taxonomy import TAXONOMY
from interlock.rca.workspace import CheckoutSet


@pytest.fixture
def room(tmp_path: Path) -> Caseroom:
    return Caseroom(tmp_path)


def facts(room: Caseroom, case_no: int, name: str, step: str = F4) -> dict[str, Any]:
    with room.reading() as connection:
        found = PromptFacts(connection, CheckoutSet(RcaConfig()), TAXONOMY)
        place = place_of(connection, case_no)
        return found.parameters(Case(name, step), told("alpha"), place, "0123456789abcdef")


def test_a_time_of_the_store_is_spelled_in_utc() -> None:
    assert spelled(0.0) == "1970-01-01T00:00:00+00:00"
    assert spelled(None) == ""


def test_a_launch_and_the_others_of_it_are_told(room: Caseroom) -> None:
    room.take_in(
        launch(*(told(f"t{number}") for number in range(25)), branch="main", commit="4f2a9c1")
    )
    found = facts(room, 3, "C3")
    assert found["git"]["branch"] == "main"
    shown = found["siblings"]
    assert (shown["total"], shown["shown"], shown["left_out"]) == (24, 20, 4)
    assert "C3" not in [each["id"] for each in shown["list"]]


def test_what_siblings_have_become_is_read_anew(room: Caseroom) -> None:
    room.take_in(launch(told("alpha"), told("beta")))
    with room.reading() as connection:
        found = PromptFacts(connection, CheckoutSet(RcaConfig()), TAXONOMY)
        place = place_of(connection, 2)
        case = Case("C2", F4)

        def standing() -> Any:
            given = found.parameters(case, Failure(id="x"), place, "0123456789abcdef")
            (only,) = given["siblings"]["list"]
            return only["status"], only["rca_id"]

        before = standing()
        connection.rollback()
        room.sit(crew(), only={1})
        assert before[0] == "open"
        assert standing() == ("closed", 1)


def test_the_past_of_a_failure_is_that_of_other_launches(room: Caseroom) -> None:
    room.take_in(launch(told("alpha")), name="before")
    room.sit(crew())
    own = facts(room, 1, "C1")["history"]
    assert own["failure_count"] == 0
    room.clock.time += 60
    room.take_in(launch(told("alpha"), launch_id="L2"))
    later = facts(room, 2, "C1")["history"]
    assert later["failure_count"] == 1
    assert later["last_seen"].startswith("1970-01-12")
    assert [each["rca_id"] for each in later["prior_rcas"]] == [1]
    assert later["symptom"]["symptom_id"] == 1
    assert later["prior_rcas"][0]["cases"] == 1


def test_a_symptom_is_told_with_the_environment_it_was_last_seen_in(room: Caseroom) -> None:
    room.take_in(launch(told("alpha"), attributes={"cluster": "lab-7"}), name="before")
    room.sit(crew())
    room.clock.time += 60
    room.take_in(launch(told("alpha"), launch_id="L2", attributes={"cluster": "lab-8"}))
    assert facts(room, 2, "C1")["history"]["symptom"]["environment"] == ["cluster=lab-7"]
    assert facts(room, 1, "C1")["history"]["symptom"]["environment"] == []


def test_a_case_s_own_finding_is_not_one_found_before(room: Caseroom) -> None:
    room.take_in(launch(told("alpha")))
    room.sit(crew({F5: {"silent": True}}))
    own = facts(room, 1, "C1", F5)["history"]
    assert own["prior_rcas"] == []
    assert own["symptom"]["rca_ids"] == []


def test_the_digest_has_the_causes_of_the_suite_but_the_case_s_own(room: Caseroom) -> None:
    room.take_in(launch(told("alpha"), told("beta")))
    other = CAUSE | {"rca_message": "Crane.lift() is off by one"}
    room.sit(crew({F5: {"silent": True}}, C2={"F3_INVESTIGATE": other}))
    digest = facts(room, 1, "C1")["digest"]
    assert [each["title"] for each in digest["rcas"]] == ["Crane.lift() is off by one"]


def test_a_case_without_a_place_has_facts_all_the_same(room: Caseroom) -> None:
    room.take_in(launch(told("alpha")))
    found = facts(room, 99, "C9")
    assert found["siblings"]["total"] == 0
    assert found["history"]["symptoms"] == []
