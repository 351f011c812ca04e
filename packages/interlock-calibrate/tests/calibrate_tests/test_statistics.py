"""Test statistics against values computed by hand, and laws."""

from collections.abc import Sequence
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as some

from interlock.system.statistics import quantile, wilson_interval
from interlock_calibrate.statistics import (
    bootstrap_interval,
    brier_score,
    calibration_error,
    compare_groups,
    correct_holm,
    draw_samples,
    make_reliability_bins,
    p_value,
    standard_deviation,
    sum_columns,
)


def share(total: Sequence[float]) -> float | None:
    return total[0] / total[1] if total[1] else None


def rows(right: int, of: int) -> list[tuple[float, float]]:
    return [(1.0, 1.0)] * right + [(0.0, 1.0)] * (of - right)


def test_wilson_by_hand() -> None:
    found = wilson_interval(8, 10)
    assert found is not None
    assert (round(found.low, 4), round(found.high, 4)) == (0.4902, 0.9433)
    perfect = wilson_interval(12, 12)
    assert perfect is not None
    assert (round(perfect.low, 4), perfect.high) == (0.7575, 1.0)
    assert wilson_interval(0, 0) is None


def test_the_bootstrap_of_a_share_is_about_its_normal_interval() -> None:
    output = rows(30, 60)
    found = bootstrap_interval(share, output, draw_samples(output))
    assert found is not None
    assert found.method == "BCa"
    assert found.low == pytest.approx(0.5 - 1.96 * 0.0645, abs=0.02)
    assert found.high == pytest.approx(0.5 + 1.96 * 0.0645, abs=0.02)


def test_bca_leans_where_the_sample_is_skewed() -> None:
    output = [(float(value), 1.0) for value in (1, 1, 1, 1, 1, 1, 2, 2, 3, 40)]
    drawn = draw_samples(output)
    found = bootstrap_interval(share, output, drawn)
    assert found is not None
    values = sorted(value for each in drawn if (value := share(each)) is not None)
    assert found.low > quantile(values, 0.025)
    assert found.high > quantile(values, 0.975)


def test_what_never_varies_says_so_and_what_is_rarely_known_has_no_interval() -> None:
    output = rows(5, 5)
    found = bootstrap_interval(share, output, draw_samples(output))
    assert found is not None
    assert (found.low, found.high, found.method) == (1.0, 1.0, "same in all")
    rare = [(1.0, 1.0)] + [(0.0, 0.0)] * 5
    assert (
        bootstrap_interval(
            lambda total: share(total) if total[1] == 1 else None, rare, draw_samples(rare)
        )
        is None
    )
    assert bootstrap_interval(share, [], []) is None


@given(some.lists(some.booleans(), min_size=1, max_size=30), some.randoms())
def test_the_same_seed_gives_the_same_draws_and_order_changes_no_estimate(
    right: list[bool], chance: Random
) -> None:
    output = [(float(each), 1.0) for each in right]
    assert draw_samples(output, 20, 3) == draw_samples(output, 20, 3)
    assert (
        draw_samples(output, 20, 3) != draw_samples(output, 20, 4)
        or len(set(output)) == 1
        or len(output) < 9
    )
    shuffled = list(output)
    chance.shuffle(shuffled)
    assert sum_columns(shuffled) == sum_columns(output)
    assert all(each[1] == len(output) for each in draw_samples(output, 20))


def test_p_values_are_small_when_all_draws_agree_and_never_zero() -> None:
    assert p_value(lambda total: total[0], [(1.0,)] * 1999) == pytest.approx(2 / 2000)
    assert p_value(lambda total: total[0], [(1.0,), (-1.0,)] * 50) == 1.0
    assert p_value(lambda total: total[0], [(0.0,)] * 9) == 1.0
    assert p_value(lambda _total: None, [(0.0,)] * 9) is None


def test_holm_by_hand() -> None:
    assert correct_holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert correct_holm([]) == []
    assert correct_holm([0.9, 0.8]) == [1.0, 1.0]


@given(some.lists(some.floats(0, 1), max_size=20))
def test_holm_never_lowers_and_keeps_the_order(values: list[float]) -> None:
    found = correct_holm(values)
    assert all(new >= old for new, old in zip(found, values, strict=True))
    ranked = [found[at] for at in sorted(range(len(values)), key=values.__getitem__)]
    assert ranked == sorted(ranked)


def test_brier_and_calibration_error_by_hand() -> None:
    answers = [(0.9, True), (0.9, True), (0.95, False), (0.2, False)]
    assert brier_score(answers) == pytest.approx((0.01 + 0.01 + 0.9025 + 0.04) / 4)
    bins = make_reliability_bins(answers)
    assert [(each.low, each.count) for each in bins] == [(0.2, 1), (0.9, 3)]
    gap = abs((0.9 + 0.9 + 0.95) / 3 - 2 / 3)
    assert calibration_error(answers) == pytest.approx((0.2 + 3 * gap) / 4)
    assert brier_score([]) is None
    assert calibration_error([]) is None


@given(some.lists(some.tuples(some.floats(0, 1), some.booleans()), min_size=1, max_size=40))
def test_every_answer_is_in_one_bin_and_errors_are_shares(
    answers: list[tuple[float, bool]],
) -> None:
    assert sum(each.count for each in make_reliability_bins(answers)) == len(answers)
    error, score = calibration_error(answers), brier_score(answers)
    assert error is not None
    assert score is not None
    assert 0 <= error <= 1
    assert 0 <= score <= 1
    assert calibration_error(answers[::-1]) == pytest.approx(error)


def test_an_oracle_is_perfect_and_the_last_bin_holds_one() -> None:
    answers = [(1.0, True), (0.0, False)]
    assert (brier_score(answers), calibration_error(answers)) == (0.0, 0.0)
    assert [each.low for each in make_reliability_bins(answers)] == [0.0, 0.9]


def test_spread_and_quantiles_by_hand() -> None:
    assert standard_deviation([1.0]) == 0.0
    assert standard_deviation([1.0, 3.0]) == pytest.approx(2**0.5)
    assert quantile([0.0, 1.0, 4.0], 0.5) == 1.0
    assert quantile([0.0, 1.0, 4.0], 0.75) == 2.5
    assert (quantile([5.0], 0.9), quantile([1.0, 2.0], 1.0)) == (5.0, 2.0)


GROUPS = some.lists(some.integers(0, 4), min_size=1, max_size=25)


def named(groups: list[int]) -> dict[str, int]:
    return {f"C{number}": group for number, group in enumerate(groups)}


def test_grouping_by_hand() -> None:
    found = compare_groups(named([1, 1, 1, 2, 2, 3]), named([1, 1, 2, 2, 2, 3]))
    assert found is not None
    # precision: C0 C1 2/2, C2 1/3, C3 C4 2/3, C5 1; recall: C0 C1 2/3, C2 1/3, C3 C4 1, C5 1
    assert found.precision == pytest.approx((1 + 1 + 1 / 3 + 2 / 3 + 2 / 3 + 1) / 6)
    assert found.recall == pytest.approx((2 / 3 + 2 / 3 + 1 / 3 + 1 + 1 + 1) / 6)
    # pairs: together 2, in truth 4, in found 4, of 15
    assert found.rand == pytest.approx((2 - 16 / 15) / (4 - 16 / 15))
    assert (found.true_groups, found.found_groups) == (3, 3)


def test_one_heap_is_recalled_and_not_precise_and_chance_is_worth_nothing() -> None:
    heap = compare_groups(named([1, 1, 2, 2]), named([5, 5, 5, 5]))
    assert heap is not None
    assert (heap.precision, heap.recall, heap.rand) == (0.5, 1.0, 0.0)
    alone = compare_groups(named([1, 2, 3]), named([7, 8, 9]))
    assert alone is not None
    assert (alone.f, alone.rand) == (1.0, 1.0)
    assert compare_groups({}, {}) is None


@given(GROUPS)
def test_the_truth_is_perfect_whatever_its_groups_are_called(groups: list[int]) -> None:
    found = compare_groups(
        named(groups), {case: f"g{group}" for case, group in named(groups).items()}
    )
    assert found is not None
    assert (found.precision, found.recall, found.f, found.rand) == pytest.approx((1, 1, 1, 1))


@given(some.lists(some.tuples(some.integers(0, 4), some.integers(0, 4)), min_size=1, max_size=25))
def test_order_does_not_matter_and_sides_swap(pairs: list[tuple[int, int]]) -> None:
    truth, result = named([one for one, _ in pairs]), named([other for _, other in pairs])
    there, back = compare_groups(truth, result), compare_groups(result, truth)
    assert there is not None
    assert back is not None
    assert (there.precision, there.recall) == pytest.approx((back.recall, back.precision))
    assert there.rand == pytest.approx(back.rand)
    turned = compare_groups(dict(reversed(truth.items())), result)
    assert turned is not None
    assert turned.f == pytest.approx(there.f)
