"""Test a benchmark of another circuit, which is measured like the built-in one."""

import subprocess
import sys
from pathlib import Path

import pytest

from calibrate_tests.sums import CIRCUIT, FOUR, SumResult, SumsBenchmark
from interlock.api.circuits import Circuit
from interlock.api.project import Project
from interlock.system.errors import StateError
from interlock_calibrate.benchmark import AnyBenchmark, find_benchmarks
from interlock_calibrate.campaign import CampaignRequest, begin_campaign, find_unfinished
from interlock_calibrate.compare import compare
from interlock_calibrate.page import render_scorecard_html
from interlock_calibrate.prices import Prices, render_cost_bill
from interlock_calibrate.scorecard import Calibration, render_calibration_json, score_runs
from interlock_calibrate.scorecard import read_calibration as read
from interlock_calibrate.text import render_comparison_text, render_scorecard_text
from interlock_calibrate.tune import tune
from interlock_calibrate.work import CampaignWork

SUMS: AnyBenchmark = SumsBenchmark()
RIGHT = [SumResult(case_id=each.id, said=each.a + each.b, sure=0.9) for each in FOUR.cases]
HALF = [*RIGHT[:2], *(SumResult(case_id=each.case_id, said=1, sure=0.4) for each in RIGHT[2:])]
FOREIGN = ("defect", "M19", "Test<", "F0", "majority", "component")


@pytest.fixture
def half() -> Calibration:
    return score_runs(SUMS, FOUR, [HALF], times=50)


def test_the_scorecard_speaks_the_words_of_its_benchmark(half: Calibration) -> None:
    part = half.scorecard.parts[0]
    assert (part.solved, part.find_row("all").value) == (2, 0.5)
    assert part.find_row("sure").value == pytest.approx(1.0)
    assert [(row.label, row.right, row.cases) for row in part.classes] == [("even", 2, 4)]
    text = "\n".join(render_scorecard_text(half.scorecard, SUMS))
    page = render_scorecard_html(half, SUMS)
    bill = render_cost_bill("four", [HALF], Prices(), SUMS)
    for word in ("solved (the number is right)", "all with weights plain", "parity"):
        assert word in text
    for word in ("by true parity", "always nought", "<th>Sum</th>", "sum S1", "all overall"):
        assert word in page
    assert "| Case | Sum | Book |" in bill
    for visible in (text, page, bill):
        assert not [word for word in FOREIGN if word in visible]


def test_its_results_are_read_back_and_compared(half: Calibration, tmp_path: Path) -> None:
    path = tmp_path / "half.json"
    path.write_text(render_calibration_json(half))
    assert read(path, SUMS.result_type) == half
    whole = score_runs(SUMS, FOUR, [RIGHT], times=50)
    found = compare(read(path, SUMS.result_type), whole, SUMS.metrics, times=50)
    assert [each.id for each in found.differences] == ["right", "sure", "all"]
    assert found.fixed == ("S3", "S4")
    assert render_comparison_text(found)[-2] == "solved only in B: 2 (S3, S4)"


def test_a_campaign_runs_it_from_the_plan_to_other_thresholds(tmp_path: Path) -> None:
    project = Project(tmp_path)
    circuit = Circuit.parse(CIRCUIT)
    request = CampaignRequest(
        agent="stub", runs=2, edition="one", files={"root": str(tmp_path / "signals")}
    )
    campaign = begin_campaign(project, SUMS, FOUR, circuit.source.circuit, request)
    assert campaign.plan.numbers == (1001, 1002)
    assert find_unfinished(project, FOUR.digest, "", "").plan == campaign.plan
    work = CampaignWork(project, SUMS, FOUR, campaign)
    result = work.work(circuit, {}, lambda config: config)
    assert (result.is_whole, [len(run) for run in result.runs]) == (True, [4, 4])
    with pytest.raises(StateError, match="no unfinished calibration"):
        find_unfinished(project, FOUR.digest, "", "")
    found = work.score(result, source="four", weights="", prices=Prices())
    assert found.scorecard.parts[0].solved == 4
    assert [each.name for each in found.scorecard.parts] == ["all cases", "train", "test"]

    path = tmp_path / "found.json"
    path.write_text(render_calibration_json(found))
    tuned = tune(SUMS, [path], ["sure_enough=0.5,0.95"], "")
    assert (tuned.on, tuned.recorded) == ("train", 8)
    found_again = [(each.right, each.known, each.changed) for each in tuned.trials]
    assert found_again == [(4, 4, 0), (0, 4, 4)]
    assert tuned.held_out is not None
    assert (tuned.held_out.right, tuned.held_out.known) == (4, 4)


def test_benchmarks_are_found_by_their_circuit() -> None:
    assert list(find_benchmarks()) == ["rca"]


def test_an_application_is_loaded_without_its_benchmark() -> None:
    code = (
        "import sys; from interlock.runtime.application import find_application;"
        "find_application('rca'); print([name for name in sys.modules if 'calibrat' in name])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "[]\n"
