"""The file protocol of seed 000: `signal.json` and the wrapper around an artifact.

Holds the fields in order, and which status may follow which. Carriers handle folders, clocks and
polling.
"""

from typing import Any, Literal

import msgspec

from interlock.signals.catalogue import find_signal
from interlock.system.strict_json import INT64, Problem, format_json, read_object, read_record

SignalStatus = Literal["waiting", "processing", "done", "error"]


class SignalFile(msgspec.Struct, frozen=True, kw_only=True):
    """One dispatch as the responder sees it; fields in the seed's order."""

    status: SignalStatus
    dispatch_id: int
    case_id: str
    step: str
    prompt_path: str
    artifact_path: str
    timestamp: str
    error: str = ""


class Artifact(msgspec.Struct, frozen=True):
    """An answer: the dispatch it belongs to, and the step's own object."""

    dispatch_id: int
    data: dict[str, Any]


def read_signal(raw: bytes) -> SignalFile | Problem:
    return read_record(raw, SignalFile)


def encode_signal(signal: SignalFile) -> bytes:
    return format_json(signal)


def move_signal(signal: SignalFile, status: SignalStatus, error: str = "") -> SignalFile:
    """Return the dispatch in its next status; the timestamp stays that of its creation."""
    after = msgspec.structs.replace(signal, status=status, error=error)
    if not may_follow(signal, after):
        raise ValueError(f"{signal.status} does not become {status}")
    if (status == "error") != bool(error):
        raise ValueError("an error message belongs to the status error, and to no other")
    return after


def may_follow(before: SignalFile | None, after: SignalFile, *, settled: bool = False) -> bool:
    """Return True if one signal may be written over another.

    A new dispatch starts as waiting, and only after the previous one was settled: by its status or,
    with `settled`, by our own decision.
    """
    if before is None:
        return after.status == "waiting"
    row = find_signal("file", f"signal:{before.status}")
    if row is None or after.status not in row.then:
        return False
    if after.status == "waiting":
        over = before.status in ("done", "error") or settled
        return after.dispatch_id > before.dispatch_id and over
    return after.dispatch_id == before.dispatch_id and after.timestamp == before.timestamp


def read_artifact(raw: bytes) -> Artifact | Problem:
    """Return an artifact from its wrapper; an id that is a string or a float is refused."""
    wrapper = read_object(raw)
    if isinstance(wrapper, Problem):
        return wrapper
    if "dispatch_id" not in wrapper:
        return Problem("missing-dispatch-id", "the wrapper has no dispatch_id")
    dispatch_id = wrapper["dispatch_id"]
    if isinstance(dispatch_id, bool) or not isinstance(dispatch_id, int):
        kind = type(dispatch_id).__name__
        return Problem("wrong-dispatch-id", f"dispatch_id is a {kind}, not an integer")
    if dispatch_id not in INT64:
        return Problem("wrong-dispatch-id", "dispatch_id does not fit into 64 bits")
    return _read_data(dispatch_id, wrapper)


def _read_data(dispatch_id: int, wrapper: dict[str, Any]) -> Artifact | Problem:
    if "data" not in wrapper:
        return Problem("missing-data", "the wrapper has no data")
    data = wrapper["data"]
    if data is None:
        return Problem("null-data", "data is null")
    if not isinstance(data, dict):
        return Problem("data-not-an-object", f"data is a {type(data).__name__}, not an object")
    return Artifact(dispatch_id, data)


def encode_artifact(artifact: Artifact) -> bytes:
    return format_json(artifact)
