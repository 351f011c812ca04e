"""Every rule of the analysis, H1 to H18, at and around each threshold, by scripted answers through
the real command. Where a case must go is worked out here, from the answers alone."""

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from tests.cli.world import World
from tests.world.git_repo import GitRepo

Answers = dict[str, list[dict[str, Any]]]
USUAL = {
    "recall_hit": 0.8,
    "recall_uncertain": 0.4,
    "convergence_sufficient": 0.7,
    "correlate_dup": 0.8,
    "max_investigate_loops": 2,
    "max_reassess": 3,
}
F0, F1, F2, F3 = "F0_RECALL", "F1_TRIAGE", "F2_RESOLVE", "F3_INVESTIGATE"
F4, F5, F6 = "F4_CORRELATE", "F5_REVIEW", "F6_REPORT"
REAL, NOT_THERE = "app:cart.py:2", "app:nowhere.py:9"
MISS = {"match": False, "confidence": 0.1, "reasoning": "nothing like it"}
OPEN = {
    "symptom_category": "product",
    "defect_type_hypothesis": "pb001",
    "candidate_repos": [],
    "skip_investigation": False,
}
PLACE = {"selected_repos": [{"name": "app", "reason": "its stack"}]}
CAUSE = {
    "rca_message": "Cart.total() in cart.py drops the last line of the basket",
    "defect_type": "pb001",
    "convergence_score": 0.9,
    "evidence_refs": [REAL],
}
ALONE = {"is_duplicate": False, "confidence": 0.1}
PLAIN: Answers = {
    F0: [MISS],
    F1: [OPEN],
    F2: [PLACE],
    F3: [CAUSE],
    F4: [ALONE],
    F5: [{"decision": "approve"}],
    F6: [{"summary": "The basket loses its last line"}],
}


def around(limit: float) -> tuple[float, ...]:
    return (round(limit - 0.01, 2), limit, round(limit + 0.01, 2))


def scripts() -> Iterator[tuple[str, Answers]]:
    """A name for each case, and what is answered where it differs from the plain way."""
    yield "plain", {}
    yield from recalls()
    yield from triages()
    yield from investigations()
    yield from reviews()


def recalls() -> Iterator[tuple[str, Answers]]:
    for match in (True, False):
        for sure in (*around(0.4), *around(0.6), *around(0.8)) if match else (0.0, 1.0):
            said = {"match": match, "confidence": sure, "reasoning": "as before"}
            yield f"recall-{match}-{sure}", {F0: [said]}


def triages() -> Iterator[tuple[str, Answers]]:
    for kind in ("infra", "flake", "product", "unknown"):
        for skip, repos in (
            (True, ["app"]),
            (False, []),
            (False, ["app"]),
            (False, ["app", "lib"]),
        ):
            said = {**OPEN, "symptom_category": kind, "candidate_repos": repos}
            name = f"triage-{kind}-{skip}-{len(repos)}"
            yield name, {F1: [{**said, "skip_investigation": skip}]}
    for kind, skip in (("infra", False), ("product", True), ("product", False)):
        said = {**OPEN, "symptom_category": kind, "skip_investigation": skip}
        yield f"skewed-{kind}-{skip}", {F1: [{**said, "clock_skew_suspected": True}]}


def investigations() -> Iterator[tuple[str, Answers]]:
    for score in (*around(0.5), *around(0.7)):
        for name, refs in (("real", [REAL]), ("none", []), ("false", [NOT_THERE])):
            said = {**CAUSE, "convergence_score": score, "evidence_refs": refs}
            yield f"found-{score}-{name}", {F3: [said]}
    low = {**CAUSE, "convergence_score": 0.3}
    yield "sure-at-last", {F3: [low, low, CAUSE]}
    yield "sure-again", {F3: [low, CAUSE]}
    yield "nothing-the-second-time", {F3: [low, {**low, "evidence_refs": []}]}
    both = {"selected_repos": [{"name": name, "reason": "it may be"} for name in ("app", "lib")]}
    yield "two-places", {F2: [both], F3: [low, {**CAUSE, "evidence_refs": ["lib:tax.py:1"]}]}
    yield "two-places-first-sure", {F2: [both], F3: [CAUSE, low]}
    yield "two-places-unsure", {F2: [both], F3: [low]}
    yield "two-places-no-evidence", {F2: [both], F3: [{**low, "evidence_refs": []}]}
    many = {"selected_repos": [{"name": f"r{n}", "reason": "maybe"} for n in range(10)]}
    yield "ten-places", {F2: [many], F3: [CAUSE]}
    for duplicate in (True, False):
        for sure in (*around(0.5), *around(0.8)) if duplicate else (1.0,):
            said = {"is_duplicate": duplicate, "confidence": sure, "linked_rca_id": 0}
            yield f"correlate-{duplicate}-{sure}", {F4: [said]}


def reviews() -> Iterator[tuple[str, Answers]]:
    yield "approve", {}
    override = {"defect_type": "ab001", "rca_message": "the test reads the old name"}
    yield "overturn", {F5: [{"decision": "overturn", "human_override": override}]}
    yield "overturn-bare", {F5: [{"decision": "overturn"}]}
    approve = {"decision": "approve"}
    for target in (F1, F2, F3, "", None):
        back: dict[str, Any] = {"decision": "reassess"}
        back |= {} if target is None else {"loop_target": target}
        yield f"back-{target}", {F5: [back, approve]}
        yield f"back-{target}-twice", {F5: [back, back, approve]}
        yield f"back-{target}-for-ever", {F5: [back]}
    low = {**CAUSE, "convergence_score": 0.3}
    yield "worn-out-and-back", {F3: [low], F5: [{"decision": "reassess"}, approve]}
    hit = {"match": True, "confidence": 0.95, "reasoning": "the same"}
    back = {"decision": "reassess", "loop_target": F1}
    yield "recalled-and-back", {F0: [hit], F5: [back, {"decision": "overturn"}]}


class Journey:
    """Where a case goes by the table, worked out without any of the code under test."""

    def __init__(self, answers: Mapping[str, list[dict[str, Any]]], limits: dict[str, Any]) -> None:
        self.answers = answers
        self.limits = limits
        self.turns: Counter[str] = Counter()
        self.loops: Counter[str] = Counter()
        self.places: list[str] = []
        self.found: list[tuple[float, list[str]]] = []

    def walk(self) -> list[tuple[str, str, str]]:
        step, walked = F0, []
        while step not in ("DONE", "UNRESOLVED"):
            self.turns[step] += 1
            given = self.answers[step]
            answer = given[min(self.turns[step], len(given)) - 1]
            rule, to = getattr(self, step[:2].lower())(answer)
            walked.append((step, rule, to))
            step = to
        return walked

    def f0(self, said: Mapping[str, Any]) -> tuple[str, str]:
        if not said["match"]:
            return "H2", F1
        if said["confidence"] >= self.limits["recall_hit"]:
            return "H1", F5
        return ("H3" if said["confidence"] >= self.limits["recall_uncertain"] else "H2-weak"), F1

    def f1(self, said: Mapping[str, Any]) -> tuple[str, str]:
        if said["symptom_category"] in ("infra", "flake"):
            return {"infra": "H4", "flake": "H5"}[said["symptom_category"]], F5
        if said["skip_investigation"]:
            return "H18", F5
        self.places, self.found = said["candidate_repos"], []
        return ("H7", F3) if len(said["candidate_repos"]) == 1 else ("H6", F2)

    def f2(self, said: Mapping[str, Any]) -> tuple[str, str]:
        self.places, self.found = [each["name"] for each in said["selected_repos"]], []
        return "H8", F3

    def f3(self, said: Mapping[str, Any]) -> tuple[str, str]:
        refs = said["evidence_refs"]
        proved = any(ref != NOT_THERE for ref in refs)
        score = said["convergence_score"] if proved else min(0.5, said["convergence_score"])
        self.found.append((score, refs))
        if len(self.found) < len(self.places) and self.loops["repos"] < 8:
            self.loops["repos"] += 1
            return "H8-next", F3
        if max(score for score, _ in self.found) >= self.limits["convergence_sufficient"]:
            return "H9", F4
        if not any(refs for _, refs in self.found):
            return "H10a", F4
        if self.loops["investigate"] < self.limits["max_investigate_loops"]:
            self.loops["investigate"] += 1
            return "H10", F2
        return "H11", F5

    def f4(self, said: Mapping[str, Any]) -> tuple[str, str]:
        same = said["is_duplicate"] and said["confidence"] >= self.limits["correlate_dup"]
        return ("H15" if same else "H15b"), F5

    def f5(self, said: Mapping[str, Any]) -> tuple[str, str]:
        if said["decision"] != "reassess":
            return {"approve": "H12", "overturn": "H14"}[said["decision"]], F6
        if self.loops["reassess"] == self.limits["max_reassess"]:
            return "H13-spent", "UNRESOLVED"
        self.loops["reassess"] += 1
        target = said.get("loop_target") or F2
        self.found = [] if target == F3 else self.found
        return ("H13" if target == F2 else f"H13-{target[:2]}"), target

    def f6(self, _said: Mapping[str, Any]) -> tuple[str, str]:
        return "H16", "DONE"


@pytest.fixture(scope="module")
def repos(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Two repositories, as interlock.toml names them."""
    folder = tmp_path_factory.mktemp("repos")
    written = ""
    for name, file in (("app", "cart.py"), ("lib", "tax.py")):
        repo = GitRepo(folder / name)
        repo.write({file: "def total(lines):\n    return sum(lines[:-1])\n"})
        repo.git("add", "--all")
        repo.git("commit", "--quiet", "-m", "Begin")
        written += f'[[repo]]\nname = "{name}"\npath = "{folder / name}"\npurpose = "the {name}"\n'
    return written


@pytest.mark.parametrize(
    ("flags", "project"),
    [
        ({}, {}),
        ({"recall_hit": 0.6, "convergence_sufficient": 0.5, "correlate_dup": 0.5}, {}),
        ({"max_investigate_loops": 0}, {"max_reassess": 1, "recall_uncertain": 0.6}),
        ({"max_reassess": 2}, {"max_investigate_loops": 1, "max_reassess": 1}),
    ],
    ids=["usual", "flags", "project", "flags before the project"],
)
def test_cases_go_where_the_table_says(
    world: World, repos: str, flags: dict[str, Any], project: dict[str, Any]
) -> None:
    made = {name: {**PLAIN, **own} for name, own in scripts()}
    limits = {**USUAL, **project, **flags}
    wanted = {name: Journey(answers, limits).walk() for name, answers in made.items()}
    settings = "".join(f"{name} = {value}\n" for name, value in project.items())
    world.write("interlock.toml", f"[thresholds]\n{settings}{repos}")
    _write_script(world, made)

    said = world.say(
        *("run", "rca", "--cases", "cases.jsonl", "--json", "--agent", "script:crew.json"),
        *("--agent", "human=script:crew.json"),
        *(word for name, value in flags.items() for word in ("--set", f"{name}={value}")),
    )

    assert (said.code, said.err) == (3, "")
    found = _journeys(world)
    assert found == wanted
    seen = {rule for walked in found.values() for _, rule, _ in walked}
    assert seen >= {"H1", "H2", "H3", "H4", "H5", "H6", "H7", "H8", "H9", "H10a", "H11", "H12"}
    assert seen >= {"H8-next", "H13", "H13-F1", "H13-F3", "H13-spent", "H14", "H15", "H15b", "H18"}
    assert ("H10" in seen) == (limits["max_investigate_loops"] > 0)
    unresolved = sum(walked[-1][2] == "UNRESOLVED" for walked in wanted.values())
    assert said.json["ends"] == {"DONE": len(wanted) - unresolved, "UNRESOLVED": unresolved}


def _write_script(world: World, made: Mapping[str, Answers]) -> None:
    script = {
        name: {step: [{"answer": one} for one in many] for step, many in answers.items()}
        for name, answers in made.items()
    }
    world.write("crew.json", json.dumps(script))
    rows = ({"id": name, "test_name": name, "message": f"{name} broke"} for name in made)
    world.write("cases.jsonl", "".join(f"{json.dumps(row)}\n" for row in rows))


def _journeys(world: World) -> dict[str, list[tuple[str, str, str]]]:
    found: dict[str, list[tuple[str, str, str]]] = defaultdict(list)
    for entry in world.say("logs", "--json").json["entries"]:
        decision = entry["decision"]
        found[entry["case_id"]].append((decision["step"], decision["rule"], decision["to"]))
    return found


def test_what_a_rule_adds_reaches_the_next_prompts(world: World, repos: str) -> None:
    """The candidate of H3, the place of H7, the warning of H17, the code of H11, the reviewer's
    words after H13: each is read by whoever comes next."""
    maybe = {"match": True, "confidence": 0.5, "reasoning": "a cousin of it, says the scout"}
    skewed = {**OPEN, "candidate_repos": ["lib"], "clock_skew_suspected": True}
    low = {**CAUSE, "convergence_score": 0.3}
    back = {"decision": "reassess", "loop_target": F3, "comment": "look at the rounding"}
    made = {
        "one": {**PLAIN, F0: [maybe], F1: [skewed], F3: [low], F5: [back, {"decision": "approve"}]}
    }
    world.write("interlock.toml", repos)
    _write_script(world, made)
    said = world.say(
        *("run", "rca", "--cases", "cases.jsonl", "--agent", "script:crew.json"),
        *("--agent", "human=script:crew.json"),
    )
    assert said.code == 0
    prompts = _prompts(world)
    assert "a cousin of it, says the scout" in prompts[F1][0]
    assert "only candidate from triage" in prompts[F3][0]
    assert "Clocks may disagree" in prompts[F5][0]
    assert "look at the rounding" in prompts[F3][-1]
    assert "ti001" in prompts[F5][0]
    findings = json.loads(_report(world))
    assert findings["cases"][0]["defect_type"] == "ti001"


def _prompts(world: World) -> dict[str, list[str]]:
    told: dict[str, list[str]] = defaultdict(list)
    for each in world.say("explain", "one", "--json").json["dispatches"]:
        told[each["step"]].append(each["prompt"])
    return told


def _report(world: World) -> str:
    assert world.say("report", "--out", "told").code == 0
    return (world.folder / "told" / "report.json").read_text(encoding="utf-8")
