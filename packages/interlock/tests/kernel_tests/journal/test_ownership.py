"""Who may write to a run on PostgreSQL: one at a time, under an epoch that rises.

Time is the database's own; a test that wants a lease to be over says so in the row.
"""

import threading
from pathlib import Path

import pytest

from interlock.journal.address import PostgresAddress
from interlock.journal.connection import Connection, ServerError
from interlock.journal.database import find_writer, open_writer
from interlock.journal.journal import Journal, NewDispatch, TurnWrites
from interlock.journal.mailbox import Mailbox
from interlock.journal.ownership import (
    StaleEpochError,
    check_free,
    claim_due_run,
    leave_to_coordinators,
    own_run,
)
from interlock.system.errors import StoreError
from tests.world.world import World


@pytest.fixture
def world(tmp_path: Path, postgres: PostgresAddress) -> World:
    made = World(tmp_path, db=postgres)
    made.begin("A", "B")
    return made


def write(connection: Connection, journal: Journal) -> None:
    asked = NewDispatch(journal.take_dispatch_id(), 1, "write", 1, "author", "p")
    journal.commit(TurnWrites(5.0, dispatches=[asked]))


def expire(connection: Connection) -> None:
    connection.raw.execute("update owners set lease_until = 1.0")


def test_a_run_has_one_owner_who_is_named_to_others(world: World) -> None:
    with open_writer(world.address) as one, open_writer(world.address) as other:
        with own_run(one, 1, name="first") as owned:
            assert owned.epoch == 1
            assert str(find_writer(world.address, 1)).startswith("first, process ")
            with pytest.raises(StoreError, match="run 1 is worked on by first, process"):
                check_free(other, 1)
        assert find_writer(world.address, 1) is None
        with own_run(other, 1) as owned:
            assert owned.epoch == 2


def test_the_lease_of_one_who_was_killed_is_waited_for(world: World) -> None:
    with open_writer(world.address) as one, open_writer(world.address) as other:
        assert claim_due_run(one, "killed a moment ago") is not None
        soon = "update owners set lease_until = extract(epoch from clock_timestamp()) + 0.3"
        one.raw.execute(soon)
        with own_run(other, 1) as owned:
            assert owned.epoch == 2


def test_what_an_old_epoch_writes_is_refused_as_a_whole(world: World) -> None:
    with open_writer(world.address) as one, open_writer(world.address) as other:
        with own_run(one, 1) as old:
            journal = Journal(one, 1, ownership=old)
            write(one, journal)
            expire(other)
            with own_run(other, 1) as new:
                with pytest.raises(StaleEpochError, match="run 1 was taken over"):
                    write(one, journal)
                effects: list[int] = []
                with pytest.raises(StaleEpochError):
                    journal.apply_effect(lambda _raw, _at: effects.append(1), 6.0)
                assert effects == []
                with pytest.raises(StaleEpochError):
                    journal.check_owned()
                write(other, Journal(other, 1, ownership=new))
            # The old one gives nothing back: it is not its own any more.
        assert world.rows("select epoch, owner from owners") == [(2, None)]
    assert world.rows("select count(*) from dispatches") == [(2,)]


def test_a_renewal_that_finds_another_owner_tells_at_once(world: World) -> None:
    lost = threading.Event()
    with open_writer(world.address) as one, own_run(one, 1) as owned:
        owned.changed = lost.set
        one.raw.execute("update owners set epoch = 9")
        assert lost.wait(20)
        with pytest.raises(StaleEpochError):
            owned.raise_if_lost()


def test_a_turn_that_is_stopped_in_the_middle_does_not_keep_the_run(world: World) -> None:
    """The server ends a transaction that is idle; else its lock would outlive the lease."""
    with open_writer(world.address) as one, open_writer(world.address) as other:
        stopped = claim_due_run(one, "first")  # nobody renews it, as in a process that is stopped
        assert stopped is not None
        journal = Journal(one, 1, ownership=stopped)
        journal.apply_effect(lambda _raw, _at: None, 5.0)
        assert one.raw.in_transaction
        expire(other)  # waits for the lock
        claimed = claim_due_run(other, "second")
        assert claimed is not None
        assert claimed.epoch == 2
        with pytest.raises(ServerError, match=r"terminat|closed|lost"):
            write(one, journal)


def test_runs_are_claimed_when_something_is_due(world: World) -> None:
    with open_writer(world.address) as connection:
        raw = connection.raw
        assert claim_due_run(connection, "c", apart_from=[1]) is None
        claimed = claim_due_run(connection, "c")
        assert claimed is not None
        assert claimed.run_id == 1
        assert claim_due_run(connection, "c") is None, "it is owned"
        claimed.release(raw)
        for status in ("stopped", "done", "unhealthy", "waiting", "budget", "rate-limited"):
            raw.execute("update runs set status = ?", (status,))
            assert claim_due_run(connection, "c") is None, status
        raw.execute("update runs set status = 'waiting'")
        Mailbox(world.address, "answers").put("7", b"{}", 1)
        answered = claim_due_run(connection, "c")
        assert answered is not None
        assert answered.epoch == 2
        answered.release(raw)
        raw.execute("update runs set status = 'stopped'")
        leave_to_coordinators(connection, 1, 9.0)
        assert world.run().status == "running"
        assert claim_due_run(connection, "c") is not None


def test_two_who_claim_at_once_never_get_the_same(world: World) -> None:
    for _ in range(7):
        world.begin("C")
    taken: list[int] = []
    ready = threading.Barrier(4)

    def claim() -> None:
        with open_writer(world.address) as connection:
            ready.wait(20)
            while claimed := claim_due_run(connection, "c"):
                taken.append(claimed.run_id)

    threads = [threading.Thread(target=claim) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert sorted(taken) == list(range(1, 9))
