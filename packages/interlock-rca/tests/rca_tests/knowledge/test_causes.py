"""Knowledge is found by fingerprint, by likeness and by number; made-up numbers find nothing. It
ages by legal moves only, with their dates.
"""

from itertools import product
from pathlib import Path

import pytest

from interlock.journal.database import open_writer
from interlock.system.errors import StateError, StoreError
from interlock_rca.knowledge.causes import (
    DAY,
    CauseHistory,
    Occurrence,
    Rca,
    Symptom,
    find_rca,
    find_symptom_by_fingerprint,
    list_rcas,
    list_suite_rcas,
    list_symptoms_by_bands,
    read_history,
    set_rca_status,
    sweep_dormant,
)
from rca_tests.worlds.suite_database import (
    Inquiry,
    correlated,
    failed,
    investigated,
    launched,
    triaged,
)

MADE_UP = (0, -1, 99, 2**63, -(2**63) - 1, 10**40)


@pytest.fixture
def world(tmp_path: Path) -> Inquiry:
    """a and c share a symptom over two launches and versions, b has one of its own."""
    made = Inquiry(tmp_path)
    made.open(
        launched(failed("a", "f1", bands=(1, 2, 3), features="x"), failed("b", "f2", bands=(3, 4))),
        launched(failed("c", "f1", launch="L2"), launch_id="L2", version="2.0"),
    )
    made.effect(1, triaged(), investigated(1), investigated(2))
    made.effect(2, triaged(), investigated(1))
    made.effect(3, triaged(), correlated(2))
    return made


def test_a_symptom_by_fingerprint_and_number(world: Inquiry) -> None:
    first = world.clock.time + 1
    expected = Symptom(
        1,
        "f1",
        "a",
        "masked f1",
        "a",
        "x",
        "engine",
        "high",
        first,
        first + 2,
        2,
        "active",
    )
    with world.reading() as connection:
        assert find_symptom_by_fingerprint(connection, "f1") == expected
        for text in ("", "f", "f1 ", "F1"):
            assert find_symptom_by_fingerprint(connection, text) is None


def test_symptoms_by_what_they_share(world: Inquiry) -> None:
    def found(*bands: int, most: int = 20) -> list[tuple[int, int]]:
        with world.reading() as connection:
            many = list_symptoms_by_bands(connection, bands, most)
            return [(each.symptom.symptom_id, each.shared) for each in many]

    assert found(1, 2, 3, 3, 4) == [(1, 3), (2, 2)]
    assert found(3) == [(2, 1), (1, 1)]
    assert found(1, 2, 3, 4, most=1) == [(1, 3)]
    assert found(*MADE_UP) == found() == []


def test_a_band_that_everybody_shares_is_not_read_to_its_end(world: Inquiry) -> None:
    world.change(
        "insert into symptoms with recursive n(i) as (select 3 union all select i + 1 from n"
        " where i < 2000) select i, 'g' || i, '', '', '', '', '', '', 1, 1, 1, 'active' from n"
    )
    world.change(
        "insert into symptom_bands select 3, symptom_id from symptoms where symptom_id > 2"
    )
    with world.reading() as connection:
        found = list_symptoms_by_bands(connection, [3], 10_000)
    assert (len(found), found[0].symptom.symptom_id) == (500, 2000)


def test_root_causes(world: Inquiry) -> None:
    second = Rca(
        2,
        1,
        2,
        "cause 2",
        "found in attempt 2",
        "pb001",
        "product",
        "engine",
        ("1.0", "2.0"),
        ({"ref": "engine:a.py:1", "verdict": "found", "why": "", "url": ""},),
        0.8,
        "",
        "",
        "open",
        world.clock.time + 1,
        None,
        None,
        None,
    )
    with world.reading() as connection:
        assert find_rca(connection, 2) == second
        archived = find_rca(connection, 1)
        assert archived is not None
        assert (archived.status, archived.archived_at) == ("archived", world.clock.time + 1)
        assert [(each.rca_id, each.confidence) for each in list_rcas(connection, 1)] == [(2, 0.9)]
        assert [each.rca_id for each in list_suite_rcas(connection, 1)] == [2, 3]
        assert list_suite_rcas(connection, 2) == []
        for number in MADE_UP:
            assert find_rca(connection, number) is None
            assert list_rcas(connection, number) == []


def test_the_newest_root_cause_comes_first(world: Inquiry) -> None:
    world.effect(3, investigated(1))
    with world.reading() as connection:
        assert [each.rca_id for each in list_rcas(connection, 1)] == [4, 2]


def test_the_history_of_a_symptom(world: Inquiry) -> None:
    at = world.clock.time
    with world.reading() as connection:
        found = read_history(connection, "f1")
        assert found == CauseHistory(
            find_symptom_by_fingerprint(connection, "f1"),  # type: ignore[arg-type]
            (
                Occurrence(2, "L2", "nightly", "2.0", at, 1),
                Occurrence(1, "L1", "nightly", "1.0", at, 1),
            ),
            ("1.0", "2.0"),
        )
        short = read_history(connection, "f1", most=1)
        assert short is not None
        assert ([each.launch_id for each in short.occurrences], short.versions) == (
            [2],
            ("1.0", "2.0"),
        )
        assert read_history(connection, "never") is None


@pytest.fixture
def aging(tmp_path: Path) -> Inquiry:
    made = Inquiry(tmp_path)
    made.open(launched(failed("a", "f1"), failed("b", "f2"), failed("c", "f3")))
    made.effect(1, triaged(), investigated())
    made.effect(2, triaged())
    return made


def sweep(aging: Inquiry, now: float, **days: float) -> int:
    with open_writer(aging.db) as connection:
        return sweep_dormant(connection, now, **days)


def move(aging: Inquiry, status: str, at: float = 9e9, rca_id: int = 1) -> None:
    with open_writer(aging.db) as connection:
        set_rca_status(connection, rca_id, status, at)


def test_symptoms_sleep_after_ninety_days(aging: Inquiry) -> None:
    statuses = "select status from symptoms order by symptom_id"
    seen = aging.at - 1
    assert sweep(aging, seen + 90 * DAY) == 0
    assert sweep(aging, seen + 90 * DAY + 0.5) == 1
    assert aging.rows(statuses) == [("dormant",), ("active",)]
    assert sweep(aging, seen + 90 * DAY + 0.5) == 0
    aging.change("update symptoms set status = 'resolved' where symptom_id = 2")
    assert sweep(aging, 9e9, days=1) == 0
    assert aging.rows(statuses) == [("dormant",), ("resolved",)]


WAYS = {
    "open": [],
    "resolved": ["resolved"],
    "verified": ["resolved", "verified"],
    "archived": ["resolved", "verified", "archived"],
}
LEGAL = {
    ("open", "resolved"),
    ("open", "archived"),
    ("resolved", "verified"),
    ("resolved", "archived"),
    ("verified", "archived"),
    *((status, "open") for status in ("resolved", "verified", "archived")),
}


@pytest.mark.parametrize(("before", "after"), [*product(WAYS, [*WAYS, "fixed"])])
def test_only_legal_moves(aging: Inquiry, before: str, after: str) -> None:
    for status in WAYS[before]:
        move(aging, status)
    if before == after or (before, after) in LEGAL:
        move(aging, after)
        assert aging.one("select status from rcas") == after
    else:
        with pytest.raises(StateError, match=f"root cause 1 is {before}: next it can be"):
            move(aging, after)
        assert aging.one("select status from rcas") == before


def test_dates_follow_the_status(aging: Inquiry) -> None:
    dates = "select resolved_at, verified_at, archived_at from rcas"
    early = aging.at - 5
    move(aging, "resolved", early)
    created = aging.one("select created_at from rcas")
    assert aging.one(dates) == (created, None, None)
    move(aging, "verified", 8e9)
    move(aging, "archived", 7e9)
    assert aging.one(dates) == (created, 8e9, 8e9)
    move(aging, "open")
    assert aging.one(dates) == (None, None, None)


def test_what_was_replaced_is_not_reopened(aging: Inquiry) -> None:
    aging.effect(1, investigated(2))
    with pytest.raises(StateError) as caught:
        move(aging, "open")
    assert str(caught.value) == (
        "root cause 1 was replaced: its case has another one, open that instead"
    )
    move(aging, "resolved", rca_id=2)
    aging.effect(3, triaged(), investigated())
    aging.effect(1, correlated(3))
    with pytest.raises(StateError, match="root cause 2 was replaced"):
        move(aging, "open", rca_id=2)


@pytest.mark.parametrize("number", [9, 0, 10**30])
def test_what_is_not_there(aging: Inquiry, number: int) -> None:
    with pytest.raises(StoreError, match=f"there is no root cause {number}"):
        move(aging, "open", rca_id=number)
