"""Compute metrics from marks.

An unmeasured metric is None and is left out of the weighted mean. Marks are rows that add up, so
that intervals can be drawn from the same sums.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from math import sqrt

import msgspec

from interlock_calibrate.benchmark import Bounds, Mark, Marks, Metric, MetricKind, MetricTable
from interlock_calibrate.statistics import Estimate, Row, standard_deviation, sum_columns


def is_passing(bounds: Bounds, value: float) -> bool:
    """Return True if a value lies within the bounds, allowing for rounding errors."""
    low, high = bounds
    return (low is None or value >= low - 1e-12) and (high is None or value <= high + 1e-12)


class ScoringRules(msgspec.Struct, frozen=True):
    """The edition of the table, its weights, and the metrics left out of the weighted mean."""

    table: MetricTable
    edition: str = ""
    weights: str = ""
    left_out: tuple[str, ...] = ()

    @property
    def edition_name(self) -> str:
        return self.edition or self.table.default

    @property
    def weights_name(self) -> str:
        return self.weights or self.table.find_edition(self.edition_name).weights

    @property
    def shares(self) -> dict[str, float]:
        found = self.table.find_weights(self.weights_name)
        return {metric: share for metric, share in found.items() if metric not in self.left_out}


class Measure(msgspec.Struct, frozen=True):
    """A metric's value, None if unmeasured, and its number of cases."""

    id: str
    value: float | None
    cases: int


def collect_marks(cases: Iterable[tuple[str, Mapping[str, Mark]]]) -> Marks:
    """Return the marks of one run."""
    marks: dict[str, dict[str, Mark]] = defaultdict(dict)
    for case_id, own in cases:
        for metric, mark in own.items():
            marks[metric][case_id] = mark
    return dict(marks)


def measure_metrics(runs: Sequence[Marks], rules: ScoringRules) -> tuple[Measure, ...]:
    """Measure all metrics over runs of the same cases: their means, and the spread of the overall
    one.
    """
    sheet = MarkSheet(runs, rules)
    total = sum_columns(sheet.rows) if sheet.rows else [0.0] * sheet.width
    return tuple(_measure_metric(sheet, metric, total) for metric in rules.table.metrics)


def _measure_metric(sheet: "MarkSheet", metric: Metric, total: Row) -> Measure:
    if metric.kind == "spread":
        values = [sheet.measure_overall(total, run) for run in range(sheet.runs)]
        known = [each for each in values if each is not None]
        return Measure(metric.id, standard_deviation(known) if len(known) > 1 else None, 0)
    return Measure(metric.id, sheet.make_estimate(metric.id)(total), sheet.count_cases(metric))


class MarkSheet:
    """Marks as rows that add up: a row for each case, with the columns of every run."""

    def __init__(self, runs: Sequence[Marks], rules: ScoringRules) -> None:
        self.runs = len(runs)
        self.case_ids = sorted({case for marks in runs for each in marks.values() for case in each})
        self._marks = runs
        self.shares = rules.shares
        self._overall = rules.table.overall
        self._kinds = {metric.id: metric.kind for metric in rules.table.counted}
        places: dict[str, int] = {}
        self._run_width = 0
        for metric, kind in self._kinds.items():
            places[metric] = self._run_width
            self._run_width += _count_columns(kind)
        self._singles = {
            metric: _SingleMetric(kind, places[metric], self._run_width)
            for metric, kind in self._kinds.items()
        }

    @property
    def width(self) -> int:
        return self._run_width * self.runs

    @cached_property
    def rows(self) -> list[tuple[float, ...]]:
        return [tuple(self._make_row(case)) for case in self.case_ids]

    def _make_row(self, case: str) -> Iterable[float]:
        for marks in self._marks:
            for metric, kind in self._kinds.items():
                yield from _make_columns(kind, marks.get(metric, {}).get(case))

    def make_estimate(self, metric: str) -> Estimate:
        """Return the metric as a function of summed rows, averaged over the runs."""
        one = self.measure_overall if metric == self._overall else self._singles[metric]

        def value(total: Row) -> float | None:
            values = [one(total, run) for run in range(self.runs)]
            known = [each for each in values if each is not None]
            return sum(known) / len(known) if known else None

        return value

    def measure_overall(self, total: Row, run: int) -> float | None:
        """Return the weighted mean of one run, or None."""
        values = {
            metric: value
            for metric in self.shares
            if (value := self._singles[metric](total, run)) is not None
        }
        weight = sum(self.shares[metric] for metric in values)
        if not weight:
            return None
        return sum(self.shares[metric] * value for metric, value in values.items()) / weight

    def count_cases(self, metric: Metric) -> int:
        """Return the number of cases that a metric comes from."""
        if metric.kind == "weighted":
            return len(self.case_ids)
        return len({case for marks in self._marks for case in marks.get(metric.id, {})})


class _SingleMetric:
    """One counted metric of one run, at its place in a row."""

    def __init__(self, kind: MetricKind, place: int, run_width: int) -> None:
        self._kind = kind
        self._place = place
        self._run_width = run_width

    def __call__(self, total: Row, run: int) -> float | None:
        at = self._place + run * self._run_width
        return compute_value(self._kind, total[at : at + _count_columns(self._kind)])


def _count_columns(kind: MetricKind) -> int:
    return 6 if kind == "correlation" else 2


def _make_columns(kind: MetricKind, mark: Mark | None) -> tuple[float, ...]:
    if mark is None:
        return (0.0,) * _count_columns(kind)
    one, other = float(mark[0]), float(mark[1])
    if kind == "correlation":
        return 1.0, one, other, one * one, one * other, other * other
    return one, other


def compute_value(kind: MetricKind, total: Row) -> float | None:
    """Return a value from summed columns, or None if nothing was measured."""
    if kind == "correlation":
        return _compute_correlation(total)
    one, other = total
    match kind:
        case "ratio":
            return one / other if other else None
        case "complement":
            return 1.0 - one / other if other else None
        case "loops" if other:
            return one / other
        case "loops":
            return one + 1 if one else None
    return one or None


def _compute_correlation(total: Row) -> float | None:
    count, x, y, xx, xy, yy = total
    if count < 2:
        return None
    x_spread, y_spread = count * xx - x * x, count * yy - y * y
    if x_spread <= 1e-9 * count * xx or y_spread <= 1e-9 * count * max(yy, 1.0):
        return None
    return max(-1.0, min(1.0, (count * xy - x * y) / sqrt(x_spread * y_spread)))


def measure_overall_by_weights(
    runs: Sequence[Marks], rules: ScoringRules
) -> Mapping[str, float | None]:
    """Return the weighted mean under every set of weights."""
    found = {}
    for name in rules.table.weights:
        sheet = MarkSheet(runs, msgspec.structs.replace(rules, weights=name))
        total = sum_columns(sheet.rows) if sheet.rows else [0.0] * sheet.width
        found[name] = sheet.make_estimate(rules.table.overall)(total)
    return found
