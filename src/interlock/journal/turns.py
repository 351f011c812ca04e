"""Every turn of a run, case by case: what was asked when, what came back, what it cost.

Reads only, and in few statements, since a look at a run that is at work must be cheap. Prompts are
left where they are.
"""

from collections.abc import Iterator
from typing import Any

import msgspec
from sqlalchemy import Connection

from interlock.engine.case import Decision
from interlock.journal.blobs import read_blob
from interlock.journal.database import driver

_TURNS = (
    "select c.case_id, d.dispatch_id, d.step, d.attempt, d.role, d.at, j.at, j.decision, j.answer,"
    " coalesce(j.tokens, 0), coalesce(j.money, 0.0), coalesce(q.answered_by, '')"
    " from cases c join dispatches d on d.case_no = c.case_no"
    " left join journal j on j.case_no = d.case_no and j.dispatch_id = d.dispatch_id"
    " left join questions q on q.question_id = d.dispatch_id"
    " where c.run_id = ? and (j.seq is not null or c.dispatch_id = d.dispatch_id)"
    " order by c.case_no, d.dispatch_id"
)
_STANDS = (
    "select c.case_id, c.status, coalesce(json_extract(c.state, '$.end'), ''), c.step, c.needs,"
    " coalesce(d.dispatch_id, 0), coalesce(d.role, ''), coalesce(d.at, 0.0)"
    " from cases c left join dispatches d on d.dispatch_id = c.dispatch_id"
    " where c.run_id = ? order by c.case_no"
)
_COSTS = (
    "select c.case_id, sum(u.tokens), sum(u.money) from"
    " (select dispatch_id, tokens, money from journal union all"
    " select dispatch_id, tokens, money from pauses) u"
    " join dispatches d on d.dispatch_id = u.dispatch_id join cases c on c.case_no = d.case_no"
    " where c.run_id = ? group by 1"
)
_REFUSED = (
    "select c.case_id, r.dispatch_id, r.at, r.reason, r.sentence from refusals r"
    " join cases c on c.case_no = r.case_no where r.run_id = ? order by r.refusal_id"
)
_decision = msgspec.json.Decoder(Decision).decode
_names = msgspec.json.Decoder(tuple[str, ...]).decode


class DispatchRecord(msgspec.Struct, frozen=True):
    """One dispatch. Without a decision it is open."""

    case_id: str
    dispatch_id: int
    step: str
    attempt: int
    role: str
    sent_at: float
    answered_at: float | None = None
    decision: Decision | None = None
    answer: Any = None
    tokens: int = 0
    money: float = 0.0
    answered_by: str = ""


class CaseProgress(msgspec.Struct, frozen=True):
    """Where a case stands, as its row says; `role` is who is asked, if anybody is."""

    case_id: str
    status: str
    end: str
    step: str
    needs: tuple[str, ...] = ()
    dispatch_id: int = 0
    role: str = ""
    since: float = 0.0


class RefusalRecord(msgspec.Struct, frozen=True):
    """An answer that was refused."""

    case_id: str
    dispatch_id: int
    at: float
    reason: str
    sentence: str


def turns_of(connection: Connection, run_id: int) -> Iterator[DispatchRecord]:
    """All turns of all cases of a run, those of one case together and in order."""
    raw = driver(connection)
    for row in raw.execute(_TURNS, (run_id,)).fetchall():
        answer = msgspec.json.decode(read_blob(raw, row[8])) if row[8] is not None else None
        decision = _decision(row[7]) if row[7] is not None else None
        yield DispatchRecord(*(*row[:7], decision, answer, *row[9:]))


def stands_of(connection: Connection, run_id: int) -> list[CaseProgress]:
    rows = driver(connection).execute(_STANDS, (run_id,)).fetchall()
    return [CaseProgress(*(*row[:4], _names(row[4]), *row[5:])) for row in rows]


def costs_of(connection: Connection, run_id: int) -> dict[str, tuple[int, float]]:
    """Tokens and money of each case that has cost something."""
    rows = driver(connection).execute(_COSTS, (run_id,)).fetchall()
    return {case_id: (tokens, money) for case_id, tokens, money in rows if tokens or money}


def refused_in(connection: Connection, run_id: int) -> list[RefusalRecord]:
    return [
        RefusalRecord(*row) for row in driver(connection).execute(_REFUSED, (run_id,)).fetchall()
    ]
