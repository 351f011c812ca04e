"""Compute intervals, calibration of confidence, and agreement of groups in plain Python.

The functions work on rows of numbers that add up, and on estimates from their sums. Chance is an
argument: the same seed gives the same interval on every machine.
"""

import random
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from math import comb, sqrt

import msgspec

from interlock.system.statistics import LEVEL, NORMAL, Interval, quantile

SAMPLES = 2_000
SEED = 20

Row = Sequence[float]
Estimate = Callable[[Row], float | None]
"""A number from the sums of some rows, or None if they do not determine it."""


class Bin(msgspec.Struct, frozen=True):
    """Answers of similar confidence, and the share that is right."""

    low: float
    high: float
    count: int
    confidence: float
    accuracy: float


def sum_columns(rows: Sequence[Row]) -> list[float]:
    return [sum(column) for column in zip(*rows, strict=True)]


def draw_samples(rows: Sequence[Row], times: int = SAMPLES, seed: int = SEED) -> list[list[float]]:
    """Return sums of as many rows, drawn with replacement `times` times."""
    if not rows:
        return []
    chance = random.Random(seed)  # noqa: S311 -- statistics, not secrets
    return [
        list(map(sum, zip(*chance.choices(rows, k=len(rows)), strict=True))) for _ in range(times)
    ]


def bootstrap_interval(
    estimate: Estimate,
    rows: Sequence[Row],
    drawn: Sequence[Row],
    level: float = LEVEL,
) -> Interval | None:
    """Return the bootstrap's interval, bias-corrected and accelerated (BCa).

    Use percentiles where the correction is undefined; return None if most draws give no value.
    """
    point = estimate(sum_columns(rows)) if rows else None
    values = sorted(value for each in drawn if (value := estimate(each)) is not None)
    if point is None or len(values) * 2 <= len(drawn):
        return None
    if values[-1] - values[0] < 1e-12:
        return Interval(values[0], values[-1], "same in all")
    tail = (1 - level) / 2
    shares = _correct_shares(estimate, rows, values, point, tail)
    low, high = shares or (tail, 1 - tail)
    return Interval(
        quantile(values, low), quantile(values, high), "BCa" if shares else "percentile"
    )


def _correct_shares(
    estimate: Estimate, rows: Sequence[Row], values: list[float], point: float, tail: float
) -> tuple[float, float] | None:
    below = (bisect_left(values, point - 1e-12) + bisect_right(values, point + 1e-12)) / 2
    share = below / len(values)
    if not 0 < share < 1:
        return None
    total = sum_columns(rows)
    without = [
        value
        for row in rows
        if (value := estimate([all_ - one for all_, one in zip(total, row, strict=True)]))
        is not None
    ]
    if len(without) < 2:
        return None
    mean = sum(without) / len(without)
    square = sum((mean - each) ** 2 for each in without)
    acceleration = sum((mean - each) ** 3 for each in without) / (6 * square**1.5) if square else 0
    bias = NORMAL.inv_cdf(share)

    def moved(part: float) -> float:
        z = bias + NORMAL.inv_cdf(part)
        return NORMAL.cdf(bias + z / (1 - acceleration * z))

    return moved(tail), moved(1 - tail)


def p_value(estimate: Estimate, drawn: Sequence[Row]) -> float | None:
    """Return how often a draw contradicts the sign, two-sided; never 0."""
    values = [value for each in drawn if (value := estimate(each)) is not None]
    if not values:
        return None
    up = sum(value >= -1e-12 for value in values)
    down = sum(value <= 1e-12 for value in values)
    return min(1.0, 2 * (min(up, down) + 1) / (len(values) + 1))


def correct_holm(values: Sequence[float]) -> list[float]:
    """Return Holm's corrected p values of several questions, in the same order."""
    order = sorted(range(len(values)), key=lambda at: values[at])
    corrected = [0.0] * len(values)
    highest = 0.0
    for rank, at in enumerate(order):
        highest = max(highest, min(1.0, values[at] * (len(values) - rank)))
        corrected[at] = highest
    return corrected


def standard_deviation(values: Sequence[float]) -> float:
    """Return the standard deviation of a sample; 0 for one value."""
    if len(values) < 2:
        return 0.0
    mean = sum(values) / len(values)
    return sqrt(sum((each - mean) ** 2 for each in values) / (len(values) - 1))


def brier_score(answers: Sequence[tuple[float, bool]]) -> float | None:
    """Return the mean squared distance of confidence and truth; 0 is best, 0.25 is always saying
    0.5.
    """
    if not answers:
        return None
    return sum((confidence - right) ** 2 for confidence, right in answers) / len(answers)


def make_reliability_bins(answers: Iterable[tuple[float, bool]], bins: int = 10) -> tuple[Bin, ...]:
    """Group answers by confidence, leaving out empty bins; 1.0 belongs to the last."""
    held: dict[int, list[tuple[float, bool]]] = {}
    for confidence, right in answers:
        held.setdefault(min(int(confidence * bins), bins - 1), []).append((confidence, right))
    return tuple(
        Bin(
            at / bins,
            (at + 1) / bins,
            len(members),
            sum(confidence for confidence, _ in members) / len(members),
            sum(right for _, right in members) / len(members),
        )
        for at, members in sorted(held.items())
    )


def calibration_error(answers: Sequence[tuple[float, bool]], bins: int = 10) -> float | None:
    """Return the expected calibration error: the mean distance of confidence and accuracy."""
    if not answers:
        return None
    found = make_reliability_bins(answers, bins)
    return sum(each.count * abs(each.confidence - each.accuracy) for each in found) / len(answers)


class Grouping(msgspec.Struct, frozen=True):
    """B³ precision, recall and F, and the adjusted Rand index: 1 is best, about 0 is chance."""

    precision: float
    recall: float
    f: float
    rand: float
    cases: int
    true_groups: int
    found_groups: int


def compare_groups(truth: Mapping[str, Hashable], found: Mapping[str, Hashable]) -> Grouping | None:
    """Compare found groups with true ones; return None without data.

    Both map the same things to groups. Only pairs that belong together count, so names do not
    matter.
    """
    if not truth:
        return None
    both = Counter((truth[each], found[each]) for each in truth)
    true_sizes, found_sizes = Counter(truth.values()), Counter(found[each] for each in truth)
    precision = sum(n * n / found_sizes[group] for (_, group), n in both.items()) / len(truth)
    recall = sum(n * n / true_sizes[group] for (group, _), n in both.items()) / len(truth)
    return Grouping(
        precision,
        recall,
        2 * precision * recall / (precision + recall),
        _adjusted_rand(both, true_sizes, found_sizes, len(truth)),
        len(truth),
        len(true_sizes),
        len(found_sizes),
    )


def _adjusted_rand(
    both: Counter[tuple[Hashable, Hashable]],
    true_sizes: Counter[Hashable],
    found_sizes: Counter[Hashable],
    total: int,
) -> float:
    together = sum(comb(n, 2) for n in both.values())
    in_truth = sum(comb(n, 2) for n in true_sizes.values())
    in_found = sum(comb(n, 2) for n in found_sizes.values())
    if total < 2:
        return 1.0
    by_chance = in_truth * in_found / comb(total, 2)
    most = (in_truth + in_found) / 2
    if most == by_chance:  # both have only singletons, or only one group
        return 1.0 if together == most else 0.0
    return (together - by_chance) / (most - by_chance)
