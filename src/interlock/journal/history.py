"""What readers ask of the journal: the life of a case, how a run stands, who is asked what.

Knows only committed rows, and changes none.
"""

from collections import Counter
from collections.abc import Iterator
from hashlib import blake2b
from typing import Any

import msgspec
from sqlalchemy import Connection, Row, select

from interlock.engine.case import Decision
from interlock.journal import schema
from interlock.journal.blobs import read_blob
from interlock.journal.database import driver
from interlock.journal.journal import Pause, State
from interlock.journal.runs import MOST_RUNS
from interlock.journal.standstill import pauses_in
from interlock.system.errors import StoreError

_decision = msgspec.json.Decoder(Decision).decode
_state = msgspec.json.Decoder(State).decode


class CaseSummary(msgspec.Struct, frozen=True):
    """A case as its row shows it."""

    case_no: int
    case_id: str
    run_id: int
    status: str
    step: str
    dispatch_id: int | None
    state: State


class RefusalRecord(msgspec.Struct, frozen=True):
    """An answer that was not accepted."""

    at: float
    reason: str
    sentence: str
    content: str


class DispatchRecord(msgspec.Struct, frozen=True):
    """One dispatch: what was asked, what came back, what was decided."""

    dispatch_id: int
    step: str
    attempt: int
    role: str
    sent_at: float
    prompt: str
    refused: list[RefusalRecord] = []
    pauses: list[Pause] = []
    answered_at: float | None = None
    answer: Any = None
    decision: Decision | None = None
    answered_by: str | None = None


class JournalLine(msgspec.Struct, frozen=True):
    """One decision in the order of the journal."""

    seq: int
    at: float
    case_id: str
    dispatch_id: int
    decision: Decision


class OpenGate(msgspec.Struct, frozen=True):
    """A gate that waits for a human."""

    question_id: int
    run_id: int
    case_id: str
    step: str
    asked_at: float
    prompt: str


def cases_of(connection: Connection, run_id: int) -> list[CaseSummary]:
    cases = schema.cases
    query = select(cases).where(cases.c.run_id == run_id).order_by(cases.c.case_no)
    return [_case_line(row) for row in connection.execute(query)]


def find_case(connection: Connection, case_id: str, run_id: int | None = None) -> CaseSummary:
    """That case, in that run or in the newest run that has it."""
    cases = schema.cases
    query = select(cases).where(cases.c.case_id == case_id).order_by(cases.c.run_id.desc())
    if run_id is not None:
        query = query.where(cases.c.run_id == run_id)
    row = connection.execute(query.limit(1)).first() if abs(run_id or 0) <= MOST_RUNS else None
    if row is None:
        where = "any run" if run_id is None else f"run {run_id}"
        raise StoreError(f"there is no case {case_id[:80]!r} in {where}; see 'interlock status'")
    return _case_line(row)


def counts(connection: Connection, run_id: int) -> Counter[str]:
    """How many cases are open, stuck, or at which end."""
    found: Counter[str] = Counter()
    for line in cases_of(connection, run_id):
        found[line.state.end or line.status] += 1
    return found


def life_of(connection: Connection, case_no: int) -> list[DispatchRecord]:
    """All dispatches of a case, in order."""
    raw = driver(connection)
    rows = raw.execute(
        "select d.dispatch_id, d.step, d.attempt, d.role, d.at, d.prompt,"
        " j.at, j.answer, j.decision, q.answered_by from dispatches d"
        " left join journal j on j.case_no = d.case_no and j.dispatch_id = d.dispatch_id"
        " left join questions q on q.question_id = d.dispatch_id"
        " where d.dispatch_id in (select dispatch_id from journal where case_no = ? union"
        " select dispatch_id from cases where case_no = ?) order by d.dispatch_id",
        (case_no, case_no),
    ).fetchall()
    return [
        DispatchRecord(
            dispatch_id=row[0],
            step=row[1],
            attempt=row[2],
            role=row[3],
            sent_at=row[4],
            prompt=read_blob(raw, row[5]).decode(),
            refused=list(_refused(connection, row[0])),
            pauses=pauses_in(connection, row[0]),
            answered_at=row[6],
            answer=msgspec.json.decode(read_blob(raw, row[7])) if row[7] is not None else None,
            decision=_decision(row[8]) if row[8] is not None else None,
            answered_by=row[9],
        )
        for row in rows
    ]


def lines_since(
    connection: Connection, run_id: int, seq: int, case_id: str = ""
) -> list[JournalLine]:
    """The decisions of a run after that point of the journal."""
    return list(each_line(connection, run_id, seq, case_id))


def each_line(
    connection: Connection, run_id: int, seq: int = 0, case_id: str = ""
) -> Iterator[JournalLine]:
    """The same one by one, for those who need not hold all of a long run."""
    journal, cases = schema.journal, schema.cases
    query = (
        select(journal, cases.c.case_id)
        .join(cases, cases.c.case_no == journal.c.case_no)
        .where(cases.c.run_id == run_id, journal.c.seq > seq)
        .order_by(journal.c.seq)
    )
    if case_id:
        query = query.where(cases.c.case_id == case_id)
    for row in connection.execute(query):
        yield JournalLine(row.seq, row.at, row.case_id, row.dispatch_id, _decision(row.decision))


def refusals_of(connection: Connection, run_id: int) -> list[RefusalRecord]:
    table = schema.refusals
    query = select(table).where(table.c.run_id == run_id).order_by(table.c.refusal_id)
    return [_refused_line(connection, row) for row in connection.execute(query)]


def open_questions(connection: Connection) -> list[OpenGate]:
    """Every gate that waits, in every run, oldest first."""
    dispatches, cases, questions = schema.dispatches, schema.cases, schema.questions
    query = (
        select(dispatches, cases.c.case_id, cases.c.run_id)
        .join(questions, questions.c.question_id == dispatches.c.dispatch_id)
        .join(cases, cases.c.dispatch_id == dispatches.c.dispatch_id)
        .where(questions.c.answered_at.is_(None))
        .order_by(dispatches.c.dispatch_id)
    )
    raw = driver(connection)
    return [
        OpenGate(
            row.dispatch_id,
            row.run_id,
            row.case_id,
            row.step,
            row.at,
            read_blob(raw, row.prompt).decode(),
        )
        for row in connection.execute(query)
    ]


def open_dispatch_ids(connection: Connection) -> set[int]:
    """Every dispatch that is open, in every run."""
    cases = schema.cases
    query = select(cases.c.dispatch_id).where(cases.c.dispatch_id.is_not(None))
    return set(connection.execute(query).scalars())


def digest_of(connection: Connection, run_id: int) -> str:
    """One word for all decisions and answers of a run, whatever their times and dispatch ids: two
    runs that decided alike, case by case, have the same."""
    raw = driver(connection)
    whole = blake2b(digest_size=16)
    rows = raw.execute(
        "select c.case_id, j.decision, b.hash from cases c"
        " join journal j on j.case_no = c.case_no join blobs b on b.blob_id = j.answer"
        " where c.run_id = ? order by c.case_id, j.dispatch_id",
        (run_id,),
    )
    for case_id, decision, answer in rows:
        whole.update(f"{case_id}\n{decision}\n{answer.hex()}\n".encode())
    return whole.hexdigest()


def _case_line(row: Row[Any]) -> CaseSummary:
    return CaseSummary(
        case_no=row.case_no,
        case_id=row.case_id,
        run_id=row.run_id,
        status=row.status,
        step=row.step,
        dispatch_id=row.dispatch_id,
        state=_state(row.state),
    )


def _refused(connection: Connection, dispatch_id: int) -> Iterator[RefusalRecord]:
    table = schema.refusals
    query = select(table).where(table.c.dispatch_id == dispatch_id).order_by(table.c.refusal_id)
    for row in connection.execute(query):
        yield _refused_line(connection, row)


def _refused_line(connection: Connection, row: Row[Any]) -> RefusalRecord:
    content = read_blob(driver(connection), row.content).decode(errors="replace")
    return RefusalRecord(row.at, row.reason, row.sentence, content)
