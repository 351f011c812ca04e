"""JSON from files that others write: one value, or the reason why not.

Knows encodings, duplicate keys, depth and size. Refuses to know any file's fields.
"""

import json
from typing import Any, Final, Literal, NoReturn, TypeVar

import msgspec

Record = TypeVar("Record", bound=msgspec.Struct)
LARGEST: Final = 1 << 26
INT64: Final = range(-(2**63), 2**63)
ProblemKind = Literal[
    "empty",
    "too-large",
    "not-utf8",
    "invalid-json",
    "too-deep",
    "duplicate-key",
    "not-an-object",
    "missing-dispatch-id",
    "wrong-dispatch-id",
    "missing-data",
    "null-data",
    "data-not-an-object",
    "wrong-field",
]


class Problem(msgspec.Struct, frozen=True):
    """Why a file could not be taken."""

    kind: ProblemKind
    sentence: str

    @property
    def may_be_partial(self) -> bool:
        """Whether the writer may just not be done: worth one more read after a short delay."""
        return self.kind in ("empty", "not-utf8", "invalid-json")

    @property
    def is_stale(self) -> bool:
        """Whether the file names no dispatch we could have made: ignored until the timeout."""
        return self.kind in ("missing-dispatch-id", "wrong-dispatch-id")


class _DuplicateKeyError(ValueError):
    """A key stands twice in one object."""


def decode_object(raw: bytes) -> dict[str, Any] | Problem:
    """The JSON object in a file, every key of it and of its parts once."""
    if len(raw) > LARGEST:
        return Problem("too-large", f"the file has more than {LARGEST} bytes")
    if not raw.strip():
        return Problem("empty", "the file is empty")
    try:
        value = json.loads(
            raw.decode("utf-8-sig"), object_pairs_hook=_once, parse_constant=_no_constant
        )
    except UnicodeDecodeError as error:
        return Problem("not-utf8", f"the file is not UTF-8: {error.reason}")
    except _DuplicateKeyError as error:
        return Problem("duplicate-key", f"the key {error} stands twice in one object")
    except ValueError as error:
        return Problem("invalid-json", f"the file is no valid JSON: {error}")
    except RecursionError:
        return Problem("too-deep", "the JSON is nested too deep")
    if not isinstance(value, dict):
        return Problem("not-an-object", f"the file holds a {_kind(value)}, not an object")
    return value


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise _DuplicateKeyError(name[:80])
        found[name] = value
    return found


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON number")


def _kind(value: object) -> str:
    return {list: "list", str: "string", type(None): "null", bool: "boolean"}.get(
        type(value), "number"
    )


def encode_pretty(value: object) -> bytes:
    """Two spaces, one field per line, a newline at the end: the seeds' layout."""
    plain = msgspec.to_builtins(value)
    return json.dumps(plain, indent=2, ensure_ascii=False).encode() + b"\n"


def decode_record(raw: bytes, record: type[Record]) -> Record | Problem:
    """A file as a record, its numbers in 64 bits. Fields we do not know are left alone."""
    value = decode_object(raw)
    if isinstance(value, Problem):
        return value
    try:
        found = msgspec.convert(value, record)
    except msgspec.ValidationError as error:
        return Problem("wrong-field", str(error))
    wide = next((name for name in record.__struct_fields__ if _too_wide(getattr(found, name))), "")
    return Problem("wrong-field", f"{wide} does not fit into 64 bits") if wide else found


def _too_wide(value: object) -> bool:
    return isinstance(value, int) and value not in INT64
