"""Calibrations as JSON: what a run leaves behind, and what a comparison reads."""

from pathlib import Path
from typing import Any

import msgspec

from interlock.calibrate.scorecard import Calibration
from interlock.system.errors import SourceError

SCHEMA_VERSION = 1
_LARGEST = 200_000_000
_KIND = "calibration"


def calibration_json(told: Calibration) -> str:
    """The same calibration gives the same text."""
    body = {"schema_version": SCHEMA_VERSION, "kind": _KIND, **msgspec.to_builtins(told)}
    return msgspec.json.format(msgspec.json.encode(body), indent=1).decode() + "\n"


def read_calibration(path: Path) -> Calibration:
    try:
        with path.open("rb") as file:
            content = file.read(_LARGEST + 1)
    except OSError as error:
        raise SourceError(f"{path} cannot be read: {error.strerror}") from None
    if len(content) > _LARGEST:
        raise SourceError(f"{path}: more than {_LARGEST:,} bytes; this is no result of calibrate")
    return _calibration(content, str(path))


def _calibration(content: bytes, file: str) -> Calibration:
    try:
        value: Any = msgspec.json.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise SourceError(f"{file}: this is not readable as JSON: {error}") from None
    if not isinstance(value, dict) or value.get("kind") != _KIND:
        raise SourceError(f"{file}: this is no result of interlock calibrate; give one")
    if value.get("schema_version") != SCHEMA_VERSION:
        raise SourceError(f"{file}: made by another version of Interlock; calibrate again")
    try:
        return msgspec.convert(value, Calibration)
    except msgspec.ValidationError as error:
        raise SourceError(f"{file}: {str(error).replace('`', '')}; calibrate again") from None
