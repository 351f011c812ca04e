"""Intake: failures, labels and candidates out of JSON lines, one at a time.

The door of `interlock analyst`: nulls are empty, unknown fields are let be, text that is not
UTF-8 is read as well as it can be. What cannot be used is one sentence with file and line.
"""

import json
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from interlock.apps.rca.failure import Failure
from interlock.core.errors import SourceError

TEXTS = ("test_name", "class_name", "type", "message", "stack", "log", "launch", "at")
_decode = msgspec.json.Decoder().decode


def read_failures(name: str) -> Iterator[Failure]:
    """The failures of a file in their order; `-` is stdin."""
    for place, row in _rows(name):
        yield _failure(row, place)


def read_labelled(name: str) -> Iterator[tuple[Failure, str]]:
    """Failures of which somebody said what they are, with what they said."""
    for place, row in _rows(name):
        label = _text(row.get("label"), "label", place).strip()
        if not label:
            raise SourceError(f"{place}: a failure to learn from needs a `label`")
        yield _failure(row, place), label


def read_candidates(name: str) -> dict[str, tuple[str, ...]]:
    """Of each failure's id, the strings among which its culprit may be."""
    found: dict[str, tuple[str, ...]] = {}
    for place, row in _rows(name):
        listed = row.get("candidates")
        if listed is None:
            listed = []
        if not isinstance(listed, list):
            raise SourceError(f"{place}: `candidates` is no list of strings")
        strings = (_text(each, "candidates", place) for each in listed)
        found[_id(row, place)] = tuple(dict.fromkeys(filter(None, strings)))
    return found


def _failure(row: Mapping[str, Any], place: str) -> Failure:
    texts = {name: _text(row.get(name), name, place) for name in TEXTS}
    attributes = row.get("attributes") or {}
    if not isinstance(attributes, dict):
        raise SourceError(f"{place}: `attributes` is no object")
    told = {key: _text(value, "attributes", place) for key, value in attributes.items()}
    return Failure(id=_id(row, place), attributes=told, **texts)


def _id(row: Mapping[str, Any], place: str) -> str:
    found = _text(row.get("id"), "id", place)
    if not found:
        raise SourceError(f"{place}: a failure needs an `id`")
    return found


def _text(value: Any, name: str, place: str) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, int | float | bool):
        return json.dumps(value)
    raise SourceError(f"{place}: `{name}` is no text")


def _rows(name: str) -> Iterator[tuple[str, dict[str, Any]]]:
    shown = "stdin" if name == "-" else name
    with _opened(name) as file:
        for number, raw in enumerate(file, 1):
            if not raw.strip():
                continue
            place = f"{shown}, line {number}"
            row = _read(raw.removeprefix(b"\xef\xbb\xbf"), place)
            if not isinstance(row, dict):
                raise SourceError(f"{place}: is no JSON object; write one failure a line")
            yield place, row


def _read(raw: bytes, place: str) -> Any:
    """Strictly and quickly, or else leniently: logs hold anything, and are quoted as they are."""
    try:
        return _decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass
    try:
        row = json.loads(raw.decode(errors="replace"), strict=False)
        return json.loads(json.dumps(row, ensure_ascii=False).encode(errors="replace"))
    except (ValueError, RecursionError):
        raise SourceError(f"{place}: is not JSON; write one object a line") from None


@contextmanager
def _opened(name: str) -> Iterator[BinaryIO]:
    if name == "-":
        yield sys.stdin.buffer
        return
    path = Path(name)
    if not path.is_file():
        what = "is no regular file" if path.exists() else "does not exist"
        raise SourceError(f"{name} {what}")
    try:
        with path.open("rb") as file:
            yield file
    except OSError as error:
        raise SourceError(f"{name} cannot be read: {os.strerror(error.errno or 0)}") from None
