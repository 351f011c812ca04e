"""Representative values: every region that guards can tell apart is hit, with values that fit."""

from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.engine.shape import read_shape
from interlock.engine.verify.cells import Cell, build_cell
from interlock.engine.verify.domains import (
    ABSENT,
    Hints,
    find_representatives,
    find_sample,
    place_values,
)
from interlock.engine.verify.names import Names
from tests.world.circuits import one_step


@pytest.mark.parametrize(
    ("schema", "hints", "expected"),
    [
        ({"type": "boolean"}, Hints(), {True, False}),
        ({"type": "integer"}, Hints((3,)), {2, 3, 4}),
        ({"type": "integer", "minimum": 3}, Hints((3,)), {3, 4}),
        ({"type": "integer", "minimum": 0, "maximum": 1}, Hints((0.5,)), {0, 1}),
        ({"type": "number", "minimum": 0, "maximum": 1}, Hints((0.5,)), {0, 0.25, 0.5, 0.75, 1}),
        ({"type": "string", "enum": ["p", "q"]}, Hints(("p",)), {"p", "q"}),
        ({"const": 7}, Hints((3,)), {7}),
        ({"type": ["integer", "null"]}, Hints((3,)), {2, 3, 4, None}),
        ({"anyOf": [{"type": "boolean"}, {"type": "null"}]}, Hints(), {True, False, None}),
        (True, Hints((3,)), {2, 3, 4}),
        (True, Hints(), {True, False}),
    ],
)
def test_representatives(schema: Any, hints: Hints, expected: set[Any]) -> None:
    assert set(find_representatives(read_shape(schema), hints)) == expected


def test_texts_are_the_named_ones_and_something_else() -> None:
    found = find_representatives(read_shape({"type": "string"}), Hints(("p", "q")))
    assert {"p", "q", ""} < set(found)
    assert any(text not in ("p", "q", "") for text in found)
    long = find_representatives(read_shape({"type": "string", "minLength": 20}), Hints(("p",)))
    assert all(len(text) >= 20 for text in long)


def test_lists_come_in_all_sizes_with_and_without_each_member() -> None:
    shape = read_shape({"type": "array", "items": {"type": "string"}})
    found = find_representatives(shape, Hints(members=("p", "q"), sizes=(2,)))
    for with_p, with_q, size in product([True, False], [True, False], [2, 3]):
        assert any(
            ("p" in each) == with_p and ("q" in each) == with_q and len(each) == size
            for each in found
        )
    assert [] in found


SCHEMAS: list[dict[str, Any]] = [
    {"type": "integer", "minimum": -3, "maximum": 9},
    {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 2},
    {"type": "string", "minLength": 2, "maxLength": 4},
    {"type": "array", "items": {"enum": ["a", "b"]}, "minItems": 1, "maxItems": 3},
    {"type": "object", "properties": {"k": {"type": "integer"}}, "required": ["k"]},
    {"anyOf": [{"type": "integer", "minimum": 5}, {"enum": ["none"]}]},
    {"enum": list(range(100))},
]


@given(st.sampled_from(SCHEMAS), st.lists(st.integers(-5, 10) | st.sampled_from(["a", "none"])))
def test_every_representative_fits_its_shape(schema: Any, against: list[Any]) -> None:
    shape = read_shape(schema)
    found = find_representatives(shape, Hints(tuple(against), tuple(against[:2])))
    assert found
    assert [shape.find_problem(value) for value in found] == [None] * len(found)
    assert shape.find_problem(find_sample(shape)) is None


def cell(guards: list[str]) -> Cell:
    rules = "\n".join(
        f'  - {{id: r{index}, at: ask, when: "{guard}", to: b}}'
        for index, guard in enumerate(guards)
    )
    fields = "properties: {x: {type: integer}, y: {type: integer}}, required: [x, y]"
    written = one_step(rules, fields, more="thresholds: {limit: 2}")
    return build_cell(Names(written.circuit), "ask", "artifact")


ATOMS = [
    f"{left} {op} {right}"
    for left, op, right in product(
        ["x", "y"], ["<", "<=", "==", "!=", ">"], ["0", "limit", "5", "x", "y"]
    )
    if left != right
]
GUARDS = st.one_of(
    st.sampled_from(ATOMS),
    st.builds(
        lambda a, b, op: f"{a} {op} not {b}",
        st.sampled_from(ATOMS),
        st.sampled_from(ATOMS),
        st.sampled_from(["and", "or"]),
    ),
)


@given(st.lists(GUARDS, min_size=1, max_size=3), st.integers(-3, 9), st.integers(-3, 9))
def test_no_answer_falls_in_a_region_that_was_not_tried(guards: list[str], x: int, y: int) -> None:
    """The heart of the proof: whatever comes, its verdicts are among those already seen."""
    tried = cell(guards)
    names = {"x": x, "y": y, "limit": 2}
    truth = tuple("holds" if eval(guard, {}, dict(names)) else "fails" for guard in guards)
    assert truth in {region.verdicts for region in tried.regions}


def test_rules_that_share_nothing_are_tried_apart() -> None:
    together = cell(["x > 1 and y > 1"])
    apart = cell(["x > 1", "y > 1"])
    assert together.combinations > apart.combinations
    assert len(apart.regions) == 4


def test_what_is_inside_something_absent_is_absent() -> None:
    inner, outer = ("answer", "a", "b"), ("answer", "a")
    assert place_values({outer: ABSENT, inner: 1}) == {"answer": {}}
    assert place_values({outer: None, inner: 1}) == {"answer": {"a": None}}
    assert place_values({outer: {}, inner: 1}) == {"answer": {"a": {"b": 1}}}
    assert place_values({inner: 1, ("attempt",): 2}) == {"answer": {"a": {"b": 1}}, "attempt": 2}
