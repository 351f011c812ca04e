"""Plots as SVG: numbers in, places of shapes out; a template draws them and escapes all words.

Lengths are in the plot's own units; colours are left to the classes of the style sheet.
"""

import msgspec

from interlock_calibrate.prices import Cost
from interlock_calibrate.scorecard import ClassRow, MetricRow
from interlock_calibrate.statistics import Bin
from interlock_calibrate.text import format_number

SIDE = 260.0
"""The reliability diagram's square."""
LENGTH = 300.0
"""The longest bar."""
STEP = 26
"""From one bar to the next."""


class PlotDot(msgspec.Struct, frozen=True):
    x: float
    y: float
    radius: float
    text: str


class Bar(msgspec.Struct, frozen=True):
    """A bar with a name before and a word behind it, and the interval's ends, if it has one."""

    y: int
    name: str
    length: float
    text: str
    low: float | None = None
    high: float | None = None
    rest: float = 0.0
    mark: float | None = None


def make_reliability_dots(bins: tuple[Bin, ...]) -> list[PlotDot]:
    """Confidence to the right, accuracy upwards; the area is the number of answers."""
    most = max((each.count for each in bins), default=1)
    return [
        PlotDot(
            round(each.confidence * SIDE, 1),
            round((1 - each.accuracy) * SIDE, 1),
            round(4 + 10 * (each.count / most) ** 0.5, 1),
            f"{each.count} answers about {each.confidence:.2f} sure, {each.accuracy:.0%} right",
        )
        for each in bins
    ]


def make_class_bars(classes: tuple[ClassRow, ...]) -> list[Bar]:
    """The share of each class that was right, with its interval."""
    return [
        Bar(
            number * STEP,
            each.label,
            round(LENGTH * each.right / each.cases, 1),
            f"{each.right:g} of {each.cases}",
            round(LENGTH * each.interval.low, 1) if each.interval else None,
            round(LENGTH * each.interval.high, 1) if each.interval else None,
        )
        for number, each in enumerate(classes)
    ]


def make_cost_bars(by_step: dict[str, Cost]) -> list[Bar]:
    """Tokens of each step, read and written."""
    most = max((cost.tokens for cost in by_step.values()), default=0) or 1
    return [
        Bar(
            number * STEP,
            step,
            round(LENGTH * cost.prompt_tokens / most, 1),
            f"{cost.tokens:,} tokens, {cost.steps} visits",
            rest=round(LENGTH * cost.artifact_tokens / most, 1),
        )
        for number, (step, cost) in enumerate(by_step.items())
    ]


def make_metric_bars(rows: tuple[MetricRow, ...], baseline: str) -> list[Bar]:
    """Metrics that are best at 1, with their intervals; the mark is a baseline's value."""
    judged = [row for row in rows if row.passes[0] is not None and row.passes[1] is None]
    return [
        Bar(
            number * STEP,
            f"{row.id} {row.name}",
            _scale(row.value) or 0.0,
            format_number(row.value, 2),
            _scale(row.interval.low) if row.interval else None,
            _scale(row.interval.high) if row.interval else None,
            mark=_scale(row.baselines.get(baseline)),
        )
        for number, row in enumerate(judged)
    ]


def _scale(value: float | None) -> float | None:
    return None if value is None else round(LENGTH * min(max(value, 0.0), 1.0), 1)
