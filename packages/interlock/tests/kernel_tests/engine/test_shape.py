"""Shapes: what fits, what does not and why, schemas that promise more than is checked, and what an
agent is told: read back, the schema is the shape.
"""

from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.engine.shape import MAX_PARTS, build_schema, read_shape
from interlock.runtime.circuits import list_installed_circuits, load_bundle
from interlock.system.errors import CircuitError

PERSON: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "minLength": 1, "maxLength": 5},
        "age": {"type": "integer", "minimum": 0, "maximum": 150},
        "share": {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1},
        "tags": {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 2},
        "kind": {"enum": ["a", "b", 1]},
        "code": {"type": "string", "pattern": "^[A-Z]+$"},
        "other": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
    },
    "required": ["name"],
    "additionalProperties": False,
}


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ({"name": "Ada"}, None),
        ({"name": "Ada", "age": 36, "share": 0.5, "tags": ["x"], "kind": 1, "code": "AB"}, None),
        ({"name": "Ada", "other": None}, None),
        ({}, "answer lacks the field 'name'"),
        ([], "answer must be an object, not an array"),
        ({"name": ""}, "answer.name needs at least 1 characters, not 0"),
        ({"name": "Countess"}, "answer.name takes at most 5 characters, not 8"),
        ({"name": 7}, "answer.name must be a string, not an integer"),
        ({"name": "A", "age": -1}, "answer.age must be at least 0, not -1"),
        ({"name": "A", "age": 151}, "answer.age must be at most 150, not 151"),
        ({"name": "A", "age": True}, "answer.age must be an integer, not a boolean"),
        ({"name": "A", "age": 1.5}, "answer.age must be an integer, not a number"),
        ({"name": "A", "share": 0}, "answer.share must be more than 0, not 0"),
        ({"name": "A", "share": 1}, "answer.share must be less than 1, not 1"),
        ({"name": "A", "tags": []}, "answer.tags needs at least 1 items, not 0"),
        ({"name": "A", "tags": ["x", 2]}, "answer.tags[1] must be a string, not an integer"),
        ({"name": "A", "kind": True}, "answer.kind must be one of 'a', 'b', 1, not True"),
        ({"name": "A", "code": "ab"}, "answer.code must match '^[A-Z]+$'"),
        ({"name": "A", "other": "x"}, "answer.other must be an integer, not a string"),
        ({"name": "A", "extra": 1}, "answer has a field 'extra' that the shape does not know"),
    ],
)
def test_problem(value: Any, problem: str | None) -> None:
    assert read_shape(PERSON).find_problem(value) == problem


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ([], "must be a JSON Schema object"),
        ({"type": "text"}, "answer.type 'text' is unknown; use object, array"),
        ({"type": {"a": 1}}, "is unknown"),
        ({"type": [["string"]]}, "is unknown"),
        ({"oneOf": []}, "uses 'oneOf', which is not checked here"),
        ({"additionalProperties": {}}, "must be true or false"),
        ({"enum": []}, "must be a list of at least one value"),
        ({"anyOf": {}}, "must be a list of schemas"),
        ({"required": "x"}, "must be a list of field names"),
        ({"properties": []}, "must be an object of name: schema"),
        ({"minimum": "1"}, "must be a number"),
        ({"minLength": -1}, "must be a whole number of at least 0"),
        ({"pattern": "("}, "is not a regular expression"),
        ({"$ref": "#/$defs/none"}, "only '#/$defs/NAME' can be followed"),
        ({"$ref": "#/$defs/a", "minimum": 1, "$defs": {"a": {}}}, "'minimum' beside $ref"),
        ({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}}, "or refers to itself"),
    ],
)
def test_a_schema_that_cannot_be_honoured_is_refused(schema: Any, words: str) -> None:
    with pytest.raises(CircuitError) as caught:
        read_shape(schema)
    assert words in str(caught.value)


def test_references_do_not_explode() -> None:
    ten = [f"p{number}" for number in range(10)]
    definitions = {
        f"n{level}": {"properties": {name: {"$ref": f"#/$defs/n{level + 1}"} for name in ten}}
        for level in range(8)
    }
    bomb = {"$ref": "#/$defs/n0", "$defs": {**definitions, "n8": {"type": "string"}}}
    with pytest.raises(CircuitError, match=f"more than {MAX_PARTS:,} parts"):
        read_shape(bomb)


def test_references_are_followed() -> None:
    schema = {"properties": {"x": {"$ref": "#/$defs/y"}}, "$defs": {"y": {"type": "integer"}}}
    assert (
        read_shape(schema).find_problem({"x": "1"}) == "answer.x must be an integer, not a string"
    )


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 200) | st.floats(-1, 2) | st.text(max_size=6),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from([*PERSON["properties"], "more"]), inner, max_size=4)
    ),
    max_leaves=6,
)


@given(st.dictionaries(st.sampled_from([*PERSON["properties"], "more"]), PLAIN, max_size=5))
def test_agrees_with_json_schema(value: Any) -> None:
    ages = value.get("age"), value.get("other")
    if any(isinstance(age, float) and age.is_integer() for age in ages):
        return  # JSON Schema calls 1.0 an integer; an agent that writes 1.0 is asked for 1
    official = jsonschema.Draft202012Validator(PERSON).is_valid(value)
    assert (read_shape(PERSON).find_problem(value) is None) == official


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
    shape = read_shape(schema)
    assert read_shape(build_schema(shape)) == shape


@pytest.mark.parametrize("name", sorted(list_installed_circuits()))
def test_every_answer_of_our_circuits_can_be_told(name: str) -> None:
    for step in load_bundle(list_installed_circuits()[name]).open().circuit.steps.values():
        assert read_shape(build_schema(step.shape)) == step.shape


def test_lengths_are_those_of_the_kind() -> None:
    texts = build_schema(read_shape({"type": "string", "minLength": 2}))
    lists = build_schema(read_shape({"type": "array", "minItems": 2}))
    assert texts == {"type": "string", "minLength": 2}
    assert lists == {"type": "array", "minItems": 2}
