"""Where a case goes, worked out from the answers alone by the table of the design: the oracle that
journals are held against. Nothing of the code under test is used."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from rca_tests.worlds import red_repository as reds
from rca_tests.worlds.red_repository import F0, F1, F2, F3, F4, F5, F6

Answers = dict[str, list[dict[str, Any]]]
Walked = list[tuple[str, str, str]]
"""Step, rule, and where it led."""
USUAL = {
    "recall_hit": 0.8,
    "recall_uncertain": 0.4,
    "convergence_sufficient": 0.7,
    "correlate_dup": 0.8,
    "max_investigate_loops": 2,
    "max_reassess": 3,
}
REAL, NOT_THERE = "app:cart.py:2", "app:nowhere.py:9"
CAUSE = {**reds.CAUSE, "evidence_refs": [REAL]}
PLAIN: Answers = {step: [answer] for step, answer in {**reds.PLAIN, F3: CAUSE}.items()}


class Journey:
    """Where a case goes by the table, worked out without any of the code under test."""

    def __init__(self, answers: Mapping[str, list[dict[str, Any]]], limits: dict[str, Any]) -> None:
        self.answers = answers
        self.limits = limits
        self.turns: Counter[str] = Counter()
        self.loops: Counter[str] = Counter()
        self.places: list[str] = []
        self.found: list[tuple[float, list[str]]] = []

    def walk(self) -> Walked:
        step, walked = F0, []
        while step not in ("DONE", "UNRESOLVED"):
            self.turns[step] += 1
            given = self.answers[step]
            answer = given[min(self.turns[step], len(given)) - 1]
            rule, to = getattr(self, step[:2].lower())(answer)
            walked.append((step, rule, to))
            step = to
        return walked

    def f0(self, result: Mapping[str, Any]) -> tuple[str, str]:
        if not result["match"]:
            return "H2", F1
        if result["confidence"] >= self.limits["recall_hit"]:
            return "H1", F5
        return ("H3" if result["confidence"] >= self.limits["recall_uncertain"] else "H2-weak"), F1

    def f1(self, result: Mapping[str, Any]) -> tuple[str, str]:
        if result["symptom_category"] in ("infra", "flake"):
            return {"infra": "H4", "flake": "H5"}[result["symptom_category"]], F5
        if result["skip_investigation"]:
            return "H18", F5
        self.places, self.found = result["candidate_repos"], []
        return ("H7", F3) if len(result["candidate_repos"]) == 1 else ("H6", F2)

    def f2(self, result: Mapping[str, Any]) -> tuple[str, str]:
        self.places, self.found = [each["name"] for each in result["selected_repos"]], []
        return "H8", F3

    def f3(self, result: Mapping[str, Any]) -> tuple[str, str]:
        refs = result["evidence_refs"]
        proved = any(ref != NOT_THERE for ref in refs)
        score = result["convergence_score"] if proved else min(0.5, result["convergence_score"])
        self.found.append((score, refs))
        if len(self.found) < len(self.places) and self.loops["repos"] < 8:
            self.loops["repos"] += 1
            return "H8-next", F3
        if max(score for score, _ in self.found) >= self.limits["convergence_sufficient"]:
            return "H9", F4
        if not any(refs for _, refs in self.found):
            return "H10a", F4
        if result.get("is_exhausted"):
            return "H10b", F4
        if self.loops["investigate"] < self.limits["max_investigate_loops"]:
            self.loops["investigate"] += 1
            return "H10", F2
        return "H11", F5

    def f4(self, result: Mapping[str, Any]) -> tuple[str, str]:
        same = result["is_duplicate"] and result["confidence"] >= self.limits["correlate_dup"]
        return ("H15" if same else "H15b"), F5

    def f5(self, result: Mapping[str, Any]) -> tuple[str, str]:
        if result["decision"] != "reassess":
            return {"approve": "H12", "overturn": "H14"}[result["decision"]], F6
        if self.loops["reassess"] == self.limits["max_reassess"]:
            return "H13-spent", "UNRESOLVED"
        self.loops["reassess"] += 1
        target = result.get("loop_target") or F2
        self.found = [] if target == F3 else self.found
        return ("H13" if target == F2 else f"H13-{target[:2]}"), target

    def f6(self, _said: Mapping[str, Any]) -> tuple[str, str]:
        return "H16", "DONE"


def walks(entries: list[dict[str, Any]]) -> dict[str, Walked]:
    """The same of a journal, as `logs --json` tells it."""
    found: dict[str, Walked] = {}
    for entry in entries:
        decision = entry["decision"]
        turn = (decision["step"], decision["rule"], decision["to"])
        found.setdefault(entry["case_id"], []).append(turn)
    return found
