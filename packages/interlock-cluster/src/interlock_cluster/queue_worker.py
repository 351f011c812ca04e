"""The work queue, as far as workers may use it: the functions of `queue.sql`, and nothing else."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from interlock_cluster.postgres import PostgresConnection
from interlock_cluster.queue import qualify


class BeatAnswer(msgspec.Struct, frozen=True):
    """What a worker learns when it says that it lives."""

    known: bool
    held: frozenset[int]
    limits: dict[str, float] = {}
    """For how many seconds accounts rest."""


class Taken(msgspec.Struct, frozen=True):
    """A dispatch that is this worker's now."""

    dispatch_id: int
    fence: int
    ask: bytes
    token: str


class WrittenReply(msgspec.Struct, frozen=True):
    """A worker's reply to a dispatch, under the fence and with the token that it was taken with."""

    dispatch_id: int
    fence: int
    token: str
    body: bytes
    account: str = ""
    limited_for: float | None = None
    """Seconds for which its account rests, if it met a rate limit; 0 where nobody knows."""
    reason: str = ""


class WorkerIdentity(msgspec.Struct, frozen=True):
    """Who a worker is, and what it can do."""

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


def join_workers(server: PostgresConnection, who: WorkerIdentity) -> None:
    """This worker is here, or back."""
    values = (
        who.worker_id,
        who.name,
        who.host,
        who.pid,
        who.version,
        [*who.queues],
        [*who.queues.values()],
        msgspec.json.encode(who.agents).decode(),
        list(who.labels),
        who.slots,
        who.lease,
    )
    _call(server, "interlock_join", values)


def beat(
    server: PostgresConnection,
    worker_id: str,
    state: str,
    held: Mapping[int, int],
    details: str,
) -> BeatAnswer:
    """Say that a worker lives, and holds these dispatches under these fences."""
    values = (worker_id, state, [*held], [*held.values()], details)
    return msgspec.json.decode(_call(server, "interlock_beat", values), type=BeatAnswer)


def take_offers(
    server: PostgresConnection,
    worker_id: str,
    dispatch_id: int,
    fence: int,
    queues: Sequence[str] = (),
    more: int = 0,
) -> list[Taken]:
    """Take a dispatch under its fence, if that is still offered, and up to so many others that wait
    in these queues."""
    statement = (
        "select dispatch_id, fence, ask, token"
        " from {q}.interlock_take(?::text, ?::bigint, ?::bigint, ?::text[], ?::bigint)"
    )
    values = (worker_id, dispatch_id, fence, list(queues), more)
    rows = server.execute(qualify(server, statement), values)
    return [Taken(number, own, bytes(ask), token) for number, own, ask, token in rows]


_WRITE = """
select {q}.interlock_reply(?::text, n.dispatch_id, n.fence, n.token, n.body, n.account, n.seconds,
  n.limited, n.reason)
from unnest(?::bigint[], ?::bigint[], ?::text[], ?::bytea[], ?::text[], ?::float[], ?::boolean[],
  ?::text[]) with ordinality
  as n(dispatch_id, fence, token, body, account, seconds, limited, reason, place)
order by n.place"""


def write_replies(
    server: PostgresConnection, worker_id: str, replies: Sequence[WrittenReply]
) -> list[str]:
    """Hand replies in, all or none: 'accepted', or why not, for each."""
    columns = (
        [each.dispatch_id for each in replies],
        [each.fence for each in replies],
        [each.token for each in replies],
        [each.body for each in replies],
        [each.account for each in replies],
        [each.limited_for or 0.0 for each in replies],
        [each.limited_for is not None for each in replies],
        [each.reason.replace("\0", "\ufffd") for each in replies],
    )
    rows = server.execute(qualify(server, _WRITE), (worker_id, *columns))
    return [said for (said,) in rows]


def give_back(
    server: PostgresConnection, worker_id: str, dispatch_id: int, fence: int, token: str
) -> bool:
    """Let others have a dispatch at once; False if this worker had it no more."""
    return bool(_call(server, "interlock_give_back", (worker_id, dispatch_id, fence, token)))


def leave_workers(server: PostgresConnection, worker_id: str) -> None:
    """This worker has ended."""
    _call(server, "interlock_leave", (worker_id,))


_TYPES = {
    "interlock_join": "text text text bigint text text[] text[] text text[] bigint float",
    "interlock_beat": "text text bigint[] bigint[] text",
    "interlock_give_back": "text bigint bigint text",
    "interlock_leave": "text",
}


def _call(server: PostgresConnection, name: str, values: Sequence[Any]) -> Any:
    marks = ", ".join(f"?::{each}" for each in _TYPES[name].split())
    statement = qualify(server, f"select {{q}}.{name}({marks})")
    return server.execute(statement, values).fetchone()[0]
