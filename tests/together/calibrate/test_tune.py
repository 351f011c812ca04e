"""Test tuning of recorded calibrations at the command line."""

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

from rca_tests.calibration.seeds_form import scenario
from tests.together.calibrate.test_calibrate_run import put
from tests.world.command_line import World


@pytest.fixture
def recorded(world: World) -> World:
    """Calibrate with a stub that recalls with 0.95 and finds duplicates with 0.88 and 0.9."""
    result = world.say("calibrate", "--scenario", put(world), "--agent", "stub", "--out", "r.json")
    assert result.code == 0
    return world


def trials(world: World, *words: str) -> list[dict[str, Any]]:
    result = world.say("tune", "r.json", *words, "--json")
    assert (result.code, result.err) == (0, "")
    found: list[dict[str, Any]] = result.json["trials"]
    return found


def test_with_the_same_thresholds_nothing_changes(recorded: World) -> None:
    result = recorded.say("tune", "r.json", "--grid", "recall_hit=0.8,0.9", "--json")
    # C8 has a cause that nobody looked for; C11 has none, and its category is right.
    assert (result.json["now"]["right"], result.json["now"]["known"]) == (11, 12)
    assert [each["changed"] for each in result.json["trials"]] == [0, 0]
    journal = sum(len(case["expected_path"]) for case in scenario()["cases"]) + 2 * 2
    assert result.json["now"]["dispatches"] == journal


def test_a_higher_threshold_asks_for_answers_that_were_never_given(recorded: World) -> None:
    (lax, strict) = trials(recorded, "--grid", "recall_hit=0.8,0.99")
    assert (lax["right"], lax["unknown"], lax["is_best"]) == (11, 0, True)
    assert strict["unknown"] == strict["changed"] == 6  # no recalled case was ever triaged
    assert (strict["right"], strict["known"]) == (5, 6)


def test_duplicates_are_found_or_not_by_their_threshold(recorded: World) -> None:
    found = {
        each["thresholds"]["correlate_dup"]: each["changed"]
        for each in trials(recorded, "--grid", "correlate_dup=0.8,0.89,0.95")
    }
    assert found == {0.8: 0, 0.89: 1, 0.95: 2}


def test_held_out_cases_are_told_apart(world: World) -> None:
    plain = scenario()
    for number, case in enumerate(plain["cases"]):
        case["split"] = "train" if number < 6 else "test"
    put(world, plain)
    world.say("calibrate", "--scenario", "lab.json", "--agent", "stub", "--out", "r.json")
    result = world.say("tune", "r.json", "--grid", "recall_hit=0.8,0.99", "--json")
    assert result.json["on"] == "train"
    assert result.json["now"]["known"] == 6
    assert result.json["held_out"]["known"] == 6
    text = world.say("tune", "r.json", "--grid", "recall_hit=0.8,0.99").out
    assert "on the held-out cases: 0.833 (5 of 6)" in text


def test_a_threshold_file_is_written_only_when_told(recorded: World) -> None:
    before = {path for path in recorded.folder.rglob("*") if "run.db" not in path.name}
    result = recorded.say("tune", "r.json", "--grid", "recall_hit=0.8,0.99")
    assert result.code == 0
    assert "best  0.8" in result.out
    after = {path for path in recorded.folder.rglob("*") if "run.db" not in path.name}
    assert after == before
    words = ("tune", "r.json", "--grid", "recall_hit=0.8,0.99", "--write", "t.toml")
    assert recorded.say(*words).code == 0
    written = tomllib.loads((recorded.folder / "t.toml").read_text())
    assert written == {"thresholds": {"recall_hit": 0.8}}
    again = recorded.say(*words)
    assert (again.code, again.out) == (2, "")
    assert "t.toml exists already" in again.err


def test_a_wrong_recall_is_never_advised_however_cheap(world: World) -> None:
    plain = scenario()
    # Another cause that reads the same: being wrong about it is not seen in its words.
    alike = {"defect_type": "pb001", "component": "clockd"}
    plain["rcas"][1] |= alike
    for case in plain["cases"]:
        if case["id"] == "C4":
            case["expected_invest"] |= alike
        if case["id"] == "C10":
            case["expected_recall"] = {"match": True, "confidence": 0.7, "prior_rca_id": "R2"}
    put(world, plain)
    world.say("calibrate", "--scenario", "lab.json", "--agent", "stub", "--out", "r.json")
    result = world.say("tune", "r.json", "--grid", "recall_hit=0.6,0.85", "--json")
    wrong, right = sorted(result.json["trials"], key=lambda each: each["thresholds"]["recall_hit"])
    assert (wrong["right"], wrong["misled"], wrong["is_best"]) == (right["right"], 1, False)
    assert wrong["dispatches"] < right["dispatches"]
    assert (right["misled"], right["is_best"]) == (0, True)
    assert result.json["advised"] == {"recall_hit": 0.85}


def test_what_loses_is_neither_advised_nor_written(recorded: World) -> None:
    words = ("tune", "r.json", "--grid", "recall_hit=0.97,0.99", "--write", "t.toml")
    result = recorded.say(*words)
    assert result.code == 0
    assert "advice: keep the current thresholds" in result.out
    assert "t.toml was not written" in result.out
    assert not (recorded.folder / "t.toml").exists()
    assert recorded.say(*words, "--json").json["advised"] is None


@pytest.mark.parametrize(
    ("words", "result"),
    [
        (("r.json",), "name the values to try"),
        (("r.json", "--grid", "x=1,2"), "names: recall_hit"),
        (("gone.json", "--grid", "recall_hit=0.8,0.9"), "gone.json cannot be read"),
        (("lab.json", "--grid", "recall_hit=0.8,0.9"), "not a result of interlock calibrate"),
    ],
)
def test_wrong_words_are_told(recorded: World, words: tuple[str, ...], result: str) -> None:
    found = recorded.say("tune", *words)
    assert (found.code, found.out) == (2, "")
    assert result in found.err


def test_other_labels_and_lost_stores_are_told(recorded: World) -> None:
    grid = ("--grid", "recall_hit=0.8,0.9")
    plain = scenario()
    plain["cases"][0]["rca_id"] = "R2"
    put(recorded, plain)
    found = recorded.say("tune", "r.json", *grid)
    assert "the labels of 'clock-lab' have changed since" in found.err
    put(recorded)
    store = Path(
        json.loads((recorded.folder / "r.json").read_text())["scorecard"]["about"]["stores"][0]
    )
    store.unlink()
    found = recorded.say("tune", "r.json", *grid)
    assert (found.code, found.out) == (2, "")
    assert "no longer exists; calibrate again" in found.err
