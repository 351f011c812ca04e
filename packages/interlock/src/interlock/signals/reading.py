"""The result of reading a message: a signal, or a refusal that says what to write."""

from enum import StrEnum
from typing import Any

import msgspec


class Reason(StrEnum):
    """The reason a message was refused; earlier reasons win over later ones."""

    STALE = "Stale"
    WRONG_ROLE = "WrongRole"
    AMBIGUOUS = "Ambiguous"
    WRONG_TASK = "WrongTask"
    MALFORMED = "Malformed"
    UNKNOWN = "Unknown"
    MISSING = "Missing"


class Accepted(msgspec.Struct, frozen=True, tag=True):
    """A claim that may be acted on: its sender and its task have been checked."""

    signal: str
    subject: str | None
    fields: dict[str, Any]
    notes: tuple[str, ...]
    where: int


class SignalRefused(msgspec.Struct, frozen=True, tag="Refused"):
    """A refusal; `sentence` tells the agent what to write, `where` is a line number."""

    reason: Reason
    sentence: str
    where: int | None = None


Reading = Accepted | SignalRefused
