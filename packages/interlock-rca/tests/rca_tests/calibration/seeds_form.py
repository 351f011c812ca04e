"""A scenario in the seeds' JSON form: twelve cases of three causes, made up for the tests.

One first discovery by the whole circuit, recalls, a discovery with one candidate, skips with and
without a cause, and two duplicates that end at F4.
"""

from typing import Any

REVIEW = {"decision": "approve"}
CAUSES = {
    "R1": {
        "defect_type": "pb001",
        "category": "product",
        "component": "clockd",
        "required_keywords": ["servo", "holdover", "timeout"],
        "keyword_threshold": 2,
        "relevant_repos": ["clockd"],
        "smoking_gun": "servo enters holdover without timeout",
    },
    "R2": {
        "defect_type": "au001",
        "category": "automation",
        "component": "lab-tests",
        "required_keywords": ["fixture", "cleanup"],
        "keyword_threshold": 1,
        "relevant_repos": ["lab-tests"],
    },
    "R3": {
        "defect_type": "en001",
        "category": "environment",
        "component": "lab-switch",
        "required_keywords": ["switch"],
        "keyword_threshold": 1,
        "relevant_repos": [],
    },
}
ERRORS = {
    "S1": "offset 8123 ns exceeds 100 ns after 62 s",
    "S2": "namespace lab-test-7 already exists",
    "S3": "ssh: connect to host switch-2 port 22: No route to host",
    "S4": "PTP event socket closed: expected LOCKED, got FREERUN",
    "S5": "assertion flickered once and passed on rerun",
}


def scenario() -> dict[str, Any]:
    """All of it, as plain values."""
    return {
        "name": "clock-lab",
        "rcas": [
            {"id": name, "title": f"cause {name}", **output} for name, output in CAUSES.items()
        ],
        "symptoms": [
            {"id": name, "name": name, "error_pattern": text, "maps_to_rca": ""}
            for name, text in ERRORS.items()
        ],
        "cases": [
            discovery("C1", "S1", "R1", ["clockd", "lab-tests"]),
            recall("C2", "S1", "R1"),
            recall("C3", "S1", "R1"),
            discovery("C4", "S2", "R2", ["lab-tests"]),
            recall("C5", "S2", "R2"),
            recall("C6", "S1", "R1"),
            recall("C7", "S2", "R2"),
            skip("C8", "S3", "R3", "environment", "en001"),
            recall("C9", "S1", "R1"),
            duplicate("C10", "S4", "R1", 0.88),
            skip("C11", "S5", "", "flake", "nd001"),
            duplicate("C12", "S4", "R1", 0.90, cascade=True),
        ],
        "workspace": {
            "repos": [
                {"name": "clockd", "path": "/nowhere/clockd", "purpose": "the clock daemon"},
                {"name": "lab-tests", "purpose": "the tests of the lab"},
                {"name": "router", "purpose": "routes packets", "is_red_herring": True},
            ]
        },
    }


def _case(name: str, symptom: str, cause: str, path: list[str], **more: Any) -> dict[str, Any]:
    number = int(name[1:])
    return {
        "id": name,
        "version": f"4.{20 + number % 3}",
        "job": ("T-TSC", "T-BC")[number % 2],
        "test_name": f"clock test {symptom}",
        "test_id": number,
        "error_message": ERRORS[symptom],
        "log_snippet": f"round {number}\n{ERRORS[symptom]}\nline after",
        "symptom_id": symptom,
        "rca_id": cause,
        "expected_path": path,
        "expected_review": REVIEW,
        **more,
    }


def _invest(cause: str) -> dict[str, Any]:
    output: Any = CAUSES[cause]
    return {
        "rca_message": f"{output['component']}: {' '.join(output['required_keywords'])}",
        "defect_type": output["defect_type"],
        "component": output["component"],
        "convergence_score": 0.9,
        "evidence_refs": [f"{output['component']}:main.c:run"],
    }


def discovery(name: str, symptom: str, cause: str, repos: list[str]) -> dict[str, Any]:
    output: Any = CAUSES[cause]
    both = len(repos) > 1
    path = ["F0", "F1", *(["F2"] if both else []), "F3", "F4", "F5", "F6"]
    resolve = {"selected_repos": [{"name": repos[0]}]}
    found = _case(
        *(name, symptom, cause, path),
        expected_recall={"match": False, "confidence": 0.1},
        expected_triage={
            "symptom_category": output["category"],
            "severity": "high",
            "defect_type_hypothesis": output["defect_type"],
            "candidate_repos": repos,
        },
        expected_invest=_invest(cause),
        expected_correlate={"is_duplicate": False, "confidence": 0.2},
    )
    return {**found, "expected_resolve": resolve} if both else found


def recall(name: str, symptom: str, cause: str) -> dict[str, Any]:
    return _case(
        *(name, symptom, cause, ["F0", "F5", "F6"]),
        expected_recall={"match": True, "prior_rca_id": 0, "symptom_id": 0, "confidence": 0.95},
        expect_recall_hit=True,
    )


def skip(name: str, symptom: str, cause: str, category: str, code: str) -> dict[str, Any]:
    return _case(
        *(name, symptom, cause, ["F0", "F1", "F5", "F6"]),
        expected_recall={"match": False, "confidence": 0.0},
        expected_triage={
            "symptom_category": category,
            "defect_type_hypothesis": code,
            "candidate_repos": [],
            "skip_investigation": True,
        },
        expect_skip=True,
    )


def duplicate(
    name: str, symptom: str, cause: str, confidence: float, *, cascade: bool = False
) -> dict[str, Any]:
    output: Any = CAUSES[cause]
    return _case(
        *(name, symptom, cause, ["F0", "F1", "F3", "F4"]),
        expected_recall={"match": False, "confidence": 0.3},
        expected_triage={
            "symptom_category": output["category"],
            "defect_type_hypothesis": output["defect_type"],
            "candidate_repos": ["clockd"],
            "cascade_suspected": cascade,
        },
        expected_invest=_invest(cause),
        expected_correlate={"is_duplicate": True, "linked_rca_id": 0, "confidence": confidence},
        expect_cascade=cascade,
    )
