"""Baselines: what one scores without looking, reckoned by hand."""

import pytest

from interlock_calibrate.metrics import ScoringRules, collect_marks, measure_metrics
from interlock_rca.calibration.baselines import REFERENCE, find_most_frequent, make_baselines
from interlock_rca.calibration.marks import read_metrics, score_cases
from interlock_rca.calibration.scenario import find_scenario
from rca_tests.calibration.worlds import built, small


def test_majority_counts_the_train_split_alone() -> None:
    plain = small()
    plain["rcas"].append(
        {**plain["rcas"][0], "id": "R2", "defect_type": "ab001", "component": "web", "culprit": ""}
    )
    plain["cases"].append({**plain["cases"][0], "id": "C3", "rca_id": "R2", "split": "train"})
    found = make_baselines(built(plain))
    assert {result.actual_defect_type for result in found["majority"]} == {"ab001"}
    assert {result.actual_component for result in found["majority"]} == {"web"}
    plain["cases"][2]["split"] = "test"
    assert {result.actual_defect_type for result in make_baselines(built(plain))["majority"]} == {
        "pb001"
    }


def test_echo_says_the_error_and_nothing_else() -> None:
    found = make_baselines(built(small()))
    assert [result.actual_rca_message for result in found["echo"]] == ["no lock", "no lock again"]
    assert {result.actual_defect_type for result in found["echo"]} == {""}
    assert found["majority+echo"][0].actual_rca_message == "no lock"
    assert found["majority+echo"][0].actual_defect_type == "pb001"


def test_the_last_commit_is_blamed_where_there_is_one() -> None:
    blamed = make_baselines(built(small()))["last commit"][0]
    assert blamed.actual_rca_message == "Break it"
    assert blamed.actual_selected_repos == ("core",)
    assert blamed.actual_evidence_refs == ("core:a.py", "core:d/ü b.py", "core:old.py")
    plain = small()
    plain["worlds"] = {}
    assert set(make_baselines(built(plain))) == {"majority", "echo", REFERENCE}


def test_the_newest_is_by_time_and_not_by_its_text() -> None:
    plain = small()
    started = {
        **plain["worlds"]["core"][0],
        "tags": [],
        "date": "2026-01-01T23:30:00Z",
        "message": "Later",
    }
    plain["worlds"]["web"] = [started]
    assert make_baselines(built(plain))["last commit"][0].actual_rca_message == "Later"


def test_always_the_same_answer_scores_its_share() -> None:
    scenario = find_scenario("web-shop").scenario
    rules = ScoringRules(read_metrics())
    scored = score_cases(scenario, make_baselines(scenario)["majority"], rules.edition_name)
    marks = collect_marks((case.result.case_id, case.marks) for case in scored)
    found = {each.id: each for each in measure_metrics([marks], rules)}
    causes = [cause for case in scenario.cases if (cause := scenario.cause_of(case))]
    bugs = sum(cause.defect_type == "pb001" for cause in causes)
    assert found["M1"].value == pytest.approx(bugs / len(causes))
    assert found["M3"].value == 0.0
    assert found["M14"].value is None


def test_of_equals_the_first_by_the_alphabet() -> None:
    assert find_most_frequent(["b", "a", "b", "a", "c"]) == "a"
    assert find_most_frequent([]) == ""
