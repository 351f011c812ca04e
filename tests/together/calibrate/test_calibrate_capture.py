"""Test capturing with an agent that answers by a table, against results worked out by hand."""

import json
from typing import Any

import pytest

from tests.together.calibrate.test_calibrate_run import put
from tests.world.command_line import World

TRIAGE = {
    "symptom_category": "product",
    "defect_type_hypothesis": "pb001",
    "candidate_repos": ["a"],
    "skip_investigation": False,
}
FOUND = {
    "rca_message": "the lock of a is lost",
    "defect_type": "pb001",
    "component": "a",
    "convergence_score": 0.9,
    "evidence_refs": ["a:x.c:run"],
}
USUAL: dict[str, list[Any]] = {
    "F0_RECALL": [{"match": False, "confidence": 1.0, "reasoning": "new"}],
    "F1_TRIAGE": [TRIAGE],
    "F2_RESOLVE": [{"selected_repos": [{"name": "b", "reason": "why not"}]}],
    "F3_INVESTIGATE": [FOUND],
    "F4_CORRELATE": [{"is_duplicate": False, "confidence": 0.99}],
    "F5_REVIEW": [{"decision": "approve"}],
    "F6_REPORT": [{"summary": "x"}],
}
TABLE: dict[str, dict[str, list[Any]]] = {
    "plain": {},
    "hit": {"F0_RECALL": [{"match": True, "confidence": 0.8, "reasoning": "alike"}]},
    "near": {"F0_RECALL": [{"match": True, "confidence": 0.79, "reasoning": "alike"}]},
    "two": {
        "F1_TRIAGE": [{**TRIAGE, "candidate_repos": ["a", "b"]}],
        "F2_RESOLVE": [
            {"selected_repos": [{"name": "a", "reason": "1"}, {"name": "b", "reason": "2"}]}
        ],
        "F3_INVESTIGATE": [{**FOUND, "convergence_score": 0.75, "component": "b"}, FOUND],
    },
    "infra": {
        "F1_TRIAGE": [{**TRIAGE, "symptom_category": "infra", "defect_type_hypothesis": "si001"}]
    },
    "loops": {"F3_INVESTIGATE": [{**FOUND, "convergence_score": 0.3}]},
    "overturn": {
        "F5_REVIEW": [{"decision": "overturn", "human_override": {"defect_type": "ab001"}}]
    },
    "again": {"F1_TRIAGE": [{"symptom_category": 7}, TRIAGE]},
    "cascade": {"F1_TRIAGE": [{**TRIAGE, "skip_investigation": True, "cascade_suspected": True}]},
    "bare": {"F3_INVESTIGATE": [{**FOUND, "evidence_refs": []}]},
    "timeout": {"F1_TRIAGE": [{**TRIAGE, "symptom_category": "timeout"}]},
    "copy": {"F4_CORRELATE": [{"is_duplicate": True, "confidence": 0.8, "linked_rca_id": 1}]},
    "spent": {"F5_REVIEW": [{"decision": "reassess", "loop_target": "F3_INVESTIGATE"}]},
}
FULL = ["F0", "F1", "F3", "F4", "F5", "F6"]
SKIPPED = ["F0", "F1", "F5", "F6"]


def results(world: World, *words: str) -> dict[str, dict[str, Any]]:
    script = {
        case: {step: [{"answer": each} for each in answers] for step, answers in steps.items()}
        for case, steps in {**TABLE, "*": USUAL}.items()
    }
    world.write("table.json", json.dumps(script))
    cases = [
        {
            "id": name,
            "test_name": f"test of {name}",
            "error_message": f"{name} broke in its {number}th way",
            "expected_path": FULL,
        }
        for number, name in enumerate(TABLE)
    ]
    repos = [{"name": "a"}, {"name": "b"}]
    put(world, {"name": "table", "cases": cases, "workspace": {"repos": repos}})
    agent = "script:table.json"
    result = world.say("calibrate", "--scenario", "lab.json", "--agent", agent, *words, "--json")
    assert result.code == 0
    return {each["result"]["case_id"]: each["result"] for each in result.json["records"]}


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    return results(World(tmp_path_factory.mktemp("first")))


WORKED_OUT: dict[str, dict[str, Any]] = {
    "plain": {"path": FULL, "defect_type": "pb001", "component": "a", "convergence": 0.9},
    "hit": {"path": ["F0", "F5", "F6"], "recall_hit": True, "rca_id": 0, "defect_type": ""},
    "near": {"path": FULL, "recall_hit": False, "selected_repos": ["a"]},
    "two": {
        "path": ["F0", "F1", "F2", "F3", "F4", "F5", "F6"],
        "selected_repos": ["a", "b"],
        "convergence": 0.9,
        "component": "a",
        "loops": 0,
    },
    "infra": {"path": SKIPPED, "skip": False, "defect_type": "", "category": "infra"},
    "loops": {
        "path": ["F0", "F1", "F3", "F2", "F3", "F2", "F3", "F5", "F6"],
        "loops": 2,
        "defect_type": "ti001",
        "selected_repos": ["a", "b"],
        "convergence": 0.3,
    },
    "overturn": {"path": FULL, "defect_type": "ab001", "component": "a"},
    "again": {"path": FULL, "category": "product"},
    "cascade": {
        "path": SKIPPED,
        "skip": True,
        "cascade": True,
        "defect_type": "pb001",
        "component": "",
        "rca_message": "",
        "rca_id": 0,
        "selected_repos": ["a"],
    },
    "bare": {"path": FULL, "convergence": 0.9, "evidence_refs": []},
    "timeout": {"path": FULL, "category": "timeout"},
    "copy": {"path": ["F0", "F1", "F3", "F4"], "rca_id": 1, "evidence_refs": ["a:x.c:run"]},
    "spent": {"path": [], "defect_type": "", "rca_id": 0},
}


@pytest.mark.parametrize("name", WORKED_OUT)
def test_results_are_as_worked_out_by_hand(first: dict[str, dict[str, Any]], name: str) -> None:
    found = {field: first[name][f"actual_{field}"] for field in WORKED_OUT[name]}
    assert found == WORKED_OUT[name]
    assert bool(first[name]["pipeline_error"]) == (name == "spent")


def test_the_later_rules_differ_where_they_must(
    world: World, first: dict[str, dict[str, Any]]
) -> None:
    later = results(world, "--edition", "v2")
    assert (later["infra"]["actual_skip"], later["infra"]["actual_defect_type"]) == (True, "si001")
    assert later["loops"]["actual_selected_repos"] == ["b"]
    assert later["plain"]["actual_path"] == first["plain"]["actual_path"]


def test_a_run_s_own_threshold_does_not_change_what_a_hit_is(world: World) -> None:
    found = results(world, "--set", "recall_hit=0.5")
    assert found["near"]["actual_path"] == ["F0", "F5", "F6"]
    assert not found["near"]["actual_recall_hit"]
