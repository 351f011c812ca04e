"""The table of metrics: what `metrics.yaml` says, checked once and trusted from then on."""

from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Literal

import msgspec

from interlock.system.errors import SourceError
from interlock.system.yaml_text import read_yaml

Kind = Literal["ratio", "complement", "correlation", "loops", "tokens", "weighted", "spread"]
Bounds = tuple[float | None, float | None]
OVERALL = "M19"
SPREAD = "M20"


class Metric(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One row. `passes` has the lowest and the highest value that pass, by edition."""

    id: str
    name: str
    group: str
    kind: Kind
    formula: str
    passes: Mapping[str, Bounds]

    @property
    def counted(self) -> bool:
        """Whether it comes from cases, not from other metrics."""
        return self.kind not in ("weighted", "spread")


class Edition(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One way to count that was in use. Evidence is found more easily in v2."""

    weights: str
    same_path_is_found: bool


class MetricTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    default: str
    editions: Mapping[str, Edition]
    weights: Mapping[str, Mapping[str, float]]
    metrics: tuple[Metric, ...]

    @property
    def counted(self) -> tuple[Metric, ...]:
        return tuple(metric for metric in self.metrics if metric.counted)

    def edition(self, name: str) -> Edition:
        if name not in self.editions:
            raise SourceError(f"there is no edition {name!r}; use {', '.join(self.editions)}")
        return self.editions[name]

    def weights_of(self, name: str) -> Mapping[str, float]:
        if name not in self.weights:
            raise SourceError(f"there are no weights {name!r}; use {', '.join(self.weights)}")
        return self.weights[name]


@cache
def metric_table() -> MetricTable:
    text = resources.files("interlock.rca.calibration").joinpath("metrics.yaml").read_text("utf-8")
    return msgspec.convert(read_yaml(text, "metrics.yaml").value, MetricTable)


def passing(bounds: Bounds, value: float) -> bool:
    """Whether a value lies within the bounds; what is only a rounding error away does."""
    low, high = bounds
    return (low is None or value >= low - 1e-12) and (high is None or value <= high + 1e-12)
