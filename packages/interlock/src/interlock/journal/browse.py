# ruff: noqa: S608 - statements are put together from words and marks of ours alone
"""Read many rows at once for pages: runs at a glance, counts by place, tables of cases, changes.

Each function takes a few statements over indexed rows, however large the run: cases are not decoded
or folded, and texts are not read. `history` reads the same data in full.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, Literal

import msgspec

from interlock.engine.case import Usage
from interlock.engine.circuit import FAILURES, HUMAN
from interlock.journal.connection import Connection, RawConnection, find_server, is_row_id, mark_all
from interlock.journal.history import (
    MOST_NAMED,
    CaseSummary,
    count_ends_of_runs,
    find_cases,
    state_field,
)
from interlock.journal.usage import sum_costs_of_runs
from interlock.system.errors import NotFoundError

_MOST_FOUND: Final = 20_000
"""Cases that one search can name."""
_LOOK_BACK: Final = 512
"""Numbers to look back for changes where several processes write: numbers are taken before they are
committed."""
_COSTS: Final = (
    "select c.case_no, coalesce(sum(j.tokens), 0), coalesce(sum(j.money), 0.0), max(j.at)"
    " from cases c join journal j on j.case_no = c.case_no where c.case_no in (%s) group by 1"
)
_PAUSE_COSTS: Final = (
    "select d.case_no, sum(p.tokens) as tokens, sum(p.money) as money from pauses p"
    " join dispatches d on d.dispatch_id = p.dispatch_id where p.run_id = ? group by 1"
)
_JOURNAL_MONEY: Final = (
    "(select coalesce(sum(j.money), 0.0) from journal j where j.case_no = c.case_no)"
    " + coalesce(w.money, 0.0)"
)

NOTHING: Final = Usage()
SortKey = Literal["case", "name", "step", "state", "age", "cost"]


class RunGlance(msgspec.Struct, frozen=True):
    """A run as a list shows it."""

    run_id: int
    circuit: str
    source: str
    status: str
    """The status in the journal, which does not know if a process has died."""
    created_at: float
    changed_at: float
    options: Mapping[str, Any]
    ends: Counter[str]
    """The number of cases by their end, or by their status while they are open."""
    cost: Usage

    @property
    def cases(self) -> int:
        return sum(self.ends.values())


class PlaceCount(msgspec.Struct, frozen=True):
    """The number of cases that stand at a step, are stuck there, or went from it to an end."""

    step: str
    status: str
    end: str
    asked: int
    """Cases that wait for an answer."""
    cases: int


class CaseFilter(msgspec.Struct, frozen=True):
    """A selection of a run's cases, and their order."""

    text: str = ""
    """A part of the case's id, in upper or lower case."""
    state: str = ""
    """`open`, `asked`, `human`, `stuck`, or the name of an end."""
    step: str = ""
    sort: SortKey = "case"
    descending: bool = False
    named: tuple[int, ...] = ()
    """Cases that match the text by another name."""


class CostedCase(CaseSummary, frozen=True):
    """A case with its cost."""

    tokens: int = 0
    money: float = 0.0
    moved_at: float = 0.0
    """The time of the last decision; 0 if there is none."""

    @property
    def reason(self) -> str:
        """The reason it is stuck or ended; empty if there is nothing to say."""
        return self.state.reason

    @property
    def attempt(self) -> int:
        """The number of visits to its step."""
        return self.state.visits.get(self.step, 0)


class Position(msgspec.Struct, frozen=True):
    """A position in the journal, with a mark that changes with every write."""

    seq: int
    dispatch_id: int
    refusal_id: int
    case_no: int
    mark: tuple[Any, ...]

    def __str__(self) -> str:
        return f"{self.seq}.{self.dispatch_id}.{self.refusal_id}"


def list_glances(
    connection: Connection,
    *,
    limit: int,
    before: int = 0,
    only: Sequence[int] = (),
) -> list[RunGlance]:
    """Return the newest runs, newest first, before that number, or `only` the named ones.

    With `brief`, cases and costs are left out.
    """
    raw = connection.raw
    query = "select run_id, circuit, source, status, created_at, changed_at, options from runs"
    given: list[Any] = []
    if only:
        given = [each for each in only if is_row_id(each)][:MOST_NAMED]
        query += f" where run_id in ({mark_all(given)})"
    elif before:
        query, given = f"{query} where run_id < ?", [before if is_row_id(before) else 0]
    rows = raw.execute(f"{query} order by run_id desc limit ?", (*given, limit)).fetchall()
    numbers = [row[0] for row in rows]
    ends, costs = count_ends_of_runs(connection, numbers), sum_costs_of_runs(connection, numbers)
    return [
        RunGlance(
            run_id=run_id,
            circuit=circuit,
            source=source,
            status=status,
            created_at=created_at,
            changed_at=changed_at,
            options=msgspec.json.decode(options),
            ends=ends[run_id],
            cost=costs.get(run_id, NOTHING),
        )
        for run_id, circuit, source, status, created_at, changed_at, options in rows
    ]


def has_running(connection: Connection) -> bool:
    """Return True if any run is running, according to the journal."""
    query = "select 1 from runs where status = 'running' limit 1"
    return connection.raw.execute(query).fetchone() is not None


def list_case_numbers(connection: Connection, run_id: int) -> list[int]:
    """Return the numbers of all cases of a run, in order."""
    query = "select case_no from cases where run_id = ? order by case_no"
    return [number for (number,) in connection.raw.execute(query, (run_id,))]


def count_places(connection: Connection, run_id: int) -> list[PlaceCount]:
    """Count the cases of a run by step, status and end."""
    raw = connection.raw
    rows = raw.execute(
        f"select c.step, c.status, {_end(raw)}, count(c.dispatch_id), count(*) from cases c"
        " where c.run_id = ? group by 1, 2, 3",
        (run_id,),
    )
    return [PlaceCount(step, status, end or "", *counts) for step, status, end, *counts in rows]


def list_case_rows(
    connection: Connection, run_id: int, wanted: CaseFilter, *, limit: int, offset: int = 0
) -> tuple[list[CostedCase], int]:
    """Return some cases of a run in order, and the total number."""
    raw = connection.raw
    where, given = _build_where(raw, wanted)
    tables = "cases c left join dispatches d on d.dispatch_id = c.dispatch_id"
    condition = f"where c.run_id = ?{where}"
    (total,) = raw.execute(
        f"select count(*) from {tables} {condition}", (run_id, *given)
    ).fetchone()
    order, more = _build_order(raw, wanted, run_id)
    costs = f" left join ({_PAUSE_COSTS}) w on w.case_no = c.case_no" if more else ""
    rows = raw.execute(
        f"select c.case_no from {tables}{costs} {condition} order by {order} limit ? offset ?",
        (*more, run_id, *given, limit, offset),
    ).fetchall()
    numbers = [number for (number,) in rows]
    found = {each.case_no: each for each in find_case_rows(connection, numbers)}
    return [found[number] for number in numbers], int(total)


def _build_where(raw: RawConnection, wanted: CaseFilter) -> tuple[str, list[Any]]:
    where, given = "", list[Any]()
    if wanted.text:
        pattern = wanted.text.lower()
        for sign in "\\%_":
            pattern = pattern.replace(sign, f"\\{sign}")
        named = [*wanted.named[:_MOST_FOUND]]
        where = " and (lower(c.case_id) like ? escape '\\'"
        where += f" or c.case_no in ({mark_all(named)}))" if named else ")"
        given = [f"%{pattern}%", *named]
    if wanted.step:
        where, given = f"{where} and c.step = ?", [*given, wanted.step]
    if wanted.state in ("open", "stuck"):
        where, given = f"{where} and c.status = ?", [*given, wanted.state]
    elif wanted.state == "asked":
        where += " and c.dispatch_id is not null"
    elif wanted.state == HUMAN:
        where, given = f"{where} and d.role = ?", [*given, HUMAN]
    elif wanted.state:
        where, given = f"{where} and {_end(raw)} = ?", [*given, wanted.state]
    return where, given


def _build_order(raw: RawConnection, wanted: CaseFilter, run_id: int) -> tuple[str, list[Any]]:
    """Return the sort order, and the parameters of the table of costs if it needs one."""
    way = "desc" if wanted.descending else "asc"
    if wanted.sort == "cost":
        return f"{_JOURNAL_MONEY} {way}, c.case_no", [run_id]
    columns = {
        "case": f"c.case_no {way}",
        "name": f"c.case_id {way}",
        "step": f"c.step {way}, c.case_no",
        "state": f"c.status {way}, {_end(raw)} {way}, c.case_no",
        # The longest wait comes first; cases without a dispatch come last either way.
        "age": f"case when d.at is null then 1 else 0 end, d.at {way}, c.case_no",
    }
    return columns[wanted.sort], []


def find_case_rows(connection: Connection, numbers: Sequence[int]) -> list[CostedCase]:
    """Return these cases, in no particular order."""
    return [
        row
        for start in range(0, len(numbers), MOST_NAMED)
        for row in _read_rows(connection, numbers[start : start + MOST_NAMED])
    ]


def _read_rows(connection: Connection, numbers: Sequence[int]) -> Iterator[CostedCase]:
    raw, cases = connection.raw, find_cases(connection, numbers)
    costs = {row[0]: row[1:] for row in raw.execute(_COSTS % mark_all(numbers), list(numbers))}
    pauses: dict[int, tuple[int, float]] = {}
    for run_id in {each.run_id for each in cases}:
        for case_no, tokens, money in raw.execute(_PAUSE_COSTS, (run_id,)):
            pauses[case_no] = (tokens, money)
    for each in cases:
        tokens, money, moved_at = costs.get(each.case_no, (0, 0.0, 0.0))
        more_tokens, more_money = pauses.get(each.case_no, (0, 0.0))
        yield CostedCase(
            **msgspec.structs.asdict(each),
            tokens=int(tokens + more_tokens),
            money=money + more_money,
            moved_at=moved_at or 0.0,
        )


def find_case_id(connection: Connection, run_id: int, case_no: int) -> str:
    """Return the id of a case by its number; raise NotFoundError if the run has no such case."""
    query = "select case_id from cases where run_id = ? and case_no = ?"
    known = is_row_id(run_id) and is_row_id(case_no)
    row = connection.raw.execute(query, (run_id, case_no)).fetchone() if known else None
    if row is None:
        raise NotFoundError(f"there is no case with the number {case_no} in run {run_id}")
    return str(row[0])


def count_waiting(connection: Connection) -> int:
    """Return the number of questions in the database that wait for a person; agents' own questions
    are kept elsewhere."""
    raw = connection.raw
    (gates,) = raw.execute(
        "select count(*) from questions q join cases c on c.dispatch_id = q.question_id"
        " where q.answered_at is null"
    ).fetchone()
    (inquiries,) = raw.execute(
        "select count(*) from inquiries where answered_at is null"
    ).fetchone()
    return int(gates + inquiries)


def list_needs(connection: Connection) -> list[tuple[int, str, tuple[str, ...]]]:
    """Return the open cases that need others: run, id, and the needed cases."""
    rows = connection.raw.execute(
        "select run_id, case_id, needs from cases where status = 'open' and needs != '[]'"
    )
    return [(run_id, case_id, tuple(msgspec.json.decode(needs))) for run_id, case_id, needs in rows]


def read_position(connection: Connection) -> Position:
    """Return the newest position in the journal; cheap enough to ask many times a second."""
    raw = connection.raw
    newest = (
        "select (select max(seq) from journal), (select max(dispatch_id) from dispatches),"
        " (select max(refusal_id) from refusals), (select max(case_no) from cases),"
        " (select max(changed_at) from runs), (select max(pause_id) from pauses),"
        " (select count(*) from inquiries where answered_at is null),"
        " (select max(run_id) from runs)"
    )
    if find_server(raw):
        # A late commit does not raise the largest number, but it changes the snapshot.
        newest += ", pg_current_snapshot()::text"
    found = raw.execute(newest).fetchone()
    seq, dispatch_id, refusal_id, case_no = (each or 0 for each in found[:4])
    return Position(seq, dispatch_id, refusal_id, case_no, tuple(found))


def list_statuses(connection: Connection, finished: Sequence[str]) -> dict[int, str]:
    """Return the journal's status of each unfinished run."""
    query = f"select run_id, status from runs where status not in ({mark_all(finished)})"
    return dict(connection.raw.execute(query, list(finished)).fetchall())


def list_changes(connection: Connection, since: Position) -> list[tuple[str, int]]:
    """Return a mark of each row written since then, and its run; some rows appear repeatedly."""
    raw = connection.raw
    back = _LOOK_BACK if find_server(raw) else 0
    rows = raw.execute(
        "select 'j' || j.seq, c.run_id from journal j"
        " join cases c on c.case_no = j.case_no where j.seq > ?"
        " union all select 'd' || d.dispatch_id, c.run_id from dispatches d"
        " join cases c on c.case_no = d.case_no where d.dispatch_id > ?"
        " union all select 'r' || r.refusal_id, c.run_id from refusals r"
        " join cases c on c.case_no = r.case_no where r.refusal_id > ?"
        " union all select 'c' || c.case_no, c.run_id from cases c where c.case_no > ?",
        (since.seq - back, since.dispatch_id - back, since.refusal_id - back, since.case_no - back),
    )
    return [(str(mark), run_id) for mark, run_id in rows]


def name_circuits(connection: Connection, runs: Sequence[int]) -> dict[int, str]:
    """Return the circuit of each of these runs."""
    query = f"select run_id, circuit from runs where run_id in ({mark_all(runs)})"
    return dict(connection.raw.execute(query, list(runs)).fetchall())


def _end(raw: RawConnection) -> str:
    return state_field(raw, "end")


class RoleRecord(msgspec.Struct, frozen=True):
    """Statistics of a role's dispatches in a run: answers, failures, refusals, cost and time."""

    run_id: int
    role: str
    options: Mapping[str, Any]
    answers: int
    failed: int
    refused: int
    cost: Usage
    seconds: float


def list_role_records(connection: Connection, *, runs: int) -> list[RoleRecord]:
    """Return the statistics of each role, except people, in the newest runs."""
    raw = connection.raw
    newest = raw.execute(
        "select run_id, options from runs order by run_id desc limit ?", (runs,)
    ).fetchall()
    options = {run_id: msgspec.json.decode(text) for run_id, text in newest}
    if not options:
        return []
    numbers = list(options)
    marks = mark_all(numbers)
    failures = ", ".join(f"'{each}'" for each in FAILURES)
    signal = (
        "j.decision::json->>'signal'"
        if find_server(raw)
        else "json_extract(j.decision, '$.signal')"
    )
    answered = raw.execute(
        f"select c.run_id, d.role, sum(case when {signal} in ({failures}) then 0 else 1 end),"
        f" sum(case when {signal} in ({failures}) then 1 else 0 end), sum(j.tokens), sum(j.money)"
        " from cases c join journal j on j.case_no = c.case_no"
        " join dispatches d on d.dispatch_id = j.dispatch_id"
        f" where c.run_id in ({marks}) and d.role != ? group by 1, 2",
        [*numbers, HUMAN],
    ).fetchall()
    refused = {
        (run_id, role): count
        for run_id, role, count in raw.execute(
            "select r.run_id, d.role, count(*) from refusals r"
            " join dispatches d on d.dispatch_id = r.dispatch_id"
            f" where r.run_id in ({marks}) group by 1, 2",
            numbers,
        )
    }
    seconds = {
        (run_id, role): total
        for run_id, role, total in raw.execute(
            "select run_id, role, sum(seconds) from worked"
            f" where run_id in ({marks}) group by 1, 2",
            numbers,
        )
    }
    return [
        RoleRecord(
            run_id=run_id,
            role=role,
            options=options[run_id],
            answers=int(good),
            failed=int(bad),
            refused=refused.get((run_id, role), 0),
            cost=Usage(int(tokens or 0), float(money or 0.0)),
            seconds=seconds.get((run_id, role), 0.0),
        )
        for run_id, role, good, bad, tokens, money in answered
    ]


class AskedRole(msgspec.Struct, frozen=True):
    """The open dispatches of a role in a run."""

    run_id: int
    role: str
    options: Mapping[str, Any]
    count: int
    since: float
    """The time at which the oldest of them was sent."""


def list_asked_roles(connection: Connection) -> list[AskedRole]:
    """Return the open dispatches of agents in running runs, by role."""
    rows = connection.raw.execute(
        "select r.run_id, d.role, r.options, count(*), min(d.at) from runs r"
        " join cases c on c.run_id = r.run_id join dispatches d on d.dispatch_id = c.dispatch_id"
        " where r.status = 'running' and c.status = 'open' and d.role != ?"
        " group by r.run_id, d.role, r.options order by r.run_id desc, d.role",
        (HUMAN,),
    )
    return [
        AskedRole(run_id, role, msgspec.json.decode(options), count, since)
        for run_id, role, options, count, since in rows
    ]
