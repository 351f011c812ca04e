"""Read cases, dispatches, decisions and questions in full.

Reads committed rows only and changes none. Readers of whole runs use few statements, so that
looking at an active run is cheap, and texts are read only on request. A question is the dispatch of
a gate; asked again, it has another number.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from typing import Any, Final

import msgspec

from interlock.engine.case import Decision, ModelCall, Usage
from interlock.journal.connection import Connection, RawConnection, find_server, is_row_id, mark_all
from interlock.journal.journal import Pause, State, decode_decision, decode_state, read_blob
from interlock.journal.usage import list_calls, list_pauses
from interlock.system.errors import NotFoundError

_DISPATCHES = (
    "select c.run_id, c.case_id, d.dispatch_id, d.step, d.attempt, d.role, d.at, d.prompt, j.at,"
    " j.answer, j.decision, j.tokens, j.money, q.answered_by from cases c"
    " join dispatches d on d.case_no = c.case_no"
    " left join journal j on j.case_no = d.case_no and j.dispatch_id = d.dispatch_id"
    " left join questions q on q.question_id = d.dispatch_id"
)
_IN_ORDER = " order by c.case_no, d.dispatch_id"
_OF_RUN = " where c.run_id = ? and (j.seq is not null or c.dispatch_id = d.dispatch_id)"
# The table of dispatches has no index by case; the journal has one, and the case names its open
# dispatch.
_OF_CASE = (
    " where d.dispatch_id in (select dispatch_id from journal where case_no = ?"
    " union select dispatch_id from cases where case_no = ?)"
)
_REFUSALS = (
    "select r.at, r.reason, r.sentence, r.content, r.dispatch_id, coalesce(c.case_id, ''),"
    " r.refusal_id from refusals r left join dispatches d on d.dispatch_id = r.dispatch_id"
    " left join cases c on c.case_no = coalesce(r.case_no, d.case_no)"
    " where r.run_id = ? and r.refusal_id > ? order by r.refusal_id"
)
_CASES = (
    "select c.case_no, c.case_id, c.run_id, c.status, c.step, c.dispatch_id, c.state, c.needs,"
    " coalesce(d.role, ''), coalesce(d.at, 0.0)"
    " from cases c left join dispatches d on d.dispatch_id = c.dispatch_id"
)
_COSTS = (
    "select c.case_id, sum(u.tokens), sum(u.money) from"
    " (select dispatch_id, tokens, money from journal union all"
    " select dispatch_id, tokens, money from pauses) u"
    " join dispatches d on d.dispatch_id = u.dispatch_id join cases c on c.case_no = d.case_no"
    " where c.run_id = ? group by 1"
)
_QUESTION = (
    "select c.run_id, c.case_no, c.case_id, d.step, q.answered_by, j.at, j.decision,"
    " c.dispatch_id from questions q join dispatches d on d.dispatch_id = q.question_id"
    " join cases c on c.case_no = q.case_no"
    " left join journal j on j.case_no = q.case_no and j.dispatch_id = q.question_id"
    " where q.question_id = ?"
)
_OPEN_GATES = (
    "select d.dispatch_id, c.run_id, c.case_id, d.step, d.at, d.prompt from dispatches d"
    " join questions q on q.question_id = d.dispatch_id"
    " join cases c on c.dispatch_id = d.dispatch_id where q.answered_at is null"
)
MOST_NAMED: Final = 500
"""Numbers in one statement, which databases limit."""
_decode_names = msgspec.json.Decoder(tuple[str, ...]).decode


class CaseSummary(msgspec.Struct, frozen=True):
    """A case and its position."""

    case_no: int
    case_id: str
    run_id: int
    status: str
    step: str
    dispatch_id: int | None
    state: State
    needs: tuple[str, ...] = ()
    """The cases that must end well before it starts."""
    role: str = ""
    """The role that is asked; empty if none is."""
    since: float = 0.0
    """The time at which it was asked; 0 if it is not."""

    @property
    def end(self) -> str:
        """The end it reached; empty while it is open."""
        return self.state.end


class RefusalRecord(msgspec.Struct, frozen=True):
    """An answer that was not accepted."""

    at: float
    reason: str
    sentence: str
    content: str
    dispatch_id: int | None = None
    case_id: str = ""
    refusal_id: int = 0


class DispatchRecord(msgspec.Struct, frozen=True):
    """One dispatch: the question, the answer and the decision.

    Without a decision it is open. The prompt, and the content of refused answers, are empty unless
    texts were requested.
    """

    case_id: str
    dispatch_id: int
    step: str
    attempt: int
    role: str
    sent_at: float
    prompt: str = ""
    refused: list[RefusalRecord] = []
    pauses: list[Pause] = []
    calls: list[ModelCall] = []
    """Answered requests to a model's endpoint."""
    answered_at: float | None = None
    answer: Any = None
    answer_bytes: int = 0
    decision: Decision | None = None
    usage: Usage = Usage()
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


class SettledQuestion(msgspec.Struct, frozen=True):
    """A question asked at a gate, and how it was settled, if it was."""

    question_id: int
    run_id: int
    case_no: int
    case_id: str
    step: str
    answered_by: str | None
    settled_at: float | None
    signal: str | None
    now_asked: int | None
    """The dispatch that its case waits for now."""


def list_cases(connection: Connection, run_id: int) -> list[CaseSummary]:
    """Return all cases of a run, with the role that is asked and since when."""
    query = f"{_CASES} where c.run_id = ? order by c.case_no"
    return [_read_summary(row) for row in connection.raw.execute(query, (run_id,))]


def find_cases(connection: Connection, numbers: Sequence[int]) -> list[CaseSummary]:
    """Return these cases, at most `MOST_NAMED`, in no particular order."""
    query = f"{_CASES} where c.case_no in ({mark_all(numbers)})"
    rows = connection.raw.execute(query, list(numbers))
    return [_read_summary(row) for row in rows]


def find_case(connection: Connection, case_id: str, run_id: int | None = None) -> CaseSummary:
    """Return that case, in that run or in the newest run that has it."""
    query = f"{_CASES} where c.case_id = ?"
    wanted: tuple[str | int, ...] = (case_id,)
    if run_id is not None:
        query += " and c.run_id = ?"
        wanted = (case_id, run_id if is_row_id(run_id) else 0)
    found = connection.raw.execute(f"{query} order by c.run_id desc limit 1", wanted)
    row = found.fetchone()
    if row is None:
        where = "any run" if run_id is None else f"run {run_id}"
        raise NotFoundError(f"there is no case {case_id[:80]!r} in {where}; see 'interlock status'")
    return _read_summary(row)


def count_ends(connection: Connection, run_id: int) -> Counter[str]:
    """Return how many cases of a run are open, stuck, or at which end."""
    return count_ends_of_runs(connection, [run_id])[run_id]


def count_ends_of_runs(
    connection: Connection, run_ids: Sequence[int]
) -> defaultdict[int, Counter[str]]:
    """Return how many cases are open, stuck, or at which end, by run."""
    found = defaultdict[int, Counter[str]](Counter)
    raw = connection.raw
    for start in range(0, len(run_ids), MOST_NAMED):
        some = run_ids[start : start + MOST_NAMED]
        query = (
            f"select c.run_id, c.status, {state_field(raw, 'end')}, count(*) from cases c"  # noqa: S608
            f" where c.run_id in ({mark_all(some)}) group by 1, 2, 3 order by min(c.case_no)"
        )
        for run_id, status, end, count in raw.execute(query, list(some)):
            found[run_id][end or status] += count
    return found


def state_field(raw: RawConnection, name: str) -> str:
    """Return the SQL that reads a field of a case's state in this database."""
    if find_server(raw):
        return f"c.state::json->>'{name}'"
    return f"json_extract(c.state, '$.{name}')"


def count_cases(connection: Connection, run_id: int) -> tuple[int, int]:
    """Return the number of a run's cases, and of those that are over."""
    query = (
        "select count(*), count(case when status <> 'open' then 1 end) from cases where run_id = ?"
    )
    cases, over = connection.raw.execute(query, (run_id,)).fetchone()
    return cases, over


def sum_costs(connection: Connection, run_id: int) -> dict[str, tuple[int, float]]:
    """Return tokens and money of each case that has cost something."""
    rows = connection.raw.execute(_COSTS, (run_id,)).fetchall()
    return {case_id: (tokens, money) for case_id, tokens, money in rows if tokens or money}


def list_dispatches(
    connection: Connection,
    *,
    case_no: int | None = None,
    run_id: int | None = None,
    texts: bool = False,
) -> list[DispatchRecord]:
    """Return all dispatches of a case, or of a whole run case by case, in order.

    With `texts`, prompts and refused answers are read too, which are large.
    """
    raw = connection.raw
    if case_no is not None:
        rows = raw.execute(_DISPATCHES + _OF_CASE + _IN_ORDER, (case_no, case_no)).fetchall()
    else:
        rows = raw.execute(_DISPATCHES + _OF_RUN + _IN_ORDER, (run_id,)).fetchall()
    if not rows:
        return []
    refused: dict[int, list[RefusalRecord]] = {row[2]: [] for row in rows}
    pauses: dict[int, list[Pause]] = {row[2]: [] for row in rows}
    for row in raw.execute(_REFUSALS, (rows[0][0], 0)):
        if row[4] in refused:
            refused[row[4]].append(_read_refusal(raw, row, texts=texts))
    for pause in list_pauses(connection, rows[0][0]):
        if pause.dispatch_id in pauses:
            pauses[pause.dispatch_id].append(pause)
    calls = list_calls(connection, rows[0][0])
    return [
        _read_dispatch(
            raw, row, refused[row[2]], pauses[row[2]], calls.get(row[2], []), texts=texts
        )
        for row in rows
    ]


def _read_dispatch(
    raw: RawConnection,
    row: tuple[Any, ...],
    refused: list[RefusalRecord],
    pauses: list[Pause],
    calls: list[ModelCall],
    *,
    texts: bool,
) -> DispatchRecord:
    _, case_id, dispatch_id, step, attempt, role, sent_at, prompt, *answered = row
    answered_at, blob, decision, tokens, money, answered_by = answered
    answer = read_blob(raw, blob) if blob is not None else b""
    return DispatchRecord(
        case_id=case_id,
        dispatch_id=dispatch_id,
        step=step,
        attempt=attempt,
        role=role,
        sent_at=sent_at,
        prompt=_read_text(raw, prompt) if texts else "",
        refused=refused,
        pauses=pauses,
        calls=calls,
        answered_at=answered_at,
        answer=msgspec.json.decode(answer) if blob is not None else None,
        answer_bytes=len(answer),
        decision=decode_decision(decision) if decision is not None else None,
        usage=Usage(tokens or 0, money or 0.0),
        answered_by=answered_by,
    )


def _read_text(raw: RawConnection, blob: int) -> str:
    return read_blob(raw, blob).decode(errors="replace")


def list_case_starts(connection: Connection, run_id: int) -> dict[int, float]:
    """Return the time of each open case's first dispatch, by the case's number."""
    rows = connection.raw.execute(
        "select d.case_no, min(d.at) from dispatches d join cases c on c.case_no = d.case_no"
        " where c.run_id = ? and c.status = 'open' group by d.case_no",
        (run_id,),
    )
    return dict(rows.fetchall())


def list_lines(
    connection: Connection, run_id: int, seq: int, case_id: str = ""
) -> list[JournalLine]:
    """Return the decisions of a run after that point of the journal."""
    return list(iterate_lines(connection, run_id, seq, case_id))


def iterate_lines(
    connection: Connection, run_id: int, seq: int = 0, case_id: str = ""
) -> Iterator[JournalLine]:
    """Yield the decisions of a run one by one, because a long run has too many to hold."""
    query = (
        "select j.seq, j.at, c.case_id, j.dispatch_id, j.decision from journal j"
        " join cases c on c.case_no = j.case_no where c.run_id = ? and j.seq > ?"
    )
    of_case, given = (" and c.case_id = ?", (case_id,)) if case_id else ("", ())
    rows = connection.raw.execute(f"{query}{of_case} order by j.seq", (run_id, seq, *given))
    for number, at, name, dispatch_id, decision in rows:
        yield JournalLine(number, at, name, dispatch_id, decode_decision(decision))


def list_refusals(connection: Connection, run_id: int, after: int = 0) -> list[RefusalRecord]:
    """Return every refused answer of a run, in order, after that one if it is named."""
    raw = connection.raw
    rows = raw.execute(_REFUSALS, (run_id, after)).fetchall()
    return [_read_refusal(raw, row, texts=True) for row in rows]


def _read_refusal(raw: RawConnection, row: tuple[Any, ...], *, texts: bool) -> RefusalRecord:
    at, reason, sentence, content, *place = row
    text = _read_text(raw, content) if texts else ""
    return RefusalRecord(at, reason, sentence, text, *place)


def list_open_questions(connection: Connection, only: int | None = None) -> list[OpenGate]:
    """Return every gate that waits, in every run, oldest first; with `only`, that one."""
    if only is not None and not is_row_id(only):
        return []
    one = "" if only is None else " and d.dispatch_id = ?"
    rows = connection.raw.execute(
        _OPEN_GATES + one + " order by d.dispatch_id", () if only is None else (only,)
    )
    return [
        OpenGate(
            question_id=question_id,
            run_id=run_id,
            case_id=case_id,
            step=step,
            asked_at=asked_at,
            prompt=_read_text(connection.raw, prompt),
        )
        for question_id, run_id, case_id, step, asked_at, prompt in rows.fetchall()
    ]


def list_open_dispatch_ids(connection: Connection) -> set[int]:
    """Return the numbers of all open dispatches, in every run."""
    query = "select dispatch_id from cases where dispatch_id is not null"
    return {number for (number,) in connection.raw.execute(query)}


def find_question(connection: Connection, question_id: int) -> SettledQuestion | None:
    """Return a gate's question, open or not, and how it was settled."""
    number = question_id if is_row_id(question_id) else 0
    row = connection.raw.execute(_QUESTION, (number,)).fetchone()
    if row is None:
        return None
    run_id, case_no, case_id, step, answered_by, settled_at, decision, now_asked = row
    return SettledQuestion(
        question_id=number,
        run_id=run_id,
        case_no=case_no,
        case_id=case_id,
        step=step,
        answered_by=answered_by,
        settled_at=settled_at,
        signal=decode_decision(decision).signal if decision is not None else None,
        now_asked=now_asked,
    )


def list_family(connection: Connection, question: OpenGate) -> list[OpenGate]:
    """Return the other open questions at the same step of the same run whose cases name the same
    `family` in their input."""
    families = list_families(connection)
    own = families.get(question.question_id)
    return [
        each
        for each in list_open_questions(connection)
        if (each.run_id, each.step) == (question.run_id, question.step)
        and each.question_id != question.question_id
        and own is not None
        and families.get(each.question_id) == own
    ]


def list_families(connection: Connection) -> dict[int, str]:
    """Return the family of each case with an open question, by question, if its input names one."""
    raw = connection.raw
    rows = raw.execute(
        "select q.question_id, c.input from questions q"
        " join cases c on c.dispatch_id = q.question_id where q.answered_at is null"
    ).fetchall()
    found = {
        number: msgspec.json.decode(read_blob(raw, blob)).get("family") for number, blob in rows
    }
    return {number: str(family) for number, family in found.items() if family is not None}


def compute_digest(connection: Connection, run_id: int) -> str:
    """Return one hash over all decisions and answers of a run, without times and dispatch ids.

    Two runs that decided alike, case by case, have the same digest.
    """
    raw = connection.raw
    digest = blake2b(digest_size=16)
    rows = raw.execute(
        "select c.case_id, j.decision, b.hash from cases c"
        " join journal j on j.case_no = c.case_no join blobs b on b.blob_id = j.answer"
        " where c.run_id = ? order by c.case_id, j.dispatch_id",
        (run_id,),
    )
    for case_id, decision, answer in rows:
        digest.update(f"{case_id}\n{decision}\n{answer.hex()}\n".encode())
    return digest.hexdigest()


def _read_summary(row: tuple[Any, ...]) -> CaseSummary:
    case_no, case_id, run_id, status, step, dispatch_id, state, needs, role, since = row
    return CaseSummary(
        case_no,
        case_id,
        run_id,
        status,
        step,
        dispatch_id,
        decode_state(state),
        _decode_names(needs),
        role,
        since,
    )
