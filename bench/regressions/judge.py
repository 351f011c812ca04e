"""Judge weights on cases: ranks, losses, calibration, and what leaving a clue out costs."""

import math
import random
from collections.abc import Collection, Iterator, Mapping, Sequence
from statistics import mean
from typing import NamedTuple

from bench.regressions.fit import Question, Weights, ask, compute_chances, fit_weights
from bench.regressions.rows import Case

FOLDS = 5
_DRAWS = 2_000
_LEAST = 1e-9
SURE = 0.7
LEVEL = 0.9


class Verdict(NamedTuple):
    """What weights make of one telling of a case."""

    question: Question
    rank: int
    """The culprit's rank, ties against it; 0 if it is none of the commits."""
    loss: float
    top: float
    """The chance of the first commit."""

    @property
    def is_wrong(self) -> bool:
        """Return whether a commit is accused that is not the culprit."""
        return self.rank != 1 and self.top >= SURE


def judge(questions: Sequence[Question], weights: Weights) -> list[Verdict]:
    """Return the verdict on each telling."""
    found = []
    for question in questions:
        chances = compute_chances(question.commits, weights)
        top = max(chances, default=0.0)
        if question.answer < 0:
            right, rank = 1 - sum(chances), 0
        else:
            right = chances[question.answer]
            rank = sum(chance >= right for chance in chances)
        found.append(Verdict(question, rank, -math.log(max(right, _LEAST)), top))
    return found


def split_tellings(verdicts: Sequence[Verdict]) -> tuple[list[Verdict], list[Verdict]]:
    """Return the verdicts on cases told as they are, and without the clues of origin."""
    guilty = [each for each in verdicts if each.question.answer >= 0]
    return guilty[::2], guilty[1::2]


def cross_validate(
    cases: Sequence[Case], clues: Collection[str], start: Weights | None = None
) -> list[Verdict]:
    """Judge each project by weights that were fitted on others."""
    projects = sorted({case.project for case in cases})
    found: list[Verdict] = []
    for fold in range(FOLDS):
        own = set(projects[fold::FOLDS])
        known = list(ask([case for case in cases if case.project not in own], clues))
        weights = fit_weights(known, clues, start)
        found += judge(list(ask([case for case in cases if case.project in own], clues)), weights)
    return found


def compute_loss(verdicts: Sequence[Verdict]) -> float:
    """Return the mean loss of a case."""
    losses = sum_losses(verdicts)
    return mean(losses.values())


def sum_losses(verdicts: Sequence[Verdict]) -> dict[str, float]:
    """Return the loss of each case, over all its tellings."""
    found: dict[str, float] = {}
    for each in verdicts:
        name = each.question.case.case
        found[name] = found.get(name, 0.0) + each.question.weight * each.loss
    return found


class Difference(NamedTuple):
    """A mean with the interval of its bootstrap over projects."""

    mean: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.mean:+.3f} [{self.low:+.3f}, {self.high:+.3f}]"


def compare(worse: Sequence[Verdict], better: Sequence[Verdict]) -> Difference:
    """Return how much more loss the first verdicts have than the second ones."""
    losses, others = sum_losses(worse), sum_losses(better)
    project_of = {each.question.case.case: each.question.case.project for each in better}
    groups: dict[str, list[float]] = {}
    for name, loss in losses.items():
        groups.setdefault(project_of[name], []).append(loss - others[name])
    dice = random.Random(1)
    drawn = sorted(_draw_means(list(groups.values()), dice))
    edge = (1 - LEVEL) / 2
    low, high = drawn[int(edge * _DRAWS)], drawn[int((1 - edge) * _DRAWS) - 1]
    return Difference(mean(each for group in groups.values() for each in group), low, high)


def _draw_means(groups: Sequence[Sequence[float]], dice: random.Random) -> Iterator[float]:
    sums = [(sum(group), len(group)) for group in groups]
    for _ in range(_DRAWS):
        drawn = dice.choices(sums, k=len(sums))
        yield sum(total for total, _ in drawn) / sum(count for _, count in drawn)


class Worth(NamedTuple):
    """The loss that leaving a clue out adds, over all cases, and over those whose culprit hides in
    a real commit: what pays only where a commit does nothing but undo tells how cases are made."""

    whole: Difference
    hidden: Difference

    @property
    def pays(self) -> bool:
        """Return whether a number gets worse beyond noise without the clue."""
        return max(self.whole.low, self.hidden.low) > 0


def measure_worth(cases: Sequence[Case], clues: Collection[str]) -> dict[str, Worth]:
    """Return what each clue is worth beside the others."""
    groups = (cases, [case for case in cases if case.form == "hidden"])
    start = fit_weights(list(ask(cases, clues)), clues)
    whole = [cross_validate(group, clues, start) for group in groups]
    found = {}
    for clue in sorted(clues):
        rest = set(clues) - {clue}
        without = [cross_validate(group, rest, start) for group in groups]
        found[clue] = Worth(*map(compare, without, whole))
    return found


def choose_clues(cases: Sequence[Case], clues: Collection[str]) -> Mapping[str, Worth]:
    """Leave out the clue that is worth least of those that do not pay, as long as there is one;
    return what the others are worth."""
    left = set(clues)
    while True:
        worth = measure_worth(cases, left)
        idle = [clue for clue in worth if not worth[clue].pays]
        if not idle or len(left) == 1:
            return worth
        poorest = min(idle, key=lambda clue: worth[clue].whole.mean)
        print(f"{poorest} does not pay: {worth[poorest].whole}", flush=True)
        left.remove(poorest)
