"""One line signal's type and payload against the catalogue.

Knows fields, verbs and placeholders. Refuses to know where the line came from.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from interlock.signals.catalogue import row_of, rows
from interlock.signals.columns import SignalRow
from interlock.signals.line_rows import PREFIX
from interlock.signals.reading import Reason

TYPE: Final = re.compile(r"[A-Z][A-Z0-9_]*\Z")
_VERBS: Final = tuple(row.name.partition(":")[2] for row in rows("line") if ":" in row.name)
_WRITE: Final = "CHECKPOINT:WRITE"
_PLACEHOLDER: Final = re.compile(r"\{.*\}\Z|\[.*\]\Z|<.*>\Z")
_ISSUE: Final = re.compile(r"issue:#?(0*[1-9][0-9]{0,17})\Z")
_CONTROL: Final = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")


class LineSignal(msgspec.Struct, frozen=True, tag_field="kind", tag="signal"):
    """A line signal as it was claimed. A repeated one is journaled and has no effect."""

    type: str
    payload: str
    fields: dict[str, str | int]
    where: int
    known: bool = True
    repeated: bool = False

    @property
    def is_success(self) -> bool:
        """Whether this says that the epic succeeded: only in so many words."""
        row = row_of("line", self.type)
        return bool(row and row.passing and self.fields.get("status") == "success")


class LineRefusal(msgspec.Struct, frozen=True, tag_field="kind", tag="refusal"):
    """A line that was meant as a signal and is none, with the reason."""

    sentence: str
    text: str
    where: int
    reason: Reason = Reason.MALFORMED


def read_payload(kind: str, payload: str, where: int) -> LineSignal | str:
    """The signal, or the sentence that says why it is refused."""
    if not TYPE.match(kind):
        return f"a type is upper case: {PREFIX}{kind.upper()[:40]}"
    if _CONTROL.search(payload):
        return "a payload holds no control characters"
    if kind == "CHECKPOINT":
        return _checkpoint(payload, where)
    row = row_of("line", kind)
    if row is None:
        return LineSignal(kind, payload, {}, where, known=False)
    return _fill(row, payload, where)


def _checkpoint(payload: str, where: int) -> LineSignal | str:
    verb, _, rest = payload.partition(":")
    if verb == "MISSING":
        return LineSignal("CHECKPOINT:MISSING", rest, {}, where)
    if verb in _VERBS:
        row = row_of("line", f"CHECKPOINT:{verb}")
        return _fill(row, rest, where) if row else f"{verb} is unknown"
    row = row_of("line", _WRITE)
    if row is None or payload.count(":") != 3:
        return f"CHECKPOINT takes {', '.join(_VERBS)}, or exactly epic:story:phase:task"
    return _fill(row, payload, where)


def _fill(row: SignalRow, payload: str, where: int) -> LineSignal | str:
    fields = _fields(row, payload)
    lacking = [field.name for field in row.payload if field.required and field.name not in fields]
    if lacking:
        return f"{row.name} lacks {', '.join(lacking)}: write {row.template}"
    return LineSignal(row.name, payload, fields, where)


def _fields(row: SignalRow, payload: str) -> dict[str, str | int]:
    if not payload or not row.payload:
        return {}
    if row.payload[0].kind == "number":
        issue = _ISSUE.match(payload.strip())
        return {row.payload[0].name: int(issue[1])} if issue else {}
    values = [value.strip() for value in payload.split(":", len(row.payload) - 1)]
    named = zip((field.name for field in row.payload), values, strict=False)
    return {name: value for name, value in named if value and not _PLACEHOLDER.match(value)}


def canonical_line(
    kind: str, payload: str | Sequence[str] | Mapping[str, str] | None = None
) -> str:
    """The one line to print for a signal. A ValueError says why it would be refused."""
    text = _joined(kind, payload)
    line = f"{PREFIX}{kind}:{text}" if text else f"{PREFIX}{kind}"
    name, _, rest = line.removeprefix(PREFIX).partition(":")
    read = read_payload(name, rest, 1)
    if isinstance(read, str):
        raise ValueError(read)
    return line


def _joined(kind: str, payload: str | Sequence[str] | Mapping[str, str] | None) -> str:
    if payload is None or isinstance(payload, str):
        return " ".join((payload or "").split())
    row = row_of("line", kind)
    names = [field.name for field in row.payload] if row else list(payload)
    values = [payload.get(n, "") for n in names] if isinstance(payload, Mapping) else list(payload)
    values = [" ".join(value.split()) for value in values]
    if any(":" in value for value in values[:-1]):
        raise ValueError("only the last field may hold a colon")
    if row and row.payload and row.payload[0].kind == "number":
        values = [f"issue:{value}" for value in values if value]
    return ":".join(values).rstrip(":")
