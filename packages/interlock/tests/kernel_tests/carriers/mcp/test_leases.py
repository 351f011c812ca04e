"""Leases by law: at most one holder, fences that rise, and everybody woken in time."""

import asyncio
from itertools import count
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.carriers.mcp.leases import RECONNECT_GRACE, LeaseBook, WakeEvent
from tests.world.clock import FakeClock


def book(folder: Path) -> LeaseBook:
    numbers = count(1)
    return LeaseBook(folder / "leases.json", lambda: f"{next(numbers):x}")


ACTS = st.lists(
    st.tuples(
        st.sampled_from(["grant", "release", "forget", "renew", "pass", "restart"]),
        st.integers(1, 3),
        st.sampled_from(["a", "b"]),
    ),
    max_size=30,
)


@given(ACTS)
def test_only_the_newest_lease_may_answer(
    tmp_path_factory: pytest.TempPathFactory, acts: list[tuple[str, int, str]]
) -> None:
    folder = tmp_path_factory.mktemp("leases")
    found, now = book(folder), 0.0
    given_out: dict[int, list[tuple[str, str]]] = {}
    for act, number, worker in acts:
        match act:
            case "grant" if found.find_lease(number) is None:
                lease = found.grant(number, worker, 10, now)
                assert lease.fence == len(given_out.setdefault(number, [])) + 1
                given_out[number].append((worker, lease.token))
            case "release":
                found.release(number)
            case "forget":
                found.forget(number)
                given_out.pop(number, None)
            case "renew":
                found.renew(worker, now)
            case "pass":
                now += 4
                for over in found.list_expired(now):
                    found.release(over.dispatch_id)
            case "restart":
                found = LeaseBook(folder / "leases.json", lambda: "f")
                found.open(now)
        _only_the_newest(found, given_out)


def _only_the_newest(found: LeaseBook, given_out: dict[int, list[tuple[str, str]]]) -> None:
    for number, tokens in given_out.items():
        held = found.find_lease(number)
        for holder, token in tokens:
            problem = found.find_problem(holder, number, token)
            newest = held is not None and held.token == token
            assert (problem is None) == newest
            assert newest or (problem is not None and problem.reason == "Stale")


def test_a_lease_lives_by_calls_that_name_it_or_none(tmp_path: Path) -> None:
    found = book(tmp_path)
    one, two = found.grant(1, "a", 10, 0), found.grant(2, "a", 10, 0)
    other = found.grant(3, "b", 10, 0)
    found.renew("a", 5, one.token)
    assert [each.dispatch_id for each in found.list_expired(12)] == [2, 3]
    found.renew("a", 9)
    assert [each.dispatch_id for each in found.list_expired(18)] == [3]
    found.renew("a", 17, other.token)
    assert [each.dispatch_id for each in found.list_expired(18)] == [3]
    assert two.fence == 1


@pytest.mark.parametrize(
    ("worker", "token", "reason"),
    [
        ("b", "1.1.1", "WrongTask"),
        ("a", "1.2.1", "WrongTask"),
        ("a", "1.1.2", "Stale"),
        ("a", "2.1.1", "WrongTask"),
        ("a", "", "WrongTask"),
        ("a", "é" * 10_000, "WrongTask"),
        ("a", "1.1.1\n", "WrongTask"),
        ("a", "9" * 300 + ".1.1", "WrongTask"),
        ("a", "1.99999999999999.1", "WrongTask"),
    ],
)
def test_forged_leases(tmp_path: Path, worker: str, token: str, reason: str) -> None:
    found = book(tmp_path)
    assert found.grant(1, "a", 10, 0).token == "1.1.1"
    assert found.find_problem("a", 1, "1.1.1") is None
    problem = found.find_problem(worker, 1, token)
    assert problem is not None
    assert problem.reason == reason


def test_a_book_outlives_its_process(tmp_path: Path) -> None:
    first = book(tmp_path)
    lease = first.grant(7, "a", 900, 0)
    first.grant(8, "a", 900, 0)
    again = book(tmp_path)
    again.open(1000)
    assert again.find_problem("a", 7, lease.token) is None
    assert again.find_next_expiry() == 1000 + RECONNECT_GRACE
    again.renew("a", 1001)
    assert again.find_next_expiry() == 1001 + 900
    again.forget_others({7})
    assert again.find_lease(8) is None
    again.mark_silent("a")
    again.grant(7, "b", 900, 1002)
    third = book(tmp_path)
    third.open(2000)
    assert third.find_problem("a", 7, lease.token) is None
    assert third.list_silent() == []
    assert (tmp_path / "leases.json").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff", b'{"leases": 7}'])
def test_a_damaged_book_is_an_empty_one(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "leases.json").write_bytes(content)
    found = book(tmp_path)
    found.open(0)
    assert found.find_next_expiry() is None
    assert found.grant(1, "a", 10, 0).fence == 1


async def test_one_ring_wakes_all_and_leaves_no_timer() -> None:
    clock = FakeClock()
    stir = WakeEvent(clock)
    waiting = [asyncio.create_task(stir.wait(clock.time + 5)) for _ in range(3)]
    await asyncio.sleep(0)
    stir.wake_all()
    stir.wake_all()
    await asyncio.gather(*waiting)
    assert not clock.advance()


async def test_time_wakes_whose_time_it_is() -> None:
    clock = FakeClock()
    stir = WakeEvent(clock)
    soon = asyncio.create_task(stir.wait(clock.time + 1))
    late = asyncio.create_task(stir.wait(clock.time + 9))
    await asyncio.sleep(0)
    clock.advance()
    await soon
    assert not late.done()
    late.cancel()
    await asyncio.gather(late, return_exceptions=True)
    assert not clock.advance()
