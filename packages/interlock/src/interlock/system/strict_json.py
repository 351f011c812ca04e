"""Read JSON from outside: one value, every name once, bounded depth; or the reason why not.

Stricter than JSON: an object that names a field twice is ambiguous, and a text with a NUL ends
early in other programs. Nothing is guessed. A byte order mark is accepted; NaN, numbers out of
range, half surrogate pairs and invalid UTF-8 are not.
"""

import json
import re
from typing import Any, Final, Literal, NoReturn, TypeVar

import msgspec

Record = TypeVar("Record", bound=msgspec.Struct)
LARGEST: Final = 1 << 26
MAX_DEPTH: Final = 60
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
    """The reason JSON was refused: the kind of fault, and a sentence."""

    kind: ProblemKind
    sentence: str

    @property
    def may_be_partial(self) -> bool:
        """Return True if the writer may not be done: worth one more read after a short delay."""
        return self.kind in ("empty", "not-utf8", "invalid-json")

    @property
    def is_stale(self) -> bool:
        """Return True if the file names no dispatch of ours: it is ignored until the timeout."""
        return self.kind in ("missing-dispatch-id", "wrong-dispatch-id")


_BOM: Final = b"\xef\xbb\xbf"
_NUL: Final = re.compile(rb"(?<!\\)(?:\\\\)*\\u0000")
_STRING: Final = re.compile(rb'"(?:[^"\\]+|\\.)*"')
_PAIRS: Final = re.compile(rb"(?:\[\]|\{\})+")
_SAME: Final = bytes.maketrans(b"", b"")
_NO_BRACKETS: Final = bytes(set(range(256)) - set(b"[]{}"))
_HALF: Final = re.compile(rb"(?i)\\ud[89a-f]")
_TOO_DEEP: Final = Problem("too-deep", f"it is nested deeper than {MAX_DEPTH} levels")


class _ConstantError(ValueError):
    """The text contains NaN or an infinity."""


class _DuplicateKeyError(ValueError):
    """A name is written twice in one object."""


def read_json(raw: bytes) -> Any | Problem:
    """Return the one value in `raw`, or the problem that prevents it.

    msgspec reads what is right; what it tolerates is found by encoding the value again. A second
    reader runs only where that may hide something.
    """
    if len(raw) > LARGEST:
        return Problem("too-large", f"it has more than {LARGEST:,} bytes")
    content = raw.removeprefix(_BOM)
    try:
        value = msgspec.json.decode(content)
        written = msgspec.json.encode(value)
        if content.count(b"{") + content.count(b"[") > MAX_DEPTH and _is_too_deep(written):
            return _TOO_DEEP
        # Without escapes, a dropped duplicate name shows as two quotes fewer.
        if b"\\" in content or content.count(b'"') != written.count(b'"'):
            json.loads(content, object_pairs_hook=_check_names)
    except RecursionError:
        return _TOO_DEEP
    except _DuplicateKeyError as error:
        return Problem("duplicate-key", f"{error} is written twice")
    except ValueError as error:
        return _explain_error(content, error)
    if b"u0000" in written and _NUL.search(written):
        return Problem("invalid-json", "there is a NUL character in it")
    return value


def read_object(raw: bytes) -> dict[str, Any] | Problem:
    """Return the JSON object in `raw`, or the problem that prevents it."""
    value = read_json(raw)
    if isinstance(value, dict | Problem):
        return value
    return Problem("not-an-object", f"it holds a {_name_type(value)}, not an object")


def _explain_error(content: bytes, error: ValueError) -> Problem:
    if not content.strip():
        return Problem("empty", "it is empty")
    try:
        content.decode()
    except UnicodeDecodeError as wrong:
        return Problem("not-utf8", f"it is not UTF-8: {wrong.reason}")
    why = str(error).removeprefix("JSON is malformed: ")
    # Python's own reader is laxer: what it accepts is wrong for a reason we can name.
    try:
        json.loads(content, object_pairs_hook=_check_names, parse_constant=_refuse_constant)
        half = _HALF.search(content)
        why = "half a surrogate pair" if half else "a number is out of range"
    except _DuplicateKeyError as twice:
        return Problem("duplicate-key", f"{twice} is written twice")
    except _ConstantError as constant:
        why = f"{constant} is not a JSON number"
    except RecursionError:
        return _TOO_DEEP
    except ValueError:
        pass
    return Problem("invalid-json", f"it is not valid JSON: {why}")


def _refuse_constant(name: str) -> NoReturn:
    raise _ConstantError(name)


def _check_names(pairs: list[tuple[str, Any]]) -> None:
    seen: set[str] = set()
    for name, _ in pairs:
        if name in seen:
            raise _DuplicateKeyError(repr(name[:80]))
        seen.add(name)


def _is_too_deep(written: bytes) -> bool:
    """Return True if brackets remain after removing the innermost pairs 60 times."""
    brackets = _STRING.sub(b"", written).translate(_SAME, _NO_BRACKETS)
    for _ in range(MAX_DEPTH):
        if not brackets:
            return False
        brackets = _PAIRS.sub(b"", brackets)
    return bool(brackets)


def _name_type(value: object) -> str:
    return {list: "list", str: "string", type(None): "null", bool: "boolean"}.get(
        type(value), "number"
    )


def format_json(value: object) -> bytes:
    """Return JSON in the seeds' layout: two spaces, one field per line, a newline at the end."""
    plain = msgspec.to_builtins(value)
    return json.dumps(plain, indent=2, ensure_ascii=False).encode() + b"\n"


def read_record(raw: bytes, record: type[Record]) -> Record | Problem:
    """Return the file as a record with numbers of at most 64 bits; unknown fields are ignored."""
    value = read_object(raw)
    if isinstance(value, Problem):
        return value
    try:
        found = msgspec.convert(value, record)
    except msgspec.ValidationError as error:
        return Problem("wrong-field", str(error))
    wide = next(
        (name for name in record.__struct_fields__ if _is_too_wide(getattr(found, name))), ""
    )
    return Problem("wrong-field", f"{wide} does not fit into 64 bits") if wide else found


def _is_too_wide(value: object) -> bool:
    return isinstance(value, int) and value not in INT64
