"""A circuit as a layered list: every step once, below the steps that lead to it."""

from collections import Counter
from collections.abc import Iterable, Mapping
from math import inf
from typing import Literal

import msgspec

from interlock.api.browse import PlaceCount
from interlock.engine.circuit import AGAIN, ANY, BACK, Circuit, Rule

PlaceKind = Literal["step", "gate", "writes", "healthy", "unhealthy"]
_BACK = "where it came from"


class Way(msgspec.Struct, frozen=True):
    """The rules that lead from one place to another."""

    to: str
    rules: tuple[str, ...]
    arrow: str
    """↓ to a later layer, ↑ to an earlier one, → within one, ↻ to the step itself."""


class Place(msgspec.Struct, frozen=True):
    """A step or an end, with the ways that leave it."""

    name: str
    kind: PlaceKind
    role: str = ""
    ways: tuple[Way, ...] = ()


class CircuitMap(msgspec.Struct, frozen=True):
    """The places in layers, and in words what holds at every step."""

    layers: tuple[tuple[Place, ...], ...]
    notes: tuple[str, ...]


def count_by_place(places: Iterable[PlaceCount]) -> Mapping[str, Counter[str]]:
    """Count the cases at each step or end: `there`, `asked` among them, and `stuck`."""
    found: dict[str, Counter[str]] = {}
    for each in places:
        counts = found.setdefault(each.end or each.step, Counter())
        counts["stuck" if each.status == "stuck" else "there"] += each.cases
        counts["asked"] += each.asked
    return found


def map_circuit(circuit: Circuit) -> CircuitMap:
    """Return the steps by their shortest distance from the start, and the ends below them."""
    leaving: dict[str, dict[str, list[str]]] = {name: {} for name in circuit.steps}
    for rule in circuit.rules:
        for name in rule.at:
            if rule.to is not None and name in leaving:
                leaving[name].setdefault(_find_target(rule, name), []).append(rule.id)
    depths = _measure_depths(circuit, leaving)
    layers: dict[int, list[Place]] = {}
    for step in circuit.steps.values():
        kind: PlaceKind = "gate" if step.gate else "writes" if step.writes else "step"
        ways = tuple(
            Way(to, tuple(rules), _choose_arrow(step.name, to, depths))
            for to, rules in leaving[step.name].items()
        )
        layers.setdefault(depths[step.name], []).append(Place(step.name, kind, step.role, ways))
    ends = tuple(
        Place(name, "healthy" if healthy else "unhealthy") for name, healthy in circuit.ends.items()
    )
    return CircuitMap(
        (*(tuple(layers[depth]) for depth in sorted(layers)), ends), tuple(_list_notes(circuit))
    )


def _find_target(rule: Rule, step: str) -> str:
    if rule.to == AGAIN:
        return step
    return _BACK if rule.to == BACK else str(rule.to)


def _measure_depths(
    circuit: Circuit, leaving: Mapping[str, Mapping[str, list[str]]]
) -> dict[str, int]:
    """Return each step's layer. Steps that nothing leads to share the last one."""
    depths = {circuit.start: 0}
    waiting = [circuit.start]
    for name in waiting:
        for to in leaving.get(name, ()):
            if to in circuit.steps and to not in depths:
                depths[to] = depths[name] + 1
                waiting.append(to)
    last = max(depths.values()) + 1
    return {name: depths.get(name, last) for name in circuit.steps}


def _choose_arrow(step: str, to: str, depths: Mapping[str, int]) -> str:
    if to == step:
        return "↻"
    if to == _BACK:
        return "↑"
    drop = depths.get(to, inf) - depths[step]
    return "↓" if drop > 0 else "→" if drop == 0 else "↑"


def _list_notes(circuit: Circuit) -> list[str]:
    notes = [
        f"any step, {', '.join(rule.on)}: {rule.id} to "
        f"{'the same step' if rule.to == AGAIN else rule.to}"
        for rule in circuit.rules
        if ANY in rule.at and rule.to is not None
    ]
    if circuit.otherwise is not None:
        notes.append(f"no other rule: to {circuit.otherwise.to}")
    return notes
