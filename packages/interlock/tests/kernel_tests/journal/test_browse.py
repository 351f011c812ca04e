"""What pages ask: runs at a glance, counts by place, cases page by page, what changed."""

from collections import Counter
from pathlib import Path

import pytest

from interlock.api.changes import ChangeReader
from interlock.journal.address import DatabaseAddress
from interlock.journal.browse import (
    CaseFilter,
    CostedCase,
    PlaceCount,
    SortKey,
    count_places,
    count_waiting,
    find_case_id,
    list_case_rows,
    list_glances,
    list_role_records,
)
from interlock.journal.usage import sum_day_usage
from interlock.system.errors import NotFoundError
from tests.world.world import World

SCRIPT = """\
"*": {write: {answer: {words: 5}, usage: {tokens: 7, money: 0.5}}, judge: {answer: {mark: 4}}}
B: {write: [{raw: "ü?", usage: {tokens: 1, money: 2.5}}, {answer: {words: 6}}]}
"""


@pytest.fixture
def world(tmp_path: Path, db: DatabaseAddress) -> World:
    """A run in which A and B wait to be signed; B was refused once, and cost more."""
    made = World(tmp_path, db=db)
    made.begin("A", "B")
    assert made.work(SCRIPT, inbox=True) == "waiting"
    return made


def rows(world: World, wanted: CaseFilter, offset: int = 0) -> tuple[list[CostedCase], int]:
    with world.reading() as connection:
        return list_case_rows(connection, 1, wanted, limit=1, offset=offset)


def test_a_run_at_a_glance(world: World) -> None:
    with world.reading() as connection:
        (glance,) = list_glances(connection, limit=9)
        assert list_glances(connection, limit=9, before=1) == []
        places = count_places(connection, 1)
        spent = sum_day_usage(connection, "", 0, world.clock.time + 1)
        assert count_waiting(connection) == 2
    assert (glance.run_id, glance.status, glance.ends) == (1, "waiting", Counter(open=2))
    assert places == [PlaceCount("sign", "open", "", 2, 2)]
    assert (spent.tokens, spent.money) == (glance.cost.tokens, glance.cost.money)
    assert spent.dispatches == 5


@pytest.mark.parametrize(
    ("sort", "first"),
    [("case", "A"), ("name", "A"), ("step", "A"), ("state", "A"), ("age", "A"), ("cost", "A")],
)
def test_cases_in_every_order(world: World, sort: SortKey, first: str) -> None:
    (row,), total = rows(world, CaseFilter(sort=sort))
    assert (row.case_id, total) == (first, 2)
    (other,), _ = rows(world, CaseFilter(sort=sort), offset=1)
    assert other.case_id == "B"
    if sort in ("case", "name", "cost"):
        (last,), _ = rows(world, CaseFilter(sort=sort, descending=True))
        assert last.case_id == "B"


@pytest.mark.parametrize(
    ("wanted", "total"),
    [
        (CaseFilter(text="b"), 1),
        (CaseFilter(text="%"), 0),
        (CaseFilter(text="_"), 0),
        (CaseFilter(text="'; drop table cases; --"), 0),
        (CaseFilter(state="human", step="sign"), 2),
        (CaseFilter(state="asked"), 2),
        (CaseFilter(state="stuck"), 0),
        (CaseFilter(state="no such end"), 0),
        (CaseFilter(step="write"), 0),
    ],
)
def test_filters(world: World, wanted: CaseFilter, total: int) -> None:
    assert rows(world, wanted)[1] == total


def test_a_row_and_its_cost(world: World) -> None:
    (row,), _ = rows(world, CaseFilter(text="B"))
    assert (row.step, row.attempt, row.role, row.status, row.end) == (
        "sign",
        1,
        "human",
        "open",
        "",
    )
    assert row.tokens >= 1
    with world.reading() as connection:
        assert find_case_id(connection, 1, row.case_no) == "B"
        with pytest.raises(NotFoundError):
            find_case_id(connection, 1, 10**30)
        records = {each.role: each for each in list_role_records(connection, runs=5)}
    assert (records["author"].answers, records["author"].failed) == (2, 1)
    assert records["author"].refused == 1


def test_changes_are_what_was_written_since(
    world: World, db: DatabaseAddress, request: pytest.FixtureRequest
) -> None:
    reader = ChangeReader(db)
    request.addfinalizer(reader.close)
    first = reader.read()
    assert first is not None
    assert (first.fresh, first.runs, first.waiting) == (True, {}, 2)
    world.begin("C")
    found = reader.read()
    assert found is not None
    assert (found.runs, found.waiting) == ({2: "paper"}, 2)
    assert reader.read() is None
