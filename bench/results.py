"""What was measured and the arithmetic over it: median, range, ratio, best peer.

Knows numbers by program, measure, round and metric. Knows nothing of how they were taken or
shown. A ratio is taken within each round, because two rounds may meet a different machine.
"""

from collections.abc import Mapping
from statistics import median

import msgspec

PEERS = ("burr", "langgraph", "dbos")

Series = Mapping[int, float]  # round -> value


class Sample(msgspec.Struct, frozen=True):
    program: str
    measure: str
    round: int
    values: dict[str, float]


class Spread(msgspec.Struct, frozen=True):
    median: float
    low: float
    high: float


def spread(series: Series) -> Spread | None:
    if not series:
        return None
    values = series.values()
    return Spread(median=median(values), low=min(values), high=max(values))


def ratio(of: Series, to: Series) -> Series:
    """Round by round; a round that only one of them finished does not count."""
    return {number: of[number] / to[number] for number in of if to.get(number)}


class Results(msgspec.Struct, frozen=True):
    samples: list[Sample]

    def series(self, program: str, measure: str, metric: str) -> Series:
        return {
            sample.round: sample.values[metric]
            for sample in self.samples
            if (sample.program, sample.measure) == (program, measure) and metric in sample.values
        }

    def spread(self, program: str, measure: str, metric: str) -> Spread | None:
        return spread(self.series(program, measure, metric))

    def lowest_peer(self, measure: str, metric: str) -> str | None:
        """The peer with the lowest median: the best one where less is better."""
        medians = {peer: self.spread(peer, measure, metric) for peer in PEERS}
        known = {peer: found.median for peer, found in medians.items() if found}
        return min(known, key=lambda peer: known[peer]) if known else None
