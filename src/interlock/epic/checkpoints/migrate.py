"""A checkpoint from bytes: version 2, or one of the four shapes that older tools have left.

Knows how to tell a damaged file from a wrong one and from one of the future. What a shape has and
version 2 has no field for is kept under `extra`. Refuses to know where the bytes came from.
"""

from typing import Any, Final, Literal

import msgspec

from interlock.epic.checkpoints.checkpoint import VERSION, Checkpoint
from interlock.epic.checkpoints.checkpoint_file import LARGEST, checksum, faults, unsound
from interlock.epic.checkpoints.legacy import InvalidError, LegacyFields
from interlock.epic.checkpoints.legacy_shapes import ad_hoc, epic_state, flat, nested
from interlock.system.strict_json import Problem, decode_object

Shape = Literal["version-2", "nested-1.0", "flat-1.0", "ad-hoc", "epic-state"]
UnreadKind = Literal["MISSING", "CORRUPT", "INVALID", "VERSION"]
ErrorCode = Literal["NO_CHECKPOINT", "CHECKPOINT_CORRUPT"]
_OLD: Final = "1.0"


class ReadCheckpoint(msgspec.Struct, frozen=True):
    """A sound checkpoint, and the shape it was found in."""

    checkpoint: Checkpoint
    shape: Shape


class UnreadableCheckpoint(msgspec.Struct, frozen=True):
    """Why there is no checkpoint to be had."""

    kind: UnreadKind
    sentence: str

    @property
    def code(self) -> ErrorCode:
        """The error code of the signals: it does not tell damaged, wrong and newer apart."""
        return "NO_CHECKPOINT" if self.kind == "MISSING" else "CHECKPOINT_CORRUPT"


def read_checkpoint(raw: bytes) -> ReadCheckpoint | UnreadableCheckpoint:
    """The checkpoint in a file, or why there is none."""
    if len(raw) > LARGEST:
        return UnreadableCheckpoint("CORRUPT", f"it has more than {LARGEST:,} bytes")
    value = decode_object(raw)
    if isinstance(value, Problem):
        return UnreadableCheckpoint("CORRUPT", value.sentence)
    wrong = unsound(value)
    if wrong:
        return UnreadableCheckpoint("CORRUPT", wrong)
    try:
        return _understood(value)
    except InvalidError as error:
        return UnreadableCheckpoint("INVALID", str(error))


def _understood(value: dict[str, Any]) -> ReadCheckpoint | UnreadableCheckpoint:
    version, body = value.get("version"), dict(value)
    said = body.pop("checksum", None)
    # What is signed must be as it was signed, whatever it then claims to be.
    if said is not None and said != checksum(body):
        return UnreadableCheckpoint("CORRUPT", "its checksum does not fit its content")
    if version == VERSION and isinstance(version, int):
        return _version_2(body, signed=said is not None)
    if version is not None and version != _OLD:
        return _other_version(version)
    shape = shape_of(value)
    if shape is None:
        raise InvalidError("it has none of the known shapes: no epic is named where one should be")
    left = LegacyFields(value)
    left.drop("version", "checksum")
    readers = {"nested-1.0": nested, "flat-1.0": flat, "ad-hoc": ad_hoc, "epic-state": epic_state}
    checkpoint = readers[shape](left)
    checkpoint = msgspec.structs.replace(checkpoint, extra=left.rest())
    return _checked(checkpoint, shape)


def shape_of(value: dict[str, Any]) -> Shape | None:
    """Which of the older shapes this is, by what it names."""
    epic = value.get("epic")
    if isinstance(epic, dict):
        return "nested-1.0"
    if "epic_id" in value:
        return "flat-1.0" if value.get("version") == _OLD else "epic-state"
    return "ad-hoc" if isinstance(epic, str) else None


def _other_version(version: Any) -> UnreadableCheckpoint:
    if not isinstance(version, str | int | float) or isinstance(version, bool):
        raise InvalidError("version is no number")
    shown = str(version)[:20]
    whole = shown.partition(".")[0]
    newer = whole.isdecimal() and int(whole) >= VERSION
    if newer:
        sentence = f"it has version {shown}, and this Interlock knows {VERSION}: use a newer one"
    else:
        sentence = f"it has version {shown!r}, which is not known; known are 1.0 and {VERSION}"
    return UnreadableCheckpoint("VERSION", sentence)


def _version_2(body: dict[str, Any], signed: bool) -> ReadCheckpoint | UnreadableCheckpoint:
    if not signed:
        return UnreadableCheckpoint("CORRUPT", "it has no checksum")
    try:
        checkpoint = msgspec.convert(body, Checkpoint)
    except msgspec.ValidationError as error:
        raise InvalidError(str(error)) from None
    unknown = _unknown(body, msgspec.to_builtins(checkpoint))
    if unknown:
        extra = {**checkpoint.extra, **unknown}
        checkpoint = msgspec.structs.replace(checkpoint, extra=extra)
    return _checked(checkpoint, "version-2")


def _unknown(given: Any, known: Any) -> dict[str, Any]:
    """The fields of `given` that `known` lacks, in their places; a list's under their numbers."""
    if isinstance(given, list):
        given = {str(at): each for at, each in enumerate(given)}
        known = {str(at): each for at, each in enumerate(known)}
    if not isinstance(given, dict) or not isinstance(known, dict):
        return {}
    found: dict[str, Any] = {}
    for name, value in given.items():
        part = _unknown(value, known[name]) if name in known else value
        if name not in known or part:
            found[name] = part
    return found


def _checked(checkpoint: Checkpoint, shape: Shape) -> ReadCheckpoint | UnreadableCheckpoint:
    wrong = faults(checkpoint)
    if wrong:
        raise InvalidError("; ".join(wrong[:5]))
    return ReadCheckpoint(checkpoint, shape)
