"""What a piece of a human comment can say, and where it says it.

Knows the kinds. Refuses to know the words that make them, and which of them wins.
"""

from enum import StrEnum

import msgspec


class Kind(StrEnum):
    """What a sentence or clause says."""

    APPROVE = "approval"
    REFUSE = "refusal"
    HALT = "halt"
    CHANGE = "change or fault"
    CONDITION = "condition"
    EXCEPTION = "exception"
    HEDGE = "hedge"
    DISCUSS = "wish to talk"
    DEFER = "deferral"
    WAIT = "hold"
    NEGATION = "negation"
    QUESTION = "question"
    SARCASM = "sarcasm mark"
    BACK = "taking back"
    RESET = "fresh start"
    SETTLED = "settled now"
    REMARK = "remark that does not block"
    ABOUT = "word that the remark before does not block"
    PAST = "earlier refusal"
    HEARSAY = "wish or hearsay"
    FOREIGN = "word that is not English"
    UNKNOWN = "something else"
    FINE = "nothing against it"


class Piece(msgspec.Struct, frozen=True):
    """One thing seen at one place."""

    kind: Kind
    start: int
    end: int
