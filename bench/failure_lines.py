"""Read failures, labels and candidates out of JSON lines.

Read one at a time. Nulls are empty, unknown fields are ignored, text that is not UTF-8 is read as
well as it can be. What cannot be used is one sentence with file and line.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from interlock.system.errors import SourceError
from interlock_rca.records import Failure

TEXT_FIELDS = ("test_name", "class_name", "type", "message", "stack", "log", "launch", "at")
Lines = Iterable[bytes]
"""An open file, or what stands for one."""
_decode = msgspec.json.Decoder().decode


def read_failures(lines: Lines, file: str) -> Iterator[Failure]:
    """The failures of a file in their order."""
    for place, row in _read_rows(lines, file):
        yield _read_failure(row, place)


def read_labelled(lines: Lines, file: str) -> Iterator[tuple[Failure, str]]:
    """Failures that somebody labelled, with their labels."""
    for place, row in _read_rows(lines, file):
        label = _read_text(row.get("label"), "label", place).strip()
        if not label:
            raise SourceError(f"{place}: a failure to learn from needs a `label`")
        yield _read_failure(row, place), label


def read_candidates(lines: Lines, file: str) -> dict[str, tuple[str, ...]]:
    """Of each failure's id, the strings among which its culprit may be."""
    found: dict[str, tuple[str, ...]] = {}
    for place, row in _read_rows(lines, file):
        listed = row.get("candidates")
        if listed is None:
            listed = []
        if not isinstance(listed, list):
            raise SourceError(f"{place}: `candidates` must be a list of strings")
        strings = (_read_text(item, "candidates", place) for item in listed)
        found[_read_id(row, place)] = tuple(dict.fromkeys(filter(None, strings)))
    return found


def _read_failure(row: Mapping[str, Any], place: str) -> Failure:
    texts: dict[str, Any] = {name: _read_text(row.get(name), name, place) for name in TEXT_FIELDS}
    attributes = row.get("attributes") or {}
    if not isinstance(attributes, dict):
        raise SourceError(f"{place}: `attributes` must be an object")
    facts = {key: _read_text(value, "attributes", place) for key, value in attributes.items()}
    return Failure(id=_read_id(row, place), attributes=facts, **texts)


def _read_id(row: Mapping[str, Any], place: str) -> str:
    found = _read_text(row.get("id"), "id", place)
    if not found:
        raise SourceError(f"{place}: a failure needs an `id`")
    return found


def _read_text(value: Any, name: str, place: str) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, int | float | bool):
        return json.dumps(value)
    raise SourceError(f"{place}: `{name}` must be text")


def _read_rows(lines: Lines, file: str) -> Iterator[tuple[str, dict[str, Any]]]:
    for number, raw in enumerate(lines, 1):
        if not raw.strip():
            continue
        place = f"{'stdin' if file == '-' else file}, line {number}"
        row = _decode_row(raw.removeprefix(b"\xef\xbb\xbf"), place)
        if not isinstance(row, dict):
            raise SourceError(f"{place}: is not a JSON object; write one per line")
        yield place, row


def _decode_row(raw: bytes, place: str) -> Any:
    """Strictly and quickly, or else leniently: logs hold anything, and are quoted as they are."""
    try:
        return _decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass
    try:
        row = json.loads(raw.decode(errors="replace"), strict=False)
        return json.loads(json.dumps(row, ensure_ascii=False).encode(errors="replace"))
    except (ValueError, RecursionError):
        raise SourceError(f"{place}: is not JSON; write one object per line") from None
