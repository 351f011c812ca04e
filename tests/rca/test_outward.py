"""What may be told outside: reviewed cases of ReportPortal with a finding, and no others."""

from pathlib import Path

import msgspec
import pytest
from tests.world.caseroom import CAUSE, Caseroom, crew, launch, told

from interlock.rca.findings import updates
from interlock.rca.knowledge.suites import suite_cases
from interlock.rca.records import Evidence, Findings
from interlock.rca.steps import F5


@pytest.fixture
def room(tmp_path: Path) -> Caseroom:
    found = Caseroom(tmp_path)
    numbered = [told(name, item_id=10 + at) for at, name in enumerate(("alpha", "beta"))]
    found.take_in(launch(*numbered, told("gamma"), launch_id="77", project="yard"))
    return found


def pushed(room: Caseroom, findings: Findings | None = None) -> tuple[list[int], dict[str, int]]:
    with room.reading() as connection:
        cases = suite_cases(connection, 1)
    found, left = updates(findings or room.findings(), cases, "ann")
    return [each.item_id for each in found], left


def test_nothing_is_told_before_it_was_reviewed(room: Caseroom) -> None:
    assert pushed(room) == ([], {"not reviewed": 3})
    room.sit(crew({F5: {"silent": True}}))
    assert pushed(room) == ([], {"not reviewed": 3})


def test_reviewed_cases_are_told_each_with_its_own_words(room: Caseroom) -> None:
    other = {F5: {"decision": "overturn", "human_override": {"defect_type": "ab001"}}}
    room.sit(crew({}, C2=other))
    with room.reading() as connection:
        found, left = updates(room.findings(), suite_cases(connection, 1), "ann")
    assert [(each.item_id, each.defect_type) for each in found] == [(10, "pb001"), (11, "ab001")]
    assert all(str(CAUSE["rca_message"]) in each.comment for each in found)
    assert all(each.launch_id == "77" for each in found)
    assert left == {"not from ReportPortal": 1}


@pytest.mark.parametrize("change", [{"status": "investigated"}, {"decision": ""}])
def test_both_status_and_decision_must_say_so(room: Caseroom, change: dict[str, str]) -> None:
    room.sit(crew())
    with room.reading() as connection:
        cases = [msgspec.structs.replace(each, **change) for each in suite_cases(connection, 1)]
    assert updates(room.findings(), cases, "ann") == ([], {"not reviewed": 3})


def test_one_that_was_sent_back_is_told_no_more(room: Caseroom) -> None:
    again = [{"decision": "reassess"}, {"silent": True}]
    room.sit(crew({}, C1={F5: again}))
    assert pushed(room) == ([11], {"not reviewed": 1, "not from ReportPortal": 1})


def test_a_case_that_failed_after_its_review_is_still_reviewed(room: Caseroom) -> None:
    room.sit(crew({}, C1={"F6_REPORT": {"crash": "gone"}}))
    assert room.statuses()["C1"] == "reviewed"
    assert pushed(room)[0] == [10, 11]


def test_without_a_finding_there_is_nothing_to_tell(room: Caseroom) -> None:
    room.sit(crew())
    bare = room.findings()
    cases = tuple(msgspec.structs.replace(each, message="") for each in bare.cases)
    assert pushed(room, msgspec.structs.replace(bare, cases=cases)) == (
        [],
        {"without a finding": 2, "not from ReportPortal": 1},
    )


def test_only_evidence_that_was_found_is_linked(room: Caseroom) -> None:
    room.sit(crew())
    there = Evidence(ref="a", verdict="found", url="https://git.example/x/commit/aaaaaaaaaa")
    gone = Evidence(ref="b", verdict="missing", url="https://git.example/x/commit/bbbbbbbbbb")
    bare = room.findings()
    cases = tuple(msgspec.structs.replace(each, evidence=(there, gone)) for each in bare.cases)
    with room.reading() as connection:
        found, _ = updates(
            msgspec.structs.replace(bare, cases=cases), suite_cases(connection, 1), "ann"
        )
    assert "commit/aaaaaaaaaa" in found[0].comment
    assert "commit/bbbbbbbbbb" not in found[0].comment
