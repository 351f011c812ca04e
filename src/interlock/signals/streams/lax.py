"""Parts of a foreign record that may change their shape without notice: taken if they fit.

A bill or a list of servers that looks different tomorrow must not cost us the result it stands in.
Refuses to know any field.
"""

from typing import Any, TypeVar

import msgspec

Record = TypeVar("Record")


def fitting(value: Any, kind: type[Record]) -> Record | None:
    """The value as that kind of record; None if it is not one."""
    try:
        return msgspec.convert(value, kind, strict=False)
    except (msgspec.ValidationError, OverflowError):
        return None


def all_fitting(values: Any, kind: type[Record]) -> list[Record]:
    """Those of a list's or an object's values that fit."""
    each = values.values() if isinstance(values, dict) else values
    found = (fitting(one, kind) for one in (each if isinstance(values, list | dict) else ()))
    return [one for one in found if one is not None]
