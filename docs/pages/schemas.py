"""JSON Schemas of every signal, made from the catalogue.

They describe signals as `interlock lint --json` prints them, and the files of the file protocol.
"""

from typing import Any, Final

import msgspec

from interlock.signals.batch import BatchBudget, BatchManifest
from interlock.signals.body import Criterion, FileNote, Pair, ReportedCheck, ReviewIssue
from interlock.signals.catalogue import Section, SignalField, SignalRow, list_signals
from interlock.signals.grammar import LONGEST_ID
from interlock.signals.signal_file import Artifact, SignalFile
from interlock.system.strict_json import INT64

Schema = dict[str, Any]
_TEXT: Final[Schema] = {"type": "string"}
_TEXTS: Final[Schema] = {"type": "array", "items": _TEXT}
_ID: Final[Schema] = {
    "type": "string",
    "pattern": "^[A-Za-z0-9][A-Za-z0-9._/#-]*$",
    "maxLength": LONGEST_ID,
}
_DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
_WIDE: Final = {f.name for row in list_signals("file") for f in row.payload if f.kind == "int64"}
FILES: Final[dict[str, type[msgspec.Struct]]] = {
    "signal.json": SignalFile,
    "artifact": Artifact,
    "batch-manifest.json": BatchManifest,
    "budget-status.json": BatchBudget,
}


def build_schemas() -> dict[str, Schema]:
    """One schema per text and line signal, by name, and one per protocol file."""
    signals = {row.name: _text_schema(row) for row in list_signals("text") if row.key != "unknown"}
    lines = {f"SAGE_SIGNAL:{row.name}": _line_schema(row) for row in list_signals("line")}
    files = {name: _file_schema(name, record) for name, record in FILES.items()}
    return {**signals, **lines, **files}


def name_schema_file(name: str) -> str:
    """The file name under which a schema is published."""
    plain = name.removeprefix("SAGE_SIGNAL:").removesuffix(".json").replace(": ", "-")
    folder = "lines/" if name.startswith("SAGE_SIGNAL:") else "" if name in FILES else "text/"
    return f"{folder}{plain.replace(':', '-').replace(' ', '_')}.schema.json"


def _file_schema(name: str, record: type[msgspec.Struct]) -> Schema:
    """The record's own schema; that an id fits into 64 bits is known to the readers only."""
    schema = msgspec.json.schema(record)
    for part in schema["$defs"].values():
        for field, kind in part["properties"].items():
            if field in _WIDE:
                kind |= {"minimum": INT64[0], "maximum": INT64[-1]}
    return {"$schema": _DIALECT, "title": name, **schema}


def _items(record: type[msgspec.Struct]) -> Schema:
    (plain,) = msgspec.json.schema(record)["$defs"].values()
    return {"type": "array", "items": plain}


def _section_schema(section: Section) -> Schema:
    listed: dict[str, type[msgspec.Struct]] = {
        "files": FileNote,
        "issues": ReviewIssue,
        "checks": ReportedCheck,
        "criteria": Criterion,
        "pairs": Pair,
    }
    if section.kind in listed:
        return _items(listed[section.kind])
    if section.kind in ("list", "names"):
        return _TEXTS
    if section.choices:
        return {"type": "string", "examples": list(section.choices)}
    return _TEXT


def _text_schema(row: SignalRow) -> Schema:
    subject = {"path": _TEXT, None: {"type": "null"}}.get(row.subject, _ID)
    fields: Schema = {
        "type": "object",
        "properties": {section.key: _section_schema(section) for section in row.sections},
        "additionalProperties": False,
    }
    keys = {section.label: section.key for section in row.sections}
    if row.requires:
        fields["allOf"] = [
            {"anyOf": [{"required": [keys[label]]} for label in labels]} for labels in row.requires
        ]
    return _record(row.name, {"signal": {"const": row.name}, "subject": subject, "fields": fields})


def _line_schema(row: SignalRow) -> Schema:
    fields: Schema = {
        "type": "object",
        "properties": {field.name: _field_schema(field) for field in row.payload},
        "required": [field.name for field in row.payload if field.required],
    }
    subject = {"type": ["string", "null"]}
    return _record(row.name, {"signal": {"const": row.name}, "subject": subject, "fields": fields})


def _field_schema(field: SignalField) -> Schema:
    if field.kind == "number":
        return {"type": "integer", "minimum": 0}
    return {"type": "string", "examples": list(field.choices)} if field.choices else _TEXT


def _record(title: str, properties: Schema) -> Schema:
    return {
        "$schema": _DIALECT,
        "title": title,
        "type": "object",
        "properties": properties,
        "required": list(properties),
    }
