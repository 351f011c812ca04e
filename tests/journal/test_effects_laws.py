"""Laws of effects: whatever comes in whatever order, knowledge stays of one piece."""

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection
from tests.world.inquiry import (
    APPROVED,
    Inquiry,
    correlated,
    failed,
    investigated,
    launched,
    overturned,
    recalled,
    triaged,
)

from interlock.journal.database import writing
from interlock.journal.sqlite import driver
from interlock.rca.effects import Closed, Effect, SentBack
from interlock.rca.knowledge.audit import KNOWLEDGE_RULES
from interlock.rca.knowledge.writer import carry_out

CASES = 5
STATUSES = ["open", "triaged", "investigated"]
numbers = st.integers(0, 6)
effects: st.SearchStrategy[Effect] = st.one_of(
    st.builds(recalled, numbers, numbers, regression=st.booleans()),
    st.builds(triaged, skip=st.booleans(), severity=st.sampled_from(["", "low"])),
    st.builds(investigated, st.integers(1, 3)),
    st.builds(correlated, numbers),
    st.just(APPROVED),
    st.builds(overturned, st.sampled_from(["", "no"]), st.sampled_from(["", "ab001"])),
    st.builds(SentBack, status=st.sampled_from(STATUSES)),
    st.just(Closed()),
)
human = st.tuples(
    st.sampled_from(["dormant", "resolved", "rca resolved", "rca archived"]), st.integers(1, 4)
)
SHARED: list[tuple[object, object]] = [
    *((1, investigated(1)), (2, correlated(1)), (4, correlated(1)), (2, APPROVED)),
]
"""Two cases share the cause of another, and one of them was reviewed."""
anything = st.lists(st.one_of(st.tuples(st.integers(1, CASES), effects), human), max_size=20)
stories = st.one_of(anything, anything.map(lambda story: [*SHARED, *story]))
HUMAN = {
    "dormant": "update symptoms set status = 'dormant' where symptom_id = ?",
    "resolved": "update symptoms set status = 'resolved' where symptom_id = ?",
    "rca resolved": (
        "update rcas set status = 'resolved', resolved_at = 6e9 where rca_id = ?"
        " and status = 'open'"
    ),
    "rca archived": (
        "update rcas set status = 'archived', archived_at = 7e9 where rca_id = ?"
        " and status != 'archived'"
    ),
}
TWO_OPEN = "select case_no from rcas where status = 'open' group by case_no having count(*) > 1"
MISCOUNTED = (
    "select symptom_id from symptoms s where occurrence_count !="
    " (select count(*) from sightings n where n.symptom_id = s.symptom_id)"
)


@pytest.fixture(scope="module")
def connection() -> Iterator[Connection]:
    """Two suites: three cases that tell one story or two, one without a story, one in between."""
    with TemporaryDirectory() as folder:
        world = Inquiry(Path(folder))
        first = launched(failed("a", "f1"), failed("b", "f1"), failed("c", "f2"))
        later = launched(failed("d", "f1", launch="L2"), failed("e", launch="L2"), launch_id="L2")
        with writing(world.db) as opened:
            world.open_on(opened, [first])
            world.open_on(opened, [later])
            yield opened


def told(connection: Connection, story: list[tuple[object, object]]) -> None:
    raw = driver(connection)
    for second, (first, then) in enumerate(story):
        if isinstance(first, int):
            carry_out(first, then, raw, 3e9 + second)  # type: ignore[arg-type]
        else:
            raw.execute(HUMAN[str(first)], (then,))


@settings(max_examples=300)
@given(story=stories)
def test_knowledge_stays_of_one_piece(
    connection: Connection, story: list[tuple[object, object]]
) -> None:
    raw = driver(connection)
    raw.execute("begin immediate")
    try:
        told(connection, story)
        assert raw.execute("pragma foreign_key_check").fetchall() == []
        assert raw.execute(TWO_OPEN).fetchall() == []
        assert raw.execute(MISCOUNTED).fetchall() == []
        unreviewed = {"rca.early", "rca.unreviewed"}
        for name, (query, _) in KNOWLEDGE_RULES.items():
            assert name in unreviewed or raw.execute(query).fetchall() == [], name
    finally:
        raw.rollback()


@settings(max_examples=100)
@given(story=stories, case_no=st.integers(1, CASES), effect=effects)
def test_the_same_effect_again_makes_nothing_new(
    connection: Connection, story: list[tuple[object, object]], case_no: int, effect: Effect
) -> None:
    raw = driver(connection)
    counts = "select (select count(*) from rcas), (select sum(occurrence_count) from symptoms)"
    raw.execute("begin immediate")
    try:
        told(connection, story)
        carry_out(case_no, effect, raw, 4e9)
        links = "select symptom_id, rca_id, status, decision from rca_cases order by case_no"
        before = raw.execute(counts).fetchall(), raw.execute(links).fetchall()
        carry_out(case_no, effect, raw, 5e9)
        assert (raw.execute(counts).fetchall(), raw.execute(links).fetchall()) == before
    finally:
        raw.rollback()


@settings(max_examples=300)
@given(story=stories, case_no=st.integers(1, CASES), effect=effects)
def test_what_was_reviewed_is_changed_by_no_other_case(
    connection: Connection, story: list[tuple[object, object]], case_no: int, effect: Effect
) -> None:
    agreed = (
        "select r.case_no, r.symptom_id, r.rca_id, a.title, a.description, a.defect_type, a.status"
        " from rca_cases r left join rcas a on a.rca_id = r.rca_id"
        " where r.status in ('reviewed', 'closed') and r.case_no != ? order by r.case_no"
    )
    raw = driver(connection)
    raw.execute("begin immediate")
    try:
        told(connection, story)
        before = raw.execute(agreed, (case_no,)).fetchall()
        carry_out(case_no, effect, raw, 4e9)
        assert raw.execute(agreed, (case_no,)).fetchall() == before
    finally:
        raw.rollback()
