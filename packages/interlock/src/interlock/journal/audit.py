"""Audit a database for `doctor --deep`: does it agree with itself?

The fold of each case's journal must equal its row; every dispatch is either settled or the open one
of its case; every blob still has the hash it was written with. Applications add rules about their
own tables. The audit only reads, and reports what it cannot read instead of stopping.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any

import msgspec

from interlock.engine.circuit import Circuit
from interlock.journal import sqlite
from interlock.journal.connection import ERRORS, Connection, RawConnection, find_server
from interlock.journal.history import list_cases
from interlock.journal.journal import build_state, hash_blob, read_blob
from interlock.journal.runs import Run, find_run, load_cases
from interlock.journal.server import load_driver
from interlock.system.errors import InterlockError

FindSubjects = Callable[[RawConnection], Iterable[str]]
AuditRules = Mapping[str, tuple[str | FindSubjects, str]]
"""Queries or functions that find faulty subjects, and a message for each, by the fault's id."""
_READ_ERRORS = (
    InterlockError,
    msgspec.MsgspecError,
    UnicodeDecodeError,
    RecursionError,
    KeyError,
    *ERRORS,
)


class _Place(msgspec.Struct):
    step: str = ""
    attempt: int = -1


_decode_place = msgspec.json.Decoder(_Place).decode


def _find_foreign(raw: RawConnection) -> Iterator[str]:
    rows = raw.execute(
        "select j.seq, j.case_no, d.case_no, j.decision, d.step, d.attempt from journal j"
        " join dispatches d on d.dispatch_id = j.dispatch_id order by j.seq"
    )
    for seq, case_no, asked_no, decision, step, attempt in rows:
        place = _decode_place(decision)
        if (case_no, place.step, place.attempt) != (asked_no, step, attempt):
            yield f"journal {seq}"


_RULES: AuditRules = {
    "store.foreign": (
        _find_foreign,
        "its decision is about another case, step or attempt than its dispatch",
    ),
    "store.epoch": (
        (
            "select 'journal ' || e.seq from (select j.seq, j.epoch, o.epoch as newest,"
            " lag(j.epoch) over (partition by c.run_id order by j.seq) as before from journal j"
            " join cases c on c.case_no = j.case_no join owners o on o.run_id = c.run_id) e"
            " where e.epoch > e.newest or e.epoch < e.before"
        ),
        "it was written under an epoch that had ended or never existed",
    ),
    "store.missing": (
        (
            "select 'case ' || c.case_no from cases c left join dispatches d"
            " on d.dispatch_id = c.dispatch_id and d.case_no = c.case_no"
            " where c.dispatch_id is not null and d.dispatch_id is null"
        ),
        "it waits for a dispatch that does not exist",
    ),
    "store.question": (
        (
            "select 'dispatch ' || d.dispatch_id from dispatches d left join questions q"
            " on q.question_id = d.dispatch_id and q.case_no = d.case_no"
            " where (d.role = 'human') != (q.question_id is not null)"
        ),
        "it is for a human but not a question, or a question but not for a human",
    ),
}


class Fault(msgspec.Struct, frozen=True):
    """One inconsistency."""

    id: str
    subject: str
    message: str


def audit(
    connection: Connection,
    circuit_of: Callable[[Run], Circuit],
    more: Mapping[str, AuditRules] | None = None,
) -> list[Fault]:
    """Return every inconsistency in the database; `more` are applications' rules by topic."""
    checks: dict[str, Callable[[], Iterable[Fault]]] = {
        "database": partial(_check_integrity, connection),
        "blobs": partial(_check_blobs, connection),
        "dispatches": partial(_check_dispatches, connection),
        "journal": partial(check_rules, connection, _RULES),
        "refusals": partial(_check_refusals, connection),
    }
    for subject, rules in (more or {}).items():
        checks[subject] = partial(check_rules, connection, rules)
    for (run_id,) in connection.raw.execute("select run_id from runs").fetchall():
        checks[f"run {run_id}"] = partial(_check_folds, connection, run_id, circuit_of)
    return [fault for subject, check in checks.items() for fault in _run_check(subject, check)]


def _run_check(subject: str, check: Callable[[], Iterable[Fault]]) -> Iterator[Fault]:
    try:
        yield from check()
    except _READ_ERRORS as error:
        yield Fault("store.unreadable", subject, str(error))


def _check_integrity(connection: Connection) -> Iterator[Fault]:
    own: Any = sqlite if find_server(connection.raw) is None else load_driver()
    for line in own.find_damage(connection):
        yield Fault("store.damaged", "database", line)
    for row in own.find_dangling(connection):
        yield Fault("store.dangling", row, "it refers to a row that does not exist")


def _check_blobs(connection: Connection) -> Iterator[Fault]:
    raw = connection.raw
    for number, digest in raw.execute("select blob_id, hash from blobs"):
        if not _is_intact(raw, number, digest):
            yield Fault(
                "store.altered", f"blob {number}", "its content has changed since it was written"
            )


def _is_intact(raw: RawConnection, number: int, digest: bytes) -> bool:
    try:
        return hash_blob(read_blob(raw, number)) == digest
    except InterlockError:
        return False


def _check_dispatches(connection: Connection) -> Iterator[Fault]:
    """Report dispatches that were lost or answered twice: each is settled, or open in its case."""
    rows = connection.raw.execute(
        "select d.dispatch_id, j.seq is not null, coalesce(c.dispatch_id, 0) = d.dispatch_id"
        " from dispatches d"
        " left join journal j on j.case_no = d.case_no and j.dispatch_id = d.dispatch_id"
        " left join cases c on c.case_no = d.case_no"
    )
    for dispatch_id, settled, is_open in rows:
        if settled and is_open:
            message = "it is settled, yet its case still waits for it"
            yield Fault("store.unsettled", f"dispatch {dispatch_id}", message)
        if not settled and not is_open:
            message = "it was sent, but is neither settled nor awaited"
            yield Fault("store.lost", f"dispatch {dispatch_id}", message)


def check_rules(connection: Connection, rules: AuditRules) -> Iterator[Fault]:
    """Return the faults that these rules find."""
    raw = connection.raw
    for fault_id, (find, message) in rules.items():
        found = [row[0] for row in raw.execute(find)] if isinstance(find, str) else find(raw)
        for subject in found:
            yield Fault(fault_id, subject, message)


def _check_refusals(connection: Connection) -> Iterator[Fault]:
    rows = connection.raw.execute(
        "select r.refusal_id from refusals r join blobs b on b.blob_id = r.content"
        " where b.hash != r.content_hash"
    )
    for (refusal_id,) in rows:
        yield Fault(
            "store.altered", f"refusal {refusal_id}", "its content belongs to another answer"
        )


def _check_folds(
    connection: Connection, run_id: int, circuit_of: Callable[[Run], Circuit]
) -> Iterator[Fault]:
    circuit = circuit_of(find_run(connection, run_id))
    rows = {line.case_no: line for line in list_cases(connection, run_id)}
    for loaded in load_cases(connection, circuit, run_id, whole=True):
        row = rows[loaded.case_no]
        folded = (loaded.case.status, loaded.case.step, build_state(loaded.case))
        if folded != (row.status, row.step, row.state):
            yield Fault(
                "store.fold",
                f"run {run_id}, case {row.case_id}",
                f"the journal says {folded[0]} at {folded[1]}, its row says {row.status} at "
                f"{row.step}, or they differ in loops, visits or context",
            )
