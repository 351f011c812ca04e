"""The audit behind `doctor --deep`: does the database say one and the same thing everywhere?

The fold of each case's journal must equal its row; every dispatch is either settled or the open one
of its case; every blob still has the hash it was written with. Reads only.
"""

from collections.abc import Callable, Iterator

import msgspec
from sqlalchemy import Connection

from interlock.core.circuit import Circuit
from interlock.core.errors import StoreError
from interlock.store.blobs import hash_of, read_blob
from interlock.store.database import driver
from interlock.store.history import cases_of
from interlock.store.journal import state_of
from interlock.store.runs import Run, all_runs, load_cases


class Fault(msgspec.Struct, frozen=True):
    """Something that does not add up."""

    id: str
    subject: str
    message: str


def audit(connection: Connection, circuit_of: Callable[[Run], Circuit]) -> list[Fault]:
    """Everything that does not add up in the whole database."""
    faults = [*_integrity(connection), *_blobs(connection), *_dispatches(connection)]
    for run in all_runs(connection):
        faults += _folds(connection, run, circuit_of(run))
    return faults


def _integrity(connection: Connection) -> Iterator[Fault]:
    for (line,) in driver(connection).execute("pragma integrity_check"):
        if line != "ok":
            yield Fault("store.damaged", "database", str(line))
    for table, row, *_ in driver(connection).execute("pragma foreign_key_check"):
        yield Fault("store.dangling", f"{table} {row}", "it refers to a row that is not there")


def _blobs(connection: Connection) -> Iterator[Fault]:
    raw = driver(connection)
    for number, digest in raw.execute("select blob_id, hash from blobs"):
        try:
            intact = hash_of(read_blob(raw, number)) == digest
        except StoreError:
            intact = False
        if not intact:
            yield Fault("store.altered", f"blob {number}", "its content is not what was written")


def _dispatches(connection: Connection) -> Iterator[Fault]:
    """Settled, or the open one of its case: anything else was lost or answered twice."""
    rows = driver(connection).execute(
        "select d.dispatch_id, j.seq is not null, c.dispatch_id is d.dispatch_id"
        " from dispatches d"
        " left join journal j on j.case_no = d.case_no and j.dispatch_id = d.dispatch_id"
        " left join cases c on c.case_no = d.case_no"
    )
    for dispatch_id, settled, is_open in rows:
        if settled and is_open:
            message = "it is settled, yet its case still waits for it"
            yield Fault("store.unsettled", f"dispatch {dispatch_id}", message)
        if not settled and not is_open:
            message = "it was sent and neither settled nor waited for"
            yield Fault("store.lost", f"dispatch {dispatch_id}", message)


def _folds(connection: Connection, run: Run, circuit: Circuit) -> Iterator[Fault]:
    rows = {line.case_no: line for line in cases_of(connection, run.run_id)}
    for loaded in load_cases(connection, circuit, run.run_id, whole=True):
        row = rows[loaded.case_no]
        folded = (loaded.case.status, loaded.case.step, state_of(loaded.case))
        if folded != (row.status, row.step, row.state):
            yield Fault(
                "store.fold",
                f"run {run.run_id}, case {row.case_id}",
                f"the journal says {folded[0]} at {folded[1]}, its row says {row.status} at "
                f"{row.step}, or they differ in loops, visits or context",
            )
