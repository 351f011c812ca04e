"""What tokens cost, and what a case did: prices from the configuration, sums of visits.

Knows money per million tokens. What a carrier itself said of the cost goes before the list.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from interlock.rca.calibration.case_result import CaseResult, StepCost
from interlock.system.errors import SourceError

_MILLION = 1_000_000


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
