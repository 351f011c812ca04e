"""Check the shape of an answer by the part of JSON Schema that is fast and easy to analyse.

Covers objects, lists, texts, numbers, enums and their limits. Any other keyword is refused when the
circuit is read, so that no schema promises more than is checked. A shape can be written as JSON
Schema again, to tell an agent what to answer; reading that gives the same shape.
"""

import re
from collections.abc import Mapping
from functools import cache
from typing import Any

import msgspec

from interlock.system.errors import CircuitError
from interlock.system.text import shorten

_KINDS: dict[str, tuple[str, ...]] = {
    "object": ("dict",),
    "array": ("list",),
    "string": ("str",),
    "number": ("int", "float"),
    "integer": ("int",),
    "boolean": ("bool",),
    "null": ("NoneType",),
}
"""JSON kinds, by the names of the Python types they are read as."""
_IGNORED_NAMES = "title description examples default $schema $id $comment $defs"
_CHECKED_NAMES = """
type properties required additionalProperties items enum const anyOf minimum maximum
exclusiveMinimum exclusiveMaximum minLength maxLength pattern minItems maxItems $ref
"""
_IGNORED_KEYWORDS = frozenset(_IGNORED_NAMES.split())
_CHECKED_KEYWORDS = frozenset(_CHECKED_NAMES.split())
MAX_DEPTH = 20
MAX_PARTS = 5_000


class Shape(msgspec.Struct, frozen=True):
    """One schema, ready to check values; empty `kinds` allow any kind."""

    kinds: tuple[str, ...] = ()
    choices: tuple[Any, ...] | None = None
    fields: Mapping[str, "Shape"] = {}
    required: tuple[str, ...] = ()
    closed: bool = False
    items: "Shape | None" = None
    either: tuple["Shape", ...] = ()
    minimum: float | None = None
    maximum: float | None = None
    above: float | None = None
    below: float | None = None
    shortest: int | None = None
    longest: int | None = None
    pattern: re.Pattern[str] | None = None

    def find_problem(self, value: Any, at: str = "answer") -> str | None:
        """Return None if the value fits, else one sentence that names the place and what belongs
        there."""
        if self.kinds and not _is_one_of(type(value).__name__, self.kinds):
            return (
                f"{at} must be {_add_article(' or '.join(self.kinds))}, not {_describe_kind(value)}"
            )
        if self.choices is not None and not any(_is_same(value, each) for each in self.choices):
            return (
                f"{at} must be one of {_format_choices(self.choices)}, not {_format_value(value)}"
            )
        if self.either:
            problems = [shape.find_problem(value, at) for shape in self.either]
            if all(problems):
                return problems[0]
        match value:
            case dict():
                return self._check_object(value, at)
            case list():
                return self._check_list(value, at)
            case str():
                return self._check_text(value, at)
            case int() | float() if not isinstance(value, bool):
                return self._check_number(value, at)
        return None

    def _check_object(self, value: dict[str, Any], at: str) -> str | None:
        for name in self.required:
            if name not in value:
                return f"{at} lacks the field {name!r}"
        for name, item in value.items():
            field = self.fields.get(name)
            if field is not None:
                if field.find_problem(item, name):
                    return field.find_problem(item, f"{at}.{name}")
            elif self.closed:
                return f"{at} has a field {name!r} that the shape does not know"
        return None

    def _check_list(self, value: list[Any], at: str) -> str | None:
        if problem := self._check_length(len(value), at, "items"):
            return problem
        if self.items is not None:
            for index, item in enumerate(value):
                if self.items.find_problem(item):
                    return self.items.find_problem(item, f"{at}[{index}]")
        return None

    def _check_text(self, value: str, at: str) -> str | None:
        if problem := self._check_length(len(value), at, "characters"):
            return problem
        if self.pattern is not None and not self.pattern.search(value):
            return f"{at} must match {self.pattern.pattern!r}"
        return None

    def _check_length(self, length: int, at: str, unit: str) -> str | None:
        if self.shortest is not None and length < self.shortest:
            return f"{at} needs at least {self.shortest} {unit}, not {length}"
        if self.longest is not None and length > self.longest:
            return f"{at} takes at most {self.longest} {unit}, not {length}"
        return None

    def _check_number(self, value: float, at: str) -> str | None:
        if self.minimum is not None and value < self.minimum:
            return f"{at} must be at least {self.minimum}, not {value}"
        if self.maximum is not None and value > self.maximum:
            return f"{at} must be at most {self.maximum}, not {value}"
        if self.above is not None and value <= self.above:
            return f"{at} must be more than {self.above}, not {value}"
        if self.below is not None and value >= self.below:
            return f"{at} must be less than {self.below}, not {value}"
        return None


ANYTHING = Shape(kinds=("object",))


def read_shape(schema: Any, at: str = "answer") -> Shape:
    """Return the shape of a JSON Schema; raise CircuitError for anything that is not checked
    here."""
    definitions = schema.get("$defs", {}) if isinstance(schema, dict) else {}
    return _Reader(definitions).read(schema, at, 0)


class _Reader:
    """Read one schema, and follow its references to a limited depth."""

    def __init__(self, definitions: Any) -> None:
        self.definitions = definitions
        self.parts = 0

    def read(self, schema: Any, at: str, depth: int) -> Shape:
        if schema is True:
            return Shape()
        self._check_schema(schema, at, depth)
        if "$ref" in schema:
            return self.read(self._follow_reference(schema, at), at, depth + 1)
        properties = _check_mapping(schema.get("properties", {}), f"{at}.properties")
        return Shape(
            kinds=_read_kinds(schema.get("type"), at, bool(properties or schema.get("required"))),
            choices=_read_choices(schema, at),
            fields={
                name: self.read(each, f"{at}.{name}", depth + 1)
                for name, each in properties.items()
            },
            required=_check_names(schema.get("required", []), f"{at}.required"),
            closed=_read_closed(schema, at),
            items=self.read(schema["items"], f"{at}.items", depth + 1)
            if "items" in schema
            else None,
            either=tuple(self.read(each, at, depth + 1) for each in _read_either(schema, at)),
            minimum=_read_number(schema, "minimum", at),
            maximum=_read_number(schema, "maximum", at),
            above=_read_number(schema, "exclusiveMinimum", at),
            below=_read_number(schema, "exclusiveMaximum", at),
            shortest=_read_count(schema, ("minLength", "minItems"), at),
            longest=_read_count(schema, ("maxLength", "maxItems"), at),
            pattern=_compile_pattern(schema.get("pattern"), at),
        )

    def _check_schema(self, schema: Any, at: str, depth: int) -> None:
        if not isinstance(schema, dict):
            raise CircuitError(f"{at} must be a JSON Schema object, not {_describe_kind(schema)}")
        self.parts += 1
        if depth > MAX_DEPTH:
            raise CircuitError(
                f"{at} is nested deeper than {MAX_DEPTH} levels, or refers to itself"
            )
        if self.parts > MAX_PARTS:
            raise CircuitError(f"{at}: the shape has more than {MAX_PARTS:,} parts")
        unknown = sorted(set(schema) - _CHECKED_KEYWORDS - _IGNORED_KEYWORDS)
        if unknown:
            known = ", ".join(sorted(_CHECKED_KEYWORDS))
            raise CircuitError(f"{at} uses {unknown[0]!r}, which is not checked here; use {known}")

    def _follow_reference(self, schema: dict[str, Any], at: str) -> Any:
        beside = sorted(set(schema) - _IGNORED_KEYWORDS - {"$ref"})
        if beside:
            raise CircuitError(f"{at} has {beside[0]!r} beside $ref, where it is not checked")
        name = str(schema["$ref"]).removeprefix("#/$defs/")
        if not isinstance(self.definitions, dict) or name not in self.definitions:
            raise CircuitError(
                f"{at} refers to {schema['$ref']!r}; only '#/$defs/NAME' can be followed"
            )
        return self.definitions[name]


def _read_closed(schema: dict[str, Any], at: str) -> bool:
    extra = schema.get("additionalProperties", True)
    if not isinstance(extra, bool):
        raise CircuitError(f"{at}.additionalProperties must be true or false")
    return not extra


def _read_choices(schema: dict[str, Any], at: str) -> tuple[Any, ...] | None:
    choices = [schema["const"]] if "const" in schema else schema.get("enum")
    if choices is None:
        return None
    if not isinstance(choices, list) or not choices:
        raise CircuitError(f"{at}.enum must be a list of at least one value")
    return tuple(choices)


def _read_either(schema: dict[str, Any], at: str) -> list[Any]:
    either = schema.get("anyOf", [])
    if not isinstance(either, list):
        raise CircuitError(f"{at}.anyOf must be a list of schemas")
    return either


def _read_kinds(given: Any, at: str, is_object: bool) -> tuple[str, ...]:
    if given is None:
        return ("object",) if is_object else ()
    kinds = tuple(given) if isinstance(given, list) else (given,)
    for kind in kinds:
        if not isinstance(kind, str) or kind not in _KINDS:
            raise CircuitError(f"{at}.type {kind!r} is unknown; use {', '.join(_KINDS)}")
    return kinds


def _check_mapping(given: Any, at: str) -> dict[str, Any]:
    if not isinstance(given, dict):
        raise CircuitError(f"{at} must be an object of name: schema")
    return given


def _check_names(given: Any, at: str) -> tuple[str, ...]:
    if not isinstance(given, list) or not all(isinstance(name, str) for name in given):
        raise CircuitError(f"{at} must be a list of field names")
    return tuple(given)


def _read_number(schema: dict[str, Any], keyword: str, at: str) -> float | None:
    value = schema.get(keyword)
    if value is not None and not _is_kind(value, ("number",)):
        raise CircuitError(f"{at}.{keyword} must be a number")
    return value


def _read_count(schema: dict[str, Any], keywords: tuple[str, ...], at: str) -> int | None:
    for keyword in keywords:
        if keyword in schema:
            value = schema[keyword]
            if not _is_kind(value, ("integer",)) or value < 0:
                raise CircuitError(f"{at}.{keyword} must be a whole number of at least 0")
            return int(value)
    return None


def _compile_pattern(given: Any, at: str) -> re.Pattern[str] | None:
    if given is None:
        return None
    try:
        return re.compile(given)
    except (re.error, TypeError, RecursionError) as error:
        raise CircuitError(f"{at}.pattern is not a regular expression: {error}") from None


def _is_kind(value: Any, kinds: tuple[str, ...]) -> bool:
    return _is_one_of(type(value).__name__, kinds)


@cache
def _is_one_of(name: str, kinds: tuple[str, ...]) -> bool:
    return any(name in _KINDS[kind] for kind in kinds)


def _describe_kind(value: Any) -> str:
    for kind in ("null", "boolean", "integer", "number", "string", "array", "object"):
        if _is_kind(value, (kind,)):
            return _add_article(kind)
    return type(value).__name__


def _add_article(kind: str) -> str:
    return f"{'an' if kind[0] in 'aeio' else 'a'} {kind}" if kind != "null" else "null"


def _is_same(value: Any, other: Any) -> bool:
    return isinstance(value, bool) == isinstance(other, bool) and bool(value == other)


def _format_choices(choices: tuple[Any, ...]) -> str:
    return ", ".join(_format_value(each) for each in choices[:12]) + (
        ", …" if len(choices) > 12 else ""
    )


def _format_value(value: Any) -> str:
    return shorten(repr(value), 60)


def build_schema(shape: Shape) -> dict[str, Any]:
    """Return the JSON Schema of this shape."""
    parts: dict[str, Any] = {
        "type": list(shape.kinds) if len(shape.kinds) > 1 else next(iter(shape.kinds), None),
        "enum": list(shape.choices) if shape.choices is not None else None,
        "properties": {name: build_schema(each) for name, each in shape.fields.items()} or None,
        "required": list(shape.required) or None,
        "additionalProperties": False if shape.closed else None,
        "items": build_schema(shape.items) if shape.items is not None else None,
        "anyOf": [build_schema(each) for each in shape.either] or None,
        "minimum": shape.minimum,
        "maximum": shape.maximum,
        "exclusiveMinimum": shape.above,
        "exclusiveMaximum": shape.below,
        "pattern": shape.pattern.pattern if shape.pattern is not None else None,
        **_build_lengths(shape),
    }
    return {name: value for name, value in parts.items() if value is not None}


def _build_lengths(shape: Shape) -> dict[str, Any]:
    """Return length limits for texts and item limits for lists, or both if either is allowed."""
    units = [unit for kind, unit in _UNITS.items() if not shape.kinds or kind in shape.kinds]
    limits = {"min": shape.shortest, "max": shape.longest}
    return {f"{side}{unit}": limit for side, limit in limits.items() for unit in units}


_UNITS = {"string": "Length", "array": "Items"}
