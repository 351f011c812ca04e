"""The reference page of interlock.toml, from the records that read it."""

import json
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from operator import itemgetter
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import msgspec

from docs.pages.python import describe_fields, escape_cell
from interlock.carriers.models.carrier import ModelSettings
from interlock.runtime.settings import Settings, list_tables

_HEAD = """\
# interlock.toml

Made by `make docs` from the records that read the file.

`interlock.toml` lies in the project's folder; everything in it is optional. Environment variables
(`INTERLOCK_DB`, `INTERLOCK_PARALLEL`) override it, and flags override both. An unknown key is an
error. Durations are written `90s`, `10m`, `2h` or `7d`. [Packages](../extend.md) may bring tables.
"""
_NOT_SETTINGS = ("file", "written")
_WORDS = {str: "string", int: "integer", float: "number", bool: "boolean"}


def render_settings_page() -> str:
    brought = {entry.load() for entry in list_tables().values()}
    kinds = [Settings, *sorted(brought, key=lambda kind: str(kind.__module__))]
    parts = [_HEAD, "## Top level", ""]
    tables: list[tuple[str, Any]] = []
    parts += ["| key | type | default | |", "|---|---|---|---|"]
    for kind in kinds:
        for name, row, struct in _read_fields(kind):
            if struct is None:
                parts.append(_join_row([name], row))
            else:
                tables.append((name, struct))
    tables.append(("agent.NAME", (ModelSettings, "`[{0}]` for a model endpoint")))
    for name, struct in tables:
        parts += ["", *_render_table(name, *struct)]
    return "\n".join(parts) + "\n"


def _render_table(name: str, struct: type[msgspec.Struct], head: str) -> Iterator[str]:
    yield f"## {head.format(name)}"
    yield ""
    yield " ".join((struct.__doc__ or "").split())
    yield ""
    yield from ("| key | type | default | |", "|---|---|---|---|")
    fields = list(_read_fields(struct))
    inner = [(f"{name}.{field}", nested) for field, _, nested in fields if nested is not None]
    rows = [(field, row) for field, row, nested in fields if nested is None]
    for row, alike in groupby(rows, key=itemgetter(1)):
        yield _join_row((field for field, _ in alike), row)
    for field, nested in inner:
        yield ""
        yield from _render_table(field, *nested)


def _join_row(names: Iterable[str], row: str) -> str:
    return f"| {', '.join(f'`{name}`' for name in names)} | {row}"


def _read_fields(
    kind: type[msgspec.Struct],
) -> Iterator[tuple[str, str, tuple[type[msgspec.Struct], str] | None]]:
    """Yield each key with the rest of its row; for a table, also its record and its heading."""
    hints, texts = get_type_hints(kind), describe_fields(kind)
    for field in msgspec.structs.fields(kind):
        if field.name in _NOT_SETTINGS:
            continue
        kind_text, about = render_type(hints[field.name]), texts[field.name][1]
        default = "" if field.required else _render_default(field)
        row = f"{escape_cell(kind_text)} | {default} | {escape_cell(about)} |"
        yield field.name, row, _find_table(hints[field.name])


def render_type(hint: Any) -> str:
    """Return a type in TOML's words."""
    origin, parts = get_origin(hint), [part for part in get_args(hint) if part is not type(None)]
    if origin is Literal:
        return ", ".join(f"`{json.dumps(part)}`" for part in parts)
    if origin in (Union, UnionType):
        return " or ".join(dict.fromkeys(render_type(part) for part in parts))
    if origin in (list, tuple):
        return f"list of {render_type(parts[0])}s"
    if origin in (dict, Mapping):
        return "table"
    return _WORDS.get(hint, "any value")


def _find_table(hint: Any) -> tuple[type[msgspec.Struct], str] | None:
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        return hint, "`[{0}]`"
    for part in get_args(hint):
        if isinstance(part, type) and issubclass(part, msgspec.Struct):
            heads = {UnionType: "`[{0}]`", dict: "`[{0}.NAME]`"}
            return part, heads.get(get_origin(hint), "`[[{0}]]`")
    return None


def _render_default(field: Any) -> str:
    value = field.default
    if value is msgspec.NODEFAULT:
        value = field.default_factory()
    if value is None or (not value and value is not False and not isinstance(value, int | float)):
        return ""
    return f"`{escape_cell(msgspec.json.encode(value).decode())}`"
