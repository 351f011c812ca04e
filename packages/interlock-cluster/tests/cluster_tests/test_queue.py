"""The work queue: one reply per dispatch counts, whatever workers do, and none may do more."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import psycopg
import pytest

from interlock.api.project import Project
from interlock.api.workers import list_workers
from interlock.journal.address import PostgresAddress
from interlock.journal.connection import ServerError
from interlock.journal.database import open_writer
from interlock.system.errors import StoreError
from interlock_cluster import queue
from interlock_cluster.coordinator import journal_late_replies
from interlock_cluster.machines import initialize_database
from interlock_cluster.postgres import PostgresConnection, open_driver
from interlock_cluster.queue import Offer
from interlock_cluster.worker.carrier import WorkerCarrier


class Taken(NamedTuple):
    """What a worker gets with a dispatch."""

    dispatch_id: int
    fence: int
    ask: bytes
    token: str


class Client:
    """A worker as the database sees it: procrastinate's functions, and ours."""

    def __init__(self, server: PostgresConnection, process: str, **about: object) -> None:
        self._server = server
        self._name = process
        self._about = about
        self.worker = self._say("select procrastinate_register_worker_v1()")
        self.present()

    def _say(self, statement: str, *values: object) -> object:
        self._server.execute("set search_path to interlock_queue, public")
        try:
            return self._server.execute(statement, values).fetchone()[0]
        finally:
            self._server.execute("set search_path to public")

    def present(self, state: str = "ready", held: str = "[]") -> dict[str, float]:
        """Describe it; for how many seconds accounts rest."""
        about = {"worker_id": self._name, "name": "ann", "host": "host", "pid": 1, "version": "0"}
        about |= {"agents": {"author": "x"}, "labels": [], "slots": 2, "lease": 60.0}
        about |= {"queues": {"author": "acct"}, **self._about}
        words = (self.worker, self._name, json.dumps(about), state, held)
        mark = "?::bigint, ?::text, ?::jsonb, ?::text, ?::text"
        found: dict[str, float] = json.loads(
            str(self._say(f"select interlock_present({mark})", *words))
        )
        return found

    def fetch(self) -> int | None:
        """The job that procrastinate gives it."""
        found = self._say(
            "select id from procrastinate_fetch_job_v2(?::varchar[], ?)",
            ["author"],
            self.worker,
        )
        return None if found is None else int(str(found))

    def take(self, job: int | None) -> Taken | None:
        query = "select dispatch_id, fence, ask, token from interlock_queue.interlock_take(?, ?)"
        row = self._server.execute(query, (job, self.worker)).fetchone()
        return Taken(*row) if row else None

    def finish(self, job: int | None) -> None:
        self._say("select procrastinate_finish_job_v1(?, 'succeeded', true)", job)

    def fall_silent(self) -> None:
        """Be silent for longer than its lease, by the server's clock."""
        self._server.execute(
            "update interlock_queue.procrastinate_workers"
            " set last_heartbeat = last_heartbeat - interval '100 s' where id = ?",
            (self.worker,),
        )


@pytest.fixture
def server(postgres: PostgresAddress) -> Iterator[PostgresConnection]:
    opened = open_driver(postgres)
    queue.ensure_queue(opened)
    yield opened
    opened.close()


@pytest.fixture
def one(server: PostgresConnection) -> Client:
    return Client(server, "1")


@pytest.fixture
def two(server: PostgresConnection) -> Client:
    return Client(server, "2")


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
    rows = [Offer(number, run_id, 0, "author", b"{}", None) for number in numbers]
    with turn(server):
        queue.insert_offers(server, rows)


def settle(server: PostgresConnection, *numbers: int) -> None:
    with turn(server):
        queue.settle_offers(server, numbers)


def begin(client: Client) -> Taken:
    taken = client.take(client.fetch())
    assert taken is not None
    return taken


REPLY = (
    "select interlock_queue.interlock_reply(?::bigint, ?::bigint, ?::text, ?::bytea, ?::text,"
    " ?::float, ?::boolean, ?::text)"
)


def reply(
    server: PostgresConnection, number: int, fence: int, token: str, body: bytes, *limit: object
) -> str:
    values = (number, fence, token, body, *(limit or ("", 0.0, False, "")))
    return str(server.execute(REPLY, values).fetchone()[0])


def sweep(server: PostgresConnection) -> list[queue.LostOffer]:
    with turn(server):
        return queue.sweep_offers(server, [1], ["author"])


def replies(server: PostgresConnection) -> list[tuple[int, int, str, bytes]]:
    found = queue.read_replies(server, [1], ["author"], [])
    return [(each.dispatch_id, each.fence, each.problem, each.body) for each in found]


def list_jobs(server: PostgresConnection) -> list[tuple[int, str]]:
    query = "select (args->>'dispatch_id')::int, status::text"
    return [*server.execute(f"{query} from interlock_queue.procrastinate_jobs order by 1")]


def test_a_dispatch_is_taken_once_and_its_reply_counts_once(
    server: PostgresConnection, one: Client, two: Client
) -> None:
    offer(server, 7)
    offer(server, 7)  # as after a restart
    assert list_jobs(server) == [(7, "todo")]
    job = one.fetch()
    assert two.fetch() is None
    assert two.take(job) is None, "it is another's"
    taken = one.take(job)
    assert taken is not None
    assert taken[:3] == (7, 1, b"{}")
    said = [reply(server, 7, 1, taken.token, body) for body in (b"first", b"first", b"other")]
    # A worker that did not hear the answer says the same again.
    assert said == ["accepted", "accepted", "stale"]
    assert one.take(job) is None
    one.finish(job)
    assert list_jobs(server) == []
    assert replies(server) == [(7, 1, "", b"first"), (7, 1, "stale", b"other")]


def test_the_most_urgent_case_is_fetched_first(server: PostgresConnection, one: Client) -> None:
    for case_no, priority in ((1, 0), (2, 5)):
        server.execute("insert into blobs values (?, '', 0, '')", (900 + case_no,))
        server.execute(
            "insert into runs values (?, 'paper', 1, ?, '', '', '{}', 'running', 0, 0, 0)",
            (case_no, 900 + case_no),
        )
        server.execute(
            "insert into cases (case_no, run_id, case_id, input, needs, state, step, status,"
            " priority) values (?, ?, 'A', ?, '', '{}', 'write', 'open', ?)",
            (case_no, case_no, 900 + case_no, priority),
        )
    with turn(server):
        queue.insert_offers(
            server, [Offer(case + 6, case, case, "author", b"{}") for case in (1, 2)]
        )
    assert [begin(one).dispatch_id, begin(one).dispatch_id] == [8, 7]


def test_a_lost_dispatch_has_a_new_fence_and_the_old_worker_is_too_late(
    server: PostgresConnection, one: Client, two: Client
) -> None:
    offer(server, 7)
    job = one.fetch()
    taken = one.take(job)
    assert taken is not None
    assert sweep(server) == []
    one.fall_silent()
    (lost,) = sweep(server)
    assert (lost.dispatch_id, lost.losses, lost.worker) == (7, 1, "ann")
    assert sweep(server) == []
    again = begin(two)
    assert again.fence == 2
    assert again.token != taken.token
    assert reply(server, 7, 1, taken.token, b"late") == "stale"
    # It ends the job, as far as procrastinate knows; but that is the other's now.
    with pytest.raises(ServerError, match="Job was not found"):
        one.finish(job)
    assert list_jobs(server) == [(7, "doing")]
    assert sweep(server) == []
    assert reply(server, 7, 2, again.token, b"good") == "accepted"
    settle(server, 7)
    assert replies(server) == [(7, 1, "stale", b"late")]
    assert reply(server, 7, 2, again.token, b"more") == "stale"


def test_work_that_nobody_else_has_begun_is_accepted_from_a_worker_that_came_back(
    server: PostgresConnection, one: Client, two: Client
) -> None:
    offer(server, 7)
    taken = begin(one)
    one.fall_silent()
    assert len(sweep(server)) == 1
    assert reply(server, 7, 1, taken.token, b"good") == "accepted"
    assert two.take(two.fetch()) is None


def test_a_job_whose_fetch_was_never_heard_of_is_offered_again(
    server: PostgresConnection, one: Client
) -> None:
    offer(server, 7)
    one.fetch()
    assert sweep(server) == []
    server.execute("update interlock_queue.procrastinate_events set at = at - interval '60 s'")
    assert [each.dispatch_id for each in sweep(server)] == [7]
    assert begin(one).fence == 1


def test_an_offer_whose_job_is_gone_gets_another(server: PostgresConnection, one: Client) -> None:
    offer(server, 7)
    server.execute("truncate interlock_queue.procrastinate_jobs cascade")
    sweep(server)
    sweep(server)
    assert list_jobs(server) == [(7, "todo")]
    assert begin(one).dispatch_id == 7
    # A worker may not remove the job of an open offer.
    server.execute("delete from interlock_queue.procrastinate_jobs")
    assert list_jobs(server) == [(7, "doing")]
    settle(server, 7)
    query = "select abort_requested from interlock_queue.procrastinate_jobs"
    assert server.execute(query).fetchall() == [(True,)]


FORGED: dict[str, tuple[int, int, str, str]] = {
    "a token of nobody's": (7, 1, "0" * 36, "forged"),
    "another dispatch's token": (7, 1, "other", "forged"),
    "a fence that was never given out": (7, 9, "own", "forged"),
    "a dispatch that was never offered": (99, 1, "own", "unknown"),
}


@pytest.mark.parametrize("what", FORGED)
def test_what_is_forged_changes_nothing(what: str, server: PostgresConnection, one: Client) -> None:
    number, fence, token, expected = FORGED[what]
    offer(server, 7, 8)
    own, other = begin(one), begin(one)
    token = {"own": own.token, "other": other.token}.get(token, token)
    assert reply(server, number, fence, token, b"bad") == expected
    assert reply(server, 7, 1, own.token, b"good") == "accepted"
    assert (7, 1, "", b"good") in replies(server)


def test_who_leaves_something_out_gets_nothing(server: PostgresConnection, one: Client) -> None:
    offer(server, 7)
    token = begin(one).token
    said = [7, 1, token, b"bad", "", 0.0, False, ""]
    for missing in range(len(said)):
        values = [None if place == missing else value for place, value in enumerate(said)]
        assert server.execute(REPLY, values).fetchone() == (None,), missing
    assert replies(server) == []
    assert reply(server, 7, 1, token, b"good") == "accepted"


def test_a_worker_that_talks_nonsense_hides_no_other(
    server: PostgresConnection, postgres: PostgresAddress, one: Client, two: Client
) -> None:
    one.present(held='[{"dispatch_id": "not a')
    two.present(held="[" + " " * 2_000_000 + "]")
    Client(server, "3", name=[])
    found = list_workers(postgres)
    assert [(each.state, each.dispatches) for each in found] == [("ready", ())] * len(found)
    assert len(found) >= 2
    with pytest.raises(ServerError, match="too many words"):
        Client(server, "4", name="x" * 100_000)
    for wrong in ({"slots": 0}, {"slots": "many"}, {"lease": 1e9}):
        with pytest.raises(ServerError):
            Client(server, "5", **wrong)


def test_a_rate_limit_rests_its_account_everywhere(
    server: PostgresConnection, one: Client, two: Client
) -> None:
    offer(server, 7)
    assert queue.count_slots(server, ["author"]) == {"author": 4}
    taken = begin(one)
    limit = ("acct", 60.0, True, "slow down")
    assert reply(server, 7, 1, taken.token, b"{}", *limit) == "accepted"
    assert 0 < two.present()["acct"] <= 60
    assert queue.count_slots(server, ["author"]) == {"author": 0}
    assert 0 < queue.read_limit_end(server, ["author"]) <= 60


def test_only_live_workers_that_are_ready_have_slots(
    server: PostgresConnection, postgres: PostgresAddress, one: Client, two: Client
) -> None:
    assert queue.count_slots(server, ["author", "x"]) == {"author": 4, "x": 0}
    carrier = WorkerCarrier(server.address)
    assert carrier.free_capacity("x") == 2, "the first worker to come finds work"
    two.fall_silent()
    one.present(state="draining")
    assert queue.count_slots(server, ["author"]) == {"author": 0}
    found = {each.worker_id: each.state for each in list_workers(postgres)}
    assert found == {"1": "draining", "2": "dead"}
    server.execute(
        "update interlock_queue.procrastinate_workers set last_heartbeat = now() - interval '1 h'"
        " where id = ?",
        (two.worker,),
    )
    with turn(server):
        queue.tidy_queue(server)
    assert [each.worker_id for each in list_workers(postgres)] == ["1"]


def test_a_reply_without_end_is_refused(server: PostgresConnection, one: Client) -> None:
    offer(server, 7)
    taken = begin(one)
    with pytest.raises(ServerError, match="a reply of 20000000 bytes is too long"):
        reply(server, 7, 1, taken.token, bytes(20_000_000))
    assert reply(server, 7, 1, taken.token, b"short") == "accepted"


def test_late_replies_of_a_run_at_rest_are_journaled(
    server: PostgresConnection, postgres: PostgresAddress, one: Client
) -> None:
    with psycopg.connect(postgres.url) as connection:
        connection.execute("insert into blobs values (900, '', 0, '')")
        connection.execute(
            "insert into runs values (1, 'paper', 1, 900, '', '', '{}', 'done', 0, 0, 0)"
        )
        connection.execute("insert into owners values (1, 1, null, '', '', 0, '', 0, 0)")
    offer(server, 7)
    taken = begin(one)
    settle(server, 7)
    body = b'{"dispatch_id": 7, "content": "bGF0ZQ=="}'
    assert reply(server, 7, 1, taken.token, body) == "stale"
    with open_writer(postgres) as connection:
        assert journal_late_replies(connection) == 1
        assert journal_late_replies(connection) == 0
    (row,) = server.execute(
        "select f.dispatch_id, f.reason, b.data from refusals f join blobs b on b.blob_id = content"
    )
    assert (row[0], row[1], bytes(row[2])) == (7, "Stale", b"late")


WORKER_MAY: dict[str, bool] = {
    "select * from interlock_queue.interlock_take(1, 1)": True,
    "select interlock_queue.interlock_reply(1, 1, '', '', '', 0, false, '')": True,
    "select queueing_lock from interlock_queue.procrastinate_jobs": True,
    "select ask from interlock_queue.offers": False,
    "select tokens from interlock_queue.offers": False,
    "update interlock_queue.offers set state = 'settled'": False,
    "select body from interlock_queue.replies": False,
    "insert into interlock_queue.replies select * from interlock_queue.replies": False,
    "select about from interlock_queue.workers": False,
    "select account from interlock_queue.account_limits": False,
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
        assert is_allowed(connection, "select * from interlock_queue.interlock_take(1, 1)")


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
