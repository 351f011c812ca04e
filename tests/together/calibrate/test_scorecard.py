"""Test the scorecard: rules of counting, splits, and every rendering."""

import json
from pathlib import Path

import msgspec
import pytest

from interlock.system.errors import SourceError
from interlock_calibrate.metrics import ScoringRules
from interlock_calibrate.page import render_scorecard_html
from interlock_calibrate.prices import (
    Prices,
    compute_cost,
    format_money,
    read_prices,
    render_cost_bill,
)
from interlock_calibrate.scorecard import (
    Calibration,
    CalibrationInfo,
    read_calibration,
    render_calibration_json,
    score_runs,
)
from interlock_calibrate.text import render_scorecard_text
from interlock_rca.calibration.benchmark import RcaBenchmark
from interlock_rca.calibration.marks import RcaCaseResult
from interlock_rca.calibration.scenario import find_scenario, list_shipped_scenarios
from rca_tests.calibration.answers import mistaken, perfect
from rca_tests.calibration.worlds import built, small

RCA = RcaBenchmark()
SHOP = find_scenario("web-shop").scenario
TIMES = 200
EVIL = '<script>alert(1)</script><img src=x onerror=alert(2)>\x1b[2J" & ]]>'


@pytest.fixture(scope="module")
def half() -> Calibration:
    return score_runs(
        RCA, SHOP, [mistaken(SHOP, 0.4)], about=CalibrationInfo(agent="half"), times=TIMES
    )


@pytest.mark.parametrize("name", list_shipped_scenarios())
def test_the_labels_themselves_score_as_well_as_can_be(name: str) -> None:
    scenario = find_scenario(name).scenario
    part = score_runs(RCA, scenario, [perfect(scenario)], times=TIMES).scorecard.parts[0]
    best = {row.id: row.value for row in part.rows}
    assert [
        best[name]
        for name in ("M1", "M2", "M3", "M6", "M7", "M9", "M11", "M12", "M13", "M14", "M16", "M17")
    ] == [1.0] * 12
    assert best["M4"] == 0.0
    assert best["M8"] is None, "all are right: there is nothing to correlate"


def test_what_was_not_measured_neither_passes_nor_fails() -> None:
    card = score_runs(RCA, SHOP, [RCA.make_baselines(SHOP)["majority"]], times=TIMES).scorecard
    rows = {row.id: row for row in card.parts[0].rows}
    assert (rows["M18"].value, rows["M18"].passed) == (None, None)
    assert (rows["M20"].value, rows["M20"].passed) == (None, None)
    assert rows["M1"].passed in (True, False)
    lines = render_scorecard_text(card, RCA)
    (tokens,) = [line for line in lines if line.startswith("  M18")]
    assert "pass" not in tokens
    judged = sum(row.passed is not None for row in rows.values())
    assert lines[-1].endswith(f" of {judged} measured metrics pass")


def test_evidence_that_no_agent_can_see_is_said() -> None:
    plain = small()
    plain.pop("worlds", None)
    plain["rcas"][0].pop("culprit")
    scenario = built(plain)
    card = score_runs(RCA, scenario, [perfect(scenario)], times=TIMES).scorecard
    (remark,) = card.remarks
    assert remark == "M12 and M13 cannot be met for 1 case: the evidence is in core, not planted"
    assert f"note: {remark}" in render_scorecard_text(card, RCA)
    assert score_runs(RCA, SHOP, [perfect(SHOP)], times=TIMES).scorecard.remarks == ()


def test_intervals_hold_the_value_and_have_a_width_where_all_are_right(half: Calibration) -> None:
    rows = {row.id: row for row in half.scorecard.parts[0].rows}
    for row in rows.values():
        if row.interval and row.value is not None:
            assert row.interval.low - 1e-9 <= row.value <= row.interval.high + 1e-9
    skip = rows["M6"]
    assert skip.value == 1.0
    assert skip.interval is not None
    assert (skip.interval.method, skip.interval.low < 0.8) == ("Wilson", True)
    assert rows["M1"].interval is not None
    assert rows["M1"].interval.method == "BCa"


def test_splits_are_told_apart_and_add_up(half: Calibration) -> None:
    whole, train, test = half.scorecard.parts
    assert (whole.name, train.name, test.name) == ("all cases", "train", "test")
    assert train.cases + test.cases == whole.cases == 60
    assert train.solved + test.solved == whole.solved
    assert train.find_row("M1").cases + test.find_row("M1").cases == whole.find_row("M1").cases


def test_a_scenario_without_splits_has_one_part_and_no_results_are_no_success() -> None:
    plain = small()
    for case in plain["cases"]:
        case["split"] = ""
    output = score_runs(RCA, built(plain), [[]], times=TIMES)
    card = output.scorecard
    assert [part.name for part in card.parts] == ["all cases"]
    assert (card.failed, card.parts[0].solved, card.spending.per_solved) == (2, 0, None)
    assert card.parts[0].find_row("M1").value == 0.0
    assert not card.passed
    assert {record.result.pipeline_error for record in output.records} == {"there is no result"}


def test_cost_is_shared_by_the_solved_cases_alone() -> None:
    scenario = built(small())
    right = RcaCaseResult(
        case_id="C1",
        actual_defect_type="pb001",
        actual_component="core",
        prompt_tokens_total=1_000_000,
    )
    wrong = RcaCaseResult(case_id="C2", artifact_tokens_total=100_000)
    spent = score_runs(RCA, scenario, [[right, wrong]], times=TIMES).scorecard.spending
    assert (spent.whole.money, spent.per_case, spent.per_solved) == (4.5, 2.25, 4.5)


def test_runs_are_averaged_and_the_same_seed_gives_the_same_card() -> None:
    runs = [perfect(SHOP), mistaken(SHOP, 0.5)]
    once, again = (score_runs(RCA, SHOP, runs, times=TIMES) for _ in range(2))
    assert render_calibration_json(once) == render_calibration_json(again)
    alone = [score_runs(RCA, SHOP, [run], times=TIMES).scorecard.parts[0] for run in runs]
    both = once.scorecard.parts[0]
    for metric in ("M1", "M5", "M12", "M19"):
        mean = sum(part.find_row(metric).value or 0.0 for part in alone) / 2
        assert both.find_row(metric).value == pytest.approx(mean)
    assert both.solved == sum(part.solved for part in alone) / 2
    assert (both.find_row("M20").value or 0.0) > 0


def test_what_is_left_out_does_not_decide() -> None:
    card = score_runs(
        RCA,
        SHOP,
        [mistaken(SHOP, 0.4)],
        rules=ScoringRules(RCA.metrics, left_out=("M12", "M13")),
        times=TIMES,
    ).scorecard
    assert any("left out" in line for line in render_scorecard_text(card, RCA))
    assert card.left_out == ("M12", "M13")


def test_the_text_says_dashes_where_nothing_was_measured_and_every_metric_once() -> None:
    scenario = built(small())
    card = score_runs(
        RCA, scenario, [perfect(scenario)], about=CalibrationInfo(agent="stub"), times=TIMES
    ).scorecard
    lines = render_scorecard_text(card, RCA)
    skip = next(line for line in lines if "skip_accuracy" in line)
    assert skip.split()[:4] == ["M6", "skip_accuracy", "–", "–"]  # noqa: RUF001
    for metric in card.parts[0].rows:
        assert sum(line.startswith(f"  {metric.id} ") for line in lines) == 1
    assert any("majority+echo" in line for line in lines)
    assert lines[-1].startswith("RESULT ")


def test_the_json_is_read_back_as_it_was(half: Calibration, tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    path.write_text(render_calibration_json(half))
    assert read_calibration(path, RCA.result_type) == half
    assert json.loads(path.read_text())["schema_version"] == 1


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "JSON"),
        (b"[]", "not a result"),
        (b"{}", "not a result"),
        (b'{"kind": "calibration", "schema_version": 9}', "another version"),
        (b'{"kind": "calibration", "schema_version": 1}', "missing required field"),
        (
            b'{"kind": "calibration", "schema_version": 1, "scorecard": 7, "records": []}',
            "scorecard",
        ),
        (b"\xff\xfe", "JSON"),
        (b"[" * 100_000, "JSON"),
    ],
    ids=range(8),
)
def test_what_is_no_result_is_told(content: bytes, says: str, tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    path.write_bytes(content)
    with pytest.raises(SourceError, match=says):
        read_calibration(path, RCA.result_type)
    with pytest.raises(SourceError, match="cannot be read"):
        read_calibration(tmp_path, RCA.result_type)


def test_the_page_needs_nothing_and_obeys_nobody() -> None:
    plain = small()
    plain["name"], plain["description"] = EVIL, EVIL
    plain["rcas"][0]["defect_type"] = EVIL
    scenario = built(plain)
    evil = msgspec.structs.replace(
        RcaCaseResult(case_id="C1"),
        test_name=EVIL,
        actual_rca_message=EVIL,
        actual_component=EVIL,
        actual_defect_type=EVIL,
        actual_path=(EVIL,),
    )
    html = render_scorecard_html(
        score_runs(RCA, scenario, [[evil]], about=CalibrationInfo(agent=EVIL), times=TIMES), RCA
    )
    assert "<script" not in html
    assert "<img" not in html
    assert "\x1b" not in html
    assert "&lt;script&gt;" in html
    assert "default-src 'none'" in html.replace("&#39;", "'")
    for word in ("http:", "https:", "src=", "style="):
        assert word not in html.replace("src=x", "")


def test_the_page_draws_its_diagram_and_bars(half: Calibration) -> None:
    html = render_scorecard_html(half, RCA)
    part = half.scorecard.parts[0]
    assert html.count("<svg") == 1
    assert html.count("<meter") == len(part.classes) + len(half.scorecard.spending.by_step)
    assert html.count('class="dot"') == len(half.scorecard.parts[0].confidence.bins)
    assert "prefers-color-scheme: dark" in html
    assert html.count("<tr><td>W") == 60


def test_the_bill_adds_up_and_escapes() -> None:
    run = [msgspec.structs.replace(each, test_name="a|b`c`\n" * 9) for each in perfect(SHOP)]
    bill = render_cost_bill("x | y", [run], Prices(), RCA)
    lines = bill.splitlines()
    assert "# Cost bill: x \\| y" in lines
    assert "| Cases | 60 |" in lines
    total = sum(compute_cost(each, Prices()).money for each in run)
    assert f"| Cost | {format_money(total)} USD |" in lines
    steps = [line for line in lines if line.startswith(("| F", "| **TOTAL**"))]
    assert [line.split(" | ")[0] for line in steps] == [
        "| F0",
        "| F1",
        "| F2",
        "| F3",
        "| F4",
        "| F5",
        "| F6",
        "| **TOTAL**",
    ]
    visits = [int(line.split(" | ")[1]) for line in steps]
    assert sum(visits[:-1]) == visits[-1] == sum(each.step_count for each in run)
    assert render_cost_bill("none", [[]], Prices(), RCA).count("No step") == 1


def test_prices_come_from_the_configuration() -> None:
    result = RcaCaseResult(
        case_id="C", prompt_tokens_total=2_000_000, artifact_tokens_total=1_000_000
    )
    assert compute_cost(result, read_prices({"input": 1, "output": 2.5})).money == 4.5
    assert read_prices({}) == Prices()
    for wrong in (
        {"input": -1},
        {"input": "dear"},
        {"price": 1},
        {"output": float("nan")},
        {"input": float("inf")},
    ):
        with pytest.raises(SourceError, match=r"calibrate\.prices"):
            read_prices(wrong)


def test_money_as_people_read_it() -> None:
    assert [format_money(each) for each in (0, 0.0123, 1.5, 100)] == [
        "0.00",
        "0.0123",
        "1.50",
        "100.00",
    ]
