"""Test calibrations at the command line: the stub, gates, budgets, leaks and failing agents."""

import json
from pathlib import Path
from typing import Any

import pytest

from interlock_rca.calibration.scenario import list_shipped_scenarios
from rca_tests.calibration.seeds_form import scenario
from rca_tests.calibration.worlds import small
from tests.world.command_line import CliResult, World


def put(world: World, plain: dict[str, Any] | None = None, name: str = "lab.json") -> str:
    world.write(name, json.dumps(plain or scenario()))
    return name


def rows(outcome: CliResult) -> dict[str, float]:
    """Return every measured metric to the third decimal."""
    output = outcome.json["scorecard"]["parts"][0]["rows"]
    return {row["id"]: round(row["value"], 3) for row in output if row["value"] is not None}


def calibrated(world: World, *words: str) -> CliResult:
    return world.say("calibrate", "--scenario", put(world), *words, "--json")


PERFECT = {
    **dict.fromkeys(("M1", "M2", "M3", "M5", "M6", "M7", "M9", "M10", "M11"), 1.0),
    **dict.fromkeys(("M12", "M13", "M14", "M14b", "M16"), 1.0),
    "M4": 0.0,
    "M15": round(10 / 11, 3),  # nobody looks into the skipped case that has a cause
}


def test_the_stub_scores_what_the_labels_allow(world: World) -> None:
    outcome = calibrated(world, "--agent", "stub")
    assert (outcome.code, outcome.err) == (0, "")
    found = rows(outcome)
    assert found.pop("M19") == round(0.85 + 0.15 * 10 / 11, 3)
    assert found == PERFECT
    results = {each["result"]["case_id"]: each["result"] for each in outcome.json["records"]}
    assert results["C8"]["actual_defect_type"] == "en001"
    assert results["C8"]["actual_category"] == "environment"
    assert (results["C8"]["actual_rca_id"], results["C8"]["actual_rca_message"]) == (0, "")
    assert results["C10"]["actual_path"] == ["F0", "F1", "F3", "F4"]
    assert results["C10"]["actual_rca_id"] == results["C1"]["actual_rca_id"] != 0
    assert results["C4"]["actual_selected_repos"] == ["lab-tests"]
    assert results["C2"]["actual_convergence"] == 0.9


@pytest.mark.parametrize("name", list_shipped_scenarios())
def test_the_stub_goes_every_expected_way(world: World, name: str) -> None:
    outcome = world.say("calibrate", "--scenario", name, "--agent", "stub", "--json")
    found = rows(outcome)
    assert outcome.code == 0
    assert {metric: found[metric] for metric in ("M1", "M2", "M3", "M12", "M16", "M17")} == (
        dict.fromkeys(("M1", "M2", "M3", "M12", "M16", "M17"), 1.0)
    )
    assert outcome.json["scorecard"]["failed"] == 0


def test_in_families_one_case_is_investigated_for_the_others(world: World) -> None:
    plain = scenario()
    for case in plain["cases"]:
        case["expected_recall"] = {"match": False, "confidence": 0.0}
        case.setdefault("expected_triage", plain["cases"][0]["expected_triage"])
    put(world, plain)
    words = ("--agent", "stub", "--parallel", "4", "--json")
    outcome = world.say("calibrate", "--scenario", "lab.json", *words)
    results = {each["result"]["case_id"]: each["result"] for each in outcome.json["records"]}
    first, member = results["C1"], results["C2"]
    assert member["actual_rca_id"] == first["actual_rca_id"] != 0
    assert member["actual_path"] == ["F0", "F1", "F5", "F6"]
    for field in ("actual_evidence_refs", "actual_selected_repos", "actual_rca_message"):
        assert member[field] == first[field] != []
    later = world.say("calibrate", "--scenario", "lab.json", *words, "--edition", "v2")
    results = {each["result"]["case_id"]: each["result"] for each in later.json["records"]}
    assert results["C2"]["actual_path"] == results["C1"]["actual_path"]


def test_runs_are_independent_of_each_other(world: World) -> None:
    outcome = calibrated(world, "--agent", "stub", "--runs", "3")
    assert outcome.json["scorecard"]["runs"] == 3
    assert rows(outcome)["M20"] == 0.0
    stores = outcome.json["scorecard"]["about"]["stores"]
    assert [Path(store).parent.name for store in stores] == ["1001", "1002", "1003"]
    for run in (2, 3):
        ours = [
            each["result"]["actual_rca_id"] for each in outcome.json["records"] if each["run"] == 1
        ]
        other = [
            each["result"]["actual_rca_id"]
            for each in outcome.json["records"]
            if each["run"] == run
        ]
        assert other == ours


def test_a_gate_is_missed_with_exit_3(world: World) -> None:
    assert calibrated(world, "--agent", "stub", "--fail-under", "0.9").code == 0
    outcome = calibrated(
        world, "--agent", "stub", "--fail-under", "0.99", "--fail-under", "M15=0.95"
    )
    assert outcome.code == 3
    assert outcome.err == "M19 is 0.986, below 0.99\nM15 is 0.909, below 0.95\n"
    plain = scenario()
    plain["cases"] = [case for case in plain["cases"] if not case.get("expect_cascade")]
    put(world, plain)
    words = ("--scenario", "lab.json", "--agent", "stub", "--fail-under", "M7=0")
    outcome = world.say("calibrate", *words)
    assert (outcome.code, outcome.err) == (3, "M7 is not measured, below 0\n")


def test_the_scorecard_is_written_in_every_form(world: World) -> None:
    world.write("interlock.toml", '[calibrate.prices]\ninput = 1.0\ncurrency = "EUR"\n')
    files = ("--html", "out/card.html", "--markdown", "bill.md", "--out", "card.json")
    outcome = world.say("calibrate", "--scenario", put(world), "--agent", "stub", *files)
    assert outcome.code == 0
    assert outcome.out.startswith("clock-lab: stub, ")
    assert "RESULT PASS" in outcome.out
    assert "<svg" in (world.folder / "out" / "card.html").read_text()
    assert (world.folder / "bill.md").read_text().startswith("# Cost bill: clock-lab\n")
    assert json.loads((world.folder / "card.json").read_text())["kind"] == "calibration"
    assert "1.00 EUR" in (world.folder / "bill.md").read_text()
    assert world.say("calibrate", "compare", "card.json", "card.json").code == 0


@pytest.mark.parametrize(
    ("words", "outcome"),
    [
        (("--agent", "nobody"), "'nobody' names no agent"),
        (("--agent", "stub", "--dispatch", "file"), "give only one"),
        (("--agent", "stub", "--runs", "0"), "from 1 to 100"),
        (("--agent", "stub", "--edition", "v9"), "there is no edition 'v9'"),
        (("--agent", "stub", "--weights", "x"), "there are no weights 'x'"),
        (("--agent", "stub", "--fail-under", "M99=1"), "--fail-under 'M99=1'"),
        (("--agent", "stub", "--fail-under", "nan"), "--fail-under 'nan'"),
        (("--agent", "stub", "--set", "nothing=1"), "has no threshold 'nothing'"),
        (
            (
                "--agent",
                "exec:/no/such/thing",
            ),
            "there is no command",
        ),
    ],
)
def test_wrong_words_are_told_in_one_sentence(
    world: World, words: tuple[str, ...], outcome: str
) -> None:
    found = world.say("calibrate", "--scenario", put(world), *words)
    assert (found.code, found.out) == (2, "")
    assert outcome in found.err
    assert found.err.count("\n") == 1


def test_what_no_store_can_hold_is_refused(world: World) -> None:
    plain = small()
    plain["cases"][1]["id"] = "C1"
    for cases, outcome in (
        ([], "has no cases to run"),
        (plain["cases"], "two cases have the id 'C1'"),
        ([{**plain["cases"][0], "id": "../up"}], "'../up' is not a valid case id"),
    ):
        put(world, {**small(), "cases": cases})
        found = world.say("calibrate", "--scenario", "lab.json", "--agent", "stub")
        assert found.code == 2
        assert outcome in found.err


def test_faulty_labels_are_noted_and_scored_all_the_same(world: World) -> None:
    plain = small()
    plain["cases"][1]["rca_id"] = "R9"
    put(world, plain)
    outcome = world.say("calibrate", "--scenario", "lab.json", "--agent", "stub")
    assert outcome.code == 0
    assert "make scores wrong: 'interlock calibrate check lab.json'" in outcome.err


def program(world: World, text: str) -> str:
    """Return an agent that runs a program with this text."""
    world.write("agent.py", text)
    return "exec:python3 agent.py"


def test_an_agent_of_garbage_fails_every_case(world: World) -> None:
    outcome = calibrated(world, "--agent", program(world, "print('{]')"))
    assert outcome.code == 0
    assert outcome.json["scorecard"]["failed"] == 12
    first = outcome.json["records"][0]["result"]
    assert first["pipeline_error"].startswith("FAILED: ")
    assert (first["actual_path"], first["actual_defect_type"]) == ([], "")
    assert rows(outcome)["M1"] == 0.0


HALF = """
import json, os, sys
sys.stdin.read()
case = int(os.environ["INTERLOCK_CASE_ID"][1:])
answers = {
    "F0_RECALL": {"match": False, "confidence": 0.9, "reasoning": "new"},
    "F1_TRIAGE": {"symptom_category": "product", "defect_type_hypothesis": "pb001",
                  "candidate_repos": ["clockd"], "skip_investigation": False},
    "F3_INVESTIGATE": {"rca_message": "servo and holdover in clockd", "defect_type": "pb001",
                       "component": "clockd", "convergence_score": 0.8, "evidence_refs": []},
    "F4_CORRELATE": {"is_duplicate": False, "confidence": 0.1},
    "F5_REVIEW": {"decision": "approve"},
    "F6_REPORT": {"summary": "x"},
}
if case % 2:
    print(json.dumps(answers[os.environ["INTERLOCK_STEP"]]))
"""


def test_an_agent_that_answers_half_of_the_cases_is_scored_on_all(world: World) -> None:
    outcome = calibrated(world, "--agent", program(world, HALF))
    assert outcome.json["scorecard"]["failed"] == 6
    found = rows(outcome)
    # C1, C3, C9 are of R1; C5 and C7 of R2; C11 has no cause.
    assert found["M1"] == round(3 / 11, 3)
    assert found["M14"] == round((3 * 1 + 2 * 0) / 5, 3)
    assert found["M9"] == round(3 / 5, 3)
    done = {r["result"]["case_id"]: r["result"] for r in outcome.json["records"]}["C1"]
    assert done["actual_path"] == ["F0", "F1", "F3", "F4", "F5", "F6"]
    assert done["actual_convergence"] == 0.8  # as claimed, though no evidence lowers it for us
    assert done["prompt_tokens_total"] == sum(step["prompt_tokens"] for step in done["steps"]) > 0
    assert found["M18"] == sum(r["result"]["prompt_tokens_total"] for r in outcome.json["records"])


@pytest.mark.soak
def test_a_budget_holds_for_agents_that_tell_no_bill(world: World) -> None:
    agent = program(world, HALF.replace("case % 2", "True"))
    outcome = calibrated(world, "--agent", agent, "--token-budget", "5000")
    assert outcome.code == 5
    done = [each["result"] for each in outcome.json["records"]]
    assert sum(not result["pipeline_error"] for result in done) < 3
    used = sum(each["prompt_tokens_total"] + each["artifact_tokens_total"] for each in done)
    assert used >= 5_000
    more = world.say("calibrate", "--scenario", "lab.json", "--resume", "--token-budget", "900000")
    assert more.code == 0


@pytest.mark.soak
def test_the_truth_s_own_words_win_nothing_by_themselves(world: World) -> None:
    words = "R1 pb001 expected_invest smoking_gun servo enters holdover without timeout"
    agent = program(world, f"print({words!r})")
    outcome = calibrated(world, "--agent", agent)
    assert outcome.json["scorecard"]["failed"] == 12
    assert "M14b" not in rows(outcome)
