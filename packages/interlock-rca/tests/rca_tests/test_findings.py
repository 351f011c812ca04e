"""Findings read back: what a report is made of, family by family, with the trail of each case.

What may be told outside: reviewed cases of ReportPortal with a finding, and no others.
"""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from interlock_rca.config import RcaConfig
from interlock_rca.findings import collect_updates, read_suspects
from interlock_rca.knowledge.suites import list_suite_cases
from interlock_rca.records import Evidence, Findings, Repo, Suspect
from interlock_rca.steps import F0, F1, F3, F4, F5, F6
from rca_tests.worlds.analysis_world import (
    CAUSE,
    PRODUCT,
    AnalysisWorld,
    launch,
    make_failure,
    write_script,
)

ANCHOR = "Keel.weigh() gave 12 tons for an anchor of 3"
SUSPECTS = [{"repo": "boat", "commit": "a" * 40, "subject": "Move ballast", "score": 0.9}]
KIN = [make_failure(name, ANCHOR, class_name="yard.Keel") for name in ("alpha", "beta")]


@pytest.fixture
def room(tmp_path: Path) -> AnalysisWorld:
    return AnalysisWorld(tmp_path)


def test_a_suite_that_was_just_taken_in(room: AnalysisWorld) -> None:
    room.take_in(launch(*KIN, make_failure("omega"), version="7.1"))
    found = room.findings()
    assert [each.status for each in found.cases] == ["open"] * 3
    assert [each.step for each in found.cases] == [F0] * 3
    assert [(each.version, each.trail, each.rca_id) for each in found.cases] == [("7.1", (), 0)] * 3
    assert [each.members for each in found.families] == [("C1", "C2"), ("C3",)]
    assert found.families[0].title == ANCHOR
    assert found.dispatches == 0
    assert found.made_at.endswith("Z")


def test_a_suite_that_was_worked_through(room: AnalysisWorld) -> None:
    room.take_in(launch(*KIN, make_failure("omega", log="fine\nERROR mast broke\nfine")))
    skipped = {F1: PRODUCT | {"symptom_category": "infra", "data_quality_notes": "net was down"}}
    room.work_on(
        write_script({F3: CAUSE | {"suspects": SUSPECTS}}, C3=skipped), RcaConfig(families=True)
    )
    found = room.findings()
    first, second, third = found.cases
    assert (first.status, first.step, first.stuck, first.decision) == ("closed", "", "", "approve")
    assert (first.category, first.defect_type, first.score) == ("product", "pb001", 0.9)
    assert first.message == second.message == CAUSE["rca_message"]
    assert first.suspects == second.suspects == (Suspect(**SUSPECTS[0]),)  # type: ignore[arg-type]
    assert [each.verdict for each in first.evidence] == ["unchecked"]
    assert third.message == "net was down"
    assert (third.category, third.rca_id > 0) == ("infra", True), "a review made it a cause"
    assert "ERROR mast broke" in third.excerpt
    assert [each.members for each in found.families] == [("C1", "C2"), ("C3",)]
    assert [turn.rule for turn in first.trail] == ["H2", "H7", "H9", "H15b", "H12", "H16"]
    assert all(turn.why and turn.at for turn in first.trail)
    assert first.draft["summary"] == "the anchor is counted twice"
    assert found.dispatches == 5 + 4 + 3, "questions to humans are none"


def test_a_cause_that_nobody_is_sure_of_keeps_its_first_kind(room: AnalysisWorld) -> None:
    room.take_in(launch(make_failure("alpha")))
    room.work_on(write_script({F3: CAUSE | {"convergence_score": 0.2}, F5: {"silent": True}}))
    (only,) = room.findings().cases
    assert (only.defect_type, only.category, only.triaged) == ("ti001", "unknown", "product")


def test_a_stack_is_kept_and_a_long_one_by_its_ends(room: AnalysisWorld) -> None:
    frames = "\n".join(f"at frame {n}" for n in range(2000))
    room.take_in(
        launch(make_failure("alpha", stack="at one\nat two"), make_failure("omega", stack=frames))
    )
    short, long = (each.stack for each in room.findings().cases)
    assert short == "at one\nat two"
    head, result, tail = long.split("…")
    assert head.startswith("at frame 0\n")
    assert tail.endswith("at frame 1999")
    assert len(head) + len(tail) + int(result.split()[0].replace(",", "")) == len(frames) + 2
    assert len(long) < 4100


def test_a_question_is_named_while_it_is_open(room: AnalysisWorld) -> None:
    room.take_in(launch(*KIN))
    room.work_on(write_script({F5: {"silent": True}}), RcaConfig(families=True))
    asked = [each.question_id for each in room.findings().cases]
    assert all(asked)
    assert len(set(asked)) == 2


def test_who_found_the_cause_stands_for_its_family(room: AnalysisWorld) -> None:
    room.take_in(launch(make_failure("alpha"), make_failure("omega")))
    same = {F4: {"is_duplicate": True, "confidence": 0.9, "linked_rca_id": 2, "reasoning": "-"}}
    room.work_on(write_script({}, C1=same))
    (family,) = room.findings().families
    assert family.family_id.startswith("rca-")
    assert set(family.members) == {"C1", "C2"}
    owner = next(each for each in room.cases().values() if each.rca)
    assert owner.rca is not None
    number = {each.case_id: each.case_no for each in room.cases().values()}
    assert number[family.members[0]] == owner.rca.case_no


@pytest.mark.parametrize(
    ("answers", "stuck", "step"),
    [
        ({F3: {"crash": "gone"}}, "it ended as FAILED", ""),
        ({F5: {"silent": True}}, "", F5),
        ({F5: {"decision": "reassess"}}, "it ended as UNRESOLVED", ""),
    ],
)
def test_what_stopped_early_says_so(
    room: AnalysisWorld, answers: dict[str, Any], stuck: str, step: str
) -> None:
    room.take_in(launch(make_failure("alpha")))
    room.work_on(write_script(answers))
    (found,) = room.findings().cases
    assert (found.stuck, found.step) == (stuck, step)
    assert found.decision == ""


def test_a_report_does_not_tell_where_repositories_lie(room: AnalysisWorld) -> None:
    room.take_in(launch(make_failure("alpha")))
    repo = Repo(name="boat", path="/home/ann/boat", purpose="floats", url="https://git.example/b")
    (visible,) = room.findings(RcaConfig(repos=(repo,))).repos
    assert (visible.name, visible.path, visible.url) == ("boat", "", "https://git.example/b")


def test_a_symptom_seen_before_says_how_often(room: AnalysisWorld) -> None:
    room.take_in(launch(make_failure("alpha")), name="before")
    room.work_on(write_script())
    room.take_in(launch(make_failure("alpha"), launch_id="L2"))
    hit = {"match": True, "confidence": 0.9, "prior_rca_id": 1, "symptom_id": 1, "reasoning": "-"}
    room.work_on(write_script({F0: hit}), run_id=2)
    (found,) = room.findings(suite_id=2).cases
    assert (found.recalled, found.seen, found.rca_id) == (True, 2, 1)
    assert found.inherited
    assert not room.findings(suite_id=1).cases[0].inherited
    assert found.first_seen
    assert found.message == CAUSE["rca_message"]


@pytest.mark.parametrize(
    "result",
    [
        {},
        {"suspects": None},
        {"suspects": "all of them"},
        {"suspects": [1]},
        {"suspects": [{"repo": "x"}]},
        {"suspects": [{"repo": "x", "commit": "y", "score": "high"}]},
    ],
)
def test_what_is_no_suspect_is_passed_over(result: dict[str, Any]) -> None:
    assert read_suspects(result) == ()


def test_an_agents_odd_suspects_do_not_spoil_a_report(room: AnalysisWorld) -> None:
    room.take_in(launch(make_failure("alpha")))
    odd = [*SUSPECTS, {"commit": ["x"]}]
    room.work_on(
        write_script({F3: CAUSE | {"suspects": odd}, F6: {"summary": "s", "x": [{"deep": 1}]}})
    )
    (found,) = room.findings().cases
    assert [each.repo for each in found.suspects] == ["boat"], "good ones stay"
    assert found.draft["summary"] == "s"


@pytest.fixture
def portal_room(tmp_path: Path) -> AnalysisWorld:
    found = AnalysisWorld(tmp_path)
    numbered = [make_failure(name, item_id=10 + at) for at, name in enumerate(("alpha", "beta"))]
    found.take_in(launch(*numbered, make_failure("gamma"), launch_id="77", project="yard"))
    return found


def pushed(
    portal_room: AnalysisWorld, findings: Findings | None = None
) -> tuple[list[int], dict[str, int]]:
    with portal_room.reading() as connection:
        cases = list_suite_cases(connection, 1)
    found, left = collect_updates(findings or portal_room.findings(), cases, "ann")
    return [each.item_id for each in found], left


def test_nothing_is_told_before_it_was_reviewed(portal_room: AnalysisWorld) -> None:
    assert pushed(portal_room) == ([], {"not reviewed": 3})
    portal_room.work_on(write_script({F5: {"silent": True}}))
    assert pushed(portal_room) == ([], {"not reviewed": 3})


def test_reviewed_cases_are_told_each_with_its_own_words(portal_room: AnalysisWorld) -> None:
    other = {F5: {"decision": "overturn", "human_override": {"defect_type": "ab001"}}}
    portal_room.work_on(write_script({}, C2=other))
    with portal_room.reading() as connection:
        found, left = collect_updates(
            portal_room.findings(), list_suite_cases(connection, 1), "ann"
        )
    assert [(each.item_id, each.defect_type) for each in found] == [(10, "pb001"), (11, "ab001")]
    assert all(str(CAUSE["rca_message"]) in each.comment for each in found)
    assert all(each.launch_id == "77" for each in found)
    assert left == {"not from ReportPortal": 1}


@pytest.mark.parametrize("change", [{"status": "investigated"}, {"decision": ""}])
def test_both_status_and_decision_must_say_so(
    portal_room: AnalysisWorld, change: dict[str, str]
) -> None:
    portal_room.work_on(write_script())
    with portal_room.reading() as connection:
        cases = [
            msgspec.structs.replace(each, **change) for each in list_suite_cases(connection, 1)
        ]
    assert collect_updates(portal_room.findings(), cases, "ann") == ([], {"not reviewed": 3})


def test_one_that_was_sent_back_is_told_no_more(portal_room: AnalysisWorld) -> None:
    again = [{"decision": "reassess"}, {"silent": True}]
    portal_room.work_on(write_script({}, C1={F5: again}))
    assert pushed(portal_room) == ([11], {"not reviewed": 1, "not from ReportPortal": 1})


def test_a_case_that_failed_after_its_review_is_still_reviewed(portal_room: AnalysisWorld) -> None:
    portal_room.work_on(write_script({}, C1={"F6_REPORT": {"crash": "gone"}}))
    assert portal_room.statuses()["C1"] == "reviewed"
    assert pushed(portal_room)[0] == [10, 11]


def test_without_a_finding_there_is_nothing_to_tell(portal_room: AnalysisWorld) -> None:
    portal_room.work_on(write_script())
    bare = portal_room.findings()
    cases = tuple(msgspec.structs.replace(each, message="") for each in bare.cases)
    assert pushed(portal_room, msgspec.structs.replace(bare, cases=cases)) == (
        [],
        {"without a finding": 2, "not from ReportPortal": 1},
    )


def test_only_evidence_that_was_found_is_linked(portal_room: AnalysisWorld) -> None:
    portal_room.work_on(write_script())
    there = Evidence(ref="a", verdict="found", url="https://git.example/x/commit/aaaaaaaaaa")
    gone = Evidence(ref="b", verdict="missing", url="https://git.example/x/commit/bbbbbbbbbb")
    bare = portal_room.findings()
    cases = tuple(msgspec.structs.replace(each, evidence=(there, gone)) for each in bare.cases)
    with portal_room.reading() as connection:
        found, _ = collect_updates(
            msgspec.structs.replace(bare, cases=cases), list_suite_cases(connection, 1), "ann"
        )
    assert "commit/aaaaaaaaaa" in found[0].comment
    assert "commit/bbbbbbbbbb" not in found[0].comment
