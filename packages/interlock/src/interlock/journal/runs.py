"""Start runs and their cases in one transaction, and load them as the fold of their journal.

A run keeps the text of the circuit it was started with, so that later edits of the file do not
change it.
"""

from collections.abc import Callable, Collection, ItemsView, Iterable, Iterator, Mapping
from functools import lru_cache, partial
from itertools import islice
from typing import Any, Literal, TypeVar

import msgspec

from interlock.engine.advance import apply, open_case
from interlock.engine.case import OPEN, Case, Decision
from interlock.engine.circuit import Circuit
from interlock.engine.schedule import Spent
from interlock.journal.connection import (
    Connection,
    NumberSource,
    RawConnection,
    is_row_id,
    mark_all,
    transaction,
)
from interlock.journal.journal import (
    BlobWriter,
    build_state,
    decode_decision,
    decode_state,
    read_blob,
    read_blobs,
    unpack_blob,
)
from interlock.journal.ownership import insert_owner
from interlock.journal.usage import sum_run_usage
from interlock.system.errors import NotFoundError

RunStatus = Literal["running", "stopped", "waiting", "rate-limited", "budget", "done", "unhealthy"]
_RUNS = (
    "select run_id, circuit, version, source, text, options, status, seconds, created_at,"
    " changed_at from runs"
)
_BATCH_SIZE = 500
"""Cases that are written together, so that a large run needs little memory to start."""
FINISHED = ("done", "unhealthy")


class NewRun(msgspec.Struct, frozen=True, kw_only=True):
    """A run that is to be begun, without its cases."""

    circuit: Circuit
    text: str
    """The circuit and its prompts, as the run keeps them."""
    source: str
    """Where the cases come from, for people."""
    fingerprint: str
    """The mark by which the same run is found again."""
    options: Mapping[str, Any]
    at: float


class NewCase(msgspec.Struct, frozen=True):
    """A case as the user gave it."""

    case_id: str
    input: dict[str, Any]
    priority: int = 0
    needs: tuple[str, ...] = ()


AnyCase = TypeVar("AnyCase", bound=NewCase)


class Run(msgspec.Struct, frozen=True):
    """A suite of cases, at work or finished."""

    run_id: int
    circuit: str
    version: int
    source: str
    text: str
    options: dict[str, Any]
    status: RunStatus
    spent: Spent
    created_at: float
    changed_at: float


class LoadedCase(msgspec.Struct, frozen=True):
    """A case folded from the journal, and the dispatch that waits for an answer, if any."""

    case_no: int
    case: Case
    priority: int
    needs: tuple[str, ...]
    dispatch_id: int | None


class OpenDispatch(msgspec.Struct, frozen=True):
    """A dispatch that was or will be sent, and has no accepted answer."""

    dispatch_id: int
    case_id: str
    step: str
    attempt: int
    role: str
    prompt: str
    at: float


def begin_run(connection: Connection, new: NewRun, cases: Iterable[NewCase]) -> int:
    """Write a new run with all its cases, or nothing, and return its number."""
    with transaction(connection) as raw:
        run_id = insert_run(raw, new)
        insert_cases(raw, new.circuit, run_id, cases)
    return run_id


def insert_run(raw: RawConnection, new: NewRun, number: int | None = None) -> int:
    """Write a new run without cases inside a transaction, and return its number.

    The run gets the given number, if there is one, else the next.
    """
    blobs = BlobWriter(raw)
    text_blob = blobs.put(new.text.encode())
    blobs.flush(raw)
    numbers = NumberSource(raw, "run", after=number or 0)
    run_id = number or numbers.take()
    if number:
        numbers.take()  # on a server, so that no other process gets it
    raw.execute(
        "insert into runs (run_id, circuit, version, text, source, fingerprint, options, status,"
        " seconds, created_at, changed_at) values (?, ?, ?, ?, ?, ?, ?, 'running', 0.0, ?, ?)",
        (
            run_id,
            new.circuit.name,
            new.circuit.version,
            text_blob,
            new.source,
            new.fingerprint,
            msgspec.json.encode(new.options).decode(),
            new.at,
            new.at,
        ),
    )
    insert_owner(raw, run_id)
    return run_id


def insert_cases(
    raw: RawConnection,
    circuit: Circuit,
    run_id: int,
    cases: Iterable[AnyCase],
    also: Callable[[list[tuple[int, AnyCase]]], object] = lambda some: None,
    blobs: BlobWriter | None = None,
) -> None:
    """Write cases of a run in batches; requires a transaction.

    `also` receives the numbers of each batch after it is written, to write rows that belong to it.
    While a journal is open, pass its `blobs`.
    """
    blobs = blobs or BlobWriter(raw)
    numbers = NumberSource(raw, "case")
    left = iter(cases)
    while batch := list(islice(left, _BATCH_SIZE)):
        some = list(zip(numbers.take_many(len(batch)), batch, strict=True))
        rows = [_build_case_row(circuit, blobs, run_id, number, new) for number, new in some]
        blobs.flush(raw)
        raw.executemany("insert into cases values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", rows)
        also(some)


def update_case(raw: RawConnection, run_id: int, new: NewCase, blobs: BlobWriter) -> None:
    """Give an open case another input, priority and needs; requires a transaction."""
    number = blobs.put(msgspec.json.encode(new.input))
    blobs.flush(raw)
    raw.execute(
        "update cases set input = ?, priority = ?, needs = ? where run_id = ? and case_id = ?",
        (number, new.priority, msgspec.json.encode(new.needs).decode(), run_id, new.case_id),
    )


def reopen_run(raw: RawConnection, run_id: int, at: float) -> None:
    """Set a run that has more to do to running, whatever its status was."""
    raw.execute("update runs set status = 'running', changed_at = ? where run_id = ?", (at, run_id))


def _build_case_row(
    circuit: Circuit, blobs: BlobWriter, run_id: int, case_no: int, new: NewCase
) -> tuple[Any, ...]:
    case = open_case(circuit, new.case_id, new.input)
    return (
        case_no,
        run_id,
        new.case_id,
        blobs.put(msgspec.json.encode(new.input)),
        new.priority,
        msgspec.json.encode(new.needs).decode(),
        case.status,
        case.step,
        None,
        msgspec.json.encode(build_state(case)).decode(),
    )


def list_runs(connection: Connection) -> list[Run]:
    rows = connection.raw.execute(f"{_RUNS} order by run_id").fetchall()
    return [_read_run(connection, row) for row in rows]


def find_run(connection: Connection, run_id: int | None = None, *, brief: bool = False) -> Run:
    """Return that run, or the newest; in `brief`, without its cost."""
    where, given = ("", ()) if run_id is None else (" where run_id = ?", (run_id,))
    query = f"{_RUNS}{where} order by run_id desc limit 1"
    row = connection.raw.execute(query, given).fetchone() if is_row_id(run_id or 0) else None
    if row is None:
        what = "there are no runs yet" if run_id is None else f"there is no run {run_id}"
        raise NotFoundError(f"{what}; 'interlock runs' lists them")
    return _read_run(connection, row, brief=brief)


def find_unfinished_run(connection: Connection, fingerprint: str) -> int | None:
    """Return the newest unfinished run of the same circuit and cases."""
    marks = mark_all(FINISHED)
    query = f"select max(run_id) from runs where fingerprint = ? and status not in ({marks})"  # noqa: S608
    return _read_number(connection, query, fingerprint, *FINISHED)


def find_newest_run(connection: Connection, fingerprint: str) -> int | None:
    """Return the newest run with that fingerprint, finished or not."""
    query = "select max(run_id) from runs where fingerprint = ?"
    return _read_number(connection, query, fingerprint)


def _read_number(connection: Connection, query: str, *given: str) -> int | None:
    number: int | None = connection.raw.execute(query, given).fetchone()[0]
    return number


def set_options(connection: Connection, run_id: int, options: Mapping[str, Any]) -> None:
    text = msgspec.json.encode(options).decode()
    connection.raw.execute("update runs set options = ? where run_id = ?", (text, run_id))


def load_inputs(connection: Connection, run_id: int) -> Iterator[NewCase]:
    """Yield the cases of a run as they were given, or last changed."""
    raw = connection.raw
    rows = raw.execute(
        "select case_id, input, priority, needs from cases where run_id = ? order by case_no",
        (run_id,),
    )
    for chunk in _split(rows.fetchall()):
        bodies = read_blobs(raw, {blob for _, blob, *_ in chunk})
        for case_id, blob, priority, needs in chunk:
            names = msgspec.json.decode(needs, type=tuple[str, ...])
            yield NewCase(case_id, msgspec.json.decode(bodies[blob]), priority, names)


class StoredInput(Mapping[str, Any]):
    """The input of a case, read on every access, because those of many cases need much memory."""

    __slots__ = ("_blob", "_read")

    def __init__(self, read: Callable[[int], bytes], blob: int) -> None:
        self._read = read
        self._blob = blob

    def __getitem__(self, name: str) -> Any:
        return self.read()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.read())

    def __len__(self) -> int:
        return len(self.read())

    def items(self) -> ItemsView[str, Any]:
        return self.read().items()

    def read(self) -> dict[str, Any]:
        """Return the whole input as a new dictionary."""
        found: dict[str, Any] = msgspec.json.decode(self._read(self._blob))
        return found


_LONG_INPUT = 1_000
"""Bytes from which an input is left in the database."""
_RECENT = 64
"""Inputs kept in memory: a case's own is read again and again while it is worked on."""


def load_cases(
    connection: Connection, circuit: Circuit, run_id: int, *, whole: bool = False
) -> Iterator[LoadedCase]:
    """Yield the cases of a run, each the fold of its journal.

    Cases that are over have only their end, unless the `whole` journal is requested.
    """
    raw = connection.raw
    read = lru_cache(_RECENT)(partial(read_blob, raw))
    rows = raw.execute(
        "select case_no, case_id, input, priority, needs, dispatch_id, status, step, state"
        " from cases where run_id = ? order by case_no",
        (run_id,),
    )
    for chunk in _split(rows):
        told = {row[0]: row[2] for row in chunk if row[6] == OPEN or whole}
        bodies, stories = read_blobs(raw, {*told.values()}), _load_stories(raw, told)
        for case_no, case_id, blob, priority, needs, dispatch_id, status, step, state in chunk:
            if case_no in told:
                body = bodies[blob]
                is_left = len(body) > _LONG_INPUT and not whole
                given = StoredInput(read, blob) if is_left else msgspec.json.decode(body)
                case = fold_case(circuit, open_case(circuit, case_id, given), stories[case_no])
            else:
                case = Case(case_id, step, status=status, end=decode_state(state).end)
            names = msgspec.json.decode(needs, type=tuple[str, ...])
            yield LoadedCase(case_no, case, priority, names, dispatch_id)


def load_open_dispatches(connection: Connection, run_id: int) -> Iterator[OpenDispatch]:
    """Yield the open dispatches of a run."""
    raw = connection.raw
    rows = raw.execute(
        "select d.dispatch_id, c.case_id, d.step, d.attempt, d.role, d.prompt, d.at from cases c"
        " join dispatches d on d.dispatch_id = c.dispatch_id"
        " where c.run_id = ? and c.dispatch_id is not null order by d.dispatch_id",
        (run_id,),
    ).fetchall()
    for chunk in _split(rows):
        prompts = read_blobs(raw, {row[5] for row in chunk})
        for dispatch_id, case_id, step, attempt, role, blob, at in chunk:
            prompt = prompts[blob].decode()
            yield OpenDispatch(dispatch_id, case_id, step, attempt, role, prompt, at)


def load_holds(connection: Connection, circuit: Circuit, run_id: int) -> dict[str, str]:
    """Return the holds in force in a run, each with the case that holds the others back."""
    held: dict[str, str] = {}
    if not any(rule.hold for rule in circuit.rules):
        return held
    rows = connection.raw.execute(
        "select c.case_id, j.decision from journal j join cases c on c.case_no = j.case_no"
        " where c.run_id = ? order by j.seq",
        (run_id,),
    )
    for case_id, text in rows:
        decision = decode_decision(text)
        if decision.hold:
            held.setdefault(decision.hold, case_id)
        if decision.release:
            held.pop(decision.release, None)
        if decision.status != OPEN:
            held = {name: holder for name, holder in held.items() if holder != case_id}
    return held


def fold_case(
    circuit: Circuit, case: Case, journal: Iterable[tuple[Decision, dict[str, Any]]]
) -> Case:
    """Return the state a case has after all its decisions."""
    for decision, answer in journal:
        case = apply(circuit, case, decision, answer)
    return case


def load_decisions(
    connection: Connection, case_no: int
) -> Iterator[tuple[Decision, dict[str, Any]]]:
    """Yield the decisions of a case in order, each with its answer."""
    yield from _load_stories(connection.raw, [case_no])[case_no]


def _load_stories(
    raw: RawConnection, case_numbers: Collection[int]
) -> dict[int, list[tuple[Decision, dict[str, Any]]]]:
    """Return the decisions of several cases, by their numbers."""
    found: dict[int, list[tuple[Decision, dict[str, Any]]]] = {each: [] for each in case_numbers}
    if found:
        query = _STORIES.format(mark_all(found))
        for case_no, decision, packed, data, blob in raw.execute(query, tuple(found)).fetchall():
            answer = msgspec.json.decode(unpack_blob(blob, packed, data))
            found[case_no].append((decode_decision(decision), answer))
    return found


_STORIES = (
    "select j.case_no, j.decision, b.packed, b.data, j.answer from journal j"
    " join blobs b on b.blob_id = j.answer where j.case_no in ({})"
    " order by j.case_no, j.dispatch_id"
)
_CHUNK = 256
"""Cases whose texts are read at once: few statements, and little memory."""


def _split(rows: Iterable[Any]) -> Iterator[list[Any]]:
    left = iter(rows)
    while chunk := list(islice(left, _CHUNK)):
        yield chunk


def _read_run(connection: Connection, row: Any, *, brief: bool = False) -> Run:
    run_id, circuit, version, source, text, options, status, seconds, created, changed = row
    return Run(
        run_id=run_id,
        circuit=circuit,
        version=version,
        source=source,
        text=read_blob(connection.raw, text).decode(),
        options=msgspec.json.decode(options),
        status=status,
        spent=Spent(seconds=seconds) if brief else sum_run_usage(connection, run_id, seconds),
        created_at=created,
        changed_at=changed,
    )
