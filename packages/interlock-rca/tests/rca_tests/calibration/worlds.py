"""A sound scenario as plain values, small enough to be broken on purpose."""

import json
from copy import deepcopy
from typing import Any

from interlock_rca.calibration.scenario import Scenario, read_scenario

FULL = ["F0", "F1", "F2", "F3", "F4", "F5", "F6"]
_TRIAGE = {"symptom_category": "product", "candidate_repos": ["core", "web"]}
_PLAIN: dict[str, Any] = {
    "name": "small",
    "rcas": [
        {
            "id": "R1",
            "defect_type": "pb001",
            "category": "product",
            "component": "core",
            "required_keywords": ["lock", "race"],
            "keyword_threshold": 1,
            "relevant_repos": ["core"],
            "culprit": "core@break",
        }
    ],
    "symptoms": [{"id": "S1", "maps_to_rca": "R1"}],
    "cases": [
        {
            "id": "C1",
            "test_name": "t1",
            "error_message": "no lock",
            "symptom_id": "S1",
            "rca_id": "R1",
            "family": "locks",
            "split": "test",
            "expected_path": FULL,
            "expected_triage": _TRIAGE,
            "expected_resolve": {"selected_repos": [{"name": "core"}]},
            "expected_invest": {
                "rca_message": "a race for the lock",
                "defect_type": "pb001",
                "component": "core",
                "convergence_score": 0.9,
                "evidence_refs": ["core:a.py:take"],
            },
        },
        {
            "id": "C2",
            "test_name": "t2",
            "error_message": "no lock again",
            "symptom_id": "S1",
            "rca_id": "R1",
            "family": "locks",
            "split": "test",
            "follows": "C1",
            "expected_path": ["F0", "F5", "F6"],
            "expected_recall": {"match": True, "confidence": 0.9},
            "expect_recall_hit": True,
        },
    ],
    "workspace": {"repos": [{"name": "core"}, {"name": "web", "is_red_herring": True}]},
    "worlds": {
        "core": [
            {
                "author": "A <a@x>",
                "date": "2026-01-01T00:00:00Z",
                "message": "Begin",
                "files": {"a.py": "def take(): ...\n", "old.py": "\n"},
                "tags": ["green"],
            },
            {
                "author": "B <b@x>",
                "date": "2026-01-02T00:00:00+02:00",
                "message": "Break it",
                "id": "break",
                "files": {"a.py": "def take(): pass\n", "d/ü b.py": "#\n"},
                "remove": ["old.py"],
            },
        ]
    },
}


def small() -> dict[str, Any]:
    return deepcopy(_PLAIN)


def built(plain: dict[str, Any]) -> Scenario:
    return read_scenario(json.dumps(plain).encode(), "small.json").scenario
