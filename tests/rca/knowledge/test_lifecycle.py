"""How knowledge ages: only legal moves, with their dates."""

from itertools import product
from pathlib import Path

import pytest
from tests.world.inquiry import Inquiry, correlated, failed, investigated, launched, triaged

from interlock.journal.database import writing
from interlock.rca.knowledge.causes import DAY, set_rca_status, set_symptom_status, sweep_dormant
from interlock.system.errors import StateError, StoreError


@pytest.fixture
def world(tmp_path: Path) -> Inquiry:
    made = Inquiry(tmp_path)
    made.open(launched(failed("a", "f1"), failed("b", "f2"), failed("c", "f3")))
    made.effect(1, triaged(), investigated())
    made.effect(2, triaged())
    return made


def sweep(world: Inquiry, now: float, **days: float) -> int:
    with writing(world.db) as connection:
        return sweep_dormant(connection, now, **days)


def move(world: Inquiry, status: str, at: float = 9e9, rca_id: int = 1) -> None:
    with writing(world.db) as connection:
        set_rca_status(connection, rca_id, status, at)


def test_symptoms_sleep_after_ninety_days(world: Inquiry) -> None:
    statuses = "select status from symptoms order by symptom_id"
    seen = world.at - 1
    assert sweep(world, seen + 90 * DAY) == 0
    assert sweep(world, seen + 90 * DAY + 0.5) == 1
    assert world.rows(statuses) == [("dormant",), ("active",)]
    assert sweep(world, seen + 90 * DAY + 0.5) == 0
    with writing(world.db) as connection:
        set_symptom_status(connection, 2, "resolved")
    assert sweep(world, 9e9, days=1) == 0
    assert world.rows(statuses) == [("dormant",), ("resolved",)]


def test_what_a_symptom_cannot_be(world: Inquiry) -> None:
    with writing(world.db) as connection, pytest.raises(StateError, match="never 'gone'"):
        set_symptom_status(connection, 1, "gone")


WAYS = {
    "open": [],
    "resolved": ["resolved"],
    "verified": ["resolved", "verified"],
    "archived": ["resolved", "verified", "archived"],
}
LEGAL = {
    *(("open", "resolved"), ("open", "archived"), ("resolved", "verified")),
    *(("resolved", "archived"), ("verified", "archived")),
    *((status, "open") for status in ("resolved", "verified", "archived")),
}


@pytest.mark.parametrize(("before", "after"), [*product(WAYS, [*WAYS, "fixed"])])
def test_only_legal_moves(world: Inquiry, before: str, after: str) -> None:
    for status in WAYS[before]:
        move(world, status)
    if before == after or (before, after) in LEGAL:
        move(world, after)
        assert world.one("select status from rcas") == after
    else:
        with pytest.raises(StateError, match=f"root cause 1 is {before}: next it can be"):
            move(world, after)
        assert world.one("select status from rcas") == before


def test_dates_follow_the_status(world: Inquiry) -> None:
    dates = "select resolved_at, verified_at, archived_at from rcas"
    early = world.at - 5
    move(world, "resolved", early)
    created = world.one("select created_at from rcas")
    assert world.one(dates) == (created, None, None)
    move(world, "verified", 8e9)
    move(world, "archived", 7e9)
    assert world.one(dates) == (created, 8e9, 8e9)
    move(world, "open")
    assert world.one(dates) == (None, None, None)


def test_what_was_replaced_is_not_reopened(world: Inquiry) -> None:
    world.effect(1, investigated(2))
    with pytest.raises(StateError) as caught:
        move(world, "open")
    assert str(caught.value) == (
        "root cause 1 was replaced: its case has another one, open that instead"
    )
    move(world, "resolved", rca_id=2)
    world.effect(3, triaged(), investigated())
    world.effect(1, correlated(3))
    with pytest.raises(StateError, match="root cause 2 was replaced"):
        move(world, "open", rca_id=2)


@pytest.mark.parametrize("number", [9, 0, 10**30])
def test_what_is_not_there(world: Inquiry, number: int) -> None:
    with pytest.raises(StoreError, match=f"there is no root cause {number}"):
        move(world, "open", rca_id=number)
    with (
        writing(world.db) as connection,
        pytest.raises(StoreError, match=f"there is no symptom {number}"),
    ):
        set_symptom_status(connection, number, "active")
