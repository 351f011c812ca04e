"""The work queue on PostgreSQL: what coordinators offer to workers, and what workers make of it.

It lies in a schema of its own, with procrastinate's tables: its jobs only carry a dispatch's number
and fence to a worker and wake it up. What counts are our rows. Each time a dispatch is offered its
fence rises; the worker that takes it is told a token, and only the reply with the token of the
newest fence is accepted. Everything here is passing: a coordinator offers again what is missing.

Plain functions over one connection, for coordinators; what workers do is in `queue_worker.py`.
"""

import re
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

import msgspec

from interlock.journal.connection import RawConnection
from interlock.system.errors import StoreError
from interlock_cluster.postgres import PostgresConnection, run_on_server
from interlock_cluster.roles import grant_queue

VERSION = 2
"""Of `queue.sql`. A schema of another version is made anew: nothing in it must be kept."""
CHANNEL = "interlock_replies"
"""Where coordinators hear that a worker has come, has gone, or has replied."""
TASK = "interlock.dispatch"
"""What procrastinate calls a dispatch."""
MOST_LOSSES = 5
"""Workers that may be lost over one dispatch before it is taken for what kills them."""
_PRUNE_WORKERS = 900.0
"""Seconds after which a worker that is dead is forgotten."""
_KEEP_SETTLED = 3600.0
"""Seconds for which a late reply is still known for what it is."""
_JOB_LOST = 5.0
"""Seconds after which an offer whose job is gone gets another."""
_LABEL = re.compile(r"interlock (\d+), procrastinate ([\w.]+)")


class Offer(msgspec.Struct, frozen=True):
    """A dispatch for workers."""

    dispatch_id: int
    run_id: int
    case_no: int
    case_id: str
    step: str
    role: str
    queue: str
    ask: bytes
    timeout: float | None = None


class QueuedReply(msgspec.Struct, frozen=True):
    """What a worker answered; with a `problem` it is too late, or not its to give."""

    dispatch_id: int
    fence: int
    problem: str
    worker: str
    account: str
    is_limited: bool
    """Whether it met a rate limit, of that account if it has one."""
    body: bytes


class LostOffer(msgspec.Struct, frozen=True):
    """A dispatch whose worker died, was cut off, or gave it back."""

    dispatch_id: int
    losses: int
    worker: str


class QueueSweep(msgspec.Struct, frozen=True):
    """What was found when the offers of a run were looked through."""

    lost: tuple[LostOffer, ...] = ()
    overdue: tuple[tuple[int, float], ...] = ()
    """Dispatches that were not answered in time, with their time in seconds."""


class QueueRoom(msgspec.Struct, frozen=True):
    """How much a queue takes: the slots of live workers, and how many runs share them."""

    slots: int = 0
    runs: int = 1


class WorkerRow(msgspec.Struct, frozen=True):
    """A worker, as its row has it. Times are the database's own; `silent` is for how long it has
    not been heard."""

    worker_id: str
    name: str
    host: str
    pid: int
    version: str
    agents: str
    labels: Sequence[str]
    slots: int
    state: str
    held: str
    started_at: float
    silent: float
    lease: float


# The schema.


@cache
def find_procrastinate() -> str:
    """The version that is installed here; StoreError if none is."""
    try:
        return metadata.version("procrastinate")
    except metadata.PackageNotFoundError as error:
        raise StoreError(
            f"workers need more packages: pip install 'interlock[postgres]' ({error})"
        ) from None


def find_schema(raw: RawConnection) -> str:
    """The queue's schema, quoted: one for each journal of the database."""
    query = (
        "select quote_ident(case current_schema() when 'public' then 'interlock'"
        " else current_schema()::text end || '_queue')"
    )
    return str(raw.execute(query).fetchone()[0])


def describe_queue(server: PostgresConnection) -> tuple[int, str] | None:
    """The versions of the queue and of procrastinate that the database has; None if it has none."""
    # Not to_regnamespace: it may remember that there was none, when another has just made it.
    query = (
        "select obj_description(oid, 'pg_namespace') from pg_namespace"
        " where quote_ident(nspname) = ?"
    )
    row = server.execute(query, (find_schema(server),)).fetchone()
    found = _LABEL.fullmatch(row[0] or "") if row else None
    return (int(found[1]), found[2]) if found else None


def ensure_queue(server: PostgresConnection) -> bool:
    """Make the queue, or make it anew if it is of an older version; whether that was done. Takes
    the rights of the database's owner, unless there is nothing to do."""
    installed = find_procrastinate()
    if _is_fit(describe_queue(server), installed):
        return False
    script = (Path(__file__).parent / "queue.sql").read_text(encoding="utf-8")
    from procrastinate.schema import SchemaManager

    server.begin()
    try:
        server.lock("interlock queue")
        if _is_fit(describe_queue(server), installed):
            server.rollback()
            return False
        schema = find_schema(server)
        label = f"interlock {VERSION}, procrastinate {installed}"
        run_on_server(
            server,
            f"drop schema if exists {schema} cascade; create schema {schema};"
            f" comment on schema {schema} is '{label}'; set local search_path to {schema};",
        )
        run_on_server(server, SchemaManager.get_schema())
        run_on_server(server, script)
        grant_queue(server, schema)
        server.commit()
    except BaseException:
        server.rollback()
        raise
    return True


def grant_roles(server: PostgresConnection) -> None:
    """Let the roles of the server use the queue; belongs inside a transaction."""
    with _search_queue(server):
        grant_queue(server, qualify(server, "{q}"))


def _is_fit(found: tuple[int, str] | None, installed: str) -> bool:
    if found is None:
        return False
    version, procrastinate = found
    if version > VERSION:
        raise StoreError(
            f"the work queue is of version {version}, this Interlock knows {VERSION}: use the "
            "newer Interlock that made it"
        )
    return version == VERSION and _read_version(procrastinate) >= _read_version(installed)


def _read_version(text: str) -> tuple[int, ...]:
    return tuple(int(word) for word in re.findall(r"\d+", text)[:3])


# For coordinators. All but the readers belong inside a transaction.


_OFFER = """
insert into {q}.offers (dispatch_id, run_id, case_id, step, role, queue, priority, fence, secret,
  state, ask, timeout, losses, offered_at)
select n.dispatch_id, n.run_id, n.case_id, n.step, n.role, n.queue,
  coalesce((select least(greatest(c.priority, -1000000), 1000000) from cases c
    where c.case_no = n.case_no), 0),
  1, n.secret, 'offered', n.ask, n.timeout, 0, {q}.interlock_now()
from unnest(?::bigint[], ?::bigint[], ?::bigint[], ?::text[], ?::text[], ?::text[], ?::text[],
  ?::text[], ?::bytea[], ?::float[])
  as n(dispatch_id, run_id, case_no, case_id, step, role, queue, secret, ask, timeout)
order by n.dispatch_id
on conflict (dispatch_id) do update set state = 'offered', fence = offers.fence + 1,
  ask = excluded.ask, timeout = excluded.timeout, worker = null, losses = 0, taken_at = null,
  deadline = null, settled_at = null, answer_hash = null, offered_at = excluded.offered_at
  where offers.state = 'settled'
returning dispatch_id, fence, queue, priority"""
_SETTLE = """
update {q}.offers set state = 'settled', ask = null, settled_at = {q}.interlock_now()
where dispatch_id = any(?) and state <> 'settled' returning dispatch_id, fence"""
_LOST = """
update {q}.offers o set state = 'offered', fence = fence + 1, worker = null, taken_at = null,
  deadline = null, losses = losses + 1, offered_at = {q}.interlock_now()
from (
  select t.dispatch_id, coalesce(w.name || ' on ' || w.host, '') as name from {q}.offers t
  left join {q}.workers w on w.worker_id = t.worker
  where t.run_id = any(?) and t.queue = any(?) and t.state = 'taken'
    and (w.worker_id is null or w.seen_at + w.lease < {q}.interlock_now())
  for update of t skip locked
) as lost
where o.dispatch_id = lost.dispatch_id
returning o.dispatch_id, o.losses, lost.name, o.fence, o.queue, o.priority"""
_UNCARRIED = """
select o.dispatch_id, o.fence, o.queue, o.priority from {q}.offers o
where o.run_id = any(?) and o.queue = any(?) and o.state = 'offered'
  and o.offered_at < {q}.interlock_now() - ?
  and not exists (select 1 from {q}.procrastinate_jobs j
    where j.queueing_lock = o.dispatch_id || ':' || o.fence and j.status = 'todo')"""
_OVERDUE = (
    "select dispatch_id, timeout from {q}.offers where run_id = any(?) and queue = any(?)"
    " and state = 'taken' and deadline < {q}.interlock_now()"
)
_REPLIES = (
    "select dispatch_id, fence, problem, worker, account, limited, body from {q}.replies"
    " where run_id = any(?) and queue = any(?) and not exists (select 1 from"
    " unnest(?::bigint[], ?::bigint[]) as d(dispatch_id, fence)"
    " where d.dispatch_id = replies.dispatch_id and d.fence = replies.fence) order by at"
)
_ROOM = """
select queue, (
  select coalesce(sum(w.slots), 0)
  from {q}.workers w, unnest(w.queues, w.accounts) as u(queue, account)
  where u.queue = wanted.queue and w.state = 'ready' and w.seen_at + w.lease >= {q}.interlock_now()
    and not exists (select 1 from {q}.account_limits l
      where l.account = u.account and l.until > {q}.interlock_now())
), (
  select count(distinct o.run_id) from {q}.offers o
  where o.queue = wanted.queue and o.state in ('offered', 'taken')
)
from unnest(?::text[]) as wanted(queue)"""


def insert_offers(server: PostgresConnection, offers: Sequence[Offer]) -> None:
    """Offer these. What was offered before, and not settled, stays as it is."""
    columns = (
        [each.dispatch_id for each in offers],
        [each.run_id for each in offers],
        [each.case_no for each in offers],
        [each.case_id for each in offers],
        [each.step for each in offers],
        [each.role for each in offers],
        [each.queue for each in offers],
        [secrets.token_hex(16) for _ in offers],
        [each.ask for each in offers],
        [each.timeout for each in offers],
    )
    rows = server.execute(qualify(server, _OFFER), columns).fetchall()
    _defer_jobs(server, rows)


def settle_offers(server: PostgresConnection, dispatch_ids: Sequence[int]) -> None:
    """Nobody needs to work on these any more. Their numbers are kept for a while, to know a late
    reply for what it is."""
    rows = server.execute(qualify(server, _SETTLE), (list(dispatch_ids),)).fetchall()
    locks = [f"{dispatch_id}:{fence}" for dispatch_id, fence in rows]
    statements = (
        (
            "delete from {q}.procrastinate_jobs where queueing_lock = any(?) and status = 'todo'",
            locks,
        ),
        ("delete from {q}.replies where dispatch_id = any(?) and problem = ''", dispatch_ids),
    )
    for statement, values in statements:
        server.execute(qualify(server, statement), (list(values),))


_WITHDRAW = """
update {q}.offers f set state = 'settled', ask = null, settled_at = {q}.interlock_now()
where f.dispatch_id = any(?) and f.state = 'offered' and exists (
  select 1 from owners o where o.run_id = f.run_id and o.pid = ? and o.host = ?
) returning f.dispatch_id, f.fence"""


def withdraw_offers(
    server: PostgresConnection, dispatch_ids: Sequence[int], pid: int, host: str
) -> None:
    """Let nobody begin with these, while their run rests; what a worker has begun goes on. Only of
    runs that this process owns: of one that it lost, another takes care."""
    values = (list(dispatch_ids), pid, host)
    rows = server.execute(qualify(server, _WITHDRAW), values).fetchall()
    locks = [f"{dispatch_id}:{fence}" for dispatch_id, fence in rows]
    server.execute(
        qualify(
            server,
            "delete from {q}.procrastinate_jobs where queueing_lock = any(?) and status = 'todo'",
        ),
        (locks,),
    )


def sweep_offers(
    server: PostgresConnection, run_ids: Sequence[int], queues: Sequence[str]
) -> QueueSweep:
    """Offer again, under a new fence, what its worker will not answer; carry again what the queue
    has lost; forget what is over."""
    whose = (list(run_ids), list(queues))
    lost = server.execute(qualify(server, _LOST), whose).fetchall()
    carried = [(row[0], *row[3:]) for row in lost]
    carried += server.execute(qualify(server, _UNCARRIED), (*whose, _JOB_LOST)).fetchall()
    _defer_jobs(server, carried)
    overdue = server.execute(qualify(server, _OVERDUE), whose).fetchall()
    return QueueSweep(
        tuple(LostOffer(*row[:3]) for row in lost), tuple((row[0], row[1]) for row in overdue)
    )


_OVER = (
    "workers where seen_at < {q}.interlock_now() - lease - ?",
    "offers where state = 'settled' and settled_at < {q}.interlock_now() - ?",
    "procrastinate_workers where last_heartbeat < now() - interval '60 s'",
    "procrastinate_jobs where status <> 'todo' and worker_id is null",
    "replies r where problem <> '' and exists (select 1 from refusals f"  # noqa: ISC004
    " where f.run_id = r.run_id and f.dispatch_id = r.dispatch_id and f.reason = 'Stale')",
    "account_limits where until < {q}.interlock_now() - 86400",
)


def tidy_queue(server: PostgresConnection) -> None:
    """Remove what nobody needs: workers long dead, jobs that died with them, settled offers, late
    replies that are journaled, limits long over."""
    seconds = {0: (_PRUNE_WORKERS,), 1: (_KEEP_SETTLED,)}
    for number, what in enumerate(_OVER):
        server.execute(qualify(server, f"delete from {{q}}.{what}"), seconds.get(number, ()))  # noqa: S608


def read_replies(
    server: PostgresConnection,
    run_ids: Sequence[int],
    queues: Sequence[str],
    apart_from: Sequence[tuple[int, int]],
) -> list[QueuedReply]:
    """What workers have answered, oldest first, apart from these dispatches and fences."""
    known = ([number for number, _ in apart_from], [fence for _, fence in apart_from])
    values = (list(run_ids), list(queues), *known)
    rows = server.execute(qualify(server, _REPLIES), values)
    return [QueuedReply(*row) for row in rows]


def read_room(server: PostgresConnection, queues: Sequence[str]) -> dict[str, QueueRoom]:
    """How much each of these queues takes."""
    rows = server.execute(qualify(server, _ROOM), (list(queues),))
    return {queue: QueueRoom(int(slots), max(1, runs)) for queue, slots, runs in rows}


def read_limit_end(server: PostgresConnection, queues: Sequence[str]) -> float:
    """For how many seconds the account of a live worker of these queues rests that goes on first; 0
    if none does."""
    query = (
        "select min(l.until) - {q}.interlock_now() from {q}.account_limits l"
        " where l.until > {q}.interlock_now() and exists (select 1 from {q}.workers w,"
        " unnest(w.queues, w.accounts) as u(queue, account) where u.account = l.account"
        " and u.queue = any(?) and w.seen_at + w.lease >= {q}.interlock_now())"
    )
    return float(server.execute(qualify(server, query), (list(queues),)).fetchone()[0] or 0.0)


def list_late_replies(server: PostgresConnection) -> dict[int, list[QueuedReply]]:
    """Replies that cannot count, by run, of runs that nobody works on: nobody else will journal
    them."""
    query = (
        "select r.run_id, r.dispatch_id, r.fence, r.problem, r.worker, r.account, r.limited, r.body"
        " from {q}.replies r join owners o on o.run_id = r.run_id where r.problem <> ''"
        " and (o.owner is null or o.lease_until < {q}.interlock_now()) order by r.at limit 100"
    )
    found: dict[int, list[QueuedReply]] = {}
    for run_id, *row in server.execute(qualify(server, query)):
        found.setdefault(run_id, []).append(QueuedReply(*row))
    return found


def find_missing(server: PostgresConnection, dispatch_ids: Sequence[int]) -> set[int]:
    """Which of these are not offered, nor with a worker: another process settled them by mistake,
    or the queue was made anew."""
    query = "select dispatch_id from {q}.offers where dispatch_id = any(?) and state <> 'settled'"
    rows = server.execute(qualify(server, query), (list(dispatch_ids),))
    return {*dispatch_ids} - {row[0] for row in rows}


def count_offers(server: PostgresConnection) -> dict[tuple[str, str], int]:
    """How many dispatches of each queue are `offered`, or `taken` by a worker."""
    query = (
        "select queue, state, count(*) from {q}.offers where state in ('offered', 'taken')"
        " group by queue, state"
    )
    rows = server.execute(qualify(server, query))
    return {(name, state): count for name, state, count in rows}


def list_workers(server: PostgresConnection) -> list[WorkerRow]:
    """All workers that are known, the dead ones too."""
    query = (
        "select worker_id, name, host, pid, version, agents, labels, slots, state, held,"
        " started_at, {q}.interlock_now() - seen_at, lease from {q}.workers"
        " order by name, started_at"
    )
    rows = server.execute(qualify(server, query))
    return [WorkerRow(*row) for row in rows]


def _defer_jobs(server: PostgresConnection, rows: Sequence[Any]) -> None:
    """A job for each offer (dispatch, fence, queue, priority), in this transaction."""
    if not rows:
        return
    from procrastinate.exceptions import ProcrastinateException
    from procrastinate.jobs import Job
    from procrastinate.manager import JobManager
    from procrastinate.sync_psycopg_connector import SyncPsycopgConnector

    made = [
        Job(
            id=None,
            lock=None,
            queueing_lock=f"{dispatch_id}:{fence}",
            queue=queue,
            priority=priority,
            task_name=TASK,
            task_kwargs={"dispatch_id": dispatch_id, "fence": fence},
        )
        for dispatch_id, fence, queue, priority in rows
    ]
    try:
        with _search_queue(server):
            JobManager(SyncPsycopgConnector()).batch_defer_jobs(made, connection=server.driver)
    except ProcrastinateException as error:
        raise StoreError(f"the work queue cannot be written: {error.__cause__ or error}") from error


@contextmanager
def _search_queue(server: PostgresConnection) -> Iterator[None]:
    """procrastinate's own statements find their tables, until the end of this."""
    schema = qualify(server, "{q}")
    (before,) = server.execute("select current_setting('search_path')").fetchone()
    server.execute("select set_config('search_path', ?, true)", (schema,))
    yield
    server.execute("select set_config('search_path', ?, true)", (before,))


def qualify(server: PostgresConnection, statement: str) -> str:
    """The statement with the queue's schema for `{q}`."""
    schema = server.notes.get("queue")
    if schema is None:
        schema = server.notes["queue"] = find_schema(server)
    return statement.replace("{q}", schema)
