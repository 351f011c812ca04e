"""What comes out of reading a message: a signal, or a refusal that says what to write."""

from enum import StrEnum
from typing import Any

import msgspec


class Reason(StrEnum):
    """Why a message was refused, in the order in which reasons win over each other."""

    STALE = "Stale"
    WRONG_ROLE = "WrongRole"
    AMBIGUOUS = "Ambiguous"
    WRONG_TASK = "WrongTask"
    MALFORMED = "Malformed"
    UNKNOWN = "Unknown"
    MISSING = "Missing"


class Accepted(msgspec.Struct, frozen=True, tag=True):
    """A claim that may be acted on: who said it and for which task has been checked."""

    signal: str
    subject: str | None
    fields: dict[str, Any]
    notes: tuple[str, ...]
    where: int


class SignalRefused(msgspec.Struct, frozen=True, tag="Refused"):
    """Nothing to act on; `sentence` tells the agent what to write, `where` is a line number."""

    reason: Reason
    sentence: str
    where: int | None = None


Reading = Accepted | SignalRefused
