"""What tokens cost, and what a case did: prices from the configuration, sums of visits.

Knows money per million tokens. What a carrier itself said of the cost goes before the list.

The bill of a calibration as Markdown: what each case and each step took.

Knows tables. Nothing from outside is markup: names are shortened to one line and escaped.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from interlock.rca.calibration.marks import CaseResult, StepCost
from interlock.system.errors import SourceError
from interlock.system.text import prose

_MILLION = 1_000_000


class Calibrating(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a project says about its calibrations."""

    prices: dict[str, Any] = {}
    """What a million tokens cost: input, output, currency."""


class CalibrateTables(msgspec.Struct, frozen=True):
    """What a project says about calibration in interlock.toml."""

    calibrate: Calibrating = Calibrating()


class Prices(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Money for a million tokens, read and written by a model. `[calibrate.prices]`."""

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


def prices_from(table: Mapping[str, Any]) -> Prices:
    """The prices of a configuration's table; those it does not name are the usual ones."""
    try:
        found = msgspec.convert(table, Prices)
    except msgspec.ValidationError as error:
        raise SourceError(f"[calibrate.prices]: {str(error).replace('`', '')}") from None
    if not (0 <= found.input < _MILLION and 0 <= found.output < _MILLION):
        raise SourceError("[calibrate.prices]: a price is money for a million tokens, 0 or more")
    return found


def cost_of(result: CaseResult, prices: Prices) -> Cost:
    """A case without recorded visits is told by its totals."""
    if result.steps:
        return total(step_cost(each, prices) for each in result.steps)
    return Cost(
        result.step_count or len(result.actual_path),
        result.prompt_tokens_total,
        result.artifact_tokens_total,
        _money(result.prompt_tokens_total, result.artifact_tokens_total, prices),
        result.wall_clock_ms,
    )


def step_cost(step: StepCost, prices: Prices) -> Cost:
    told = step.money
    money = _money(step.prompt_tokens, step.artifact_tokens, prices) if told is None else told
    return Cost(1, step.prompt_tokens, step.artifact_tokens, money, step.wall_clock_ms)


def cost_by_step(results: Iterable[CaseResult], prices: Prices) -> dict[str, Cost]:
    """F0 to F6, then whatever else there is."""
    found: dict[str, list[Cost]] = {}
    for result in results:
        for step in result.steps:
            found.setdefault(step.step, []).append(step_cost(step, prices))
    return {step: total(found[step]) for step in sorted(found)}


def total(costs: Iterable[Cost]) -> Cost:
    steps = prompt = artifact = wall = 0
    money = 0.0
    for each in costs:
        steps += each.steps
        prompt += each.prompt_tokens
        artifact += each.artifact_tokens
        money += each.money
        wall += each.wall_clock_ms
    return Cost(steps, prompt, artifact, money, wall)


def _money(prompt: int, artifact: int, prices: Prices) -> float:
    return (prompt * prices.input + artifact * prices.output) / _MILLION


_TEST = 25


def cost_bill(title: str, runs: Sequence[Sequence[CaseResult]], prices: Prices) -> str:
    """`cost-bill.md` of all runs together."""
    results = [result for run in runs for result in run]
    whole = total(cost_of(result, prices) for result in results)
    parts = [
        f"# Cost bill: {prose(title, 80)}",
        "## Summary",
        _summary(whole, len(results), prices),
        "## Per case",
        _per_case(runs, prices),
        "## Per step",
        _per_step(results, prices),
        _footnote(prices),
    ]
    return "\n\n".join(parts) + "\n"


def _footnote(prices: Prices) -> str:
    return (
        f"Prices: {prices.input:.2f} {prose(prices.currency, 20)} for a million tokens in, "
        f"{prices.output:.2f} out. A cost that an agent's program told goes before them."
    )


def _summary(whole: Cost, cases: int, prices: Prices) -> str:
    each = max(cases, 1)
    rows = [
        ("Cases", f"{cases:,}"),
        ("Steps", f"{whole.steps:,}"),
        ("Input tokens", f"{whole.prompt_tokens:,}"),
        ("Output tokens", f"{whole.artifact_tokens:,}"),
        ("Total tokens", f"{whole.tokens:,}"),
        ("Cost", f"{money(whole.money)} {prose(prices.currency, 20)}"),
        ("Wall clock", lasted(whole.wall_clock_ms)),
        ("Average per case", f"{whole.tokens // each:,} tokens, {money(whole.money / each)}"),
    ]
    return _table(("What", "Amount"), rows)


def _per_case(runs: Sequence[Sequence[CaseResult]], prices: Prices) -> str:
    head = ("Case", "Test", "Ver/Job", "Steps", "In", "Out", "Total", "Cost", "Time")
    rows = []
    for number, run in enumerate(runs, 1):
        for result in run:
            name = result.case_id if len(runs) == 1 else f"{result.case_id} run {number}"
            place = f"{result.version}/{result.job}".strip("/")
            cells = (prose(name, 40), prose(result.test_name, _TEST), prose(place, 40))
            rows.append((*cells, *_amounts(cost_of(result, prices))))
    return _table(head, rows)


def _per_step(results: Iterable[CaseResult], prices: Prices) -> str:
    steps = cost_by_step(results, prices)
    if not steps:
        return "No step was recorded on its own."
    rows = [(prose(step, 20), *_amounts(cost)) for step, cost in steps.items()]
    rows.append(("**TOTAL**", *_amounts(total(steps.values()))))
    return _table(("Step", "Visits", "In", "Out", "Total", "Cost", "Time"), rows)


def _amounts(cost: Cost) -> tuple[str, ...]:
    return (
        f"{cost.steps:,}",
        f"{cost.prompt_tokens:,}",
        f"{cost.artifact_tokens:,}",
        f"{cost.tokens:,}",
        money(cost.money),
        lasted(cost.wall_clock_ms),
    )


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(each)} |" for each in lines)


def money(amount: float) -> str:
    """Cents where they matter, more digits where it is less than one."""
    return f"{amount:.2f}" if amount >= 1 or amount == 0 else f"{amount:.4f}"


def lasted(milliseconds: int) -> str:
    """In its two largest units."""
    if milliseconds < 10_000:
        return f"{milliseconds / 1000:.1f} s"
    seconds = round(milliseconds / 1000)
    hours, minutes = seconds // 3600, seconds // 60 % 60
    if hours:
        return f"{hours} h {minutes} m"
    return f"{minutes} m {seconds % 60} s" if minutes else f"{seconds} s"
