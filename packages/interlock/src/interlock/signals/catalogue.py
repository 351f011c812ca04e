"""Read the one table of signals, and answer questions about it.

The rows stand in `catalogue.toml`, which is read and checked on first use. Parsers, schemas, pages,
prompts and skills are made from them; nothing here parses messages. The sections of a text signal
are not listed separately: they are the labels of its template.
"""

import re
import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Final, Literal, get_args

import msgspec

Protocol = Literal["text", "line", "file"]
Subject = Literal["task", "request", "expert", "path"]
SectionKind = Literal[
    "text", "list", "files", "issues", "checks", "criteria", "pairs", "names", "name", "choice"
]
ProtocolFile = Literal["signal", "batch", "entry"]
FieldKind = Literal["id", "text", "number", "choice", "int64", "path", "timestamp"]

WorkingRole = Literal[
    "developer",
    "critic",
    "auditor",
    "business-analyst",
    "remediation",
    "health-auditor",
    "expert",
    "expert-creator",
]
Role = Literal[WorkingRole, "coordinator", "responder", "session"]
WORKING: Final[tuple[WorkingRole, ...]] = get_args(WorkingRole)
"""The roles that do dispatched work, and answer with text signals."""
ANYONE: Final = "anyone"
"""Stands for an unknown author of a transcript, whose authority is not checked."""
PREFIX: Final = "SAGE_SIGNAL:"


class Section(msgspec.Struct, frozen=True):
    """One labelled part of a text signal's body."""

    label: str
    kind: SectionKind = "text"
    choices: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        return self.label.lower().replace(" ", "_").replace("-", "_")


class SignalField(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One field of a line signal's payload or of a protocol file."""

    name: str
    kind: FieldKind = "id"
    choices: tuple[str, ...] = ()
    required: bool = False


class SignalRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One signal; a text signal as `catalogue.toml` has it. `template` is the seed's own form, to
    the letter."""

    name: str
    protocol: Protocol = "text"
    asks: str
    roles: tuple[Role, ...]
    key: str = ""
    handler: str = ""
    subject: Subject | None = None
    payload: tuple[SignalField, ...] = ()
    sections: tuple[Section, ...] = ()
    requires: tuple[tuple[str, ...], ...] = ()
    template: str = ""
    closing: str = ""
    level: int = 5
    terminal: bool = True
    passing: bool = False
    """The signal lets work continue."""
    verdict: bool = False
    """The signal passes another role's work; signals the role may not send spoil it."""
    alone: bool = False
    """Nothing but the signal's own template may stand beside it."""
    then: tuple[str, ...] = ()

    @property
    def word(self) -> str:
        """The word before the colon: HEALTH_AUDIT for both of its values."""
        return self.name.partition(":")[0]

    @property
    def grammar(self) -> str:
        """The first line in the seeds' notation."""
        return self.template.partition("\n")[0]


class _LineRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    name: str
    asks: str
    terminal: bool = False
    passing: bool = False
    payload: tuple[SignalField, ...] = ()


class _StatusRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    file: ProtocolFile
    status: str
    asks: str
    roles: tuple[Role, ...]
    then: tuple[str, ...] = ()


class _Catalogue(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The content of `catalogue.toml`."""

    aliases: dict[str, Role]
    section_kinds: dict[SectionKind, tuple[str, ...]]
    text: tuple[SignalRow, ...]
    line: tuple[_LineRow, ...]
    fields: dict[ProtocolFile, tuple[SignalField, ...]]
    status: tuple[_StatusRow, ...]


@cache
def _read_catalogue() -> _Catalogue:
    text = files("interlock.signals").joinpath("catalogue.toml").read_text(encoding="utf-8")
    return msgspec.convert(tomllib.loads(text), _Catalogue)


_LABEL: Final = re.compile(r"(?m)^([A-Z][A-Za-z -]*)(?: \([^)]*\))?:(?: (.+))?$")
_CHOICE: Final = re.compile(r"\[([^|\]]+(?: \| [^|\]]+)+)\]$")


def _find_sections(row: SignalRow, kinds: Mapping[str, SectionKind]) -> tuple[Section, ...]:
    """Return the labelled sections of a signal, in the order of its template."""
    body = row.template.partition("\n")[2].replace(row.closing or "\0", "")
    found = [_build_section(label[1], label[2] or "", kinds) for label in _LABEL.finditer(body)]
    if "DELEGATION PROMPT" in row.template:
        found += [Section("Task", kinds["Task"]), Section("Prompt")]
    return tuple(found)


def _build_section(label: str, sample: str, kinds: Mapping[str, SectionKind]) -> Section:
    choice = _CHOICE.match(sample)
    options = tuple(choice[1].split(" | ")) if choice else ()
    if options and (all(map(str.isupper, options)) or all(map(str.islower, options))):
        return Section(label, "choice", options)
    # Other signals have a list under this label; here it is a number or a remark.
    plain = sample == "[count]" or bool(options)
    return Section(label, "text" if plain else kinds.get(label, "text"))


def _build_line_row(row: _LineRow) -> SignalRow:
    form = "".join(
        f":issue:{{{field.name}_number}}" if field.kind == "number" else f":{{{field.name}}}"
        for field in row.payload
    )
    return SignalRow(
        protocol="line",
        roles=("session", "coordinator") if row.name.startswith("HITL_") else ("session",),
        template=f"{PREFIX}{row.name}{form}",
        **msgspec.structs.asdict(row),
    )


def _build_status_row(row: _StatusRow, fields: tuple[SignalField, ...]) -> SignalRow:
    return SignalRow(
        name=f"{row.file}:{row.status}",
        protocol="file",
        asks=row.asks,
        roles=row.roles,
        payload=tuple(msgspec.structs.replace(field, required=True) for field in fields),
        template=f'"status": "{row.status}"',
        terminal=row.status in ("done", "error"),
        passing=row.status == "done",
        then=row.then,
    )


@cache
def list_signals(protocol: Protocol | None = None) -> tuple[SignalRow, ...]:
    if protocol:
        return tuple(row for row in list_signals() if row.protocol == protocol)
    table = _read_catalogue()
    kinds = {label: kind for kind, labels in table.section_kinds.items() for label in labels}
    return (
        *(msgspec.structs.replace(row, sections=_find_sections(row, kinds)) for row in table.text),
        *(_build_line_row(row) for row in table.line),
        *(_build_status_row(row, table.fields[row.file]) for row in table.status),
    )


@cache
def _index_by_name(protocol: Protocol) -> dict[str, SignalRow]:
    return {row.name: row for row in list_signals(protocol)}


def find_signal(protocol: Protocol, name: str) -> SignalRow | None:
    return _index_by_name(protocol).get(name)


def normalize_role(role: str) -> str:
    """Return the catalogue's name of a role; an unknown role is unchanged and may say nothing."""
    plain = role.strip().lower().replace("_", "-").replace(" ", "-")
    return _read_catalogue().aliases.get(plain, plain)


def may_send(role: str, row: SignalRow) -> bool:
    return role in row.roles or role == ANYONE


def list_role_signals(role: str, protocol: Protocol = "text") -> tuple[SignalRow, ...]:
    role = normalize_role(role)
    return tuple(row for row in list_signals(protocol) if row.roles and may_send(role, row))
