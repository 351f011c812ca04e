"""Give each run one process at a time, under an epoch that rises whenever the run is taken.

A SQLite file has one writer, whose lock ends with its process; a run's row in `owners` only records
it. On PostgreSQL that row is the rule. A process that takes a run raises its epoch, and every
transaction of a turn first locks the row and compares owner and epoch: a process that was stopped
or cut off can write nothing when it returns. It owns the run while its lease lasts, by the
database's clock; a thread with a separate connection renews the lease. A process that could not
renew for a while starts nothing new, and another takes the run when the lease ends.
"""

import os
import socket
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from interlock.journal.address import DatabaseAddress, PostgresAddress
from interlock.journal.connection import ERRORS, Connection, RawConnection, find_server, transaction
from interlock.journal.server import ServerConnection, load_driver
from interlock.system.errors import StateError, StoreError

LEASE = 7.0
"""Seconds a lease lasts: with the time others need to notice, less than ten pass between the death
of a coordinator and the next one's first turn."""
RENEW = 2.0
SURE = 5.0
"""Seconds without a renewal after which nothing new is started."""
_LOOK = 0.1
CHANNEL = "interlock"
"""The channel that announces runs given back and answers that arrived."""
_NEW = "insert into owners values (?, 0, null, '', '', 0, '', 0.0, 0.0)"
_CHECK = "select 1 from owners where run_id = ? and owner = ? and epoch = ? for no key update"
_TAKE = """
update owners set epoch = epoch + 1, owner = ?, name = ?, host = ?, pid = ?, command = ?,
  since = extract(epoch from clock_timestamp()),
  lease_until = extract(epoch from clock_timestamp()) + ?
where run_id = (
  select o.run_id from owners o where o.run_id = ?
    and (o.owner is null or o.lease_until < extract(epoch from clock_timestamp()))
  for update
) returning epoch, run_id"""
_TAKE_DUE = """
update owners set epoch = epoch + 1, owner = ?, name = ?, host = ?, pid = ?, command = ?,
  since = extract(epoch from clock_timestamp()),
  lease_until = extract(epoch from clock_timestamp()) + ?
where run_id = (
  select o.run_id from owners o join runs r on r.run_id = o.run_id
  where not o.run_id = any(?)
    and (o.owner is null or o.lease_until < extract(epoch from clock_timestamp()))
    and (
      r.status = 'running'
      or r.status in ('waiting', 'budget')
        and exists (select 1 from mail m where m.run_id = r.run_id)
      or r.status = 'rate-limited'
        and (select max(p.until) from pauses p where p.run_id = r.run_id)
          < extract(epoch from clock_timestamp())
    )
  order by o.lease_until, o.run_id limit 1
  for update of o skip locked
) returning epoch, run_id"""
_RENEW = (
    "update owners set lease_until = extract(epoch from clock_timestamp()) + ?"
    " where run_id = ? and owner = ? and epoch = ?"
)
_RELEASE = (
    "update owners set owner = null, lease_until = 0.0 where run_id = ? and owner = ? and epoch = ?"
)
_ALIVE = (
    "select run_id, pid, host, command, name from owners where owner is not null"
    " and lease_until >= extract(epoch from clock_timestamp()) order by since desc"
)


class StaleEpochError(StateError):
    """Another coordinator works on the run now."""


class Writer(msgspec.Struct, frozen=True):
    """The process that works on a run, or holds a database."""

    pid: int
    host: str
    command: str
    name: str = ""

    def __str__(self) -> str:
        called = f"{self.name}, " if self.name else ""
        return f"{called}process {self.pid} on {self.host} ({self.command})"


def describe_self(name: str = "") -> Writer:
    """Return a description of this process for others who find it at work."""
    command = " ".join([Path(sys.argv[0]).name, *sys.argv[1:3]])
    return Writer(os.getpid(), socket.gethostname(), command, name)


class Ownership:
    """Our ownership of a run, until another process takes it."""

    def __init__(self, run_id: int, owner: str, epoch: int, *, leased: bool) -> None:
        self.run_id = run_id
        self.owner = owner
        self.epoch = epoch
        self.changed: Callable[[], None] = lambda: None
        """Called from another thread when the lease is lost, in doubt, or sure again."""
        self._leased = leased
        self._lost = threading.Event()
        self._renewed_at = time.monotonic()

    def check(self, raw: RawConnection) -> None:
        """Lock the run for the current transaction; raise StaleEpochError if it is not ours."""
        if self._leased and raw.execute(_CHECK, self._key).fetchone() is None:
            self._lost.set()
            self.raise_if_lost()

    def raise_if_lost(self) -> None:
        if self._lost.is_set():
            raise StaleEpochError(
                f"run {self.run_id} was taken over by another coordinator; this one has stopped "
                "and wrote nothing more"
            )

    @property
    def is_sure(self) -> bool:
        """True if new work may be started, because nobody else can own the run yet."""
        return not self._leased or time.monotonic() - self._renewed_at < SURE

    @property
    def _key(self) -> tuple[int, str, int]:
        return (self.run_id, self.owner, self.epoch)

    def renew(self, server: ServerConnection) -> bool:
        """Extend the lease; return False if another process has the run."""
        begun = time.monotonic()
        if server.execute(_RENEW, (LEASE, *self._key)).rowcount == 0:
            self._lost.set()
            self.changed()
            return False
        # Read this last: a thread that found the lease unsure during the renewal is waiting.
        was_sure = self.is_sure
        self._renewed_at = begun
        if not was_sure:
            self.changed()
        return True

    def release(self, raw: RawConnection) -> None:
        """Give the run back, so that others need not wait for the lease to end."""
        if self._leased and not self._lost.is_set():
            raw.execute(_RELEASE, self._key)
            raw.execute("select pg_notify(?, ?)", (CHANNEL, str(self.run_id)))


def insert_owner(raw: RawConnection, run_id: int) -> None:
    """Write the row of a new run, without an owner; requires the run's transaction."""
    raw.execute(_NEW, (run_id,))


@contextmanager
def own_run(
    connection: Connection, run_id: int, claimed: Ownership | None = None, name: str = ""
) -> Iterator[Ownership]:
    """Own a run, `claimed` before or taken now; raise StoreError that names another owner."""
    raw = connection.raw
    if find_server(raw) is None:
        yield _note_owner(connection, run_id)
        return
    ownership = claimed or _take_run(raw, run_id, name)
    try:
        with _keep_renewed(connection, ownership):
            yield ownership
    finally:
        try:
            raw.rollback()
            ownership.release(raw)
        except ERRORS:
            pass  # the lease expires


def claim_due_run(
    connection: Connection, name: str, apart_from: Sequence[int] = ()
) -> Ownership | None:
    """Take a run that has work to do and no owner; return None if there is none."""
    raw = connection.raw
    return _take(raw, _TAKE_DUE, list(apart_from), name)


def check_free(connection: Connection, run_id: int, claimed: Ownership | None = None) -> None:
    """Raise StoreError if another process works on the run; wait for a dead one's lease to end."""
    raw = connection.raw
    if find_server(raw) is not None and claimed is None:
        _wait_for_dead(raw, run_id)


def leave_to_coordinators(connection: Connection, run_id: int, at: float) -> None:
    """Offer the run to the coordinator that comes first."""
    with transaction(connection) as raw:
        raw.execute(
            "update runs set status = 'running', changed_at = ? where run_id = ?", (at, run_id)
        )
    raw.execute("select pg_notify(?, ?)", (CHANNEL, str(run_id)))


def _take_run(raw: RawConnection, run_id: int, name: str) -> Ownership:
    found = _take(raw, _TAKE, run_id, name)
    if found is None:
        _wait_for_dead(raw, run_id)
        found = _take(raw, _TAKE, run_id, name)
    if found is None:
        raise StoreError(f"run {run_id} has just been taken by another; 'interlock runs' lists all")
    return found


def _wait_for_dead(raw: RawConnection, run_id: int) -> None:
    """Wait until nobody owns the run; raise StoreError as soon as its owner renews the lease.

    An owner that was just killed does not renew.
    """
    query = "select lease_until from owners where run_id = ?"
    first = None
    while who := _read_alive(raw).get(run_id):
        (lease,) = raw.execute(query, (run_id,)).fetchone()
        first = lease if first is None else first
        if lease != first:
            raise StoreError(
                f"run {run_id} is worked on by {who}; wait for it, or 'interlock stop' it"
            )
        time.sleep(_LOOK)


def _take(raw: RawConnection, statement: str, wanted: Any, name: str) -> Ownership | None:
    owner, me = uuid.uuid4().hex, describe_self(name)
    row = raw.execute(
        statement, (owner, me.name, me.host, me.pid, me.command, LEASE, wanted)
    ).fetchone()
    return None if row is None else Ownership(row[1], owner, row[0], leased=True)


def _note_owner(connection: Connection, run_id: int) -> Ownership:
    """Note the owner of a SQLite file's run: the file's one writer owns all its runs."""
    owner, me, now = uuid.uuid4().hex, describe_self(), time.time()
    with transaction(connection) as raw:
        row = raw.execute(
            "update owners set epoch = epoch + 1, owner = ?, name = '', host = ?, pid = ?,"
            " command = ?, since = ? where run_id = ? returning epoch",
            (owner, me.host, me.pid, me.command, now, run_id),
        ).fetchone()
    return Ownership(run_id, owner, row[0] if row else 0, leased=False)


@contextmanager
def _keep_renewed(connection: Connection, ownership: Ownership) -> Iterator[None]:
    """Renew the lease in a thread with a separate connection, so that long turns cannot delay
    it."""
    driver = load_driver()
    address = driver.server_connection(connection).address
    over = threading.Event()

    def keep() -> None:
        server: ServerConnection | None = None
        while not over.wait(RENEW):
            was_sure = ownership.is_sure
            try:
                server = server or driver.open_driver(address)
                if not ownership.renew(server):
                    break
            except (*ERRORS, StoreError):
                if server is not None:
                    server.close()
                    server = None
            if was_sure and not ownership.is_sure:
                ownership.changed()
        if server is not None:
            server.close()

    thread = threading.Thread(target=keep, name=f"lease of run {ownership.run_id}", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


class Writers(msgspec.Struct, frozen=True):
    """The processes at work on a database: one for a whole file, one per run on a server."""

    of_all: Writer | None = None
    by_run: dict[int, Writer] = {}

    def find(self, run_id: int | None = None) -> Writer | None:
        """Return the process that works on that run, or on any if no run is named."""
        if run_id is not None and self.of_all is None:
            return self.by_run.get(run_id)
        return self.of_all or next(iter(self.by_run.values()), None)

    def find_status(self, run_id: int, status: str) -> str:
        """Return the run's status: `interrupted` if it is `running` but its process has died."""
        return "interrupted" if status == "running" and self.find(run_id) is None else status

    def list_all(self) -> Iterator[Writer]:
        """Yield each process once."""
        found = [self.of_all] if self.of_all else self.by_run.values()
        yield from dict.fromkeys(found)


def read_writers(address: PostgresAddress) -> Writers:
    """Return the processes that work on runs of a server's database at this moment."""
    from interlock.journal.schema import read_versions

    with load_driver().connect(address, "ro") as connection:
        if not read_versions(connection.raw):
            return Writers()
        return Writers(by_run=_read_alive(connection.raw))


def _read_alive(raw: RawConnection) -> dict[int, Writer]:
    return {run_id: Writer(*who) for run_id, *who in raw.execute(_ALIVE)}


def is_shared(db: DatabaseAddress) -> bool:
    """Return True if several processes may write to the database at once."""
    return isinstance(db, PostgresAddress)
