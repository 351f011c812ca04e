"""The columns of the signal catalogue, and the roles its rows name.

Knows what can be said of a signal. Refuses to know any signal: the rows stand in text_rows,
line_rows and file_rows.
"""

from typing import Final, Literal

import msgspec

Protocol = Literal["text", "line", "file"]
Subject = Literal["task", "request", "expert", "path"]
SectionKind = Literal[
    "text", "list", "files", "issues", "checks", "criteria", "pairs", "names", "name", "choice"
]
FieldKind = Literal["id", "text", "number", "choice", "int64", "path", "timestamp"]

DEVELOPER: Final = "developer"
CRITIC: Final = "critic"
AUDITOR: Final = "auditor"
ANALYST: Final = "business-analyst"
REMEDIATION: Final = "remediation"
HEALTH: Final = "health-auditor"
EXPERT: Final = "expert"
CREATOR: Final = "expert-creator"
BASELINE: Final = (DEVELOPER, CRITIC, AUDITOR, ANALYST, REMEDIATION, HEALTH)
WORKING: Final = (*BASELINE, EXPERT, CREATOR)
COORDINATOR: Final = "coordinator"
RESPONDER: Final = "responder"
SESSION: Final = "session"


class Section(msgspec.Struct, frozen=True):
    """One labelled part of a text signal's body."""

    label: str
    kind: SectionKind = "text"
    choices: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        return self.label.lower().replace(" ", "_").replace("-", "_")


class SignalField(msgspec.Struct, frozen=True):
    """One field of a line signal's payload or of a protocol file."""

    name: str
    kind: FieldKind = "id"
    choices: tuple[str, ...] = ()
    required: bool = False


class SignalRow(msgspec.Struct, frozen=True, kw_only=True):
    """One signal. `template` is the seed's own form of it, to the letter."""

    name: str
    protocol: Protocol
    asks: str
    roles: tuple[str, ...]
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
    verdict: bool = False
    then: tuple[str, ...] = ()

    @property
    def word(self) -> str:
        """What stands before the colon: HEALTH_AUDIT for both of its values."""
        return self.name.partition(":")[0]

    @property
    def grammar(self) -> str:
        """The first line in the seeds' notation."""
        return self.template.partition("\n")[0]
