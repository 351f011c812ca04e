"""The verbs of calibrate: scenarios, check, compare."""

import json
from pathlib import Path

from interlock_calibrate.scorecard import CalibrationInfo, render_calibration_json, score_runs
from interlock_rca.calibration.benchmark import RcaBenchmark
from interlock_rca.calibration.scenario import find_scenario
from rca_tests.calibration.answers import mistaken, perfect
from rca_tests.calibration.worlds import small
from tests.world.command_line import World


def test_scenarios_are_listed(world: World) -> None:
    result = world.say("calibrate", "scenarios")
    assert (result.code, result.err) == (0, "")
    assert [line.split()[:2] for line in result.out.splitlines()[1:]] == [
        ["data-pipeline", "30"],
        ["mobile-backend", "16"],
        ["network-daemon", "24"],
        ["web-shop", "60"],
    ]
    rows = world.say("calibrate", "scenarios", "--json").json["scenarios"]
    assert [row["cases"] for row in rows] == [30, 16, 24, 60]
    assert [row["planted"] for row in rows] == [5, 6, 5, 6]


def test_a_sound_scenario_passes_and_a_broken_one_is_told(world: World) -> None:
    world.write("good.json", json.dumps(small()))
    assert world.say("calibrate", "check", "good.json").out == "small: 2 cases, 0 findings, sound\n"
    plain = small()
    plain["cases"][0]["rca_id"] = "R9"
    plain["cases"][0]["symptom_id"] = ""
    world.write("bad.json", json.dumps(plain))
    result = world.say("calibrate", "check", "bad.json")
    assert result.code == 6
    assert "error: C1: rca_id names 'R9', which does not exist [unknown-id]" in result.out
    assert result.out.endswith("not sound\n")
    found = world.say("calibrate", "check", "bad.json", "--json")
    assert found.code == 6
    assert not found.json["sound"]
    assert {each["id"] for each in found.json["findings"]} >= {"unknown-id"}


def test_check_takes_a_shipped_name_and_refuses_what_is_no_scenario(world: World) -> None:
    assert world.say("calibrate", "check", "mobile-backend").code == 0
    world.write("odd.json", "{")
    for name in ("odd.json", "nowhere.json", "."):
        result = world.say("calibrate", "check", name)
        assert (result.code, result.out) == (2, "")
        assert result.err.count("\n") == 1


def results(folder: Path) -> None:
    scenario = find_scenario("web-shop").scenario
    for name, run in {"a": mistaken(scenario, 0.5), "b": perfect(scenario)}.items():
        output = score_runs(
            RcaBenchmark(), scenario, [run], about=CalibrationInfo(agent=f"agent {name}"), times=10
        )
        (folder / f"{name}.json").write_text(render_calibration_json(output))


def test_two_results_are_compared(world: World) -> None:
    results(world.folder)
    result = world.say("calibrate", "compare", "a.json", "b.json")
    assert (result.code, result.err) == (0, "")
    assert result.out.startswith("web-shop, 60 cases: A agent a, B agent b\n")
    assert "more than noise: M1" in result.out
    found = world.say("calibrate", "compare", "a.json", "b.json", "--json").json
    first = found["differences"][0]
    assert (first["id"], first["b"], first["verdict"]) == ("M1", 1.0, "better")


def test_what_cannot_be_compared_is_a_usage_error(world: World) -> None:
    results(world.folder)
    world.write("odd.json", "[]")
    for words in (("a.json", "odd.json"), ("gone.json", "a.json"), ("a.json", ".")):
        result = world.type("calibrate", "compare", *words)
        assert (result.code, result.out) == (2, "")
        assert "Traceback" not in result.err
        assert result.err.count("\n") == 1
