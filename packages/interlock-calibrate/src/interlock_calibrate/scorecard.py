"""Build the scorecard: everything a calibration says about an agent, as one record and as JSON.

It combines values, intervals, baselines, confidence, families and cost, for all cases and for each
split. The same results and the same time give the same scorecard. Comparisons and tuning read the
JSON.
"""

from collections import defaultdict
from collections.abc import Sequence
from math import isfinite, nan
from pathlib import Path
from typing import Any

import msgspec

from interlock.system.errors import SourceError, UsageError
from interlock.system.statistics import Interval, wilson_interval
from interlock_calibrate.benchmark import (
    AnyBenchmark,
    Bounds,
    CaseResult,
    Mark,
    Marks,
    Metric,
    MetricTable,
    Scenario,
    ScoredCase,
    Split,
)
from interlock_calibrate.metrics import (
    MarkSheet,
    Measure,
    ScoringRules,
    collect_marks,
    is_passing,
    measure_metrics,
    measure_overall_by_weights,
)
from interlock_calibrate.prices import Cost, Prices, compute_cost, sum_costs, sum_costs_by_step
from interlock_calibrate.statistics import (
    SAMPLES,
    Bin,
    Grouping,
    bootstrap_interval,
    brier_score,
    calibration_error,
    compare_groups,
    draw_samples,
    make_reliability_bins,
)

Results = Sequence[CaseResult]
ScoredRun = Sequence[ScoredCase[Any]]


class CalibrationInfo(msgspec.Struct, frozen=True, kw_only=True):
    """The user's own words about a run."""

    agent: str = ""
    dispatch: str = ""
    at: str = ""
    note: str = ""
    """A warning that a reader needs first, for example that the run is unfinished."""
    source: str = ""
    """The scenario as the user named it: a name or a file."""
    stores: tuple[str, ...] = ()
    """The databases of the runs."""


class MetricRow(msgspec.Struct, frozen=True, kw_only=True):
    """One metric; its value is None if it was not measured."""

    id: str
    name: str
    group: str
    value: float | None
    interval: Interval | None
    passes: Bounds
    passed: bool | None
    """None if it was not measured; then it neither passes nor fails."""
    cases: int
    baselines: dict[str, float | None]


class ClassRow(msgspec.Struct, frozen=True, kw_only=True):
    """A true label, and the number of its cases that got it."""

    label: str = msgspec.field(name="defect_type")
    """Files use the first benchmark's word."""
    right: float
    cases: int
    interval: Interval | None


class Confidence(msgspec.Struct, frozen=True, kw_only=True):
    """The match of confidence and accuracy, over the answers with a confidence."""

    answers: int
    brier: float | None
    ece: float | None
    bins: tuple[Bin, ...]


class ScorecardPart(msgspec.Struct, frozen=True, kw_only=True):
    """All cases, or those of one split; `solved` is the mean over runs."""

    name: str
    cases: int
    solved: float
    rows: tuple[MetricRow, ...]
    overall: dict[str, float | None]
    """The weighted mean by set of weights."""
    classes: tuple[ClassRow, ...]
    confidence: Confidence
    families: Grouping | None

    def find_row(self, metric: str) -> MetricRow:
        return next(row for row in self.rows if row.id == metric)


class CalibrationCost(msgspec.Struct, frozen=True, kw_only=True):
    currency: str
    whole: Cost
    by_step: dict[str, Cost]
    per_case: float
    per_solved: float | None
    """Money per solved case; None if none was solved."""


class Scorecard(msgspec.Struct, frozen=True, kw_only=True):
    scenario: str
    description: str
    digest: str
    about: CalibrationInfo
    edition: str
    weights: str
    left_out: tuple[str, ...]
    runs: int
    verified: int
    candidates: int
    failed: int
    """The number of results of unfinished cases, over all runs."""
    parts: tuple[ScorecardPart, ...]
    spending: CalibrationCost
    remarks: tuple[str, ...] = ()
    """Sentences about what no agent can reach in this scenario."""

    @property
    def passed(self) -> bool:
        """Return True if something was measured and no counted metric fails."""
        judged = [row.passed for row in self.parts[0].rows if row.id not in self.left_out]
        return any(judged) and False not in judged


class Gate(msgspec.Struct, frozen=True):
    """A metric, and the lowest value that passes."""

    metric: str
    least: float

    def describe_miss(self, card: Scorecard) -> str:
        """Return why the gate is missed, or ""; an unmeasured metric misses it."""
        value = card.parts[0].find_row(self.metric).value
        if value is not None and value >= self.least - 1e-12:
            return ""
        shown = "not measured" if value is None else f"{value:.3f}"
        return f"{self.metric} is {shown}, below {self.least:g}"


def read_gate(word: str, table: MetricTable) -> Gate:
    """Parse a gate: `0.85` is for the overall metric, `M1=0.8` for M1."""
    known = [metric.id for metric in table.metrics]
    metric, equals, text = word.rpartition("=")
    metric = metric if equals else table.overall
    try:
        value = float(text)
    except ValueError:
        value = nan
    if metric not in known or not isfinite(value):
        raise UsageError(f"--fail-under {word!r}: write 0.85, or M1=0.8 up to {known[-1]}=…")
    return Gate(metric, value)


class CaseRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One result with its marks, enough to compare it with another run's."""

    run: int
    solved: bool
    result: CaseResult
    marks: dict[str, Mark]


class Calibration(msgspec.Struct, frozen=True, kw_only=True):
    """The scorecard, and the results it was made from."""

    scorecard: Scorecard
    records: tuple[CaseRecord, ...]


def score_runs(
    benchmark: AnyBenchmark,
    scenario: Scenario,
    runs: Sequence[Results],
    *,
    about: CalibrationInfo = CalibrationInfo(),  # noqa: B008 - frozen
    rules: ScoringRules | None = None,
    prices: Prices = Prices(),  # noqa: B008 - frozen
    times: int = SAMPLES,
) -> Calibration:
    """Score one or more runs over the same scenario."""
    rules = rules or ScoringRules(benchmark.metrics)
    scored = [benchmark.score(scenario, run, rules.edition_name) for run in runs]
    parts = [("all cases", scenario)]
    splits: tuple[Split, ...] = ("train", "test")
    parts += [(split, part) for split in splits if (part := scenario.of_split(split)).cases]
    card = Scorecard(
        scenario=scenario.name,
        description=scenario.description,
        digest=scenario.digest,
        about=about,
        edition=rules.edition_name,
        weights=rules.weights_name,
        left_out=rules.left_out,
        runs=len(runs),
        verified=scenario.verified_count,
        candidates=len(scenario.candidates),
        failed=sum(bool(case.result.pipeline_error) for run in scored for case in run),
        parts=tuple(_score_part(name, benchmark, part, runs, rules, times) for name, part in parts),
        spending=_sum_cost(scored, prices),
        remarks=benchmark.list_remarks(scenario),
    )
    records = tuple(
        CaseRecord(run=number, solved=case.solved, result=case.result, marks=case.marks)
        for number, run in enumerate(scored, 1)
        for case in run
    )
    return Calibration(scorecard=card, records=records)


def _score_part(
    name: str,
    benchmark: AnyBenchmark,
    scenario: Scenario,
    runs: Sequence[Results],
    rules: ScoringRules,
    times: int,
) -> ScorecardPart:
    # Score again: what a case counts for may depend on the cases before it.
    scored = [benchmark.score(scenario, run, rules.edition_name) for run in runs]
    marks = [_collect_marks(run) for run in scored]
    confidence = rules.table.confidence
    answers = [(mark[0], bool(mark[1])) for each in marks for mark in _list_marks(each, confidence)]
    baselines = {
        name: _collect_marks(benchmark.score(scenario, results, rules.edition_name))
        for name, results in benchmark.make_baselines(scenario).items()
    }
    return ScorecardPart(
        name=name,
        cases=len(scenario.cases),
        solved=_count_solved(scored) / max(len(runs), 1),
        rows=_make_rows(marks, baselines, rules, times),
        overall=dict(measure_overall_by_weights(marks, rules)),
        classes=_count_labels(scored),
        confidence=Confidence(
            answers=len(answers),
            brier=brier_score(answers),
            ece=calibration_error(answers),
            bins=make_reliability_bins(answers),
        ),
        families=_compare_families(scored),
    )


def _collect_marks(run: ScoredRun) -> Marks:
    return collect_marks((case.result.case_id, case.marks) for case in run)


def _list_marks(marks: Marks, metric: str) -> list[Mark]:
    return list(marks.get(metric, {}).values())


def _count_solved(scored: Sequence[ScoredRun]) -> int:
    return sum(case.solved for run in scored for case in run)


def _make_rows(
    marks: Sequence[Marks],
    baselines: dict[str, Marks],
    rules: ScoringRules,
    times: int,
) -> tuple[MetricRow, ...]:
    sheet = MarkSheet(marks, rules)
    drawn = draw_samples(sheet.rows, times)
    others = {
        name: {each.id: each.value for each in measure_metrics([own], rules)}
        for name, own in baselines.items()
    }
    rows = []
    for metric, found in zip(rules.table.metrics, measure_metrics(marks, rules), strict=True):
        bounds = metric.passes[rules.edition_name]
        row = MetricRow(
            id=metric.id,
            name=metric.name,
            group=metric.group,
            value=found.value,
            interval=_find_interval(sheet, metric, found, drawn),
            passes=bounds,
            passed=None if found.value is None else is_passing(bounds, found.value),
            cases=found.cases,
            baselines={name: values[metric.id] for name, values in others.items()},
        )
        rows.append(row)
    return tuple(rows)


def _find_interval(
    sheet: MarkSheet, metric: Metric, found: Measure, drawn: Sequence[Sequence[float]]
) -> Interval | None:
    """Return the interval of a value; if all draws agree, that of the share itself."""
    if metric.kind in ("spread", "tokens") or found.value is None:
        return None
    around = bootstrap_interval(sheet.make_estimate(metric.id), sheet.rows, drawn)
    share = metric.kind in ("ratio", "complement")
    if around is None or around.method != "same in all":
        return around
    return wilson_interval(found.value * found.cases, found.cases) if share else None


def _count_labels(scored: Sequence[ScoredRun]) -> tuple[ClassRow, ...]:
    right: dict[str, int] = defaultdict(int)
    cases: dict[str, int] = defaultdict(int)
    for results in zip(*scored, strict=True):
        label = results[0].label
        if label is not None:
            cases[label] += 1
            right[label] += sum(result.is_label_right for result in results)
    runs = max(len(scored), 1)
    return tuple(
        ClassRow(
            label=label,
            right=right[label] / runs,
            cases=cases[label],
            interval=wilson_interval(right[label] / runs, cases[label]),
        )
        for label in sorted(cases, key=lambda label: (-cases[label], label))
    )


def _compare_families(scored: Sequence[ScoredRun]) -> Grouping | None:
    """Return the means over the runs."""
    groupings = [
        found
        for run in scored
        if (
            found := compare_groups(
                {case.result.case_id: case.family for case in run},
                {case.result.case_id: case.found_family for case in run},
            )
        )
    ]
    if not groupings:
        return None
    fields = [msgspec.structs.astuple(each) for each in groupings]
    precision, recall, f, rand, _, _, groups = (
        sum(column) / len(groupings) for column in zip(*fields, strict=True)
    )
    first = groupings[0]
    return Grouping(precision, recall, f, rand, first.cases, first.true_groups, round(groups))


def _sum_cost(scored: Sequence[ScoredRun], prices: Prices) -> CalibrationCost:
    results = [case.result for run in scored for case in run]
    total = sum_costs(compute_cost(result, prices) for result in results)
    solved = _count_solved(scored)
    return CalibrationCost(
        currency=prices.currency,
        whole=total,
        by_step=sum_costs_by_step(results, prices),
        per_case=total.money / max(len(results), 1),
        per_solved=total.money / solved if solved else None,
    )


SCHEMA_VERSION = 1
_MAX_BYTES = 200_000_000
_KIND = "calibration"


def render_calibration_json(calibration: Calibration) -> str:
    """Return the calibration as JSON; equal calibrations give equal texts."""
    body = {"schema_version": SCHEMA_VERSION, "kind": _KIND, **msgspec.to_builtins(calibration)}
    return msgspec.json.format(msgspec.json.encode(body), indent=1).decode() + "\n"


def read_calibration(path: Path, result_type: type[CaseResult]) -> Calibration:
    """Read the JSON of a calibration with results of the benchmark's type."""
    try:
        with path.open("rb") as file:
            content = file.read(_MAX_BYTES + 1)
    except OSError as error:
        raise SourceError(f"{path} cannot be read: {error.strerror}") from None
    if len(content) > _MAX_BYTES:
        raise SourceError(f"{path}: larger than {_MAX_BYTES:,} bytes, so not a result of calibrate")
    return _parse_calibration(content, str(path), result_type)


def _parse_calibration(content: bytes, file: str, result_type: type[CaseResult]) -> Calibration:
    def read_result(_protocol: type, value: Any) -> CaseResult:
        try:
            return msgspec.convert(value, result_type)
        except msgspec.ValidationError as error:
            raise ValueError(str(error)) from None

    try:
        value: Any = msgspec.json.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise SourceError(f"{file}: not valid JSON: {error}") from None
    if not isinstance(value, dict) or value.get("kind") != _KIND:
        raise SourceError(f"{file}: not a result of interlock calibrate --out")
    if value.get("schema_version") != SCHEMA_VERSION:
        raise SourceError(f"{file}: written by another version of Interlock; calibrate again")
    try:
        return msgspec.convert(value, Calibration, dec_hook=read_result)
    except msgspec.ValidationError as error:
        raise SourceError(f"{file}: {str(error).replace('`', '')}; calibrate again") from None
