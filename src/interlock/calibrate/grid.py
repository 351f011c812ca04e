"""Grids: the values of thresholds that are tried, from a user's words to points.

Knows which thresholds a circuit has and what they may be; refuses to know what comes of them.
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import product
from math import prod
from typing import Any

from interlock.engine.circuit import Circuit
from interlock.system.errors import SourceError

MOST = 20_000
_MOST_VALUES = 1_000
Point = Mapping[str, Any]


def axis(word: str, circuit: Circuit) -> tuple[str, tuple[float, ...]]:
    """`recall_hit=0.6..0.9/7` are seven values from 0.6 to 0.9; `recall_hit=0.6,0.8` are two."""
    name, equals, text = word.partition("=")
    if not equals or name not in circuit.thresholds:
        known = ", ".join(circuit.thresholds)
        raise SourceError(f"--grid {word!r}: write NAME=0.6..0.9/7 or NAME=0.6,0.8; names: {known}")
    usual = circuit.thresholds[name]
    if isinstance(usual, bool) or not isinstance(usual, int | float):
        raise SourceError(f"--grid {name}: {usual!r} is no number, so there is nothing between")
    try:
        found = tuple(_values(text))
    except ValueError:
        raise SourceError(f"--grid {word!r}: write {name}=0.6..0.9/7 or {name}=0.6,0.8") from None
    if isinstance(usual, int):
        if any(value != int(value) or value < 0 for value in found):
            raise SourceError(f"--grid {name}: it is a whole number, such as {name}=0..3/4")
        return name, tuple(int(value) for value in found)
    if any(not 0 <= value <= 1 for value in found):
        raise SourceError(f"--grid {name}: values are from 0 to 1")
    return name, found


def _values(text: str) -> Iterator[float]:
    span, slash, count = text.partition("/")
    if ".." not in span:
        if slash:
            raise ValueError(text)
        yield from dict.fromkeys(float(each) for each in text.split(","))
        return
    low, _, high = span.partition("..")
    first, last, many = float(low), float(high), int(count)
    if not 2 <= many <= _MOST_VALUES or not first < last:
        raise ValueError(text)
    for index in range(many):
        yield round(first + (last - first) * index / (many - 1), 6)


def points(words: Iterable[str], circuit: Circuit) -> list[Point]:
    """All combinations of all axes."""
    axes: dict[str, tuple[float, ...]] = {}
    for word in words:
        name, values = axis(word, circuit)
        if name in axes:
            raise SourceError(f"--grid names {name} twice; give all its values at once")
        axes[name] = values
    if not axes:
        raise SourceError("say what to try: --grid recall_hit=0.6..0.9/7")
    if (count := prod(map(len, axes.values()))) > MOST:
        raise SourceError(f"{count:,} combinations; try at most {MOST:,}")
    return [dict(zip(axes, values, strict=True)) for values in product(*axes.values())]
