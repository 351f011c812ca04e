"""The scorecard: everything a calibration says about an agent, as one record.

Puts values, intervals, baselines, confidence, families and cost together, for all cases and for
each split apart. Refuses to know how it is shown; chance and time are arguments.

Calibrations as JSON: what a run leaves behind, and what a comparison reads.
"""

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from interlock.calibrate.metrics import (
    Bounds,
    Measure,
    Metric,
    ScoringRules,
    Sheet,
    measure,
    metric_table,
    overall_by,
    passing,
    tally,
)
from interlock.calibrate.prices import Cost, Prices, cost_by_step, cost_of, total
from interlock.calibrate.statistics import (
    SEED,
    TIMES,
    Bin,
    Interval,
    brier,
    calibration_error,
    draw,
    interval,
    reliability,
    wilson,
)
from interlock.rca.calibration.baselines import Grouping, baselines, grouping
from interlock.rca.calibration.marks import CaseResult, Mark, Marks, aligned, right_defect, solved
from interlock.rca.calibration.scenario import Scenario, Split
from interlock.system.errors import SourceError

Results = Sequence[CaseResult]


class About(msgspec.Struct, frozen=True, kw_only=True):
    """Which run this is: words of whoever ran it."""

    agent: str = ""
    dispatch: str = ""
    at: str = ""
    note: str = ""
    """What a reader must know before the numbers: that the run is not whole, for example."""
    source: str = ""
    """The scenario in the words of whoever ran it: a name, or a file."""
    stores: tuple[str, ...] = ()
    """Where each run is recorded."""


class MetricRow(msgspec.Struct, frozen=True, kw_only=True):
    """One metric. `value` is counted in the ancestor's way; `honest` is None if not measured."""

    id: str
    name: str
    group: str
    value: float
    honest: float | None
    interval: Interval | None
    passes: Bounds
    passed: bool
    cases: int
    baselines: dict[str, float | None]


class ClassRow(msgspec.Struct, frozen=True, kw_only=True):
    """A true defect type, and how many of its cases were given it."""

    defect_type: str
    right: float
    cases: int
    interval: Interval | None


class Confidence(msgspec.Struct, frozen=True, kw_only=True):
    """How well the agent knows what it knows, over answers with a confidence."""

    answers: int
    brier: float | None
    ece: float | None
    bins: tuple[Bin, ...]


class ScorecardPart(msgspec.Struct, frozen=True, kw_only=True):
    """All cases, or those of one split. `solved` is the mean over runs."""

    name: str
    cases: int
    solved: float
    rows: tuple[MetricRow, ...]
    overall: dict[str, tuple[float, float | None]]
    """M19 by set of weights: in the ancestor's way, and honest."""
    classes: tuple[ClassRow, ...]
    confidence: Confidence
    families: Grouping | None

    def row(self, metric: str) -> MetricRow:
        return next(row for row in self.rows if row.id == metric)


class CalibrationCost(msgspec.Struct, frozen=True, kw_only=True):
    currency: str
    whole: Cost
    by_step: dict[str, Cost]
    per_case: float
    per_solved: float | None
    """Money for each case that was solved; None if none was."""


class Scorecard(msgspec.Struct, frozen=True, kw_only=True):
    scenario: str
    description: str
    digest: str
    about: About
    edition: str
    weights: str
    left_out: tuple[str, ...]
    runs: int
    verified: int
    candidates: int
    failed: int
    """Results of cases that did not come to an end, over all runs."""
    parts: tuple[ScorecardPart, ...]
    spending: CalibrationCost

    @property
    def passed(self) -> bool:
        """Every metric that counts passes, in the ancestor's way."""
        return all(row.passed for row in self.parts[0].rows if row.id not in self.left_out)


class CaseRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One result with its marks: enough to compare it with another run's."""

    run: int
    solved: bool
    result: CaseResult
    marks: dict[str, Mark]


class Calibration(msgspec.Struct, frozen=True, kw_only=True):
    """All of it: the scorecard, and the results it was made from."""

    scorecard: Scorecard
    records: tuple[CaseRecord, ...]


def calibration(
    scenario: Scenario,
    runs: Sequence[Results],
    *,
    about: About = About(),  # noqa: B008 - frozen
    rules: ScoringRules = ScoringRules(),  # noqa: B008 - frozen
    prices: Prices = Prices(),  # noqa: B008 - frozen
    times: int = TIMES,
    seed: int = SEED,
) -> Calibration:
    """Score one or more runs over the same scenario."""
    told = [aligned(scenario, run) for run in runs]
    parts = [("all cases", scenario)]
    splits: tuple[Split, ...] = ("train", "test")
    parts += [(split, part) for split in splits if (part := scenario.of_split(split)).cases]
    chance = (times, seed)
    card = Scorecard(
        scenario=scenario.name,
        description=scenario.description,
        digest=scenario.digest,
        about=about,
        edition=rules.edition_name,
        weights=rules.weights_name,
        left_out=rules.left_out,
        runs=len(told),
        verified=sum(_verified(scenario, number) for number in range(len(scenario.cases))),
        candidates=len(scenario.candidates),
        failed=sum(bool(result.pipeline_error) for run in told for result in run),
        parts=tuple(_part(name, part, told, rules, chance) for name, part in parts),
        spending=_spending(scenario, told, prices),
    )
    return Calibration(scorecard=card, records=tuple(_records(scenario, told, rules)))


def _verified(scenario: Scenario, number: int) -> bool:
    case = scenario.cases[number]
    cause = scenario.cause_of(case)
    return case.verified or (cause is not None and cause.verified)


def _part(
    name: str,
    scenario: Scenario,
    runs: Sequence[Results],
    rules: ScoringRules,
    chance: tuple[int, int],
) -> ScorecardPart:
    told = [aligned(scenario, run) for run in runs]
    marks = [tally(scenario, run, rules) for run in told]
    answers = [(mark[0], bool(mark[1])) for each in marks for mark in each["M8"].values()]
    return ScorecardPart(
        name=name,
        cases=len(scenario.cases),
        solved=_solved(scenario, told),
        rows=_rows(scenario, marks, rules, chance),
        overall=dict(overall_by(marks, rules)),
        classes=_classes(scenario, told),
        confidence=Confidence(
            answers=len(answers),
            brier=brier(answers),
            ece=calibration_error(answers),
            bins=reliability(answers),
        ),
        families=_families(scenario, told),
    )


def _solved(scenario: Scenario, runs: Sequence[Results]) -> float:
    pairs = [pair for run in runs for pair in zip(scenario.cases, run, strict=True)]
    return sum(solved(scenario, case, result) for case, result in pairs) / max(len(runs), 1)


def _rows(
    scenario: Scenario, marks: Sequence[Marks], rules: ScoringRules, chance: tuple[int, int]
) -> tuple[MetricRow, ...]:
    sheet = Sheet(marks, rules)
    drawn = draw(sheet.rows, *chance)
    others = {
        name: {each.id: each for each in measure([tally(scenario, results, rules)], rules)}
        for name, results in baselines(scenario).items()
    }
    return tuple(
        _row(
            metric,
            found,
            rules,
            _interval(sheet, metric, found, drawn),
            {name: values[metric.id].honest for name, values in others.items()},
        )
        for metric, found in zip(metric_table().metrics, measure(marks, rules), strict=True)
    )


def _row(
    metric: Metric,
    found: Measure,
    rules: ScoringRules,
    around: Interval | None,
    others: dict[str, float | None],
) -> MetricRow:
    bounds = metric.passes[rules.edition_name]
    estimated = metric.kind == "tokens" and found.honest is None
    return MetricRow(
        id=metric.id,
        name=metric.name,
        group=metric.group,
        value=found.value,
        honest=found.honest,
        interval=around,
        passes=bounds,
        passed=estimated or passing(bounds, found.value),
        cases=found.cases,
        baselines=others,
    )


def _interval(
    sheet: Sheet, metric: Metric, found: Measure, drawn: Sequence[Sequence[float]]
) -> Interval | None:
    """Where all draws agree the bootstrap is blind: then the share's own interval is told."""
    if metric.kind in ("spread", "tokens") or found.honest is None:
        return None
    around = interval(sheet.estimate(metric.id, honest=True), sheet.rows, drawn)
    share = metric.kind in ("ratio", "complement")
    if around is None or around.method != "same in all":
        return around
    return wilson(found.honest * found.cases, found.cases) if share else None


def _classes(scenario: Scenario, runs: Sequence[Results]) -> tuple[ClassRow, ...]:
    right: dict[str, int] = defaultdict(int)
    cases: dict[str, int] = defaultdict(int)
    for number, case in enumerate(scenario.cases):
        if cause := scenario.cause_of(case):
            cases[cause.defect_type] += 1
            right[cause.defect_type] += sum(
                right_defect(scenario, case, run[number]) for run in runs
            )
    return tuple(
        ClassRow(
            defect_type=name,
            right=right[name] / max(len(runs), 1),
            cases=cases[name],
            interval=wilson(right[name] / max(len(runs), 1), cases[name]),
        )
        for name in sorted(cases, key=lambda name: (-cases[name], name))
    )


def _families(scenario: Scenario, runs: Sequence[Results]) -> Grouping | None:
    truth = {case.id: scenario.family_of(case) for case in scenario.cases}
    found = [
        each
        for run in runs
        if (each := grouping(truth, {r.case_id: r.actual_rca_id or r.case_id for r in run}))
    ]
    if not found:
        return None
    fields = [msgspec.structs.astuple(each) for each in found]
    precision, recall, f, rand, _, _, groups = (
        sum(column) / len(found) for column in zip(*fields, strict=True)
    )
    first = found[0]
    return Grouping(precision, recall, f, rand, first.cases, first.true_groups, round(groups))


def _spending(scenario: Scenario, runs: Sequence[Results], prices: Prices) -> CalibrationCost:
    results = [result for run in runs for result in run]
    whole = total(cost_of(result, prices) for result in results)
    right = _solved(scenario, runs) * len(runs)
    return CalibrationCost(
        currency=prices.currency,
        whole=whole,
        by_step=cost_by_step(results, prices),
        per_case=whole.money / max(len(results), 1),
        per_solved=whole.money / right if right else None,
    )


def _records(scenario: Scenario, runs: Sequence[Results], rules: ScoringRules) -> list[CaseRecord]:
    found = []
    for number, run in enumerate(runs, 1):
        marks = tally(scenario, run, rules)
        for case, result in zip(scenario.cases, run, strict=True):
            own = {metric: each[case.id] for metric, each in marks.items() if case.id in each}
            right = solved(scenario, case, result)
            found.append(CaseRecord(run=number, solved=right, result=result, marks=own))
    return found


SCHEMA_VERSION = 1
_LARGEST = 200_000_000
_KIND = "calibration"


def calibration_json(told: Calibration) -> str:
    """The same calibration gives the same text."""
    body = {"schema_version": SCHEMA_VERSION, "kind": _KIND, **msgspec.to_builtins(told)}
    return msgspec.json.format(msgspec.json.encode(body), indent=1).decode() + "\n"


def read_calibration(path: Path) -> Calibration:
    try:
        with path.open("rb") as file:
            content = file.read(_LARGEST + 1)
    except OSError as error:
        raise SourceError(f"{path} cannot be read: {error.strerror}") from None
    if len(content) > _LARGEST:
        raise SourceError(f"{path}: more than {_LARGEST:,} bytes; this is no result of calibrate")
    return _calibration(content, str(path))


def _calibration(content: bytes, file: str) -> Calibration:
    try:
        value: Any = msgspec.json.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise SourceError(f"{file}: this is not readable as JSON: {error}") from None
    if not isinstance(value, dict) or value.get("kind") != _KIND:
        raise SourceError(f"{file}: this is no result of interlock calibrate; give one")
    if value.get("schema_version") != SCHEMA_VERSION:
        raise SourceError(f"{file}: made by another version of Interlock; calibrate again")
    try:
        return msgspec.convert(value, Calibration)
    except msgspec.ValidationError as error:
        raise SourceError(f"{file}: {str(error).replace('`', '')}; calibrate again") from None
