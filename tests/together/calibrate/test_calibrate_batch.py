"""Test calibrations with watchers of files as agents: batches, budgets, kills and leaks."""

import json
import signal
from pathlib import Path
from typing import Any

import msgspec
import pytest

from interlock_rca.calibration.scenario import Scenario, find_scenario, list_shipped_scenarios
from rca_tests.calibration.seeds_form import scenario
from rca_tests.cli.test_watched import noted, watched
from rca_tests.worlds.rca_oracle import Answers
from tests.together.calibrate.test_calibrate_run import put, rows
from tests.world.command_line import CliResult, World, until

BATCH = ("--dispatch", "batch-file", "--json")
TABLE: dict[str, Answers] = {
    "*": {
        "F0_RECALL": [{"match": False, "confidence": 0.1, "reasoning": "new"}],
        "F1_TRIAGE": [
            {
                "symptom_category": "product",
                "defect_type_hypothesis": "pb001",
                "candidate_repos": ["clockd"],
                "skip_investigation": False,
            }
        ],
        "F2_RESOLVE": [{"selected_repos": [{"name": "clockd", "reason": "the clock"}]}],
        "F3_INVESTIGATE": [
            {
                "rca_message": "the servo of clockd stays in holdover",
                "defect_type": "pb001",
                "component": "clockd",
                "convergence_score": 0.8,
                "evidence_refs": ["clockd:main.c:run"],
            }
        ],
        "F4_CORRELATE": [{"is_duplicate": False, "confidence": 0.1}],
        "F5_REVIEW": [{"decision": "approve"}],
        "F6_REPORT": [{"summary": "servo"}],
    },
    "C4": {"F1_TRIAGE": [{"symptom_category": "nonsense"}]},
    "C8": {"F3_INVESTIGATE": [{"convergence_score": "high"}]},
}


def calibrated(world: World, *words: str) -> CliResult:
    return world.say("calibrate", "--scenario", put(world), *BATCH, *words)


def read_reports(outcome: CliResult) -> list[dict[str, Any]]:
    """Return the findings without times."""
    results = [each["result"] for each in outcome.json["records"]]
    for result in results:
        result.pop("wall_clock_ms")
        result["steps"] = [{**step, "wall_clock_ms": 0} for step in result["steps"]]
    return results


def apart(found: list[dict[str, Any]], calm: list[dict[str, Any]]) -> dict[str, Any]:
    """Return how two runs differ beyond prompt lengths, which depend on the order of a batch."""

    def plain(result: dict[str, Any]) -> dict[str, Any]:
        steps = [{**step, "prompt_tokens": 0} for step in result["steps"]]
        return {**result, "prompt_tokens_total": 0, "steps": steps}

    return {
        f"{one['case_id']} {name}": (one[name], other[name])
        for one, other in zip(map(plain, found), map(plain, calm), strict=True)
        for name in other
        if one[name] != other[name]
    }


@pytest.fixture
def calm(tmp_path: Path) -> list[dict[str, Any]]:
    """Return the results of an undisturbed run."""
    folder = tmp_path / "calm"
    folder.mkdir()
    world = World(folder)
    with watched(world, TABLE, "batch"):
        return read_reports(calibrated(world))


def test_a_batched_calibration_works_as_the_seeds_say(world: World) -> None:
    with watched(world, TABLE, "batch"):
        outcome = calibrated(world, "--batch-size", "3", "--token-budget", "9000000")
    assert outcome.code == 0
    assert outcome.json["scorecard"]["failed"] == 2  # C4 and C8 never say anything usable
    suite = world.folder / ".asterisk" / "calibrate" / "1001"
    batches = [line for line in noted(world) if "batch" in line]
    assert [line["batch"] for line in batches] == list(range(1, len(batches) + 1))
    assert max(len(line["cases"]) for line in batches) == 3
    phases = [line["phase"] for line in batches]
    assert phases == sorted(phases, reverse=True)
    assert set(phases) == {"triage", "investigation"}
    first, last = batches[0]["briefing"], batches[-1]["briefing"]
    assert "- Scenario: clock-lab\n- Suite ID: 1001\n" in first
    assert "## Cluster assignments" not in first
    assert len(last) > len(first)
    for heading in ("Known symptoms", "Cluster assignments", "Prior RCAs", "Common error patterns"):
        assert f"## {heading}" in last
    manifest = json.loads((suite / "batch-manifest.json").read_text())
    assert manifest["status"] == "done"
    assert {each["status"] for each in manifest["signals"]} == {"done"}
    budget = json.loads((suite / "budget-status.json").read_text())
    spent = sum(
        each["prompt_tokens_total"] + each["artifact_tokens_total"]
        for each in read_reports(outcome)
    )
    assert budget["total_budget"] == 9_000_000
    assert budget["used"] >= spent > 0
    results = {each["case_id"]: each for each in read_reports(outcome)}
    assert results["C2"]["actual_rca_id"] == results["C1"]["actual_rca_id"] != 0
    asked = {(line["case"], line["step"]) for line in noted(world) if "case" in line}
    assert ("C1", "F3_INVESTIGATE") in asked
    assert ("C2", "F3_INVESTIGATE") not in asked


def test_one_case_after_another_where_files_are_single(world: World) -> None:
    with watched(world, TABLE):
        words = ("--scenario", put(world), "--dispatch", "file", "--runs", "2", "--json")
        outcome = world.say("calibrate", *words)
    assert outcome.code == 0
    both = read_reports(outcome)
    assert both[:12] == both[12:]
    answers = noted(world)
    assert len({line["id"] for line in answers}) == len(answers)
    order = [line["case"] for line in answers[: len(answers) // 2]]
    assert list(dict.fromkeys(order)) == [case["id"] for case in scenario()["cases"]]
    assert order == sorted(order, key=lambda name: int(name[1:]))
    folder = world.folder / ".asterisk" / "calibrate" / "1001" / "1"
    assert {path.name for path in folder.iterdir()} >= {"signal.json", "prompt-recall.md"}
    assert rows(outcome)["M18"] == sum(each["prompt_tokens_total"] for each in both[:12])
    papers = [
        path.read_text().partition("\n## Where to write\n") for path in folder.glob("prompt-*")
    ]
    assert all(where for _, where, _ in papers)
    counted = sum(len(prompt.encode()) // 4 for prompt, _, _ in papers)
    assert read_reports(outcome)[0]["prompt_tokens_total"] == counted


@pytest.mark.soak
def test_killed_in_a_batch_it_goes_on_and_finds_the_same(
    world: World, calm: list[dict[str, Any]]
) -> None:
    put(world)
    words = ("calibrate", "--scenario", "lab.json", *BATCH)
    with watched(world, TABLE, "batch"):
        for number, goal in enumerate((1, 9, 25, 40)):
            process = world.start(*words, *(["--resume"] if number else []))
            log = world.folder / "log"
            until(lambda: log.exists() and len(noted(world)) > goal, "it works")  # noqa: B023
            process.send_signal(signal.SIGKILL)
            process.communicate()
        outcome = world.say(*words, "--resume")
    assert outcome.code == 0
    assert apart(read_reports(outcome), calm) == {}
    again = world.say(*words, "--resume")
    assert (again.code, again.out) == (1, "")
    assert "no unfinished calibration of this scenario" in again.err


def test_a_spent_budget_ends_it_with_what_is_there(
    world: World, calm: list[dict[str, Any]]
) -> None:
    with watched(world, TABLE, "batch"):
        outcome = calibrated(world, "--token-budget", "40000")
        assert outcome.code == 5
        note = outcome.json["scorecard"]["about"]["note"]
        assert note.startswith("PARTIAL (the token budget is spent): ")
        assert 0 < outcome.json["scorecard"]["failed"] <= 12
        suite = world.folder / ".asterisk" / "calibrate" / "1001"
        budget = json.loads((suite / "budget-status.json").read_text())
        assert budget["used"] >= 40_000
        assert budget["remaining"] == 40_000 - budget["used"]
        sizes = [len(line["cases"]) for line in noted(world) if "batch" in line]
        assert sizes[0] == 4
        assert sizes[-1] == 1
        more = calibrated(world, "--resume", "--token-budget", "9000000")
    assert more.code == 0
    assert more.json["scorecard"]["about"]["note"] == ""
    assert apart(read_reports(more), calm) == {}


def test_budgets_of_nothing_of_one_and_just_enough(
    world: World, calm: list[dict[str, Any]], tmp_path: Path
) -> None:
    nothing = calibrated(world, "--token-budget", "0")
    assert nothing.code == 5
    assert nothing.json["scorecard"]["failed"] == 12
    assert not (world.folder / "log").exists()
    with watched(world, TABLE, "batch"):
        one = calibrated(world, "--token-budget", "1")
        assert one.code == 5
        assert len([line for line in noted(world) if "batch" in line]) == 1
        whole = calibrated(world, "--token-budget", "9000000")
        suite = world.folder / ".asterisk" / "calibrate" / "1003"
        used = json.loads((suite / "budget-status.json").read_text())["used"]
        # A little more: smaller batches tell a little more, and what costs nothing comes last.
        enough = calibrated(world, "--token-budget", str(used + used // 20))
        assert (whole.code, enough.code) == (0, 0)
        assert calibrated(world, "--token-budget", str(used // 2)).code == 5
    assert apart(read_reports(whole), calm) == {}


CANARY = "zqxj"


def marked(known: Scenario) -> Scenario:
    """Return the scenario with every text label replaced by one that appears nowhere else."""
    plain: dict[str, Any] = msgspec.to_builtins(known)
    names = {"defect_type", "category", "defect_type_hypothesis", "symptom_category", "severity"}
    kept = {*names, "decision", "loop_target", "relevant_repos", "candidate_repos", "name"}
    numbers: dict[str, str] = {}

    def mark(value: Any) -> Any:
        if isinstance(value, str) and value:
            return numbers.setdefault(value, f"{CANARY}{len(numbers)}x")
        if isinstance(value, list | tuple):
            return [mark(each) for each in value]
        if isinstance(value, dict):
            return {key: each if key in kept else mark(each) for key, each in value.items()}
        return value

    visible = {"id", "version", "job", "test_name", "test_id", "error_message", "log_snippet"}
    for case in plain["cases"]:
        hidden = {key: mark(each) for key, each in case.items() if key not in {*visible, "split"}}
        case |= {**hidden, "expected_path": case["expected_path"]}
    plain["rcas"] = mark(plain["rcas"])
    plain["symptoms"] = mark(plain["symptoms"])
    for repo in plain["workspace"]["repos"]:
        repo["relevant_to_rcas"] = mark(repo["relevant_to_rcas"])
    assert len(numbers) > 50
    return msgspec.convert(plain, Scenario)


@pytest.mark.parametrize("name", list_shipped_scenarios())
def test_no_label_of_a_shipped_scenario_is_ever_written_for_an_agent(
    world: World, name: str
) -> None:
    known = marked(find_scenario(name).scenario)
    few = known.cases[:14]
    put(world, msgspec.to_builtins(msgspec.structs.replace(known, cases=few, candidates=())))
    with watched(world, {"*": TABLE["*"]}, "batch"):
        outcome = calibrated(world)
    assert outcome.code == 0
    seen = 0
    for path in sorted((world.folder / ".asterisk").rglob("*")):
        assert CANARY not in str(path)
        if path.is_file():
            seen += 1
            assert CANARY not in path.read_text()
    assert seen > 60
    for store in (world.folder / ".interlock").rglob("run.db*"):
        assert CANARY.encode() not in store.read_bytes()
