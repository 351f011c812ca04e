"""What makes a scenario unsound: each fault is found, and named."""

from collections.abc import Callable
from typing import Any

import pytest

from interlock_rca.calibration.scenario import find_scenario, list_shipped_scenarios
from interlock_rca.calibration.scenario_check import check_scenario
from rca_tests.calibration.worlds import FULL, built, small

Break = Callable[[dict[str, Any]], object]


def test_the_small_scenario_is_sound() -> None:
    assert check_scenario(built(small())) == ()


def put(*path: str | int, value: Any) -> Break:
    def change(plain: dict[str, Any]) -> None:
        place: Any = plain
        for step in path[:-1]:
            place = place[step]
        place[path[-1]] = value

    return change


def case(number: int, **fields: Any) -> Break:
    return lambda plain: plain["cases"][number].update(fields)


FAULTS: dict[str, tuple[Break, str, str]] = {
    "no cases": (put("cases", value=[]), "error", "no-cases"),
    "same id": (case(1, id="C1", follows=""), "error", "duplicate-id"),
    "path as id": (case(1, id="../C2"), "error", "bad-id"),
    "line as id": (put("rcas", 0, "id", value="R\n1"), "error", "bad-id"),
    "unknown cause": (case(0, rca_id="R9"), "error", "unknown-id"),
    "unknown symptom": (case(0, symptom_id="S9"), "error", "unknown-id"),
    "unknown repo": (put("rcas", 0, "relevant_repos", value=["x"]), "error", "unknown-id"),
    "unknown metric": (put("dry_capped_metrics", value=["M99"]), "error", "unknown-id"),
    "unknown culprit": (put("rcas", 0, "culprit", value="core@x"), "error", "unknown-id"),
    "world of nothing": (put("worlds", "x", value=[]), "error", "unknown-id"),
    "empty world": (put("worlds", "core", value=[]), "error", "bad-world"),
    "no defect type": (put("rcas", 0, "defect_type", value=""), "error", "missing-label"),
    "no path": (case(0, expected_path=[]), "error", "missing-label"),
    "no triage": (case(0, expected_triage=None), "error", "missing-label"),
    "no investigation": (case(0, expected_invest=None), "error", "missing-label"),
    "no cause": (case(0, rca_id="", symptom_id=""), "error", "missing-label"),
    "nothing to read": (case(0, error_message=""), "error", "nothing-to-read"),
    "free keywords": (put("rcas", 0, "keyword_threshold", value=0), "error", "free-keywords"),
    "too many": (put("rcas", 0, "keyword_threshold", value=3), "error", "too-many-keywords"),
    "unlike": (put("rcas", 0, "required_keywords", value=["x"]), "warning", "unlike-keywords"),
    "category": (
        put("cases", 0, "expected_triage", "symptom_category", value="odd"),
        "warning",
        "unknown-word",
    ),
    "twin": (case(1, test_name="t1", error_message="no lock"), "error", "duplicate-case"),
    "two families": (case(1, family="others"), "error", "contradictory-family"),
    "two causes": (
        lambda plain: (
            plain["rcas"].append({**plain["rcas"][0], "id": "R2", "culprit": ""}),
            plain["cases"][1].update(rca_id="R2", symptom_id="", expect_recall_hit=False),
        ),
        "error",
        "contradictory-family",
    ),
    "both splits": (case(1, split="train"), "warning", "leaking-split"),
    "symptom of another": (put("cases", 0, "rca_id", value=""), "error", "contradictory-symptom"),
    "backwards": (case(0, expected_path=FULL[::-1]), "error", "impossible-path"),
    "no such step": (case(0, expected_path=["F0", "F9"]), "error", "impossible-path"),
    "past the end": (case(0, expected_path=[*FULL, "F0"]), "error", "impossible-path"),
    "stops early": (case(0, expected_path=FULL[:4]), "error", "impossible-path"),
    "skip": (case(0, expect_skip=True), "error", "contradictory-path"),
    "loops": (case(0, expected_loops=1), "error", "contradictory-path"),
    "recall": (case(1, expected_recall={"match": False}), "error", "contradictory-path"),
    "circle": (case(0, follows="C2"), "error", "cycle"),
    "follows itself": (case(0, follows="C1"), "error", "cycle"),
    "later": (lambda plain: plain["cases"].reverse(), "error", "wrong-order"),
    "nothing to recall": (lambda plain: plain["cases"].pop(0), "error", "recall-before-found"),
    "not planted": (
        put("cases", 0, "expected_invest", "evidence_refs", value=["core:a.py:gone"]),
        "error",
        "missing-evidence",
    ),
    "candidate": (put("candidates", value=[{"id": "K"}]), "note", "candidate"),
}


@pytest.mark.parametrize(("change", "level", "id_"), FAULTS.values(), ids=FAULTS.keys())
def test_every_fault_is_found(change: Break, level: str, id_: str) -> None:
    plain = small()
    change(plain)
    found = check_scenario(built(plain))
    assert (level, id_) in {(each.level, each.id) for each in found}
    assert all(each.message and each.fix for each in found)
    assert any(each.level == "error" for each in found) == (level == "error")


def test_a_circle_of_three_is_one_finding_that_shows_it() -> None:
    plain = small()
    plain["cases"].append({**plain["cases"][1], "id": "C3", "test_name": "t3", "follows": "C2"})
    plain["cases"][0]["follows"] = "C3"
    found = [each.message for each in check_scenario(built(plain)) if each.id == "cycle"]
    assert found == ["C1 follows C3 follows C2 follows C1: a cycle"]


def test_unread_fields_are_notes() -> None:
    found = check_scenario(built(small()), ["colour"])
    assert [(each.level, each.subject) for each in found] == [("note", "colour")]


@pytest.mark.parametrize("name", list_shipped_scenarios())
def test_shipped_scenarios_are_sound_and_varied(name: str) -> None:
    scenario, unread = find_scenario(name)
    assert {each.id for each in check_scenario(scenario, unread)} <= {"candidate"}
    assert 12 <= len(scenario.cases) <= 60
    hops = {
        hop
        for each in scenario.cases
        for hop in zip(each.expected_path, each.expected_path[1:], strict=False)
    }
    assert {("F0", "F5"), ("F1", "F5"), ("F3", "F2"), ("F5", "F2")} <= hops, "all kinds of ways"
    assert any(each.expect_cascade for each in scenario.cases)
    assert any(
        each.expected_correlate and each.expected_correlate.is_duplicate for each in scenario.cases
    )
    assert {each.split for each in scenario.cases} == {"train", "test"}
    assert len({each.version for each in scenario.cases}) > 1
    assert len({each.job for each in scenario.cases}) > 1
    assert scenario.red_herrings
    assert len({scenario.family_of(each) for each in scenario.cases}) >= 4


def test_one_has_sixty_cases_and_every_repository_is_planted() -> None:
    found = [find_scenario(name).scenario for name in list_shipped_scenarios()]
    assert 60 in {len(each.cases) for each in found}
    for scenario in found:
        assert {repo.name for repo in scenario.workspace.repos} == set(scenario.worlds)
