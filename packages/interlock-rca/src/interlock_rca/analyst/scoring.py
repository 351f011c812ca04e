"""The scorer: from clues to chances and reasons.

A clue is a row of a table: its name, how its value is computed, and the sentence that tells it.
What a clue counts stands in a model file that `python -m bench.regressions fit` writes.
"""

import math
import tomllib
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Generic, NamedTuple, TypeVar

import msgspec

View = TypeVar("View")
"""Everything that is known of one candidate."""


class Finding(NamedTuple):
    """The value of a clue, mostly between 0 and 1, and the words that fill its sentence; without
    words it counts, and is not told."""

    value: float
    words: tuple[str, ...] = ()


class Clue(NamedTuple, Generic[View]):
    """One row of a table of clues."""

    name: str
    compute: Callable[[View], Finding | None]
    sentence: str = ""


class Model(msgspec.Struct, frozen=True):
    """What each clue counts in the logarithm of the odds, and what "none of these" counts."""

    fitted: str
    """The date of the fit."""
    cases: int
    loss: float
    """The mean logarithmic loss on held-out projects."""
    nobody: float
    weights: dict[str, float]


@cache
def load_model(name: str) -> Model:
    """Return the model of that name; its file lies beside this module."""
    text = Path(__file__).with_name(f"{name}_model.toml").read_text(encoding="utf-8")
    return msgspec.convert(tomllib.loads(text), Model)


def find_clues(table: Sequence[Clue[View]], view: View) -> dict[str, Finding]:
    """Return the findings on a candidate, by the names of the clues."""
    found = ((clue.name, clue.compute(view)) for clue in table)
    return {name: finding for name, finding in found if finding and finding.value}


def sum_odds(model: Model, values: Mapping[str, float]) -> float:
    """Return what the values of clues count together, in the logarithm of the odds."""
    return sum(model.weights.get(name, 0.0) * value for name, value in values.items())


def compute_chances(odds: Sequence[float], nobody: float) -> list[float]:
    """Return the chance of each candidate beside all others and beside none of them."""
    most = max([nobody, *odds])
    parts = [math.exp(each - most) for each in odds]
    whole = math.exp(nobody - most) + sum(parts)
    return [part / whole for part in parts]


def tell_reasons(
    table: Sequence[Clue[View]], model: Model, findings: Mapping[str, Finding]
) -> tuple[str, ...]:
    """Return the sentences of the findings, those that count most first; what speaks against the
    candidate comes last."""
    told = [
        (model.weights.get(clue.name, 0.0) * finding.value, clue.sentence.format(*finding.words))
        for clue in table
        if clue.sentence and (finding := findings.get(clue.name)) and finding.words
    ]
    told.sort(key=lambda each: (each[0] < 0, -abs(each[0])))
    return tuple(dict.fromkeys(sentence for _, sentence in told))
