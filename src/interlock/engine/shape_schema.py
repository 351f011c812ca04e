"""A shape written down again as JSON Schema, for an agent that is told what to answer.

Says exactly what is checked: titles and descriptions are gone, references are filled in. Reading it
back gives the same shape.
"""

from typing import Any

from interlock.engine.shape import Shape


def schema_of(shape: Shape) -> dict[str, Any]:
    """The JSON Schema that describes this shape."""
    parts: dict[str, Any] = {
        "type": list(shape.kinds) if len(shape.kinds) > 1 else next(iter(shape.kinds), None),
        "enum": list(shape.choices) if shape.choices is not None else None,
        "properties": {name: schema_of(each) for name, each in shape.fields.items()} or None,
        "required": list(shape.required) or None,
        "additionalProperties": False if shape.closed else None,
        "items": schema_of(shape.items) if shape.items is not None else None,
        "anyOf": [schema_of(each) for each in shape.either] or None,
        "minimum": shape.minimum,
        "maximum": shape.maximum,
        "exclusiveMinimum": shape.above,
        "exclusiveMaximum": shape.below,
        "pattern": shape.pattern.pattern if shape.pattern is not None else None,
        **_lengths(shape),
    }
    return {name: value for name, value in parts.items() if value is not None}


def _lengths(shape: Shape) -> dict[str, Any]:
    """Of lists, items are counted; of everything else, characters. Both if it may be either."""
    units = [unit for kind, unit in _UNITS.items() if not shape.kinds or kind in shape.kinds]
    limits = {"min": shape.shortest, "max": shape.longest}
    return {f"{side}{unit}": limit for side, limit in limits.items() for unit in units}


_UNITS = {"string": "Length", "array": "Items"}
