"""The layout of a circuit: everything is drawn once, nothing covers anything, and always alike."""

import itertools
from pathlib import Path
from xml.etree import ElementTree

import msgspec
import pytest
from hypothesis import given
from tests.engine.circuits import press
from tests.engine.generated import circuits

from interlock.api.circuits import Circuit, list_circuits
from interlock.engine import circuit as table
from interlock.engine.circuit_file import CircuitSource, read_circuit
from interlock.engine.draw_svg import draw_svg
from interlock.engine.layout import START, Node, lay_out

EVIL = """\
circuit: evil
start: write
ends: {done: healthy}
max_steps: 3
steps:
  write: {role: author}
rules:
  - {at: write, to: done}
"""


def covers(one: Node, other: Node) -> bool:
    return (
        abs(one.x - other.x) < (one.width + other.width) / 2
        and abs(one.y - other.y) < (one.height + other.height) / 2
    )


def check(circuit: table.Circuit) -> None:
    picture = lay_out(circuit)
    assert picture == lay_out(circuit)
    boxes = [each for each in picture.nodes if each.kind != "helper"]
    assert [each.name for each in boxes] == [START, *circuit.steps, *circuit.ends]
    assert [
        (one.name, other.name)
        for one, other in itertools.combinations(picture.nodes, 2)
        if covers(one, other)
    ] == []
    for node in picture.nodes:
        assert node.width / 2 <= node.x <= picture.width - node.width / 2
        assert node.height / 2 <= node.y <= picture.height - node.height / 2
    drawn = {rule for edge in picture.edges for rule in edge.rules}
    leads = [rule for rule in circuit.rules if rule.to is not None and table.ANY not in rule.at]
    assert drawn == {rule.id for rule in leads}
    for edge in picture.edges:
        heights = [y for _, y in edge.points]
        assert edge.backward or heights == sorted(heights)
    ElementTree.fromstring(draw_svg(circuit))


@given(circuits())
def test_nothing_covers_anything(source: CircuitSource) -> None:
    check(source.circuit)


@pytest.mark.parametrize("name", [each.name for each in list_circuits(Path())])
def test_the_built_in_circuits(name: str) -> None:
    check(Circuit.load(name).source.circuit)


def test_a_story_is_drawn_in_its_order() -> None:
    """The start on top, the ends at the bottom, steps below those that lead to them."""
    picture = lay_out(press().circuit)
    height = {each.name: each.y for each in picture.nodes}
    assert min(height, key=height.__getitem__) == START
    assert all(height[end] == max(height.values()) for end in press().circuit.ends)
    for edge in picture.edges:
        if not edge.backward:
            assert height[edge.source] < height[edge.target]


def test_names_stay_names() -> None:
    """Files cannot hold such names; a circuit that a program made may."""
    found = read_circuit(EVIL, "evil.yaml").circuit
    rules = [msgspec.structs.replace(each, id='x"><script>&') for each in found.rules]
    evil = msgspec.structs.replace(found, name='"><script>alert(1)', rules=tuple(rules))
    svg = draw_svg(evil)
    assert "<script" not in svg
    assert "alert(1)" in svg
    ElementTree.fromstring(svg)


def test_a_very_long_circuit_is_drawn() -> None:
    steps = "".join(f"  s{number}: {{role: author}}\n" for number in range(400))
    rules = "".join(f"  - {{at: s{number}, to: s{number + 1}}}\n" for number in range(399))
    text = f"circuit: long\nstart: s0\nends: {{done: healthy}}\nmax_steps: 500\nsteps:\n{steps}"
    check(read_circuit(f"{text}rules:\n{rules}  - {{at: s399, to: done}}\n", "long.yaml").circuit)
