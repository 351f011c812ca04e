"""Questions at gates: what became of one that is not open, and which open ones belong together.

Reads only. A question is the dispatch of a gate; asked again, it has another number.
"""

from typing import Any

import msgspec
from sqlalchemy import Connection

from interlock.journal.blobs import read_blob
from interlock.journal.database import driver, is_number
from interlock.journal.history import OpenGate, open_questions


class SettledQuestion(msgspec.Struct, frozen=True):
    """A question that was asked at a gate, and how it was settled, if it was."""

    question_id: int
    run_id: int
    case_no: int
    case_id: str
    step: str
    answered_by: str | None
    settled_at: float | None
    signal: str | None
    now_asked: int | None
    """The dispatch its case waits for now."""


def find_question(connection: Connection, question_id: int) -> SettledQuestion | None:
    """A gate's question that was asked once, open or not, and what became of it."""
    query = (
        "select q.question_id, c.run_id, c.case_no, c.case_id, d.step, q.answered_by,"
        " j.at, json_extract(j.decision, '$.signal'), c.dispatch_id"
        " from questions q join dispatches d on d.dispatch_id = q.question_id"
        " join cases c on c.case_no = q.case_no"
        " left join journal j on j.case_no = q.case_no and j.dispatch_id = q.question_id"
        " where q.question_id = ?"
    )
    number = question_id if is_number(question_id) else 0
    row = driver(connection).execute(query, (number,)).fetchone()
    return SettledQuestion(*row) if row else None


def family_of(connection: Connection, question: OpenGate) -> list[OpenGate]:
    """The other open questions at the same step of the same run, about cases of one family: those
    whose input names the same `family`."""
    own = _family(connection, question)
    return [
        each
        for each in open_questions(connection)
        if (each.run_id, each.step) == (question.run_id, question.step)
        and each.question_id != question.question_id
        and own is not None
        and _family(connection, each) == own
    ]


def _family(connection: Connection, question: OpenGate) -> Any:
    raw = driver(connection)
    (blob,) = raw.execute(
        "select input from cases where run_id = ? and case_id = ?",
        (question.run_id, question.case_id),
    ).fetchone()
    return msgspec.json.decode(read_blob(raw, blob)).get("family")
