# ruff: noqa: S608 - statements are put together from words and marks of ours alone
"""Read many rows at once for pages: runs at a glance, counts by place, tables of cases, changes.

Each is a few statements over indexed rows, however large the run: cases are not decoded or folded,
and texts stay where they are. `history` reads the same in full.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, Literal

import msgspec

from interlock.engine.case import Usage
from interlock.engine.circuit import FAILURES, HUMAN
from interlock.journal.connection import (
    Connection,
    RawConnection,
    find_server,
    is_row_id,
    raw_connection,
)
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
"""How far back changes are looked for again where several processes write: numbers are taken before
they are committed."""
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
    """As the journal has it, which cannot know that a process has died."""
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
    """The number of cases that stand at a step, are stuck there, or came from it to an end."""

    step: str
    status: str
    end: str
    asked: int
    """Those for which an answer is awaited."""
    cases: int


class CaseFilter(msgspec.Struct, frozen=True):
    """A choice of the cases of a run, and their order."""

    text: str = ""
    """A part of the case's id, whatever the case of letters."""
    state: str = ""
    """`open`, `asked`, `human`, `stuck`, or the name of an end."""
    step: str = ""
    sort: SortKey = "case"
    descending: bool = False
    named: tuple[int, ...] = ()
    """Cases that fit the text by another name."""


class CostedCase(CaseSummary, frozen=True):
    """A case, and what it has cost."""

    tokens: int = 0
    money: float = 0.0
    moved_at: float = 0.0
    """The time of the last decision; 0 if there is none."""

    @property
    def reason(self) -> str:
        """Return why it is stuck, or came to its end; empty if nothing is to be said."""
        return self.state.reason

    @property
    def attempt(self) -> int:
        """Return how often it has come to its step."""
        return self.state.visits.get(self.step, 0)


class Position(msgspec.Struct, frozen=True):
    """A position in the journal, with a mark that differs when anything was written."""

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
    """Return the newest runs, newest first; those before that number, or `only` those, if some are
    named."""
    raw = raw_connection(connection)
    query = "select run_id, circuit, source, status, created_at, changed_at, options from runs"
    given: list[Any] = []
    if only:
        given = [each for each in only if is_row_id(each)][:MOST_NAMED]
        query += f" where run_id in ({_marks(given)})"
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
    """Return whether any run is running, as the journal has it."""
    query = "select 1 from runs where status = 'running' limit 1"
    return raw_connection(connection).execute(query).fetchone() is not None


def list_case_numbers(connection: Connection, run_id: int) -> list[int]:
    """Return the numbers of all cases of a run, in order."""
    query = "select case_no from cases where run_id = ? order by case_no"
    return [number for (number,) in raw_connection(connection).execute(query, (run_id,))]


def count_places(connection: Connection, run_id: int) -> list[PlaceCount]:
    """Count the cases of a run by where they stand."""
    raw = raw_connection(connection)
    rows = raw.execute(
        f"select c.step, c.status, {_end(raw)}, count(c.dispatch_id), count(*) from cases c"
        " where c.run_id = ? group by 1, 2, 3",
        (run_id,),
    )
    return [PlaceCount(step, status, end or "", *counts) for step, status, end, *counts in rows]


def list_case_rows(
    connection: Connection, run_id: int, wanted: CaseFilter, *, limit: int, offset: int = 0
) -> tuple[list[CostedCase], int]:
    """Return some cases of a run in order, and how many there are in all."""
    raw = raw_connection(connection)
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
        where += f" or c.case_no in ({_marks(named)}))" if named else ")"
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
    """By what they are sorted, and what the table of costs needs if it is that."""
    way = "desc" if wanted.descending else "asc"
    if wanted.sort == "cost":
        return f"{_JOURNAL_MONEY} {way}, c.case_no", [run_id]
    columns = {
        "case": f"c.case_no {way}",
        "name": f"c.case_id {way}",
        "step": f"c.step {way}, c.case_no",
        "state": f"c.status {way}, {_end(raw)} {way}, c.case_no",
        # The longest wait first; those for whom nobody waits come last either way.
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
    raw, cases = raw_connection(connection), find_cases(connection, numbers)
    costs = {row[0]: row[1:] for row in raw.execute(_COSTS % _marks(numbers), list(numbers))}
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
    """Return the name of a case by its number; NotFoundError if the run has none of that number."""
    query = "select case_id from cases where run_id = ? and case_no = ?"
    known = is_row_id(run_id) and is_row_id(case_no)
    row = raw_connection(connection).execute(query, (run_id, case_no)).fetchone() if known else None
    if row is None:
        raise NotFoundError(f"there is no case with the number {case_no} in run {run_id}")
    return str(row[0])


def count_waiting(connection: Connection) -> int:
    """Return how many questions wait for a person in the database; those of agents lie
    elsewhere."""
    raw = raw_connection(connection)
    (gates,) = raw.execute(
        "select count(*) from questions q join cases c on c.dispatch_id = q.question_id"
        " where q.answered_at is null"
    ).fetchone()
    (inquiries,) = raw.execute(
        "select count(*) from inquiries where answered_at is null"
    ).fetchone()
    return int(gates + inquiries)


def list_needs(connection: Connection) -> list[tuple[int, str, tuple[str, ...]]]:
    """Return the open cases that come after others: run, name, and whom they need."""
    rows = raw_connection(connection).execute(
        "select run_id, case_id, needs from cases where status = 'open' and needs != '[]'"
    )
    return [(run_id, case_id, tuple(msgspec.json.decode(needs))) for run_id, case_id, needs in rows]


def read_position(connection: Connection) -> Position:
    """Return the newest position in the journal. Cheap enough to be asked many times a second."""
    raw = raw_connection(connection)
    newest = (
        "select (select max(seq) from journal), (select max(dispatch_id) from dispatches),"
        " (select max(refusal_id) from refusals), (select max(case_no) from cases),"
        " (select max(changed_at) from runs), (select max(pause_id) from pauses),"
        " (select count(*) from inquiries where answered_at is null),"
        " (select max(run_id) from runs)"
    )
    if find_server(raw):
        # Whoever commits late does not raise the largest number; the snapshot differs all the same.
        newest += ", pg_current_snapshot()::text"
    found = raw.execute(newest).fetchone()
    seq, dispatch_id, refusal_id, case_no = (each or 0 for each in found[:4])
    return Position(seq, dispatch_id, refusal_id, case_no, tuple(found))


def list_statuses(connection: Connection, finished: Sequence[str]) -> dict[int, str]:
    """Return the status of each run that is not over, as the journal has it."""
    marks = ", ".join("?" * len(finished))
    query = f"select run_id, status from runs where status not in ({marks})"
    return dict(raw_connection(connection).execute(query, list(finished)).fetchall())


def list_changes(connection: Connection, since: Position) -> list[tuple[str, int]]:
    """Return a mark of each row that was written since then, and its run. Where several processes
    write, some are named again."""
    raw = raw_connection(connection)
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
    query = f"select run_id, circuit from runs where run_id in ({_marks(runs)})"
    return dict(raw_connection(connection).execute(query, list(runs)).fetchall())


def _marks(numbers: Sequence[int]) -> str:
    return ", ".join("?" * len(numbers)) or "null"


def _end(raw: RawConnection) -> str:
    return state_field(raw, "end")


class RoleRecord(msgspec.Struct, frozen=True):
    """A record of the dispatches of a role in a run: how many were answered, and at what cost."""

    run_id: int
    role: str
    options: Mapping[str, Any]
    answers: int
    failed: int
    refused: int
    cost: Usage
    seconds: float


def list_role_records(connection: Connection, *, runs: int) -> list[RoleRecord]:
    """Return a record of the dispatches of each role but people, in the newest runs."""
    raw = raw_connection(connection)
    newest = raw.execute(
        "select run_id, options from runs order by run_id desc limit ?", (runs,)
    ).fetchall()
    options = {run_id: msgspec.json.decode(text) for run_id, text in newest}
    if not options:
        return []
    numbers = list(options)
    marks = _marks(numbers)
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
    """Return the open dispatches of agents, by role, in the runs that are running."""
    rows = raw_connection(connection).execute(
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
