"""Test comparisons: real differences, noise, and results that cannot be compared."""

import msgspec
import pytest

from interlock.system.errors import UsageError
from interlock_calibrate.compare import MIN_DIFFERING, Comparison, compare
from interlock_calibrate.metrics import ScoringRules
from interlock_calibrate.scorecard import Calibration, Results, score_runs
from interlock_calibrate.text import render_comparison_text
from interlock_rca.calibration.benchmark import RcaBenchmark
from interlock_rca.calibration.scenario import find_scenario
from rca_tests.calibration.answers import mistaken, perfect
from rca_tests.calibration.worlds import built, small

RCA = RcaBenchmark()
SHOP = find_scenario("web-shop").scenario
GOOD, BAD = perfect(SHOP), mistaken(SHOP, 0.5)


def calibrate_runs(*runs: Results, rules: ScoringRules | None = None) -> Calibration:
    return score_runs(RCA, SHOP, runs, rules=rules, times=10)


def against(one: Calibration, other: Calibration) -> Comparison:
    return compare(one, other, RCA.metrics, times=800)


def verdicts(found: Comparison) -> dict[str, str]:
    return {each.id: each.verdict for each in found.differences}


def test_the_same_run_differs_in_nothing() -> None:
    found = against(calibrate_runs(BAD), calibrate_runs(BAD))
    assert set(verdicts(found).values()) <= {"same", "unmeasured"}
    assert (found.fixed, found.broken) == ((), ())


def test_a_run_that_is_half_wrong_is_worse_and_the_other_way_better() -> None:
    there, back = (
        against(calibrate_runs(GOOD), calibrate_runs(BAD)),
        against(calibrate_runs(BAD), calibrate_runs(GOOD)),
    )
    for metric in ("M1", "M2", "M15", "M16", "M19"):
        assert verdicts(there)[metric] == "worse"
        assert verdicts(back)[metric] == "better"
    assert (there.fixed, there.broken) == (back.broken, back.fixed)
    assert len(there.broken) > MIN_DIFFERING
    one, other = there.differences[0], back.differences[0]
    assert one.difference == pytest.approx(-(other.difference or 0))


def test_a_few_cases_never_tell() -> None:
    few = (*GOOD[: MIN_DIFFERING - 1],)
    wrong = tuple(msgspec.structs.replace(each, actual_defect_type="ti001") for each in few)
    found = against(calibrate_runs(GOOD), calibrate_runs((*wrong, *GOOD[MIN_DIFFERING - 1 :])))
    assert (
        next(each.differing for each in found.differences if each.id == "M1") == MIN_DIFFERING - 1
    )
    assert verdicts(found)["M1"] == "noise"


def test_lower_is_better_where_it_is() -> None:
    hits = tuple(msgspec.structs.replace(each, actual_recall_hit=True) for each in GOOD)
    cheap = tuple(msgspec.structs.replace(each, prompt_tokens_total=1) for each in GOOD)
    assert verdicts(against(calibrate_runs(GOOD), calibrate_runs(hits)))["M4"] == "worse"
    assert verdicts(against(calibrate_runs(GOOD), calibrate_runs(cheap)))["M18"] == "better"


def test_runs_may_be_more_on_one_side() -> None:
    found = against(calibrate_runs(GOOD), calibrate_runs(GOOD, BAD))
    first = found.differences[0]
    alone = against(calibrate_runs(GOOD), calibrate_runs(BAD)).differences[0]
    assert first.difference == pytest.approx((alone.difference or 0) / 2)
    assert (
        against(calibrate_runs(GOOD), calibrate_runs(GOOD, GOOD)).differences[0].verdict == "same"
    )


def test_strangers_are_not_compared() -> None:
    other = built(small())
    stranger = score_runs(RCA, other, [perfect(other)], times=10)
    with pytest.raises(UsageError, match="compare runs of the same scenario"):
        against(calibrate_runs(GOOD), stranger)
    with pytest.raises(UsageError, match="different rules"):
        against(calibrate_runs(GOOD), calibrate_runs(GOOD, rules=ScoringRules(RCA.metrics, "v2")))
    one = calibrate_runs(GOOD)
    with pytest.raises(UsageError, match="same cases"):
        compare(one, msgspec.structs.replace(one, records=one.records[1:]), RCA.metrics)


def test_the_text_names_what_is_clear_and_which_cases_flipped() -> None:
    lines = render_comparison_text(against(calibrate_runs(BAD), calibrate_runs(GOOD)))
    clear = next(line for line in lines if line.startswith("more than noise: "))
    assert "M1," in clear
    assert "M6" not in clear
    assert any(line.startswith("solved only in B: ") and "W" in line for line in lines)
    assert lines[-1] == "solved only in A: none"
