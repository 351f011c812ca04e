"""Visits: every dispatch of a case that was decided, with its answer, its size and its time.

Reads the journal as it is; refuses to know what an answer is worth.
"""

from collections.abc import Mapping
from typing import Any

import msgspec
from sqlalchemy import Connection

from interlock.engine.case import Decision
from interlock.engine.circuit import FAILURES
from interlock.journal.blobs import read_blob
from interlock.journal.database import driver

_VISITS = (
    "select j.decision, j.answer, d.prompt, d.at, j.at, j.tokens, j.money from journal j"
    " join dispatches d on d.dispatch_id = j.dispatch_id"
    " where j.case_no = ? order by j.dispatch_id"
)
_decision = msgspec.json.Decoder(Decision).decode


class Visit(msgspec.Struct, frozen=True):
    """One asking that came to a decision."""

    decision: Decision
    data: Mapping[str, Any]
    prompt_bytes: int
    answer_bytes: int
    sent_at: float
    answered_at: float
    tokens: int
    money: float

    @property
    def failed(self) -> bool:
        """Nothing usable came back."""
        return self.decision.signal in FAILURES


def visits_of(connection: Connection, case_no: int) -> list[Visit]:
    """The decided dispatches of a case, in order."""
    raw = driver(connection)
    found: list[Visit] = []
    for decision, answer, prompt, sent, at, tokens, money in raw.execute(_VISITS, (case_no,)):
        body = read_blob(raw, answer)
        size = len(read_blob(raw, prompt))
        data = msgspec.json.decode(body)
        found.append(Visit(_decision(decision), data, size, len(body), sent, at, tokens, money))
    return found
