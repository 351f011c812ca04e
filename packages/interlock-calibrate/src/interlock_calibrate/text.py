"""Format scorecards, comparisons and tunings as aligned lines for a terminal.

An unmeasured value is a dash, never a number.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from interlock.system.statistics import Interval
from interlock.system.text import align_columns, format_line, plural
from interlock.system.time import format_duration
from interlock_calibrate.benchmark import AnyBenchmark, BenchmarkTexts, Bounds, MetricTable
from interlock_calibrate.compare import Comparison
from interlock_calibrate.prices import format_money
from interlock_calibrate.scorecard import MetricRow, Scorecard, ScorecardPart

if TYPE_CHECKING:
    from interlock_calibrate.tune import Trial, Tuning

DASH = "\N{EN DASH}"
VERDICTS = {True: "pass", False: "FAIL", None: DASH}
_MAX_TRIALS = 20


def format_number(value: float | None, digits: int = 3) -> str:
    """Format large numbers without digits, others with `digits`."""
    if value is None:
        return DASH
    return f"{value:,.0f}" if abs(value) >= 1_000 else f"{value:.{digits}f}"


def format_signed(value: float | None) -> str:
    return DASH if value is None else f"{value:+,.0f}" if abs(value) >= 1_000 else f"{value:+.3f}"


def format_interval(found: Interval | None, digits: int = 2) -> str:
    """Format an interval as low..high."""
    if found is None:
        return DASH
    return f"{format_number(found.low, digits)}..{format_number(found.high, digits)}"


def format_bounds(bounds: Bounds) -> str:
    """Format the bounds that pass."""
    low, high = bounds
    if low is not None and high is not None:
        return f"{low:g} to {high:g}"
    return f"at least {low:g}" if low is not None else f"at most {high:,g}"


def format_share(part: float, total: float) -> str:
    return f"{part:g} of {total:g}" if total else DASH


def render_scorecard_text(card: Scorecard, benchmark: AnyBenchmark) -> list[str]:
    """Return what `interlock calibrate` prints."""
    total, table, texts = card.parts[0], benchmark.metrics, benchmark.texts
    lines = [
        *_render_head(card),
        "",
        *_render_metrics(card, total),
        "",
        *_render_legend(card, table.overall),
        *(f"note: {remark}" for remark in card.remarks),
    ]
    lines += ["", *_render_facts(total, table.overall, texts)]
    for part in card.parts[1:]:
        lines += ["", *_render_split(part, table)]
    lines += ["", *_render_classes(total, texts), "", *_render_cost(card)]
    judged = [row.passed for row in total.rows if row.passed is not None]
    word = "PASS" if card.passed else "FAIL"
    lines += ["", f"RESULT {word}: {sum(judged)} of {len(judged)} measured metrics pass"]
    return lines


def _render_head(card: Scorecard) -> list[str]:
    about = card.about
    who = ", ".join(
        format_line(word, 80) for word in (about.agent, about.dispatch, about.at) if word
    )
    cases = f"{card.parts[0].cases} cases, verified: {card.verified}, candidates: {card.candidates}"
    lines = [f"{format_line(card.scenario, 80)}: {who or 'no agent named'}"]
    lines.append(f"{cases}, runs: {card.runs}, edition {card.edition}, weights {card.weights}")
    if about.note:
        lines.append(format_line(about.note, 200))
    if card.failed:
        lines.append(f"{card.failed} results are of unfinished cases")
    return lines


def _render_metrics(card: Scorecard, part: ScorecardPart) -> list[str]:
    names = list(part.rows[0].baselines)
    head = ("", "metric", "value", "95 %", "needs", "", "cases", *names)
    rows: list[tuple[str, ...]] = []
    group = ""
    for row in part.rows:
        if row.group != group:
            group = row.group
            rows.append((group.capitalize(),))
        rows.append(_format_metric(card, row, names))
    return align_table(head, rows)


def _format_metric(card: Scorecard, row: MetricRow, names: Sequence[str]) -> tuple[str, ...]:
    left_out = row.id in card.left_out
    return (
        f"  {row.id}",
        row.name,
        format_number(row.value),
        format_interval(row.interval),
        format_bounds(row.passes),
        "left out" if left_out else VERDICTS[row.passed],
        str(row.cases or DASH),
        *(format_number(row.baselines[name], 2) for name in names),
    )


def _render_legend(card: Scorecard, overall: str) -> list[str]:
    return [
        f"value: an unmeasured metric is {DASH}, is not judged, and is left out of {overall}",
        f"95 %: bootstrap over cases (BCa); weights: {card.weights}",
    ]


def _render_facts(part: ScorecardPart, overall: str, texts: BenchmarkTexts) -> list[str]:
    rows = [(f"solved ({texts.solved})", format_share(round(part.solved, 2), part.cases))]
    for name, value in part.overall.items():
        rows.append((f"{overall} with weights {name}", format_number(value)))
    sure = part.confidence
    errors = (
        f"Brier {format_number(sure.brier)}, ECE {format_number(sure.ece)} over "
        f"{sure.answers} answers"
    )
    rows.append(("confidence", errors))
    if families := part.families:
        groups = (
            f"B3 precision {format_number(families.precision)}, recall "
            f"{format_number(families.recall)}, "
            f"F {format_number(families.f)}, adjusted Rand {format_number(families.rand)}; "
            f"{families.found_groups} found, {families.true_groups} true"
        )
        rows.append(("families", groups))
    return align_table(("", ""), rows)[1:]


def _render_split(part: ScorecardPart, metrics: MetricTable) -> list[str]:
    keys = {metric.id for metric in metrics.metrics if metric.is_key}
    rows = [
        (row.id, row.name, format_number(row.value), format_interval(row.interval), str(row.cases))
        for row in part.rows
        if row.id in keys
    ]
    head = ("", f"split {part.name}, {part.cases} cases", "value", "95 %", "cases")
    return align_table(head, rows)


def _render_classes(part: ScorecardPart, texts: BenchmarkTexts) -> list[str]:
    rows = [
        (
            format_line(row.label, 40),
            format_share(round(row.right, 2), row.cases),
            format_interval(row.interval),
        )
        for row in part.classes
    ]
    return align_table((texts.label, "right", "95 %"), rows)


def _render_cost(card: Scorecard) -> list[str]:
    spent = card.spending
    cost = spent.whole
    tokens = f"{cost.tokens:,} tokens ({cost.prompt_tokens:,} in, {cost.artifact_tokens:,} out)"
    each = (
        DASH if spent.per_solved is None else f"{format_money(spent.per_solved)} {spent.currency}"
    )
    paid = (
        f"cost: {format_money(cost.money)} {spent.currency}, {tokens}, "
        f"{format_duration(cost.wall_clock_ms / 1000)}"
    )
    return [f"{paid}; {format_money(spent.per_case)} for a case, {each} for a solved case"]


def render_comparison_text(found: Comparison) -> list[str]:
    """Return what `interlock calibrate compare` prints."""
    who = f"A {format_line(found.a, 60) or 'unnamed'}, B {format_line(found.b, 60) or 'unnamed'}"
    head = ("", "metric", "A", "B", "B - A", "95 %", "p", "differ", "")
    rows = [
        (
            each.id,
            each.name,
            format_number(each.a),
            format_number(each.b),
            format_signed(each.difference),
            format_interval(each.interval),
            format_number(each.p),
            str(each.differing),
            each.verdict,
        )
        for each in found.differences
    ]
    clear = [each.id for each in found.differences if each.verdict in ("better", "worse")]
    return [
        f"{format_line(found.scenario, 80)}, {found.cases} cases: {who}",
        "",
        *align_table(head, rows),
        "",
        "p: paired bootstrap over cases, corrected for all metrics asked (Holm)",
        f"more than noise: {', '.join(clear) or 'none'}",
        f"solved only in B: {_format_names(found.fixed)}",
        f"solved only in A: {_format_names(found.broken)}",
    ]


def _format_names(cases: Sequence[str]) -> str:
    return (
        f"{len(cases)} ({', '.join(format_line(case, 60) for case in cases)})" if cases else "none"
    )


def render_tuning_text(found: "Tuning") -> Iterator[str]:
    """Yield what `interlock tune` prints."""
    names = list(found.trials[0].thresholds)
    head = ("", *names, "right", "accuracy", "95 %", "misled", "dispatches", "unknown", "changed")
    rows = [_format_trial("now", [""] * len(names), found.usual)]
    for each in found.trials[:_MAX_TRIALS]:
        values = [f"{value:g}" for value in each.thresholds.values()]
        rows.append(_format_trial("best" if each.is_best else "", values, each))
    cases = plural(found.recorded, "recorded case", "recorded cases")
    yield f"{cases}, decided again on {found.on}; no agent was asked"
    yield from align_columns(head, rows)
    if len(found.trials) > _MAX_TRIALS:
        yield f"and {len(found.trials) - _MAX_TRIALS} more, see --json"
    yield "best: loses nothing against now, and no other such point is better with fewer dispatches"
    yield "misled: taken for a known cause it does not have; unknown: never answered"
    if found.advised is None:
        yield "advice: keep the current thresholds; every other point loses something"
        return
    advised = (f"{name}={value:g}" for name, value in found.advised.thresholds.items())
    yield f"advice: {', '.join(advised)}"
    if test := found.held_out:
        accuracy = f"{format_number(test.accuracy)} ({test.right} of {test.known})"
        yield f"on the held-out cases: {accuracy}"


def _format_trial(mark: str, values: list[str], trial: "Trial") -> list[object]:
    return [
        mark,
        *values,
        f"{trial.right} of {trial.known}",
        format_number(trial.accuracy),
        format_interval(trial.interval),
        trial.misled,
        trial.dispatches,
        trial.unknown,
        trial.changed,
    ]


def align_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Align columns; a row of one cell stands alone and widens nothing."""
    lines = [tuple(head), *map(tuple, rows)]
    full = [cells for cells in lines if len(cells) > 1]
    widths = [max(len(cells[at]) for cells in full) for at in range(len(head))]
    return [
        cells[0]
        if len(cells) == 1
        else "  ".join(
            cell.ljust(width) for cell, width in zip(cells, widths, strict=True)
        ).rstrip()
        for cells in lines
    ]
