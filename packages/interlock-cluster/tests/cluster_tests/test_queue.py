"""The work queue: one reply per dispatch counts, whatever workers do, and none may do more."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

from interlock.api.project import Project
from interlock.api.workers import list_workers
from interlock.journal.address import PostgresAddress
from interlock.journal.connection import ServerError
from interlock.journal.database import open_writer
from interlock.system.errors import StoreError
from interlock_cluster import queue, queue_worker
from interlock_cluster.coordinator import journal_late_replies
from interlock_cluster.machines import initialize_database
from interlock_cluster.postgres import PostgresConnection, open_driver
from interlock_cluster.queue import Offer
from interlock_cluster.queue_worker import Taken, WorkerIdentity, WrittenReply
from interlock_cluster.worker.carrier import WorkerCarrier

ONE, TWO = "1" * 32, "2" * 32


@pytest.fixture
def server(postgres: PostgresAddress) -> Iterator[PostgresConnection]:
    opened = open_driver(postgres)
    queue.ensure_queue(opened)
    for worker_id, lease in ((ONE, 60.0), (TWO, 60.0)):
        join(opened, worker_id, lease)
    yield opened
    opened.close()


def join(server: PostgresConnection, worker_id: str, lease: float = 60.0) -> None:
    # Both have one name: it is for people, and decides nothing.
    queue_worker.join_workers(
        server,
        WorkerIdentity(
            worker_id, "ann", "host", 1, "0", {"author": "acct"}, {"author": "x"}, (), 2, lease
        ),
    )


@contextmanager
def turn(server: PostgresConnection) -> Iterator[None]:
    server.begin()
    try:
        yield
        server.commit()
    except BaseException:
        server.rollback()
        raise


def offer(server: PostgresConnection, *numbers: int, run_id: int = 1) -> None:
    rows = [
        Offer(number, run_id, 0, "A", "write", "author", "author", b"{}", None)
        for number in numbers
    ]
    with turn(server):
        queue.insert_offers(server, rows)


def take(server: PostgresConnection, worker: str, number: int = 7, fence: int = 1) -> Taken:
    (taken,) = queue_worker.take_offers(server, worker, number, fence)
    return taken


def reply(
    server: PostgresConnection, worker: str, number: int, fence: int, token: str, body: bytes
) -> str:
    (said,) = queue_worker.write_replies(server, worker, [WrittenReply(number, fence, token, body)])
    return said


def lose(server: PostgresConnection, worker: str) -> None:
    """It has been silent for longer than its lease, by the server's clock."""
    server.execute(
        "update interlock_queue.workers set seen_at = seen_at - 3600 where worker_id = ?", (worker,)
    )


def sweep(server: PostgresConnection) -> queue.QueueSweep:
    with turn(server):
        return queue.sweep_offers(server, [1], ["author"])


def replies(server: PostgresConnection) -> list[tuple[int, int, str, bytes]]:
    found = queue.read_replies(server, [1], ["author"], [])
    return [(each.dispatch_id, each.fence, each.problem, each.body) for each in found]


def count_jobs(server: PostgresConnection) -> dict[str, int]:
    query = "select queueing_lock from interlock_queue.procrastinate_jobs where status = 'todo'"
    locks = [lock for (lock,) in server.execute(query)]
    return {lock: locks.count(lock) for lock in locks}


def test_a_dispatch_is_taken_once_and_its_reply_counts_once(server: PostgresConnection) -> None:
    offer(server, 7)
    offer(server, 7)  # as after a restart
    assert count_jobs(server) == {"7:1": 1}
    taken = take(server, ONE)
    assert queue_worker.take_offers(server, TWO, 7, 1) == []
    assert queue_worker.take_offers(server, ONE, 7, 2) == []
    said = [reply(server, ONE, 7, 1, taken.token, body) for body in (b"first", b"first", b"other")]
    # The same again is what a worker says that did not hear the answer.
    assert said == ["accepted", "accepted", "stale"]
    assert replies(server) == [(7, 1, "", b"first"), (7, 1, "stale", b"other")]


def test_others_that_wait_are_taken_with_a_dispatch_most_urgent_first(
    server: PostgresConnection,
) -> None:
    offer(server, 7, 8, 9, 10, 11, 12)
    server.execute("update interlock_queue.offers set priority = 5 where dispatch_id = 11")
    assert queue_worker.take_offers(server, ONE, 7, 1, ["author"], 0)[0].dispatch_id == 7
    # Two workers wait: each has its share, and no more than it wants.
    found = queue_worker.take_offers(server, ONE, 7, 1, ["author"], 20)
    assert {each.dispatch_id for each in found} == {11, 8, 9}
    assert [each.fence for each in found] == [1, 1, 1]
    assert count_jobs(server) == {"7:1": 1, "10:1": 1, "12:1": 1}, "their jobs are gone"
    assert queue_worker.take_offers(server, ONE, 99, 1, ["critic"], 20) == []
    assert queue_worker.take_offers(server, "3" * 32, 10, 1, ["author"], 20) == [], "unknown"
    found = queue_worker.take_offers(server, TWO, 10, 1, ["author"], 20)
    assert {each.dispatch_id for each in found} == {10, 12}
    replies = [WrittenReply(e.dispatch_id, e.fence, e.token, b"{}") for e in found]
    assert queue_worker.write_replies(server, ONE, replies[:1]) == ["stale"]
    forged = WrittenReply(7, 1, replies[0].token, b"{}")
    said = queue_worker.write_replies(server, TWO, [forged, *replies])
    assert said == ["forged", "accepted", "accepted"]


def test_a_lost_dispatch_has_a_new_fence_and_the_old_worker_is_too_late(
    server: PostgresConnection,
) -> None:
    offer(server, 7)
    taken = take(server, ONE)
    assert sweep(server).lost == ()
    lose(server, ONE)
    (lost,) = sweep(server).lost
    assert (lost.dispatch_id, lost.losses, lost.worker) == (7, 1, "ann on host")
    assert sweep(server).lost == ()
    again = take(server, TWO, fence=2)
    assert again.token != taken.token
    assert reply(server, ONE, 7, 1, taken.token, b"late") == "stale"
    # It is alive again, and learns that nothing is its own.
    assert queue_worker.beat(server, ONE, "ready", {7: 1}, "[]").held == frozenset()
    assert queue_worker.beat(server, TWO, "ready", {7: 2}, "[]").held == {7}
    assert reply(server, TWO, 7, 2, again.token, b"good") == "accepted"
    with turn(server):
        queue.settle_offers(server, [7])
    assert replies(server) == [(7, 1, "stale", b"late")]
    assert reply(server, TWO, 7, 2, again.token, b"more") == "stale"


FORGED: dict[str, tuple[str, int, int, str, str]] = {
    "a token of nobody's": (ONE, 7, 1, "0" * 64, "forged"),
    "another dispatch's token": (ONE, 7, 1, "other", "forged"),
    "another fence": (ONE, 7, 9, "own", "forged"),
    "another worker's dispatch": (TWO, 7, 1, "own", "stale"),
    "a dispatch that was never offered": (ONE, 99, 1, "own", "unknown"),
}


@pytest.mark.parametrize("what", FORGED)
def test_what_is_forged_changes_nothing(what: str, server: PostgresConnection) -> None:
    worker, number, fence, token, expected = FORGED[what]
    offer(server, 7, 8)
    own, other = take(server, ONE), take(server, ONE, 8)
    token = {"own": own.token, "other": other.token}.get(token, token)
    assert reply(server, worker, number, fence, token, b"bad") == expected
    assert not queue_worker.give_back(server, worker, number, fence + 1, token)
    assert queue_worker.beat(server, ONE, "ready", {7: 1, 8: 1}, "[]").held == {7, 8}
    assert reply(server, ONE, 7, 1, own.token, b"good") == "accepted"
    assert (7, 1, "", b"good") in replies(server)


def test_who_leaves_something_out_gets_nothing(server: PostgresConnection) -> None:
    offer(server, 7)
    token = take(server, ONE).token
    said = ["1" * 32, 7, 1, token, b"bad", "", 0.0, False, ""]
    marks = (
        "?::text, ?::bigint, ?::bigint, ?::text, ?::bytea, ?::text, ?::float, ?::boolean, ?::text"
    )
    for missing in range(len(said)):
        values = [None if place == missing else value for place, value in enumerate(said)]
        row = server.execute(f"select interlock_queue.interlock_reply({marks})", values).fetchone()
        assert row == (None,), missing
    assert replies(server) == []
    assert reply(server, ONE, 7, 1, token, b"good") == "accepted"


def test_a_worker_that_talks_nonsense_hides_no_other(
    server: PostgresConnection, postgres: PostgresAddress, tmp_path: Path
) -> None:
    queue_worker.beat(server, ONE, "ready", {}, '[{"dispatch_id": "not a')
    queue_worker.beat(server, TWO, "ready", {}, "[" + " " * 2_000_000 + "]")
    found = list_workers(postgres)
    assert [(each.state, each.dispatches) for each in found] == [("ready", ()), ("ready", ())]
    with pytest.raises(ServerError, match="this worker cannot be: xxx"):
        server.execute(
            "select interlock_queue.interlock_join"
            "(?, ?, 'h', 1, '0', '{}', '{}', '{}', '{}', 1, 9)",
            ("3" * 32, "x" * 10_000),
        )


def test_what_is_given_back_is_offered_at_once_and_is_no_loss(server: PostgresConnection) -> None:
    offer(server, 7)
    for fence in range(1, 8):
        taken = take(server, ONE, fence=fence)
        assert queue_worker.give_back(server, ONE, 7, fence, taken.token)
        (lost,) = sweep(server).lost
        assert lost.losses == 0
    take(server, ONE, fence=8)
    queue_worker.leave_workers(server, ONE)
    assert sweep(server).lost[0].losses == 1


def test_a_worker_that_never_heard_of_its_dispatch_loses_it(server: PostgresConnection) -> None:
    offer(server, 7)
    take(server, ONE)
    query = "update interlock_queue.offers set taken_at = taken_at - 60"
    server.execute(query)
    queue_worker.beat(server, ONE, "ready", {}, "[]")
    assert [each.dispatch_id for each in sweep(server).lost] == [7]


def test_an_offer_whose_job_is_gone_is_carried_again(server: PostgresConnection) -> None:
    offer(server, 7)
    server.execute("delete from interlock_queue.procrastinate_jobs")
    sweep(server)
    assert count_jobs(server) == {}
    server.execute("update interlock_queue.offers set offered_at = offered_at - 60")
    sweep(server)
    sweep(server)
    assert count_jobs(server) == {"7:1": 1}
    with turn(server):
        queue.settle_offers(server, [7])
    assert count_jobs(server) == {}


def test_a_rate_limit_rests_its_account_everywhere(server: PostgresConnection) -> None:
    offer(server, 7)
    assert queue.read_room(server, ["author"])["author"].slots == 4
    taken = take(server, ONE)
    limited = WrittenReply(7, 1, taken.token, b"{}", "acct", 60.0, "slow\0down")
    assert queue_worker.write_replies(server, ONE, [limited]) == ["accepted"]
    assert 0 < queue_worker.beat(server, TWO, "ready", {}, "[]").limits["acct"] <= 60
    assert queue.read_room(server, ["author"])["author"].slots == 0
    assert 0 < queue.read_limit_end(server, ["author"]) <= 60


def test_runs_share_the_slots_of_live_workers(server: PostgresConnection) -> None:
    offer(server, 7)
    assert queue.read_room(server, ["author", "x"]) == {
        "author": queue.QueueRoom(slots=4, runs=1),
        "x": queue.QueueRoom(slots=0, runs=1),
    }
    offer(server, 8, run_id=2)
    carrier = WorkerCarrier(server.address)
    carrier._room = queue.read_room(server, ["author"])
    assert carrier.free_capacity("author") == 4, "twice the slots, for two runs"
    assert carrier.free_capacity("x") == 2, "whoever comes first finds work"
    lose(server, TWO)
    queue_worker.beat(server, ONE, "draining", {}, "[]")
    assert queue.read_room(server, ["author"])["author"].slots == 0
    dead = [(each.worker_id, each.silent > each.lease) for each in queue.list_workers(server)]
    assert sorted(dead) == [(ONE, False), (TWO, True)]
    with turn(server):
        queue.tidy_queue(server)
    assert [each.worker_id for each in queue.list_workers(server)] == [ONE]


def test_a_reply_without_end_is_refused(server: PostgresConnection) -> None:
    offer(server, 7)
    taken = take(server, ONE)
    with pytest.raises(ServerError, match="a reply of 20000000 bytes is too long"):
        reply(server, ONE, 7, 1, taken.token, bytes(20_000_000))
    assert reply(server, ONE, 7, 1, taken.token, b"short") == "accepted"


def test_late_replies_of_a_run_at_rest_are_journaled(
    server: PostgresConnection, postgres: PostgresAddress
) -> None:
    with psycopg.connect(postgres.url) as connection:
        connection.execute("insert into blobs values (900, '', 0, '')")
        connection.execute(
            "insert into runs values (1, 'paper', 1, 900, '', '', '{}', 'done', 0, 0, 0)"
        )
        connection.execute("insert into owners values (1, 1, null, '', '', 0, '', 0, 0)")
    offer(server, 7)
    taken = take(server, ONE)
    with turn(server):
        queue.settle_offers(server, [7])
    body = b'{"dispatch_id": 7, "content": "bGF0ZQ=="}'
    assert reply(server, ONE, 7, 1, taken.token, body) == "stale"
    with open_writer(postgres) as connection:
        assert journal_late_replies(connection) == 1
        assert journal_late_replies(connection) == 0
    (row,) = server.execute(
        "select f.dispatch_id, f.reason, b.data from refusals f join blobs b on b.blob_id = content"
    )
    assert (row[0], row[1], bytes(row[2])) == (7, "Stale", b"late")


WORKER_MAY: dict[str, bool] = {
    "select interlock_queue.interlock_beat('x', 'ready', '{}', '{}', '')": True,
    "select * from interlock_queue.interlock_take('x', 1, 1, '{}', 9)": True,
    "select queueing_lock from interlock_queue.procrastinate_jobs": True,
    "select ask from interlock_queue.offers": False,
    "select secret from interlock_queue.offers": False,
    "update interlock_queue.offers set state = 'settled'": False,
    "select body from interlock_queue.replies": False,
    "insert into interlock_queue.replies select * from interlock_queue.replies": False,
    "select worker_id from interlock_queue.workers": False,
    "select count(*) from journal": False,
    "select count(*) from blobs": False,
    "select count(*) from mail": False,
    "select options from runs": False,
    "update owners set epoch = epoch + 1": False,
    "create table interlock_queue.mine (x int)": False,
}


def test_a_worker_may_take_and_answer_and_nothing_else(
    tmp_path: Path, postgres: PostgresAddress
) -> None:
    initialize_database(Project(tmp_path, db=postgres.url), roles=True)
    with psycopg.connect(postgres.url, autocommit=True) as connection:
        connection.execute("set role interlock_worker")
        done = {statement: is_allowed(connection, statement) for statement in WORKER_MAY}
        assert done == WORKER_MAY
        # A table of its own does not stand before ours.
        connection.execute("reset role")
        connection.execute(
            "grant temporary on database "
            + postgres.url.split("/")[3].split("?")[0]
            + " to interlock_worker"
        )
        connection.execute("set role interlock_worker")
        connection.execute("create temp table offers (dispatch_id bigint)")
        assert is_allowed(
            connection, "select * from interlock_queue.interlock_take('x', 1, 1, '{}', 9)"
        )


def is_allowed(connection: "psycopg.Connection[tuple[object, ...]]", statement: str) -> bool:
    try:
        connection.execute(statement)
    except psycopg.errors.InsufficientPrivilege:
        return False
    return True


def test_a_queue_of_another_version_is_made_anew_or_left_alone(
    server: PostgresConnection,
) -> None:
    assert not queue.ensure_queue(server)

    def label(text: str) -> None:
        server.execute(f"comment on schema interlock_queue is '{text}'")

    label("interlock 0, procrastinate 3.9.0")
    assert queue.ensure_queue(server)
    assert queue.describe_queue(server) == (queue.VERSION, queue.find_procrastinate())
    label("interlock 99, procrastinate 3.9.0")
    with pytest.raises(StoreError, match="use the newer Interlock that made it"):
        queue.ensure_queue(server)
