"""What readers ask of the journal: the life of a case, how a run stands, who is asked what.

Knows only committed rows, and changes none.

Questions at gates: what became of one that is not open, and which open ones belong together.

Reads only. A question is the dispatch of a gate; asked again, it has another number.

Every turn of a run, case by case: what was asked when, what came back, what it cost.

Reads only, and in few statements, since a look at a run that is at work must be cheap. Prompts are
left where they are.
"""

from collections import Counter
from collections.abc import Iterator
from hashlib import blake2b
from typing import Any

import msgspec
from sqlalchemy import Connection, Row, select

from interlock.engine.case import Decision
from interlock.journal import schema
from interlock.journal.journal import Pause, State, read_blob
from interlock.journal.runs import MOST_RUNS
from interlock.journal.sqlite import driver, is_number
from interlock.journal.usage import pauses_in
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
_names = msgspec.json.Decoder(tuple[str, ...]).decode


class AnswerRecord(msgspec.Struct, frozen=True):
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


class RefusedAnswer(msgspec.Struct, frozen=True):
    """An answer that was refused."""

    case_id: str
    dispatch_id: int
    at: float
    reason: str
    sentence: str


def turns_of(connection: Connection, run_id: int) -> Iterator[AnswerRecord]:
    """All turns of all cases of a run, those of one case together and in order."""
    raw = driver(connection)
    for row in raw.execute(_TURNS, (run_id,)).fetchall():
        answer = msgspec.json.decode(read_blob(raw, row[8])) if row[8] is not None else None
        decision = _decision(row[7]) if row[7] is not None else None
        yield AnswerRecord(*(*row[:7], decision, answer, *row[9:]))


def stands_of(connection: Connection, run_id: int) -> list[CaseProgress]:
    rows = driver(connection).execute(_STANDS, (run_id,)).fetchall()
    return [CaseProgress(*(*row[:4], _names(row[4]), *row[5:])) for row in rows]


def costs_of(connection: Connection, run_id: int) -> dict[str, tuple[int, float]]:
    """Tokens and money of each case that has cost something."""
    rows = driver(connection).execute(_COSTS, (run_id,)).fetchall()
    return {case_id: (tokens, money) for case_id, tokens, money in rows if tokens or money}


def refused_in(connection: Connection, run_id: int) -> list[RefusedAnswer]:
    return [
        RefusedAnswer(*row) for row in driver(connection).execute(_REFUSED, (run_id,)).fetchall()
    ]
