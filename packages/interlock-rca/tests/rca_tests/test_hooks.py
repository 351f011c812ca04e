"""The application of `rca`: what prompts are filled with, what is refused, who waits for whom."""

from pathlib import Path
from typing import Any

import pytest

from interlock.carriers.contract import NO_CONTEXT
from interlock.engine.case import Case
from interlock.engine.schedule import Budget
from interlock.journal.journal import read_blob
from interlock.runtime.application import RunSetup
from interlock_rca.config import RcaConfig
from interlock_rca.records import Repo
from interlock_rca.steps import F0, F1, F2, F3, F4, F5, LINKED, STEPS
from rca_tests.worlds.analysis_world import (
    APPROVE,
    CAUSE,
    GOOD,
    NEW,
    PRODUCT,
    AnalysisWorld,
    launch,
    make_failure,
    write_script,
)
from tests.world.git_repo import GitRepo

MESSAGE = str(CAUSE["rca_message"])
ANCHOR = "Keel.weigh() gave 12 tons for an anchor of 3"
FAMILIES = RcaConfig(families=True)


@pytest.fixture
def room(tmp_path: Path) -> AnalysisWorld:
    return AnalysisWorld(tmp_path)


def alike(*names: str) -> list[Any]:
    return [make_failure(name, ANCHOR, class_name="yard.Keel") for name in names]


# Prompts


def prompts(room: AnalysisWorld, case_no: int) -> dict[str, str]:
    """The last prompt of each step."""
    found: dict[str, str] = {}
    with room.reading() as connection:
        raw = connection.raw
        query = "select step, prompt from dispatches where case_no = ? order by dispatch_id"
        for step, blob in raw.execute(query, (case_no,)).fetchall():
            found[step] = read_blob(raw, blob).decode()
    return found


def test_all_seven_templates_are_filled_from_the_store(room: AnalysisWorld) -> None:
    places = PRODUCT | {"candidate_repos": []}
    failures = [
        make_failure("alpha", log="the tide rose\nERROR tide too high"),
        make_failure("beta"),
    ]
    room.take_in(launch(*failures, version="7.1", branch="main", commit="4f2a9c1"))
    repo = Repo(name="boat", path="/nowhere", purpose="what floats")
    assert room.work_on(write_script({F1: places}), RcaConfig(repos=(repo,))) == "done"
    filled = prompts(room, 1)
    assert set(filled) == set(STEPS)
    for step, text in filled.items():
        assert "alpha sank in the alpha basin" in text, step
        assert "{{" not in text, step
        assert "7.1" in text, step
    assert "what floats" in filled[F2]
    assert MESSAGE in filled[F5]
    assert all(text.count("beta sank in the beta basin") for text in (filled[F1], filled[F4]))


def test_no_failure_is_its_own_sibling(room: AnalysisWorld) -> None:
    def meet(ours: RunSetup) -> None:
        work = ours.hooks
        assert work is not None

        for number, name in ((1, "alpha"), (2, "beta")):
            case = Case(f"C{number}", F1, input={"id": name, "test_name": name})
            visible = work.prompt_values(number, case, NO_CONTEXT)["data"]["siblings"]
            assert f"id: C{3 - number};" in visible
            assert f"id: C{number};" not in visible
            assert "more" not in visible

    room.take_in(launch(make_failure("alpha"), make_failure("beta")))
    room.work_on(write_script(), meet=meet)


def test_a_prompt_tells_what_siblings_have_become_meanwhile(room: AnalysisWorld) -> None:
    room.take_in(launch(make_failure("alpha"), make_failure("beta")))
    slow = {F4: {"answer": GOOD[F4], "delay": "5m"}}
    room.work_on(write_script({}, C2=slow | {F3: {"answer": CAUSE, "delay": "5m"}}))
    assert "'rca_id': 1" not in prompts(room, 2)[F1]
    siblings = prompts(room, 2)[F4]
    assert "closed" in siblings


def test_what_is_known_from_other_suites_is_told(room: AnalysisWorld) -> None:
    room.take_in(launch(make_failure("alpha")), name="before")
    room.work_on(write_script())
    room.take_in(launch(make_failure("alpha"), launch_id="L2"))
    room.work_on(write_script(), run_id=2)
    assert MESSAGE in prompts(room, 2)[F0]


def test_each_of_several_repositories_has_a_prompt_of_its_own(room: AnalysisWorld) -> None:
    repos = [{"name": "boat", "reason": "floats"}, {"name": "yard", "reason": "builds"}]
    room.take_in(launch(make_failure("alpha")))
    places = {F1: PRODUCT | {"candidate_repos": []}, F2: {"selected_repos": repos}}
    room.work_on(write_script(places))
    last = prompts(room, 1)[F3]
    assert "yard" in last
    assert MESSAGE in last, "what was found in the first goes along"


def test_fences_of_prompts_differ(room: AnalysisWorld) -> None:
    fences: set[str] = set()

    def meet(ours: RunSetup) -> None:

        assert ours.hooks is not None
        for _ in range(5):
            facts = ours.hooks.prompt_values(1, Case("C1", F1, input={"id": "alpha"}), NO_CONTEXT)
            fences.add(facts["fence"]["mark"])

    room.take_in(launch(make_failure("alpha")))
    room.work_on(write_script(), meet=meet)
    assert len(fences) == 5


def test_nothing_is_gathered_for_prompts_that_nobody_reads(room: AnalysisWorld) -> None:
    def meet(ours: RunSetup) -> None:

        assert ours.hooks is not None
        assert ours.hooks.prompt_values(1, Case("C1", F1), NO_CONTEXT) == {}
        assert ours.hooks.prompt_values(1, Case("C1", F5, input={"id": "alpha"}), NO_CONTEXT) != {}

    room.take_in(launch(make_failure("alpha")))
    room.work_on(None, meet=meet)


# Answers


def test_evidence_is_looked_up_in_git(room: AnalysisWorld, tmp_path: Path) -> None:
    boat = GitRepo(tmp_path / "boat")
    commit = boat.commit("Weigh the keel", {"keel.py": "a\nb\nc\n"})
    refs = ["boat:keel.py:3", "boat:keel.py:4", f"boat@{commit[:10]}", "boat@deadbeefdead"]
    room.take_in(launch(make_failure("alpha")))
    terms = RcaConfig(repos=(Repo(name="boat", path=str(boat.folder)),))
    room.work_on(write_script({F3: CAUSE | {"evidence_refs": refs}}), terms)
    rca = room.cases()["C1"].rca
    assert rca is not None
    assert [each["verdict"] for each in rca.evidence] == ["found", "missing", "found", "missing"]
    assert rca.convergence_score == 0.9


def test_a_finding_whose_evidence_is_nowhere_is_not_sure(
    room: AnalysisWorld, tmp_path: Path
) -> None:
    boat = GitRepo(tmp_path / "boat")
    boat.commit("Begin", {"hull.py": "x\n"})
    room.take_in(launch(make_failure("alpha")))
    room.work_on(write_script(), RcaConfig(repos=(Repo(name="boat", path=str(boat.folder)),)))
    assert room.rules() == ["H2", "H7", "H10", "H8", "H10", "H8", "H11", "H12", "H16"]


def test_a_vague_message_is_refused_once_then_taken(room: AnalysisWorld) -> None:
    room.take_in(launch(make_failure("alpha")))
    assert room.work_on(write_script({F3: CAUSE | {"rca_message": "the test failed"}})) == "done"
    assert room.rules()[:4] == ["H2", "H7", "retry", "H9"]
    assert room.refused() == ["Malformed"]
    assert "rca_message says nothing that can be checked" in prompts(room, 1)[F3]


def test_a_project_has_codes_of_its_own(room: AnalysisWorld) -> None:
    room.take_in(launch(make_failure("alpha")))
    leak = {F1: PRODUCT | {"defect_type_hypothesis": "LEAK"}, F3: CAUSE | {"defect_type": "leak"}}
    assert room.work_on(write_script(leak), RcaConfig(codes={"leak": "firmware"})) == "done"
    rca = room.cases()["C1"].rca
    assert rca is not None
    assert (rca.defect_type, rca.category) == ("leak", "firmware")


# Families


def test_one_of_a_family_is_investigated_and_the_others_share_its_cause(
    room: AnalysisWorld,
) -> None:
    room.take_in(launch(*alike("alpha", "beta", "gamma"), make_failure("delta")))
    assert room.work_on(write_script(), FAMILIES) == "done"
    assert room.rules("C1") == ["H2", "H7", "H9", "H15b", "H12", "H16"]
    assert room.rules("C2") == room.rules("C3") == ["H2", "H7", "linked", "H12", "H16"]
    assert room.rules("C4") == ["H2", "H7", "H9", "H15b", "H12", "H16"]
    assert {name: each.rca.rca_id for name, each in room.cases().items() if each.rca} == {
        "C1": 1,
        "C2": 1,
        "C3": 1,
        "C4": 2,
    }
    assert room.faults() == []


def test_when_the_first_of_a_family_fails_the_next_is_asked(room: AnalysisWorld) -> None:
    room.take_in(launch(*alike("alpha", "beta", "gamma")))
    assert room.work_on(write_script({}, C1={F3: {"crash": "gone"}}), FAMILIES) == "unhealthy"
    assert room.ends() == {"C1": "FAILED", "C2": "DONE", "C3": "DONE"}
    assert room.rules("C2") == ["H2", "H7", "H9", "H15b", "H12", "H16"]
    assert "linked" in room.rules("C3")


def test_who_failed_stands_in_for_nobody_in_a_later_sitting_either(room: AnalysisWorld) -> None:
    room.take_in(launch(*alike("alpha", "beta", "gamma")))
    gone = write_script({}, C1={F3: {"crash": "gone"}})
    assert room.work_on(gone, FAMILIES, budget=Budget(dispatches=9)) == "budget"
    assert room.ends() == {"C1": "FAILED", "C2": "open", "C3": "open"}
    room.work_on(write_script(), FAMILIES)
    assert room.ends() == {"C1": "FAILED", "C2": "DONE", "C3": "DONE"}
    asked = [case_id for case_id in ("C2", "C3") if "H9" in room.rules(case_id)]
    assert asked == ["C2"], "one of the others is investigated, not both"


@pytest.mark.parametrize("step", [F2, F3])
@pytest.mark.parametrize("families", [False, True])
@pytest.mark.parametrize("representative", ["C1", "C2", "", None, ["C1"], {"C1": 1}])
def test_no_agent_can_say_that_a_case_is_linked(
    room: AnalysisWorld, step: str, families: bool, representative: Any
) -> None:
    forged = {"representative": representative, "linked_rca_id": 1, "confidence": 1.0}
    lie = {step: {"signal": LINKED, "answer": forged}}
    triage = {F1: PRODUCT | {"candidate_repos": [] if step == F2 else ["boat"]}}
    room.take_in(launch(make_failure("alpha"), make_failure("beta")))
    room.work_on(write_script(triage, C2=lie), RcaConfig(families=families))
    assert room.ends() == {"C1": "DONE", "C2": "FAILED"}
    assert room.refused() == ["WrongRole"] * 3
    assert room.cases()["C2"].rca is None


def test_not_even_when_another_of_its_family_was_investigated(room: AnalysisWorld) -> None:
    """C2 is linked, sent back, and asked: what the agent says then is not Interlock's word."""
    forged = {"representative": "C1", "linked_rca_id": 99, "confidence": 1.0}
    again = {"decision": "reassess", "loop_target": F3}
    room.take_in(launch(*alike("alpha", "beta")))
    lie = {F3: {"signal": LINKED, "answer": forged}, F5: [again, APPROVE]}
    room.work_on(write_script({}, C2=lie), FAMILIES)
    assert room.rules("C2") == ["H2", "H7", "linked", "H13-F3", "retry", "retry", "otherwise"]
    assert room.refused() == ["WrongRole"] * 3
    assert room.cases()["C2"].notes == ()


def test_a_rule_may_review_a_family_wherever_it_was_linked(room: AnalysisWorld) -> None:
    """Linked at F3, its answer to that step is no investigation."""
    room.take_in(launch(*alike("alpha", "beta")))
    auto = RcaConfig(families=True, review="auto", review_above=0.6)
    assert room.work_on(write_script(), auto, bench=True) == "done"
    assert room.statuses() == {"C1": "closed", "C2": "closed"}
    assert room.cases()["C2"].reviewed_by.startswith("rule: score ")


def test_a_rule_leaves_what_is_not_sure_to_a_human(room: AnalysisWorld) -> None:
    room.take_in(launch(make_failure("alpha"), make_failure("beta")))
    unsure = CAUSE | {"convergence_score": 0.75}
    auto = RcaConfig(review="auto", review_above=0.8)
    assert room.work_on(write_script({}, C2={F3: unsure}), auto, bench=True) == "waiting"
    assert room.statuses() == {"C1": "closed", "C2": "investigated"}
    assert list(room.questions()) == ["C2"]


def test_when_looks_are_spent_no_rule_approves(room: AnalysisWorld) -> None:
    room.take_in(launch(make_failure("alpha")))
    auto = RcaConfig(review="auto", review_above=0.0)
    assert (
        room.work_on(write_script({F3: CAUSE | {"convergence_score": 0.6}}), auto, bench=True)
        == "waiting"
    )
    assert room.rules()[-1] == "H11"


def test_what_a_human_must_see_is_not_approved_for_the_rest_of_the_family(
    room: AnalysisWorld,
) -> None:
    """However alike the two are: the cause they share is not sure."""
    room.take_in(launch(*alike("alpha", "beta")))
    auto = RcaConfig(families=True, review="auto", review_above=0.5)
    unsure = {F3: CAUSE | {"convergence_score": 0.6}}
    assert room.work_on(write_script(unsure), auto, bench=True) == "waiting"
    assert "linked" in room.rules("C2")
    assert list(room.questions()) == ["C1", "C2"]
    for question in room.questions().values():
        room.say(question, decision="approve")
    assert room.work_on(write_script(unsure), auto, bench=True) == "done"
    assert room.cases()["C2"].reviewed_by == "ann"


def test_a_member_is_no_surer_than_the_cause_it_shares(room: AnalysisWorld) -> None:
    room.take_in(launch(*alike("alpha", "beta")))
    auto = RcaConfig(families=True, review="auto", review_above=0.8)
    assert (
        room.work_on(write_script({F3: CAUSE | {"convergence_score": 0.75}}), auto, bench=True)
        == "waiting"
    )
    assert room.rules("C2")[-1] == "linked"
    room.say(room.questions()["C1"], decision="approve")
    assert room.work_on(write_script(), auto, bench=True) == "waiting"
    assert room.statuses() == {"C1": "closed", "C2": "investigated"}, "it was asked before"


@pytest.mark.parametrize("confidence", ["high", None, True, [], {"of": 1}])
def test_an_odd_confidence_is_none(room: AnalysisWorld, confidence: Any) -> None:
    room.take_in(launch(make_failure("alpha")))
    skipped = PRODUCT | {"skip_investigation": True, "confidence": confidence}
    assert (
        room.work_on(write_script({F1: skipped}), RcaConfig(review="auto"), bench=True) == "waiting"
    )
    assert room.rules() == ["H2", "H18"]


def test_a_sure_triage_is_approved_by_rule(room: AnalysisWorld) -> None:
    room.take_in(launch(make_failure("alpha")))
    skipped = PRODUCT | {"symptom_category": "infra", "confidence": 0.9}
    assert room.work_on(write_script({F1: skipped}), RcaConfig(review="auto"), bench=True) == "done"
    assert room.cases()["C1"].reviewed_by == "rule: score 0.90 >= 0.85"


def test_a_hit_on_an_agreed_cause_is_approved_as_far_as_it_is_sure(room: AnalysisWorld) -> None:
    room.take_in(launch(make_failure("alpha")), name="before")
    room.work_on(write_script({F3: CAUSE | {"convergence_score": 0.75}}))
    room.take_in(launch(make_failure("beta"), make_failure("gamma")))
    hit = NEW | {"match": True, "confidence": 0.95, "prior_rca_id": 1, "symptom_id": 1}
    less = {F0: hit | {"confidence": 0.82}}
    room.work_on(write_script({F0: hit}, C2=less), RcaConfig(review="auto"), run_id=2, bench=True)
    assert room.statuses(2) == {"C1": "closed", "C2": "open"}


# Only some


def test_only_the_named_cases_are_worked_on(room: AnalysisWorld) -> None:
    room.take_in(launch(make_failure("alpha"), make_failure("beta")))
    assert room.work_on(write_script(), only={2}) == "stopped"
    assert room.statuses() == {"C1": "open", "C2": "closed"}
    assert room.work_on(write_script(), only=set()) == "stopped"
    assert room.statuses() == {"C1": "open", "C2": "closed"}
    assert room.work_on(write_script()) == "done"
    assert room.faults() == []


def test_whoever_rests_holds_nobody_of_his_family_back(room: AnalysisWorld) -> None:
    room.take_in(launch(*alike("alpha", "beta", "gamma")))
    assert room.work_on(write_script(), FAMILIES, only={2}) == "stopped", (
        "others are still to be done"
    )
    assert room.rules("C2") == ["H2", "H7", "H9", "H15b", "H12", "H16"]
    assert room.work_on(write_script(), FAMILIES) == "done"
    assert "linked" in room.rules("C1")
    assert "linked" in room.rules("C3")


def test_known_first_answers_only_what_nothing_is_near_to(room: AnalysisWorld) -> None:
    room.take_in(launch(make_failure("alpha")), name="before")
    room.work_on(write_script())
    room.take_in(
        launch(
            make_failure("alpha"), make_failure("omega", "a quite other thing: gears jam at noon")
        )
    )
    hit = NEW | {"match": True, "confidence": 0.9, "prior_rca_id": 1, "symptom_id": 1}
    room.work_on(write_script({F0: hit}), RcaConfig(recall_first=True), run_id=2)
    assert room.rules("C1", 2)[0] == "H1", "something is known: the agent judges it"
    assert room.rules("C2", 2)[0] == "H2", "nothing is near: nobody is asked"
