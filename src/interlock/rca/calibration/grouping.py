"""How well cases were grouped: the families that were found, held against the true ones.

Knows two ways to put the same things into groups. Pairs that are together in both count, so the
names of groups do not matter, nor which case is first.
"""

from collections import Counter
from collections.abc import Hashable, Mapping
from math import comb

import msgspec


class Grouping(msgspec.Struct, frozen=True):
    """B³ precision, recall and F, and the adjusted Rand index: 1 is best, about 0 is chance."""

    precision: float
    recall: float
    f: float
    rand: float
    cases: int
    true_groups: int
    found_groups: int


def grouping(truth: Mapping[str, Hashable], found: Mapping[str, Hashable]) -> Grouping | None:
    """Both map the same things to their groups; None if there is nothing to group."""
    if not truth:
        return None
    both = Counter((truth[each], found[each]) for each in truth)
    true_sizes, found_sizes = Counter(truth.values()), Counter(found[each] for each in truth)
    precision = sum(n * n / found_sizes[group] for (_, group), n in both.items()) / len(truth)
    recall = sum(n * n / true_sizes[group] for (group, _), n in both.items()) / len(truth)
    return Grouping(
        precision,
        recall,
        2 * precision * recall / (precision + recall),
        _rand(both, true_sizes, found_sizes, len(truth)),
        len(truth),
        len(true_sizes),
        len(found_sizes),
    )


def _rand(
    both: Counter[tuple[Hashable, Hashable]],
    true_sizes: Counter[Hashable],
    found_sizes: Counter[Hashable],
    total: int,
) -> float:
    together = sum(comb(n, 2) for n in both.values())
    in_truth = sum(comb(n, 2) for n in true_sizes.values())
    in_found = sum(comb(n, 2) for n in found_sizes.values())
    if total < 2:
        return 1.0
    by_chance = in_truth * in_found / comb(total, 2)
    most = (in_truth + in_found) / 2
    if most == by_chance:  # all alone, or all together, in both
        return 1.0 if together == most else 0.0
    return (together - by_chance) / (most - by_chance)
