"""The scorecard and the comparison on a terminal: plain lines, aligned, the bad news included.

Numbers are written as people read them; what was not measured is a dash, never a number.
"""

from collections.abc import Sequence

from interlock.calibrate.compare import Comparison
from interlock.calibrate.prices import lasted, money
from interlock.calibrate.scorecard import MetricRow, Scorecard, ScorecardPart
from interlock.calibrate.statistics import Interval
from interlock.runtime.benchmark import AnyBenchmark, BenchmarkTexts, Bounds, MetricTable
from interlock.system.text import line

DASH = "\N{EN DASH}"


def figure(value: float | None, digits: int = 3) -> str:
    """Large numbers whole, others with so many digits."""
    if value is None:
        return DASH
    return f"{value:,.0f}" if abs(value) >= 1_000 else f"{value:.{digits}f}"


def signed(value: float | None) -> str:
    return DASH if value is None else f"{value:+,.0f}" if abs(value) >= 1_000 else f"{value:+.3f}"


def around(found: Interval | None, digits: int = 2) -> str:
    """From where to where."""
    if found is None:
        return DASH
    return f"{figure(found.low, digits)}..{figure(found.high, digits)}"


def needed(bounds: Bounds) -> str:
    """What passes."""
    low, high = bounds
    if low is not None and high is not None:
        return f"{low:g} to {high:g}"
    return f"at least {low:g}" if low is not None else f"at most {high:,g}"


def share(part: float, whole: float) -> str:
    return f"{part:g} of {whole:g}" if whole else DASH


def scorecard_text(card: Scorecard, benchmark: AnyBenchmark) -> list[str]:
    """What `interlock calibrate` prints."""
    whole, table, texts = card.parts[0], benchmark.metrics, benchmark.texts
    lines = [*_head(card), "", *_metrics(card, whole), "", *_legend(card, table.overall)]
    lines += ["", *_facts(whole, table.overall, texts)]
    for part in card.parts[1:]:
        lines += ["", *_split(part, table)]
    lines += ["", *_classes(whole, texts), "", *_spending(card)]
    passed = [row for row in whole.rows if row.passed]
    word = "PASS" if card.passed else "FAIL"
    lines += ["", f"RESULT {word}: {len(passed)} of {len(whole.rows)} metrics pass"]
    return lines


def _head(card: Scorecard) -> list[str]:
    about = card.about
    who = ", ".join(line(word, 80) for word in (about.agent, about.dispatch, about.at) if word)
    cases = f"{card.parts[0].cases} cases, verified: {card.verified}, candidates: {card.candidates}"
    lines = [f"{line(card.scenario, 80)}: {who or 'no agent named'}"]
    lines.append(f"{cases}, runs: {card.runs}, edition {card.edition}, weights {card.weights}")
    if about.note:
        lines.append(line(about.note, 200))
    if card.failed:
        lines.append(f"{card.failed} results are of cases that did not come to an end")
    return lines


def _metrics(card: Scorecard, part: ScorecardPart) -> list[str]:
    names = list(part.rows[0].baselines)
    head = ("", "metric", "value", "honest", "95 %", "needs", "", "cases", *names)
    rows: list[tuple[str, ...]] = []
    group = ""
    for row in part.rows:
        if row.group != group:
            group = row.group
            rows.append((group.capitalize(),))
        rows.append(_metric(card, row, names))
    return table(head, rows)


def _metric(card: Scorecard, row: MetricRow, names: Sequence[str]) -> tuple[str, ...]:
    left_out = row.id in card.left_out
    return (
        f"  {row.id}",
        row.name,
        figure(row.value),
        figure(row.honest),
        around(row.interval),
        needed(row.passes),
        "left out" if left_out else "pass" if row.passed else "FAIL",
        str(row.cases or DASH),
        *(figure(row.baselines[name], 2) for name in names),
    )


def _legend(card: Scorecard, overall: str) -> list[str]:
    without = f"nothing to measure is {DASH} and left out of {overall}, weights renormalised"
    return [
        "value: the ancestor's count, nothing to measure is 1.0; what passes is said of it",
        f"honest: the same, {without}",
        f"95 %: bootstrap over cases (BCa), of the honest value; weights: {card.weights}",
    ]


def _facts(part: ScorecardPart, overall: str, texts: BenchmarkTexts) -> list[str]:
    rows = [(f"solved ({texts.solved})", share(round(part.solved, 2), part.cases))]
    for name, (plain, honest) in part.overall.items():
        rows.append((f"{overall} with weights {name}", f"{figure(plain)}, honest {figure(honest)}"))
    sure = part.confidence
    errors = f"Brier {figure(sure.brier)}, ECE {figure(sure.ece)} over {sure.answers} answers"
    rows.append(("confidence", errors))
    if families := part.families:
        groups = (
            f"B3 precision {figure(families.precision)}, recall {figure(families.recall)}, "
            f"F {figure(families.f)}, adjusted Rand {figure(families.rand)}; "
            f"{families.found_groups} found, {families.true_groups} true"
        )
        rows.append(("families", groups))
    return table(("", ""), rows)[1:]


def _split(part: ScorecardPart, metrics: MetricTable) -> list[str]:
    keys = {metric.id for metric in metrics.metrics if metric.is_key}
    rows = [
        (row.id, row.name, figure(row.honest), around(row.interval), str(row.cases))
        for row in part.rows
        if row.id in keys
    ]
    head = ("", f"split {part.name}, {part.cases} cases", "honest", "95 %", "cases")
    return table(head, rows)


def _classes(part: ScorecardPart, texts: BenchmarkTexts) -> list[str]:
    rows = [
        (line(row.label, 40), share(round(row.right, 2), row.cases), around(row.interval))
        for row in part.classes
    ]
    return table((texts.label, "right", "95 %"), rows)


def _spending(card: Scorecard) -> list[str]:
    spent = card.spending
    cost = spent.whole
    tokens = f"{cost.tokens:,} tokens ({cost.prompt_tokens:,} in, {cost.artifact_tokens:,} out)"
    each = DASH if spent.per_solved is None else f"{money(spent.per_solved)} {spent.currency}"
    paid = f"cost: {money(cost.money)} {spent.currency}, {tokens}, {lasted(cost.wall_clock_ms)}"
    return [f"{paid}; {money(spent.per_case)} for a case, {each} for a solved case"]


def comparison_text(found: Comparison) -> list[str]:
    """What `interlock calibrate compare` prints."""
    who = f"A {line(found.a, 60) or 'unnamed'}, B {line(found.b, 60) or 'unnamed'}"
    head = ("", "metric", "A", "B", "B - A", "95 %", "p", "differ", "")
    rows = [
        (
            each.id,
            each.name,
            figure(each.a),
            figure(each.b),
            signed(each.difference),
            around(each.interval),
            figure(each.p),
            str(each.differing),
            each.verdict,
        )
        for each in found.differences
    ]
    clear = [each.id for each in found.differences if each.verdict in ("better", "worse")]
    return [
        f"{line(found.scenario, 80)}, {found.cases} cases: {who}",
        "",
        *table(head, rows),
        "",
        "p: paired bootstrap over cases, corrected for all metrics asked (Holm)",
        f"more than noise: {', '.join(clear) or 'none'}",
        f"solved in B alone: {_names(found.fixed)}",
        f"solved in A alone: {_names(found.broken)}",
    ]


def _names(cases: Sequence[str]) -> str:
    return f"{len(cases)} ({', '.join(line(case, 60) for case in cases)})" if cases else "none"


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Aligned columns; a row of one cell stands by itself and widens nothing."""
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
