"""Fit the weights of clues on stored rows: a choice among a case's commits and none of them.

The model is a multinomial logistic regression with one weight for each clue, found by Newton's
method. Each case is told in four ways. Undone fixes always came with their test, so half of the
weight goes to the case without the clues that say so. And since a cause may lie outside of the
compared commits, a part goes to the case without its culprit, where nobody is right.
"""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

from bench.regressions.rows import Case

ORIGIN = frozenset({"took back", "took back, by the commit's size", "changed what came with it"})
"""Clues that an undone fix has because its test was written with it."""
MASKED = 0.5
"""The share of a case that is told without these clues."""
ELSEWHERE = 0.15
"""The share of failures whose cause is none of the compared commits: an assumption."""
RIDGE = 0.1
_MOST_STEPS = 30
_SMALL = 1e-5
NOBODY = "none of them"

Weights = Mapping[str, float]
Row = list[tuple[int, float]]
Values = Mapping[str, float]


class Question(NamedTuple):
    """One telling of a case: the clues of each commit, and which one is right, if any."""

    commits: Sequence[Values]
    answer: int
    """The culprit's place, or -1 if it is none of them."""
    weight: float
    case: Case


def ask(cases: Sequence[Case], clues: Collection[str]) -> Iterator[Question]:
    """Yield the tellings of each case, with these clues only."""
    for case in cases:
        seen = [each for each in case.candidates if each.clues is not None]
        names = [each.commit for each in seen]
        for hidden, share in ((frozenset[str](), 1 - MASKED), (ORIGIN, MASKED)):
            kept = set(clues) - hidden
            commits = [
                {name: value for name, value in (each.clues or {}).items() if name in kept}
                for each in seen
            ]
            if case.culprit in names:
                at = names.index(case.culprit)
                yield Question(commits, at, share * (1 - ELSEWHERE), case)
                commits = [*commits[:at], *commits[at + 1 :]]
            yield Question(commits, -1, share * ELSEWHERE, case)


def compute_chances(commits: Sequence[Values], weights: Weights) -> list[float]:
    """Return the chance of each commit; what is missing to 1 is the chance of none of them."""
    scores = [
        sum(weights.get(name, 0.0) * value for name, value in each.items()) for each in commits
    ]
    nobody = weights.get(NOBODY, 0.0)
    most = max([nobody, *scores])
    odds = [math.exp(score - most) for score in scores]
    whole = math.exp(nobody - most) + sum(odds)
    return [each / whole for each in odds]


def fit_weights(
    questions: Sequence[Question], clues: Collection[str], start: Weights | None = None
) -> dict[str, float]:
    """Return the weights that make the right answers likeliest, held near 0 by a ridge."""
    names = [NOBODY, *sorted(clues)]
    place = {name: at for at, name in enumerate(names)}
    rows = [
        ([[(place[name], value) for name, value in each.items()] for each in question.commits])
        for question in questions
    ]
    weights = [(start or {}).get(name, 0.0) for name in names]
    for _ in range(_MOST_STEPS):
        slope, curve = _derive(questions, rows, weights)
        step = _solve(curve, slope)
        largest = max(map(abs, step))
        scale = min(1.0, 4.0 / largest) if largest else 1.0
        weights = [weight + scale * each for weight, each in zip(weights, step, strict=True)]
        if largest < _SMALL:
            break
    return dict(zip(names, weights, strict=True))


def _derive(
    questions: Sequence[Question], rows: Sequence[Sequence[Row]], weights: Sequence[float]
) -> tuple[list[float], list[list[float]]]:
    """Return the slope of the likelihood with its ridge, and how it bends, negated."""
    size = len(weights)
    slope = [0.0 if at == 0 else -RIDGE * weight for at, weight in enumerate(weights)]
    ridge = [_SMALL, *[RIDGE] * (size - 1)]
    curve = [[ridge[at] if at == other else 0.0 for other in range(size)] for at in range(size)]
    for question, commits in zip(questions, rows, strict=True):
        options: list[Row] = [[(0, 1.0)], *commits]
        scores = [sum(weights[at] * value for at, value in row) for row in options]
        most = max(scores)
        odds = [math.exp(score - most) for score in scores]
        whole = sum(odds)
        mean = [0.0] * size
        share = question.weight
        for row, each in zip(options, odds, strict=True):
            chance = each / whole
            if chance < _SMALL / 100:
                continue
            for at, value in row:
                part = chance * value
                mean[at] += part
                line = curve[at]
                for other, more in row:
                    line[other] += share * part * more
        for at, value in options[question.answer + 1]:
            slope[at] += share * value
        told = [(at, value) for at, value in enumerate(mean) if value]
        for at, value in told:
            slope[at] -= share * value
            line = curve[at]
            for other, more in told:
                line[other] -= share * value * more
    return slope, curve


def _solve(matrix: Sequence[Sequence[float]], vector: Sequence[float]) -> list[float]:
    """Solve a symmetric positive system by elimination."""
    rows = [[*line, value] for line, value in zip(matrix, vector, strict=True)]
    size = len(rows)
    for at in range(size):
        pivot = rows[at]
        for below in range(at + 1, size):
            factor = rows[below][at] / pivot[at]
            if factor:
                for column in range(at, size + 1):
                    rows[below][column] -= factor * pivot[column]
    found = [0.0] * size
    for at in range(size - 1, -1, -1):
        rest = sum(rows[at][column] * found[column] for column in range(at + 1, size))
        found[at] = (rows[at][size] - rest) / rows[at][at]
    return found
