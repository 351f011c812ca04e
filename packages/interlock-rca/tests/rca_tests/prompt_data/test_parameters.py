"""All groups of parameters, filled from what is known, and said to be missing where nothing is.

Facts for prompts: launch, siblings and past of a case, as the store knows them.
"""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from interlock.engine.case import Case
from interlock.runtime.fence import MISSING
from interlock.runtime.prompts import PROMPT_NAMES, list_names
from interlock.system.errors import CircuitError
from interlock_rca.config import RcaConfig
from interlock_rca.knowledge.suites import find_position
from interlock_rca.prompt_data.groups import shorten_name
from interlock_rca.prompt_data.parameters import PromptDataReader
from interlock_rca.prompt_data.subject import PARAMETER_NAMES, PromptLimits
from interlock_rca.records import Checkout, Failure, PriorCause, PriorKnowledge, Sibling
from interlock_rca.steps import F4, F5, FAMILIES, find_family, get_family
from interlock_rca.taxonomy import TAXONOMY
from interlock_rca.workspace import CheckoutSet
from rca_tests.world import (
    BARE,
    FAILURE,
    INVESTIGATE,
    LAUNCH,
    RESOLVE,
    RICH,
    SHORTS,
    TRIAGE,
    case_at,
    made,
    rendered,
    template,
)
from rca_tests.worlds.analysis_world import CAUSE, AnalysisWorld, launch, make_failure, write_script


@pytest.mark.parametrize("short", SHORTS)
def test_the_names_are_those_promised_and_nobody_elses(short: str) -> None:
    assert set(made(short, RICH)) == set(PARAMETER_NAMES) == set(made(short, BARE))
    assert len(PARAMETER_NAMES) == len(set(PARAMETER_NAMES))
    assert not set(PARAMETER_NAMES) & set(PROMPT_NAMES)


@pytest.mark.parametrize("short", SHORTS)
def test_no_name_of_ours_hides_behind_a_method_of_dict(short: str) -> None:
    def names(value: Any) -> set[str]:
        if isinstance(value, dict):
            return set(value).union(*map(names, value.values()))
        return set().union(*map(names, value)) if isinstance(value, list) else set()

    found = names(made(short, RICH, case_at(short, all_answers=True)))
    assert not {name for name in found if hasattr(dict, name)}


def test_identity() -> None:
    assert made("F3", RICH)["identity"] == {
        "launch_id": "L-9",
        "case_id": "17",
        "job_id": "ledger",
        "circuit_id": "nightly #9",
        "item_id": 4711,
        "family": "F3",
    }


def test_envelope_and_git() -> None:
    found = made("F1", RICH)
    assert found["envelope"] == {
        "name": "nightly",
        "number": "9",
        "status": "FAILED",
        "start": "2024-05-03T09:58:00Z",
        "end": "2024-05-03T10:28:00Z",
        "duration": "30 m",
        "version": "2.4",
        "stats": "50 tests, 3 failed, 2 skipped, 45 passed",
        "defect_stats": "2 ti001",
    }
    assert found["git"] == {
        "branch": "release-2.4",
        "commit": "4f2a9c1",
        "remote": "https://git.example/harbour.git",
    }


def test_attributes_are_listed_as_they_are_called() -> None:
    launch = msgspec.structs.replace(LAUNCH, attributes={"kernel": "6.1"})
    found = made("F1", RICH | {"launch": launch})["env"]
    assert {"key": "kernel", "value": "6.1", "of": "launch"} in found["attributes"]
    assert found["total"] == len(found["attributes"])


def test_the_failure() -> None:
    found = made("F1", RICH)["failure"]
    assert found["name"] == FAILURE.test_name
    assert found["short_name"] == "test_totals"
    assert (found["parent_path"], found["parent_name"]) == ("nightly/ledger", "ledger")
    assert found["duration"] == "3 s"
    assert found["stats"] == "20 tests, 2 failed, 1 skipped, 17 passed"
    assert found["status"] == "failed"
    assert FAILURE.message in found["error_message"]
    assert FAILURE.stack in found["stack"]
    assert FAILURE.log in found["log_snippet"]


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("a.b.test_c", "test_c"),
        ("pkg/test_x.py::TestY::test_z", "test_z"),
        ("a.b.test_c[x.y-1.0]", "test_c[x.y-1.0]"),
        ("the totals are right", "the totals are right"),
        ("", ""),
        ("...", "..."),
        ("Class#method", "method"),
    ],
)
def test_the_short_name(name: str, short: str) -> None:
    assert shorten_name(name) == short


def test_urls_are_addresses_or_missing() -> None:
    urls = made("F3", RICH)["urls"]
    assert urls["rp_item_log"] == "https://portal.example/ui/#harbour/launches/all/9/4711/log"
    assert urls["ci_job"] == "https://ci.example/job/9"
    assert urls["repos_browse"] == [{"name": "harbour", "url": "https://git.example/harbour"}]
    odd = msgspec.structs.replace(FAILURE, url="javascript:alert(1)")
    assert made("F3", RICH | {"failure": odd})["urls"]["rp_item"] == MISSING
    plain = msgspec.structs.replace(FAILURE, item_id=0)
    assert made("F3", RICH | {"failure": plain})["urls"]["rp_item_log"] == MISSING


def test_what_is_bare_is_missing_in_every_group() -> None:
    found = made("F3", BARE)
    for group in ("envelope", "git"):
        assert set(found[group].values()) == {MISSING}
    assert found["env"]["attributes"] == []
    assert found["siblings"] == {"list": [], "total": 0, "shown": 0, "left_out": 0}
    assert found["prior"]["investigate"] is None
    assert found["history"]["symptom"] is None
    assert "the log" in found["missing"]
    assert made("F3", RICH)["missing"] == []


def test_siblings_are_bounded_and_their_number_is_said() -> None:
    many = tuple(Sibling(id=str(number), name=f"t{number}") for number in range(50))
    found = made("F1", RICH | {"siblings": many, "siblings_total": 312})
    assert found["siblings"]["total"] == 312
    assert found["siblings"]["shown"] == 20
    assert found["siblings"]["left_out"] == 292
    assert "Of 312 other failures of this launch, 20 are shown." in found["notes"]
    assert "... and 292 more" in found["data"]["siblings"]


def test_history_has_ids_and_days() -> None:
    found = made("F0", RICH)["history"]
    assert found["symptom"]["symptom_id"] == 12
    assert found["symptom"]["affected_versions"] == ["2.3", "2.4"]
    assert found["symptom"]["environment"] == ["os=linux"]
    assert found["prior_rcas"][0]["rca_id"] == 7
    assert found["prior_rcas"][0]["days_since_resolved"] == 32
    assert found["failure_count"] == 4
    given = PriorKnowledge(
        prior_rcas=(PriorCause(rca_id=1, days_since_resolved=5), PriorCause(rca_id=2))
    )
    found = made("F0", RICH | {"history": given})["history"]
    assert [each["days_since_resolved"] for each in found["prior_rcas"]] == [5, MISSING]


def test_the_digest_keeps_the_newest() -> None:
    known = tuple(PriorCause(rca_id=number) for number in range(1, 51))
    found = made("F4", RICH | {"history": PriorKnowledge(digest=known)})
    assert found["digest"]["total"] == 50
    assert [each["rca_id"] for each in found["digest"]["rcas"]] == list(range(31, 51))
    assert "30 earlier ones left out" in found["data"]["digest"]


def test_prior_artifacts_are_found_by_family() -> None:
    for names in (["F1", "F3"], ["triage", "investigate"], ["F1_TRIAGE", "F3_INVESTIGATE"]):
        answers = dict(zip(names, (TRIAGE, INVESTIGATE), strict=True))
        found = made("F4", RICH, case_at("F4", answers=answers))["prior"]
        assert found["symptom_category"] == "product"
        assert found["defect_type_hypothesis"] == "pb001"
        assert found["convergence_score"] == 0.85
        assert found["evidence"] == [
            {"verdict": "found", "ref": "harbour:harbour/ledger.py:88", "why": "line 88 exists"}
        ]


def test_old_words_of_a_triage_are_read() -> None:
    old = TRIAGE | {"symptom_category": "environment", "defect_type_hypothesis": "EN001"}
    found = made("F3", RICH, case_at("F3", answers={"F1": old}))["prior"]
    assert (found["symptom_category"], found["defect_type_hypothesis"]) == ("infra", "si001")


def test_references_nobody_checked_are_unchecked() -> None:
    answers = {"F3": {"evidence_refs": ["a:b:1", 7]}}
    found = made("F5", RICH, case_at("F5", answers=answers))["prior"]["evidence"]
    assert found == [
        {"verdict": "unchecked", "ref": "a:b:1", "why": MISSING},
        {"verdict": "unchecked", "ref": "7", "why": MISSING},
    ]


@pytest.mark.parametrize(
    "junk",
    [
        None,
        7,
        "text",
        [],
        [None],
        {"evidence": "x"},
        {"evidence": [1]},
        {
            "evidence_refs": "abc",
            "convergence_score": "high",
            "defect_type": ["pb001"],
            "selected_repos": "all",
            "symptom_category": 9,
            "contradicting_evidence": {"a": 1},
        },
    ],
)
@pytest.mark.parametrize("short", SHORTS)
def test_answers_of_any_form_are_survived(short: str, junk: Any) -> None:
    answers = {each.step: junk for each in FAMILIES}
    context = dict.fromkeys(
        (
            "recall_candidate",
            "selected_repos",
            "repo",
            "repos_left",
            "findings",
            "defect_type",
            "human_override",
            "review_note",
        ),
        junk,
    )
    case = case_at(short, answers=answers, context=context)
    assert made(short, RICH, case)["prior"]["final_defect_type"] == MISSING
    assert rendered(short, RICH, case)


def test_additions_of_the_rules_reach_the_prompt() -> None:
    context = {
        "recall_candidate": {"match": True, "confidence": 0.5, "prior_rca_id": 7},
        "selected_repos": [{"name": "harbour", "reason": "only candidate from triage"}],
        "defect_type": "ti001",
        "human_override": {"defect_type": "AU001", "rca_message": "it is the test"},
        "review_note": "look at the rows",
    }
    found = made("F3", RICH, case_at("F3", context=context))["prior"]
    assert found["recall_candidate"]["prior_rca_id"] == 7
    assert found["selected_repo"] == "harbour"
    assert found["repo"]["path"] == "/src/harbour"
    assert found["repo"]["reason"] == "only candidate from triage"
    assert found["defect_type"] == "ti001"
    assert found["final_defect_type"] == "ab001"
    assert found["review_note"] == "look at the rows"


def test_the_repository_of_a_pass_goes_before_the_chosen_ones() -> None:
    two = {"selected_repos": [{"name": "harbour"}, {"name": "harbour-ci"}]}
    answers = {"F2": two}
    assert made("F3", RICH, case_at("F3", answers=answers))["prior"]["repo"] is None
    context = {"repo": {"name": "harbour-ci", "focus_paths": ["ci.yaml"]}, "repos_left": ["x", "y"]}
    found = made("F3", RICH, case_at("F3", answers=answers, context=context))["prior"]
    assert found["selected_repo"] == "harbour-ci"
    assert found["repo"]["purpose"] == "CI configuration"
    assert found["focus_paths"] == ["ci.yaml"]
    assert found["repos_left"] == 2
    stranger = made("F3", RICH, case_at("F3", context={"repo": {"name": "nowhere"}}))["prior"]
    assert stranger["repo"] == {"name": "nowhere", "known": False}


@pytest.mark.parametrize(
    ("answers", "context", "code"),
    [
        ({}, {}, MISSING),
        ({"F1": TRIAGE}, {}, "pb001"),
        ({"F1": TRIAGE, "F3": {"defect_type": "si001"}}, {}, "si001"),
        ({"F3": {"defect_type": "si001"}}, {"defect_type": "ti001"}, "ti001"),
        ({"F3": {"defect_type": "nonsense"}, "F1": TRIAGE}, {}, "pb001"),
        ({"F0": {"match": True, "prior_rca_id": 7}}, {}, "pb001"),
        ({"F0": {"match": False, "prior_rca_id": 7}}, {}, MISSING),
        ({"F0": {"match": True, "prior_rca_id": 99}}, {}, MISSING),
    ],
)
def test_the_defect_type_as_it_stands(answers: Any, context: Any, code: str) -> None:
    found = made("F5", RICH, case_at("F5", answers=answers, context=context))
    assert found["prior"]["final_defect_type"] == code


def test_repositories_are_bounded() -> None:
    many = tuple(Checkout(name=f"r{number}") for number in range(31))
    found = made("F2", RICH | {"repos": many})
    assert len(found["workspace"]["repos"]) == 30
    assert "... and 1 more" in found["data"]["repos"]


def test_limits_are_the_callers() -> None:
    found = made("F1", RICH | {"limits": PromptLimits(siblings=1, value=12)})
    assert found["siblings"]["shown"] == 1
    assert found["failure"]["name"] == "harbour.tes…"


@pytest.mark.parametrize("word", ["F3", "f3", "F3_INVESTIGATE", "investigate"])
def test_a_family_by_its_names(word: str) -> None:
    assert get_family(word).template == "investigate/deep-rca.md"


def test_a_step_without_a_family_is_refused() -> None:
    assert find_family("publish") is None
    with pytest.raises(CircuitError, match="step 'publish' is not a step of the analysis"):
        get_family("publish")


@pytest.mark.parametrize("short", SHORTS)
def test_a_prompt_needs_only_the_groups_that_it_reads(short: str) -> None:
    case = case_at(short, all_answers=True)
    read = {"wanted": list_names(template(short))}
    assert set(made(short, RICH | read, case)) < {*PARAMETER_NAMES}
    assert rendered(short, RICH | read, case) == rendered(short, RICH, case)


def test_a_chosen_repository_is_shown_to_the_one_who_looks() -> None:
    found = made("F3", RICH, case_at("F3", answers={"F2": RESOLVE}))
    assert "focus_paths:\n  - harbour/ledger.py" in found["data"]["repo"]


@pytest.fixture
def room(tmp_path: Path) -> AnalysisWorld:
    return AnalysisWorld(tmp_path)


def facts(room: AnalysisWorld, case_no: int, name: str, step: str = F4) -> dict[str, Any]:
    with room.reading() as connection:
        found = PromptDataReader(connection, CheckoutSet(RcaConfig()), TAXONOMY)
        place = find_position(connection, case_no)
        return found.read_parameters(
            Case(name, step), make_failure("alpha"), place, "0123456789abcdef"
        )


def test_a_launch_and_the_others_of_it_are_told(room: AnalysisWorld) -> None:
    room.take_in(
        launch(
            *(make_failure(f"t{number}") for number in range(25)), branch="main", commit="4f2a9c1"
        )
    )
    found = facts(room, 3, "C3")
    assert found["git"]["branch"] == "main"
    visible = found["siblings"]
    assert (visible["total"], visible["shown"], visible["left_out"]) == (24, 20, 4)
    assert "C3" not in [each["id"] for each in visible["list"]]


def test_what_siblings_have_become_is_read_anew(room: AnalysisWorld) -> None:
    room.take_in(launch(make_failure("alpha"), make_failure("beta")))
    with room.reading() as connection:
        found = PromptDataReader(connection, CheckoutSet(RcaConfig()), TAXONOMY)
        place = find_position(connection, 2)
        case = Case("C2", F4)

        def standing() -> Any:
            given = found.read_parameters(case, Failure(id="x"), place, "0123456789abcdef")
            (only,) = given["siblings"]["list"]
            return only["status"], only["rca_id"]

        before = standing()
        connection.raw.rollback()
        room.work_on(write_script(), only={1})
        assert before[0] == "open"
        assert standing() == ("closed", 1)


def test_the_past_of_a_failure_is_that_of_other_launches(room: AnalysisWorld) -> None:
    room.take_in(launch(make_failure("alpha")), name="before")
    room.work_on(write_script())
    own = facts(room, 1, "C1")["history"]
    assert own["failure_count"] == 0
    room.clock.time += 60
    room.take_in(launch(make_failure("alpha"), launch_id="L2"))
    later = facts(room, 2, "C1")["history"]
    assert later["failure_count"] == 1
    assert later["last_seen"].startswith("1970-01-12")
    assert [each["rca_id"] for each in later["prior_rcas"]] == [1]
    assert later["symptom"]["symptom_id"] == 1
    assert later["prior_rcas"][0]["cases"] == 1


def test_a_symptom_is_told_with_the_environment_it_was_last_seen_in(room: AnalysisWorld) -> None:
    room.take_in(launch(make_failure("alpha"), attributes={"cluster": "lab-7"}), name="before")
    room.work_on(write_script())
    room.clock.time += 60
    room.take_in(launch(make_failure("alpha"), launch_id="L2", attributes={"cluster": "lab-8"}))
    assert facts(room, 2, "C1")["history"]["symptom"]["environment"] == ["cluster=lab-7"]
    assert facts(room, 1, "C1")["history"]["symptom"]["environment"] == []


def test_a_case_s_own_finding_is_not_one_found_before(room: AnalysisWorld) -> None:
    room.take_in(launch(make_failure("alpha")))
    room.work_on(write_script({F5: {"silent": True}}))
    own = facts(room, 1, "C1", F5)["history"]
    assert own["prior_rcas"] == []
    assert own["symptom"]["rca_ids"] == []


def test_the_digest_has_the_causes_of_the_suite_but_the_case_s_own(room: AnalysisWorld) -> None:
    room.take_in(launch(make_failure("alpha"), make_failure("beta")))
    other = CAUSE | {"rca_message": "Crane.lift() is off by one"}
    room.work_on(write_script({F5: {"silent": True}}, C2={"F3_INVESTIGATE": other}))
    digest = facts(room, 1, "C1")["digest"]
    assert [each["title"] for each in digest["rcas"]] == ["Crane.lift() is off by one"]


def test_a_case_without_a_place_has_facts_all_the_same(room: AnalysisWorld) -> None:
    room.take_in(launch(make_failure("alpha")))
    found = facts(room, 99, "C9")
    assert found["siblings"]["total"] == 0
    assert found["history"]["symptoms"] == []
