"""Every rule of the analysis, H1 to H18, at and around each threshold, by scripted answers through
the real command. Where a case must go is worked out here, from the answers alone."""

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from rca_tests.worlds.rca_oracle import (
    CAUSE,
    NOT_THERE,
    PLAIN,
    REAL,
    USUAL,
    Answers,
    Journey,
    walks,
)
from rca_tests.worlds.red_repository import F0, F1, F2, F3, F4, F5, TRIAGE
from tests.world.command_line import World
from tests.world.git_repo import GitRepo


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
            result = {"match": match, "confidence": sure, "reasoning": "as before"}
            yield f"recall-{match}-{sure}", {F0: [result]}


def triages() -> Iterator[tuple[str, Answers]]:
    for kind in ("infra", "flake", "product", "unknown"):
        for skip, repos in (
            (True, ["app"]),
            (False, []),
            (False, ["app"]),
            (False, ["app", "lib"]),
        ):
            result = {**TRIAGE, "symptom_category": kind, "candidate_repos": repos}
            name = f"triage-{kind}-{skip}-{len(repos)}"
            yield name, {F1: [{**result, "skip_investigation": skip}]}
    for kind, skip in (("infra", False), ("product", True), ("product", False)):
        result = {**TRIAGE, "symptom_category": kind, "skip_investigation": skip}
        yield f"skewed-{kind}-{skip}", {F1: [{**result, "clock_skew_suspected": True}]}


def investigations() -> Iterator[tuple[str, Answers]]:
    for score in (*around(0.5), *around(0.7)):
        for name, refs in (("real", [REAL]), ("none", []), ("false", [NOT_THERE])):
            result = {**CAUSE, "convergence_score": score, "evidence_refs": refs}
            yield f"found-{score}-{name}", {F3: [result]}
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
            result = {"is_duplicate": duplicate, "confidence": sure, "linked_rca_id": 0}
            yield f"correlate-{duplicate}-{sure}", {F4: [result]}


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

    result = world.say(
        *("run", "rca", "--cases", "cases.jsonl", "--json", "--agent", "script:crew.json"),
        *("--agent", "human=script:crew.json"),
        *(word for name, value in flags.items() for word in ("--set", f"{name}={value}")),
    )

    assert (result.code, result.err) == (3, "")
    found = walks(world.say("logs", "--json").json["entries"])
    assert found == wanted
    seen = {rule for walked in found.values() for _, rule, _ in walked}
    assert seen >= {"H1", "H2", "H3", "H4", "H5", "H6", "H7", "H8", "H9", "H10a", "H11", "H12"}
    assert seen >= {"H8-next", "H13", "H13-F1", "H13-F3", "H13-spent", "H14", "H15", "H15b", "H18"}
    assert ("H10" in seen) == (limits["max_investigate_loops"] > 0)
    unresolved = sum(walked[-1][2] == "UNRESOLVED" for walked in wanted.values())
    assert result.json["ends"] == {"DONE": len(wanted) - unresolved, "UNRESOLVED": unresolved}


def _write_script(world: World, made: Mapping[str, Answers]) -> None:
    script = {
        name: {step: [{"answer": one} for one in many] for step, many in answers.items()}
        for name, answers in made.items()
    }
    world.write("crew.json", json.dumps(script))
    rows = ({"id": name, "test_name": name, "message": f"{name} broke"} for name in made)
    world.write("cases.jsonl", "".join(f"{json.dumps(row)}\n" for row in rows))


def test_what_a_rule_adds_reaches_the_next_prompts(world: World, repos: str) -> None:
    """The candidate of H3, the place of H7, the warning of H17, the code of H11, the reviewer's
    words after H13: each is read by whoever comes next."""
    maybe = {"match": True, "confidence": 0.5, "reasoning": "a cousin of it, says the scout"}
    skewed = {**TRIAGE, "candidate_repos": ["lib"], "clock_skew_suspected": True}
    low = {**CAUSE, "convergence_score": 0.3}
    back = {"decision": "reassess", "loop_target": F3, "comment": "look at the rounding"}
    made = {
        "one": {**PLAIN, F0: [maybe], F1: [skewed], F3: [low], F5: [back, {"decision": "approve"}]}
    }
    world.write("interlock.toml", repos)
    _write_script(world, made)
    result = world.say(
        *("run", "rca", "--cases", "cases.jsonl", "--agent", "script:crew.json"),
        *("--agent", "human=script:crew.json"),
    )
    assert result.code == 0
    prompts = _prompts(world)
    assert "a cousin of it, says the scout" in prompts[F1][0]
    assert "only candidate from triage" in prompts[F3][0]
    assert "Triage suspects that two clocks disagree" in prompts[F5][0]
    assert "look at the rounding" in prompts[F3][-1]
    assert "ti001" in prompts[F5][0]
    findings = json.loads(_report(world))
    assert findings["findings"]["cases"][0]["defect_type"] == "ti001"


def _prompts(world: World) -> dict[str, list[str]]:
    output: dict[str, list[str]] = defaultdict(list)
    for each in world.say("explain", "one", "--json").json["dispatches"]:
        output[each["step"]].append(each["prompt"])
    return output


def _report(world: World) -> str:
    assert world.say("report", "--out", "told").code == 0
    return (world.folder / "told" / "report.json").read_text(encoding="utf-8")
