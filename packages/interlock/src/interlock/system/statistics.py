"""Compute a share's confidence interval, and quantiles, in plain Python."""

from collections.abc import Sequence
from math import sqrt
from statistics import NormalDist
from typing import Final, Literal

import msgspec

LEVEL: Final = 0.95
NORMAL: Final = NormalDist()
Method = Literal["BCa", "percentile", "Wilson", "same in all"]


class Interval(msgspec.Struct, frozen=True):
    low: float
    high: float
    method: Method


def wilson_interval(right: float, of: float, level: float = LEVEL) -> Interval | None:
    """Return Wilson's interval of a share; it has a width even where all or none are right."""
    if of <= 0:
        return None
    z = NORMAL.inv_cdf((1 + level) / 2)
    share = right / of
    scale = 1 + z * z / of
    middle = (share + z * z / (2 * of)) / scale
    half = z * sqrt(share * (1 - share) / of + z * z / (4 * of * of)) / scale
    return Interval(max(0.0, middle - half), min(1.0, middle + half), "Wilson")


def quantile(ordered: Sequence[float], share: float) -> float:
    """Return a quantile of sorted values, interpolated between the two nearest."""
    place = min(max(share, 0.0), 1.0) * (len(ordered) - 1)
    at = int(place)
    following = ordered[min(at + 1, len(ordered) - 1)]
    return ordered[at] + (following - ordered[at]) * (place - at)
