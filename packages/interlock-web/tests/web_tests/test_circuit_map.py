"""The layered list of a circuit: everything is in it once, and nothing leads astray."""

from itertools import chain, pairwise

import pytest
from hypothesis import given

from interlock.engine.circuit import ANY, BACK, Circuit
from interlock.engine.circuit_file import CircuitSource, read_circuit
from interlock_web.circuit_map import map_circuit
from tests.circuits.behaviour_tables import SHIPPED
from tests.world.circuits import press
from tests.world.generated_circuits import circuits


def check(circuit: Circuit) -> None:
    found = map_circuit(circuit)
    places = list(chain(*found.layers))
    assert sorted(each.name for each in places) == sorted([*circuit.steps, *circuit.ends])
    assert [each.name for each in found.layers[0]] == [circuit.start]
    assert [each.name for each in found.layers[-1]] == list(circuit.ends)
    drawn = {(place.name, rule) for place in places for way in place.ways for rule in way.rules}
    leads = [rule for rule in circuit.rules if rule.to is not None]
    assert drawn == {(step, rule.id) for rule in leads for step in rule.at if step != ANY}
    assert len(found.notes) == sum(ANY in rule.at for rule in leads) + bool(circuit.otherwise)
    layer = {place.name: at for at, row in enumerate(found.layers) for place in row}
    back = {rule.id for rule in leads if rule.to == BACK}
    for place in places:
        for way in place.ways:
            if not back & set(way.rules):
                drop = layer[way.to] - layer[place.name]
                level = "↻" if way.to == place.name else "→"
                assert way.arrow == ("↓" if drop > 0 else "↑" if drop < 0 else level)


@given(circuits())
def test_every_circuit_is_listed_whole(source: CircuitSource) -> None:
    check(source.circuit)


@pytest.mark.parametrize("name", SHIPPED)
def test_the_shipped_circuits(name: str) -> None:
    check(read_circuit(SHIPPED[name].read_text(encoding="utf-8"), name).circuit)


def test_a_story_is_told_in_its_order() -> None:
    layers = map_circuit(press().circuit).layers
    assert all(
        any(way.to in {place.name for place in below} for place in above for way in place.ways)
        for above, below in pairwise(layers[:-1])
    )
