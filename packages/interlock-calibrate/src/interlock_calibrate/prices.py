"""Compute what tokens cost: prices, sums of visits, and the bill as Markdown.

Prices are money per million tokens. A cost that a carrier reported overrides the price list. In the
bill nothing from outside is markup: names are shortened to one line and escaped.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from interlock.system.errors import SourceError
from interlock.system.text import escape_markdown
from interlock.system.time import format_duration
from interlock_calibrate.benchmark import AnyBenchmark, CaseResult, StepCost

_MILLION = 1_000_000


class CalibrateSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A project's settings for calibrations."""

    prices: dict[str, Any] = {}
    """The price of a million tokens: input, output, currency."""


class CalibrateTables(msgspec.Struct, frozen=True):
    """The tables of interlock.toml that calibration reads."""

    calibrate: CalibrateSettings = CalibrateSettings()


class Prices(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`[calibrate.prices]`: money per million tokens that a model reads and writes."""

    input: float = 3.0
    output: float = 15.0
    currency: str = "USD"


class Cost(msgspec.Struct, frozen=True):
    steps: int = 0
    prompt_tokens: int = 0
    artifact_tokens: int = 0
    money: float = 0.0
    wall_clock_ms: int = 0

    @property
    def tokens(self) -> int:
        return self.prompt_tokens + self.artifact_tokens


def read_prices(table: Mapping[str, Any]) -> Prices:
    """Return the prices in a configuration, with defaults for the others."""
    try:
        found = msgspec.convert(table, Prices)
    except msgspec.ValidationError as error:
        raise SourceError(f"[calibrate.prices]: {str(error).replace('`', '')}") from None
    if not (0 <= found.input < _MILLION and 0 <= found.output < _MILLION):
        raise SourceError("[calibrate.prices]: write the price of a million tokens, 0 or more")
    return found


def compute_cost(result: CaseResult, prices: Prices) -> Cost:
    """Return the cost of a case: of its visits, or of its totals if none was recorded."""
    if result.steps:
        return sum_costs(compute_step_cost(each, prices) for each in result.steps)
    return Cost(
        result.step_count,
        result.prompt_tokens_total,
        result.artifact_tokens_total,
        _compute_money(result.prompt_tokens_total, result.artifact_tokens_total, prices),
        result.wall_clock_ms,
    )


def compute_step_cost(step: StepCost, prices: Prices) -> Cost:
    money = step.money
    if money is None:
        money = _compute_money(step.prompt_tokens, step.artifact_tokens, prices)
    return Cost(1, step.prompt_tokens, step.artifact_tokens, money, step.wall_clock_ms)


def sum_costs_by_step(results: Iterable[CaseResult], prices: Prices) -> dict[str, Cost]:
    """Return the cost of each step."""
    found: dict[str, list[Cost]] = {}
    for result in results:
        for step in result.steps:
            found.setdefault(step.step, []).append(compute_step_cost(step, prices))
    return {step: sum_costs(found[step]) for step in sorted(found)}


def sum_costs(costs: Iterable[Cost]) -> Cost:
    steps = prompt = artifact = wall = 0
    money = 0.0
    for each in costs:
        steps += each.steps
        prompt += each.prompt_tokens
        artifact += each.artifact_tokens
        money += each.money
        wall += each.wall_clock_ms
    return Cost(steps, prompt, artifact, money, wall)


def _compute_money(prompt: int, artifact: int, prices: Prices) -> float:
    return (prompt * prices.input + artifact * prices.output) / _MILLION


_SUBJECT_WIDTH = 25


def render_cost_bill(
    title: str, runs: Sequence[Sequence[CaseResult]], prices: Prices, benchmark: AnyBenchmark
) -> str:
    """Return the text of `cost-bill.md` for all runs together."""
    results = [result for run in runs for result in run]
    total = sum_costs(compute_cost(result, prices) for result in results)
    parts = [
        f"# Cost bill: {escape_markdown(title, 80)}",
        "## Summary",
        _render_summary(total, len(results), prices),
        "## Per case",
        _render_cases(runs, prices, benchmark),
        "## Per step",
        _render_steps(results, prices),
        _render_footnote(prices),
    ]
    return "\n\n".join(parts) + "\n"


def _render_footnote(prices: Prices) -> str:
    return (
        f"Prices: {prices.input:.2f} {escape_markdown(prices.currency, 20)} for a "
        "million tokens in, "
        f"{prices.output:.2f} out. A cost that the agent's own program reports goes before them."
    )


def _render_summary(total: Cost, cases: int, prices: Prices) -> str:
    each = max(cases, 1)
    rows = [
        ("Cases", f"{cases:,}"),
        ("Steps", f"{total.steps:,}"),
        ("Input tokens", f"{total.prompt_tokens:,}"),
        ("Output tokens", f"{total.artifact_tokens:,}"),
        ("Total tokens", f"{total.tokens:,}"),
        ("Cost", f"{format_money(total.money)} {escape_markdown(prices.currency, 20)}"),
        ("Wall clock", format_duration(total.wall_clock_ms / 1000)),
        (
            "Average per case",
            f"{total.tokens // each:,} tokens, {format_money(total.money / each)}",
        ),
    ]
    return _render_table(("What", "Amount"), rows)


def _render_cases(
    runs: Sequence[Sequence[CaseResult]], prices: Prices, benchmark: AnyBenchmark
) -> str:
    texts = benchmark.texts
    head = ("Case", texts.subject, texts.place, "Steps", "In", "Out", "Total", "Cost", "Time")
    rows = []
    for number, run in enumerate(runs, 1):
        for result in run:
            name = result.case_id if len(runs) == 1 else f"{result.case_id} run {number}"
            view = benchmark.describe(result)
            cells = (
                escape_markdown(name, 40),
                escape_markdown(view.subject, _SUBJECT_WIDTH),
                escape_markdown(view.place, 40),
            )
            rows.append((*cells, *_format_amounts(compute_cost(result, prices))))
    return _render_table(head, rows)


def _render_steps(results: Iterable[CaseResult], prices: Prices) -> str:
    steps = sum_costs_by_step(results, prices)
    if not steps:
        return "No step was recorded on its own."
    rows = [(escape_markdown(step, 20), *_format_amounts(cost)) for step, cost in steps.items()]
    rows.append(("**TOTAL**", *_format_amounts(sum_costs(steps.values()))))
    return _render_table(("Step", "Visits", "In", "Out", "Total", "Cost", "Time"), rows)


def _format_amounts(cost: Cost) -> tuple[str, ...]:
    return (
        f"{cost.steps:,}",
        f"{cost.prompt_tokens:,}",
        f"{cost.artifact_tokens:,}",
        f"{cost.tokens:,}",
        format_money(cost.money),
        format_duration(cost.wall_clock_ms / 1000),
    )


def _render_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(each)} |" for each in lines)


def format_money(amount: float) -> str:
    """Format money with cents, or with more digits below one."""
    return f"{amount:.2f}" if amount >= 1 or amount == 0 else f"{amount:.4f}"
