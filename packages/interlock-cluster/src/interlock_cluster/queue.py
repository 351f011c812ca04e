"""The work queue on PostgreSQL: the side of coordinators, and its schema.

A dispatch for workers is a job of procrastinate, which fetches it, watches its worker and retries
it. Our row beside it holds the fence: each time a worker takes the dispatch its fence rises, and
only the reply with the token of the newest fence is accepted (`queue.sql`). Nothing here must be
kept: a coordinator offers again what is missing.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import TypeVar

import msgspec

from interlock.api.workers import HeldDetails, WorkerStatus
from interlock.journal.connection import RawConnection
from interlock.system.errors import StoreError
from interlock_cluster.postgres import PostgresConnection, run_on_server
from interlock_cluster.roles import grant_queue

VERSION = 3
"""The version of `queue.sql`. A schema of another version is made anew."""
CHANNEL = "interlock_replies"
"""The channel that tells coordinators of new workers and replies."""
TASK = "interlock.dispatch"
"""The name of procrastinate's task."""
MOST_LOSSES = 5
"""Workers that may be lost over one dispatch before it counts as crashed."""
KEEP_WORKERS = 900.0
"""Seconds for which a dead worker is still listed."""
_KEEP_SETTLED = 3600.0
"""Seconds for which a late reply can still be told from one to an unknown dispatch."""
_SILENCE = 30.0
"""Seconds of silence after which a worker that never described itself is dead."""
_TAKE_SECONDS = 10.0
"""Seconds in which a worker takes the dispatch of a job that it has fetched."""
T = TypeVar("T")
_LABEL = re.compile(r"interlock (\d+), procrastinate ([\w.]+)")


class Offer(msgspec.Struct, frozen=True):
    """A dispatch for workers."""

    dispatch_id: int
    run_id: int
    case_no: int
    queue: str
    ask: bytes
    timeout: float | None = None


class QueuedReply(msgspec.Struct, frozen=True):
    """A worker's reply; one with a `problem` was refused."""

    dispatch_id: int
    fence: int
    problem: str
    account: str
    is_limited: bool
    """Whether the agent met a rate limit, of that account if it has one."""
    body: bytes


class LostOffer(msgspec.Struct, frozen=True):
    """A dispatch that is offered again because its worker died or was cut off."""

    dispatch_id: int
    losses: int
    worker: str


class WorkerIdentity(msgspec.Struct, frozen=True):
    """A worker's description of itself."""

    worker_id: str
    name: str
    host: str
    pid: int
    version: str
    queues: Mapping[str, str]
    """The account that each queue's work is charged to; '' if it has none."""
    agents: Mapping[str, str]
    """The words that name the agent of each role."""
    labels: tuple[str, ...]
    slots: int
    lease: float


# The schema.


@cache
def find_procrastinate() -> str:
    """Return the installed version; raise StoreError if there is none."""
    try:
        return metadata.version("procrastinate")
    except metadata.PackageNotFoundError as error:
        raise StoreError(
            f"workers need more packages: pip install interlock-cluster ({error})"
        ) from None


def find_schema(raw: RawConnection) -> str:
    """Return the queue's schema, quoted: each journal of the database has its own."""
    query = (
        "select quote_ident(case current_schema() when 'public' then 'interlock'"
        " else current_schema()::text end || '_queue')"
    )
    return str(raw.execute(query).fetchone()[0])


def describe_queue(server: PostgresConnection) -> tuple[int, str] | None:
    """Return the database's versions of the queue and of procrastinate; None without a queue."""
    # Not to_regnamespace: it may remember that there was none, when another has just made it.
    query = (
        "select obj_description(oid, 'pg_namespace') from pg_namespace"
        " where quote_ident(nspname) = ?"
    )
    row = server.execute(query, (find_schema(server),)).fetchone()
    found = _LABEL.fullmatch(row[0] or "") if row else None
    return (int(found[1]), found[2]) if found else None


def ensure_queue(server: PostgresConnection) -> bool:
    """Make the queue, or make it anew if it is of an older version; return whether that was done.
    It takes the rights of the database's owner, unless there is nothing to do."""
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
    """Let the server's roles use the queue; belongs inside a transaction."""
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
insert into {q}.offers (dispatch_id, run_id, queue, priority, state, ask, timeout)
select n.dispatch_id, n.run_id, n.queue,
  coalesce((select least(greatest(c.priority, -1000000), 1000000) from cases c
    where c.case_no = n.case_no), 0),
  'open', n.ask, n.timeout
from unnest(?::bigint[], ?::bigint[], ?::bigint[], ?::text[], ?::bytea[], ?::float[])
  as n(dispatch_id, run_id, case_no, queue, ask, timeout)
order by n.dispatch_id
on conflict (dispatch_id) do update set state = 'open', job_id = 0, ask = excluded.ask,
  timeout = excluded.timeout, worker = null, deadline = null, losses = 0, settled_at = null,
  answer_hash = null
  where offers.state = 'settled'
returning dispatch_id, queue, priority"""
_LOST = """
select o.dispatch_id, o.losses + 1, coalesce(w.about->>'name', ''), j.id, o.queue, o.priority
from {q}.offers o
left join {q}.procrastinate_jobs j on j.id = o.job_id and j.status in ('todo', 'doing')
left join {q}.procrastinate_workers p on p.id = j.worker_id
left join {q}.workers w on w.worker = j.worker_id
where o.run_id = any(?) and o.queue = any(?) and o.state = 'open' and (
  j.id is null
  or j.status = 'doing' and (
    p.id is null
    or p.last_heartbeat < clock_timestamp() - coalesce(w.lease, ?) * interval '1 s'
    or o.worker is distinct from j.worker_id and not exists (
      select 1 from {q}.procrastinate_events e where e.job_id = j.id and e.type = 'started'
        and e.at > clock_timestamp() - ? * interval '1 s')))
order by o.dispatch_id for update of o skip locked"""
"""Open offers without a job, or whose job is with a worker that is silent, or that never took it
because the answer to its fetch was lost."""
_RETRY = (
    "select {q}.procrastinate_retry_job_v2(id, null, null, null, null)"
    " from unnest(?::bigint[]) as id"
)
_OPEN_JOBS = (
    "select job_id from {q}.offers where dispatch_id = any(?) and state = 'open' for update"
)
_SETTLE = (
    "update {q}.offers set state = 'settled', ask = null, settled_at = {q}.interlock_now()"
    " where dispatch_id = any(?) and state <> 'settled'"
)
_CANCEL = "select {q}.procrastinate_cancel_job_v1(id, true, true) from unnest(?::bigint[]) as id"
_FORGET = "delete from {q}.replies where dispatch_id = any(?) and problem = ''"
_LOSE = "update {q}.offers set losses = losses + 1, worker = null where dispatch_id = any(?)"
_OVERDUE = (
    "select o.dispatch_id, o.timeout from {q}.offers o join {q}.procrastinate_jobs j"
    " on j.id = o.job_id where o.run_id = any(?) and o.queue = any(?) and o.state = 'open'"
    " and j.status = 'doing' and o.worker = j.worker_id and o.deadline < {q}.interlock_now()"
)
_REPLIES = (
    "select dispatch_id, fence, problem, account, limited, body from {q}.replies"
    " where run_id = any(?) and queue = any(?) and not exists (select 1 from"
    " unnest(?::bigint[], ?::bigint[]) as d(dispatch_id, fence)"
    " where d.dispatch_id = replies.dispatch_id and d.fence = replies.fence) order by at"
)
_SLOTS = """
select wanted.queue, (
  select coalesce(sum(w.slots), 0) from {q}.workers w
  join {q}.procrastinate_workers p on p.id = w.worker
  where w.state = 'ready' and jsonb_exists(w.about->'queues', wanted.queue)
    and p.last_heartbeat >= clock_timestamp() - w.lease * interval '1 s'
    and not exists (select 1 from {q}.account_limits l
      where l.account = w.about->'queues'->>wanted.queue and l.until > {q}.interlock_now())
) from unnest(?::text[]) as wanted(queue)"""

_LIMIT_END = """
select min(l.until) - {q}.interlock_now() from {q}.account_limits l
where l.until > {q}.interlock_now() and exists (
  select 1 from {q}.workers w join {q}.procrastinate_workers p on p.id = w.worker,
    jsonb_each_text(w.about->'queues') as u(queue, account)
  where u.account = l.account and u.queue = any(?)
    and p.last_heartbeat >= clock_timestamp() - w.lease * interval '1 s')"""


def insert_offers(server: PostgresConnection, offers: Sequence[Offer]) -> None:
    """Offer dispatches; those that are open already stay as they are."""
    columns = (
        [each.dispatch_id for each in offers],
        [each.run_id for each in offers],
        [each.case_no for each in offers],
        [each.queue for each in offers],
        [each.ask for each in offers],
        [each.timeout for each in offers],
    )
    _defer_jobs(server, server.execute(qualify(server, _OFFER), columns).fetchall())


def settle_offers(server: PostgresConnection, dispatch_ids: Sequence[int]) -> None:
    """Close offers and abort the work on them. Their rows stay for a while, to recognize late
    replies."""
    numbers = [*dispatch_ids]
    jobs = [job for (job,) in server.execute(qualify(server, _OPEN_JOBS), (numbers,))]
    for statement, values in ((_SETTLE, numbers), (_CANCEL, jobs), (_FORGET, numbers)):
        server.execute(qualify(server, statement), (values,))


_NOT_BEGUN = """
select o.dispatch_id from {q}.offers o join {q}.procrastinate_jobs j on j.id = o.job_id
where o.dispatch_id = any(?) and o.state = 'open' and j.status = 'todo' and exists (
  select 1 from owners w where w.run_id = o.run_id and w.pid = ? and w.host = ?
) for update of o, j skip locked"""


def withdraw_offers(
    server: PostgresConnection, dispatch_ids: Sequence[int], pid: int, host: str
) -> None:
    """Close the offers that no worker has begun, as far as this process owns their runs."""
    values = (list(dispatch_ids), pid, host)
    rows = server.execute(qualify(server, _NOT_BEGUN), values).fetchall()
    settle_offers(server, [number for (number,) in rows])


def sweep_offers(
    server: PostgresConnection, run_ids: Sequence[int], queues: Sequence[str]
) -> list[LostOffer]:
    """Offer again what a silent worker holds."""
    whose = (list(run_ids), list(queues))
    found = server.execute(qualify(server, _LOST), (*whose, _SILENCE, _TAKE_SECONDS)).fetchall()
    if found:
        server.execute(qualify(server, _LOSE), ([row[0] for row in found],))
        jobs = [row[3] for row in found if row[3] is not None]
        server.execute(qualify(server, _RETRY), (jobs,))
        _defer_jobs(server, [(row[0], *row[4:]) for row in found if row[3] is None])
    return [LostOffer(*row[:3]) for row in found]


def list_overdue(
    server: PostgresConnection, run_ids: Sequence[int], queues: Sequence[str]
) -> list[tuple[int, float]]:
    """Return the dispatches that were not answered in time, with their time in seconds."""
    rows = server.execute(qualify(server, _OVERDUE), (list(run_ids), list(queues)))
    return [(number, seconds) for number, seconds in rows]


_OVER: dict[str, tuple[float, ...]] = {
    "procrastinate_workers where last_heartbeat < clock_timestamp() - ? * interval '1 s'": (
        KEEP_WORKERS,
    ),
    "offers where state = 'settled' and settled_at < {q}.interlock_now() - ?": (_KEEP_SETTLED,),
    "procrastinate_jobs j where (status <> 'doing' or worker_id is null) and not exists"
    " (select 1 from {q}.offers o where o.job_id = j.id and o.state = 'open')": (),
    "replies r where problem <> '' and exists (select 1 from refusals f"
    " where f.run_id = r.run_id and f.dispatch_id = r.dispatch_id and f.reason = 'Stale')": (),
    "account_limits where until < {q}.interlock_now() - 86400": (),
}


def tidy_queue(server: PostgresConnection) -> None:
    """Remove dead workers, jobs of no offer, old offers, journaled replies and old limits."""
    for what, values in _OVER.items():
        server.execute(qualify(server, f"delete from {{q}}.{what}"), values)  # noqa: S608


def read_replies(
    server: PostgresConnection,
    run_ids: Sequence[int],
    queues: Sequence[str],
    apart_from: Sequence[tuple[int, int]],
) -> list[QueuedReply]:
    """Return the replies of workers, oldest first, apart from these dispatches and fences."""
    known = ([number for number, _ in apart_from], [fence for _, fence in apart_from])
    values = (list(run_ids), list(queues), *known)
    return [QueuedReply(*row) for row in server.execute(qualify(server, _REPLIES), values)]


def count_slots(server: PostgresConnection, queues: Sequence[str]) -> dict[str, int]:
    """Return the slots of the live workers of each queue whose account does not rest."""
    rows = server.execute(qualify(server, _SLOTS), (list(queues),))
    return {queue: int(slots) for queue, slots in rows}


def read_limit_end(server: PostgresConnection, queues: Sequence[str]) -> float:
    """Return in how many seconds the first resting account of these queues' live workers can go
    on; 0 if none rests."""
    row = server.execute(qualify(server, _LIMIT_END), (list(queues),)).fetchone()
    return float(row[0] or 0.0)


def list_late_replies(server: PostgresConnection) -> dict[int, list[QueuedReply]]:
    """Return the refused replies of runs that nobody works on, by run."""
    query = (
        "select r.run_id, r.dispatch_id, r.fence, r.problem, r.account, r.limited, r.body"
        " from {q}.replies r join owners o on o.run_id = r.run_id where r.problem <> ''"
        " and (o.owner is null or o.lease_until < {q}.interlock_now()) order by r.at limit 100"
    )
    found: dict[int, list[QueuedReply]] = {}
    for run_id, *row in server.execute(qualify(server, query)):
        found.setdefault(run_id, []).append(QueuedReply(*row))
    return found


def find_missing(server: PostgresConnection, dispatch_ids: Sequence[int]) -> set[int]:
    """Return those that are not offered: another process settled them by mistake, or the queue was
    made anew."""
    query = "select dispatch_id from {q}.offers where dispatch_id = any(?) and state <> 'settled'"
    rows = server.execute(qualify(server, query), (list(dispatch_ids),))
    return {*dispatch_ids} - {row[0] for row in rows}


def count_offers(server: PostgresConnection) -> dict[tuple[str, str], int]:
    """Return how many dispatches of each queue are `offered`, or `taken` by a worker."""
    query = (
        "select queue_name, case status when 'todo' then 'offered' else 'taken' end, count(*)"
        " from {q}.procrastinate_jobs where status in ('todo', 'doing') group by 1, 2"
    )
    rows = server.execute(qualify(server, query))
    return {(name, state): count for name, state, count in rows}


def list_workers(server: PostgresConnection) -> list[WorkerStatus]:
    """Return all known workers, including those that died a while ago."""
    query = (
        "select w.about::text, w.state, w.held, w.started_at,"
        " extract(epoch from clock_timestamp() - p.last_heartbeat)::float"
        " from {q}.workers w join {q}.procrastinate_workers p on p.id = w.worker"
        " order by w.about->>'name', w.started_at"
    )
    return [
        WorkerStatus(
            who.worker_id,
            who.name,
            who.host,
            who.pid,
            who.version,
            "dead" if silent > who.lease else state,
            dict(who.agents),
            who.labels,
            who.slots,
            started_at,
            round(max(0.0, silent), 1),
            _decode(held, tuple[HeldDetails, ...]) or (),
        )
        for about, state, held, started_at, silent in server.execute(qualify(server, query))
        if (who := _decode(about, WorkerIdentity)) is not None
    ]


def _decode(text: str, type_: type[T]) -> T | None:
    """Return a worker's description of itself; None for nonsense, which hides no other worker."""
    try:
        return msgspec.json.decode(text, type=type_)
    except msgspec.DecodeError:
        return None


def _defer_jobs(server: PostgresConnection, rows: Sequence[Sequence[int | str]]) -> None:
    """Make a job for each offer (dispatch, queue, priority), in this transaction."""
    if not rows:
        return
    from procrastinate.exceptions import ProcrastinateException
    from procrastinate.jobs import Job
    from procrastinate.manager import JobManager
    from procrastinate.sync_psycopg_connector import SyncPsycopgConnector

    numbers = [int(row[0]) for row in rows]
    made = [
        Job(
            id=None,
            lock=None,
            queueing_lock=str(dispatch_id),
            queue=str(queue),
            priority=int(priority),
            task_name=TASK,
            task_kwargs={"dispatch_id": dispatch_id},
        )
        for dispatch_id, queue, priority in rows
    ]
    try:
        with _search_queue(server):
            server.execute(
                "delete from procrastinate_jobs where queueing_lock = any(?) and status = 'todo'",
                ([str(number) for number in numbers],),
            )
            manager = JobManager(SyncPsycopgConnector())
            jobs = manager.batch_defer_jobs(made, connection=server.driver)
            server.execute(
                "update offers o set job_id = n.job_id from unnest(?::bigint[], ?::bigint[])"
                " as n(dispatch_id, job_id) where o.dispatch_id = n.dispatch_id",
                (numbers, [job.id for job in jobs]),
            )
    except ProcrastinateException as error:
        raise StoreError(f"the work queue cannot be written: {error.__cause__ or error}") from error


@contextmanager
def _search_queue(server: PostgresConnection) -> Iterator[None]:
    """Let unqualified names find the queue's tables until the end of this."""
    schema = qualify(server, "{q}")
    (before,) = server.execute("select current_setting('search_path')").fetchone()
    server.execute("select set_config('search_path', ?, true)", (schema,))
    yield
    server.execute("select set_config('search_path', ?, true)", (before,))


def qualify(server: PostgresConnection, statement: str) -> str:
    """Return the statement with the queue's schema for `{q}`."""
    schema = server.notes.get("queue")
    if schema is None:
        schema = server.notes["queue"] = find_schema(server)
    return statement.replace("{q}", schema)
