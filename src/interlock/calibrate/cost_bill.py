"""The bill of a calibration as Markdown: what each case and each step took.

Knows tables. Nothing from outside is markup: names are shortened to one line and escaped.
"""

from collections.abc import Iterable, Sequence

from interlock.calibrate.prices import Cost, Prices, cost_by_step, cost_of, total
from interlock.rca.calibration.case_result import CaseResult
from interlock.system.markdown_text import prose

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
