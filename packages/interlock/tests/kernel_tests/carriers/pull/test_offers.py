"""The table of offers, on both databases: who may take what, which reply counts, who is late."""

import asyncio
import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest

from interlock.carriers.pull import offers
from interlock.carriers.pull.offers import (
    UNSETTLED,
    Lease,
    OfferTable,
    Submission,
    Verdict,
    Work,
)
from interlock.engine.case import RefusedAnswer
from interlock.journal.address import DatabaseAddress, PostgresAddress
from interlock.journal.connection import RawConnection
from interlock.journal.database import write_beside

S = ("s",)


@pytest.fixture(params=["sqlite", "postgres"])
def db(request: pytest.FixtureRequest, tmp_path: Path) -> DatabaseAddress:
    if request.param == "sqlite":
        return tmp_path / "interlock.db"
    address: PostgresAddress = request.getfixturevalue("postgres")
    return address


@pytest.fixture
def raw(db: DatabaseAddress) -> Iterator[RawConnection]:
    with write_beside(db) as connection:
        yield connection


def work(number: int, role: str = "scout", run_id: int = 1) -> Work:
    return Work(number, run_id, f"C{number}", "look", 1, role, "Look.", {}, ("artifact",))


def offer(raw: RawConnection, *numbers: int, timeout: float | None = None) -> None:
    offers.insert_offers(raw, "s", [(work(number), timeout) for number in numbers])


def take(raw: RawConnection, holder: str, now: float = 0.0, ttl: float = 10.0) -> Lease | None:
    number = offers.find_free(raw, S, (), now)
    return None if number is None else offers.take_offer(raw, number, holder, ttl, now)


def held(raw: RawConnection, holder: str, now: float = 0.0, ttl: float = 10.0) -> Lease:
    found = take(raw, holder, now, ttl)
    assert found is not None
    return found


def submit(raw: RawConnection, lease: Lease, now: float = 0.0) -> str | RefusedAnswer | None:
    sent = Submission(lease.work.dispatch_id, lease.token, b"{}")
    return offers.submit_reply(raw, S, sent, now)


def refusal(found: str | RefusedAnswer | None) -> str:
    assert isinstance(found, RefusedAnswer)
    return found.reason


def test_the_oldest_goes_first_and_each_to_one(raw: RawConnection) -> None:
    offer(raw, 3, 1, 2)
    offer(raw, 1)
    taken = [take(raw, holder) for holder in "abcd"]
    assert [each and each.work.dispatch_id for each in taken] == [1, 2, 3, None]


def test_only_offers_of_a_live_session_and_of_the_wanted_role_are_found(
    raw: RawConnection,
) -> None:
    offers.insert_offers(raw, "dead", [(work(1), None)])
    offers.insert_offers(raw, "s", [(work(2), None), (work(3, "cook"), None)])
    assert offers.find_free(raw, S, ("cook",), 0.0) == 3
    assert offers.find_free(raw, S, (), 0.0) == 2
    assert offers.count_offers(raw, S, 0.0).free_roles == ("cook", "scout")


def test_a_lease_that_ends_goes_to_another_under_a_new_fence(raw: RawConnection) -> None:
    offer(raw, 1)
    first = held(raw, "a")
    assert take(raw, "b", 9.9) is None
    second = held(raw, "b", 10.0)
    assert (first.fence, second.fence) == (1, 2)
    assert refusal(submit(raw, first, 10.0)) == "Stale"
    assert isinstance(submit(raw, second, 11.0), str)


def test_a_reply_after_the_lease_has_ended_does_not_count(raw: RawConnection) -> None:
    offer(raw, 1)
    lease = held(raw, "a")
    assert refusal(submit(raw, lease, 10.0)) == "Stale"
    [late] = offers.fetch_replies(raw, "s", 10.0)
    assert (late.refused, late.content) == ("Stale", b"{}")
    assert offers.fetch_replies(raw, "s", 10.0) == []


def test_a_call_renews_the_lease_it_names_or_all_of_the_holder(raw: RawConnection) -> None:
    offer(raw, 1, 2, 3)
    one, two, _ = held(raw, "a"), held(raw, "a"), held(raw, "b")
    offers.renew_lease(raw, "a", one.token, 5.0)
    assert offers.find_free(raw, S, (), 12.0) == 2
    offers.renew_lease(raw, "a", "", 9.0)
    assert offers.find_free(raw, S, (), 18.0) == 3
    assert [each.token for each in offers.list_held(raw, S, "a", "", 18.0)] == [
        one.token,
        two.token,
    ]
    offers.renew_lease(raw, "", "", 18.5)
    assert offers.find_free(raw, S, (), 19.0) == 1


def test_exactly_one_reply_counts(raw: RawConnection) -> None:
    offer(raw, 1, 2)
    lease, other = held(raw, "a"), held(raw, "b")
    wrong = Submission(2, lease.token, b"{}")
    assert refusal(offers.submit_reply(raw, S, wrong, 0.0)) == "WrongTask"
    for token in ("1.1.ab", "1.2.ab", "x", "", "1.1." + "f" * 64, "é"):
        forged = Submission(1, token, b"{}")
        assert refusal(offers.submit_reply(raw, S, forged, 0.0)) == "WrongTask"
    assert isinstance(submit(raw, lease), str)
    assert refusal(submit(raw, lease)) == "Stale"
    offers.settle_offer(raw, 1, "", Verdict(accepted=True))
    assert refusal(submit(raw, lease)) == "Stale"
    assert isinstance(submit(raw, other), str)
    counts = [each.refused for each in offers.fetch_replies(raw, "s", 0.0)]
    assert sorted(filter(None, counts)) == ["Stale"] * 2 + ["WrongTask"] * 7


@pytest.mark.parametrize("number", [0, -1, 2**53, 2**80])
def test_numbers_of_no_dispatch_are_refused_and_not_kept(raw: RawConnection, number: int) -> None:
    sent = Submission(number, "1.1.ab", b"{}")
    assert refusal(offers.submit_reply(raw, S, sent, 0.0)) == "Stale"
    assert offers.fetch_replies(raw, "s", 0.0) == []


def test_a_verdict_waits_for_whoever_handed_in(raw: RawConnection) -> None:
    offer(raw, 1)
    reply_id = submit(raw, held(raw, "a"))
    assert isinstance(reply_id, str)
    assert offers.find_verdict(raw, reply_id) is None
    [stored] = offers.fetch_replies(raw, "s", 1.0)
    again = Verdict(accepted=False, open=True, refusal="Malformed", sentence="Say more.")
    offers.refuse_reply(raw, stored, again, 1.0)
    assert offers.find_verdict(raw, reply_id) == again
    assert offers.withdraw_reply(raw, reply_id, 1.0) == again
    assert offers.find_verdict(raw, reply_id) == UNSETTLED
    [lease] = offers.list_held(raw, S, "a", "", 1.0)
    second = submit(raw, lease, 1.0)
    assert isinstance(second, str)
    offers.settle_offer(raw, 1, second, Verdict(accepted=True))
    assert offers.withdraw_reply(raw, second, 2.0) == Verdict(accepted=True)


def test_a_reply_that_nobody_decides_on_can_be_handed_in_again(raw: RawConnection) -> None:
    offer(raw, 1)
    lease = held(raw, "a")
    reply_id = submit(raw, lease)
    assert isinstance(reply_id, str)
    assert offers.withdraw_reply(raw, reply_id, 1.0) == UNSETTLED
    offers.insert_offers(raw, "next", [(work(1), None)])
    offers.forget_other_sessions(raw, "next", 1)
    sent = Submission(1, lease.token, b"{}")
    assert offers.submit_reply(raw, ("another",), sent, 2.0) is None
    assert isinstance(offers.submit_reply(raw, ("next",), sent, 2.0), str)
    [stored] = offers.fetch_replies(raw, "next", 2.0)
    assert stored.dispatch_id == 1


def test_a_session_takes_over_leases_of_its_run_and_nothing_of_another(
    raw: RawConnection,
) -> None:
    offer(raw, 1, 2, 3)
    lease, _ = held(raw, "a"), submit(raw, held(raw, "b"))
    fresh = [(work(1), None), (work(2), None), (work(3, run_id=2), None)]
    offers.insert_offers(raw, "next", fresh)
    assert [each.token for each in offers.list_held(raw, ("next",), "a", "", 1.0)] == [lease.token]
    assert len(offers.list_held(raw, ("next",), "b", "", 1.0)) == 1
    assert offers.fetch_replies(raw, "next", 1.0) == []
    assert offers.find_free(raw, ("next",), (), 1.0) == 3


def test_a_steps_time_counts_from_the_first_taking(raw: RawConnection) -> None:
    offer(raw, 1, timeout=30.0)
    assert offers.list_taken(raw, "s", 100.0) == []
    held(raw, "a", 100.0)
    held(raw, "b", 111.0)
    assert [each.overdue for each in offers.list_taken(raw, "s", 129.0)] == [False]
    assert [each.overdue for each in offers.list_taken(raw, "s", 130.0)] == [True]


def test_what_is_given_back_is_free_and_its_lease_is_over(raw: RawConnection) -> None:
    offer(raw, 1, 2)
    one, two = held(raw, "a"), held(raw, "a")
    offers.release_leases(raw, "", one.token)
    assert refusal(submit(raw, one)) == "Stale"
    assert held(raw, "b").fence == 2
    offers.release_leases(raw, "a")
    assert refusal(submit(raw, two)) == "Stale"
    assert held(raw, "b").work.dispatch_id == 2


async def test_agents_that_race_for_one_offer_get_it_once(db: DatabaseAddress) -> None:
    with write_beside(db) as connection:
        offer(connection, *range(1, 21))
    tables = [OfferTable(db) for _ in range(4)]
    got: list[int] = []

    async def work_off(table: OfferTable, name: str) -> None:
        while (free := await table.read(offers.find_free, S, (), 0.0)) is not None:
            lease = await table.write(offers.take_offer, free, name, 60.0, 0.0)
            got.extend([] if lease is None else [lease.work.dispatch_id])

    names = (f"agent{number}" for number in itertools.count())
    await asyncio.gather(*map(work_off, tables, names))
    for table in tables:
        await table.close()
    assert sorted(got) == list(range(1, 21))
