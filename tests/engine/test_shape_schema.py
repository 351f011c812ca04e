"""What an agent is told is what is checked: read back, the schema is the shape."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.engine.shape import schema_of, shape_of
from interlock.runtime.circuits import list_installed_circuits, load_bundle

_LEAVES = st.sampled_from(
    [
        {"type": "string", "minLength": 1, "maxLength": 9, "pattern": "^a"},
        {"type": "number", "minimum": 0, "exclusiveMaximum": 1.5},
        {"type": "integer", "maximum": 3, "exclusiveMinimum": -1},
        {"type": ["string", "null"], "maxLength": 4},
        {"enum": [1, "two", None, True]},
        {"const": "x"},
        {"type": "boolean"},
        {},
    ]
)
_SCHEMAS = st.recursive(
    _LEAVES,
    lambda inner: st.one_of(
        st.builds(lambda one: {"type": "array", "items": one, "minItems": 1, "maxItems": 4}, inner),
        st.builds(lambda a, b: {"anyOf": [a, b]}, inner, inner),
        st.builds(
            lambda fields, closed: {
                "type": "object",
                "properties": fields,
                "required": sorted(fields)[:1],
                "additionalProperties": closed,
            },
            st.dictionaries(st.sampled_from("abc"), inner),
            st.booleans(),
        ),
    ),
    max_leaves=6,
)


@given(_SCHEMAS)
def test_read_back_it_is_the_same_shape(schema: dict[str, Any]) -> None:
    shape = shape_of(schema)
    assert shape_of(schema_of(shape)) == shape


@pytest.mark.parametrize("name", sorted(list_installed_circuits()))
def test_every_answer_of_our_circuits_can_be_told(name: str) -> None:
    for step in load_bundle(list_installed_circuits()[name]).open().circuit.steps.values():
        assert shape_of(schema_of(step.shape)) == step.shape


def test_lengths_are_those_of_the_kind() -> None:
    texts = schema_of(shape_of({"type": "string", "minLength": 2}))
    lists = schema_of(shape_of({"type": "array", "minItems": 2}))
    assert texts == {"type": "string", "minLength": 2}
    assert lists == {"type": "array", "minItems": 2}
