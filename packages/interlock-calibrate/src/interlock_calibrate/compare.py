"""Compare two calibrations, and tell real differences from noise.

Both must have the same scenario and rules: then the same cases are drawn from both at once (a
paired bootstrap). The p values of many metrics are corrected (Holm). Fewer than six differing cases
never suffice: even if all point one way, that is too likely by chance.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Literal

import msgspec

from interlock.system.errors import UsageError
from interlock.system.statistics import Interval
from interlock_calibrate.benchmark import Bounds, Mark, Marks, Metric, MetricTable
from interlock_calibrate.metrics import MarkSheet, ScoringRules, collect_marks
from interlock_calibrate.scorecard import Calibration, CaseRecord
from interlock_calibrate.statistics import (
    SAMPLES,
    Row,
    bootstrap_interval,
    correct_holm,
    draw_samples,
    p_value,
    sum_columns,
)

MIN_DIFFERING = 6
"""2 x 0.5**6 is the first value below 0.05."""
ALPHA = 0.05

Verdict = Literal["better", "worse", "noise", "same", "unmeasured"]


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """One metric in A and B; `p` is corrected."""

    id: str
    name: str
    a: float | None
    b: float | None
    difference: float | None
    interval: Interval | None
    p: float | None
    differing: int
    """The number of cases with different marks."""
    verdict: Verdict


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """A comparison. `fixed` cases are solved in most runs of B and not of A, `broken` ones the
    reverse.
    """

    scenario: str
    a: str
    b: str
    cases: int
    differences: tuple[Difference, ...]
    fixed: tuple[str, ...]
    broken: tuple[str, ...]


def compare(
    one: Calibration,
    other: Calibration,
    table: MetricTable,
    *,
    times: int = SAMPLES,
) -> Comparison:
    """Compare B with A."""
    _check_comparable(one, other)
    card = one.scorecard
    rules = ScoringRules(table, card.edition, card.weights, card.left_out)
    runs_a, runs_b = collect_marks_by_run(one.records), collect_marks_by_run(other.records)
    a, b = MarkSheet(runs_a, rules), MarkSheet(runs_b, rules)
    rows = [(*first, *second) for first, second in zip(a.rows, b.rows, strict=True)]
    drawn = draw_samples(rows, times)
    differences = [
        _measure_difference(metric, a, b, rows, drawn, (runs_a, runs_b))
        for metric in table.metrics
        if metric.kind != "spread"
    ]
    fixed, broken = _find_flips(one.records, other.records)
    return Comparison(
        scenario=card.scenario,
        a=card.about.agent,
        b=other.scorecard.about.agent,
        cases=len(a.case_ids),
        differences=tuple(_correct_p_values(differences, table)),
        fixed=fixed,
        broken=broken,
    )


def _check_comparable(one: Calibration, other: Calibration) -> None:
    first, second = one.scorecard, other.scorecard
    if first.digest != second.digest:
        raise UsageError(
            f"A is of scenario {first.scenario!r} ({first.digest}), B of {second.scenario!r} "
            f"({second.digest}); compare runs of the same scenario"
        )
    if (first.edition, first.weights, first.left_out) != (
        second.edition,
        second.weights,
        second.left_out,
    ):
        raise UsageError("A and B were scored with different rules; calibrate again with the same")
    cases = [{record.result.case_id for record in each.records} for each in (one, other)]
    if cases[0] != cases[1] or not cases[0]:
        raise UsageError("A and B do not contain the same cases; calibrate again")


def collect_marks_by_run(records: Sequence[CaseRecord]) -> list[Marks]:
    runs: dict[int, list[CaseRecord]] = defaultdict(list)
    for record in records:
        runs[record.run].append(record)
    return [
        collect_marks((record.result.case_id, record.marks) for record in runs[number])
        for number in sorted(runs)
    ]


def _measure_difference(
    metric: Metric,
    a: MarkSheet,
    b: MarkSheet,
    rows: Sequence[Row],
    drawn: Sequence[Row],
    runs: tuple[Sequence[Marks], Sequence[Marks]],
) -> Difference:
    in_a, in_b = a.make_estimate(metric.id), b.make_estimate(metric.id)
    width = a.width

    def apart(total: Row) -> float | None:
        first, second = in_a(total[:width]), in_b(total[width:])
        return None if first is None or second is None else second - first

    total = sum_columns(rows)
    differing = _count_differing(runs, a.shares if metric.kind == "weighted" else (metric.id,))
    difference = apart(total)
    unlike = difference is not None and differing > 0
    around = bootstrap_interval(apart, rows, drawn) if unlike else None
    if not difference and around and around.method == "same in all":
        unlike, around = False, None
    return Difference(
        id=metric.id,
        name=metric.name,
        a=in_a(total[:width]),
        b=in_b(total[width:]),
        difference=difference,
        interval=around,
        p=p_value(apart, drawn) if unlike else None,
        differing=differing,
        verdict="noise" if unlike else "same" if difference is not None else "unmeasured",
    )


def _count_differing(runs: tuple[Sequence[Marks], Sequence[Marks]], metrics: Iterable[str]) -> int:
    """Return the number of cases whose marks differ in one of the metrics."""
    unlike: set[str] = set()
    for metric in metrics:
        one, other = (_average_marks(each, metric) for each in runs)
        unlike |= {case for case in {*one, *other} if one.get(case) != other.get(case)}
    return len(unlike)


def _average_marks(runs: Sequence[Marks], metric: str) -> dict[str, Mark]:
    found: dict[str, list[Mark]] = defaultdict(list)
    for run in runs:
        for case, mark in run.get(metric, {}).items():
            found[case].append(mark)
    return {
        case: (
            sum(counts for counts, _ in marks) / len(marks),
            sum(of for _, of in marks) / len(marks),
        )
        for case, marks in found.items()
    }


def _correct_p_values(differences: Sequence[Difference], table: MetricTable) -> list[Difference]:
    """Return the differences with corrected p values and final verdicts."""
    bounds = {metric.id: metric.passes[table.default] for metric in table.metrics}
    asked = [each for each in differences if each.p is not None]
    corrected = dict(
        zip(
            (each.id for each in asked),
            correct_holm([each.p or 0.0 for each in asked]),
            strict=True,
        )
    )
    return [_judge(each, corrected.get(each.id), bounds[each.id]) for each in differences]


def _judge(each: Difference, p: float | None, bounds: Bounds) -> Difference:
    sure = p is not None and p < ALPHA and each.differing >= MIN_DIFFERING
    if not sure or not each.difference:
        return msgspec.structs.replace(each, p=p)
    is_better = _distance_from_best(bounds, each.b or 0.0) < _distance_from_best(
        bounds, each.a or 0.0
    )
    return msgspec.structs.replace(each, p=p, verdict="better" if is_better else "worse")


def _distance_from_best(bounds: Bounds, value: float) -> float:
    """Return the distance from 1 for a metric that should be high or near 1, else from 0."""
    low, high = bounds
    if low is None:
        return value
    return -value if high is None else abs(value - 1)


def _find_flips(
    one: Sequence[CaseRecord], other: Sequence[CaseRecord]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    before, after = _find_mostly_solved(one), _find_mostly_solved(other)
    order = list(before)
    fixed = tuple(case for case in order if after[case] and not before[case])
    broken = tuple(case for case in order if before[case] and not after[case])
    return fixed, broken


def _find_mostly_solved(records: Sequence[CaseRecord]) -> dict[str, bool]:
    found: dict[str, list[bool]] = {}
    for record in records:
        found.setdefault(record.result.case_id, []).append(record.solved)
    return {case: sum(solved) * 2 > len(solved) for case, solved in found.items()}
