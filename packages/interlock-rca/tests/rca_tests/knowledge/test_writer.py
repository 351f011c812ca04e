"""Effects: each changes what it says, also when it meets what it sets; made-up ids link none.
Whatever comes in whatever order, knowledge stays of one piece.
"""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interlock.journal.audit import check_rules
from interlock.journal.connection import Connection
from interlock.journal.database import open_writer
from interlock.system.errors import StoreError
from interlock_rca.effects import Closed, Effect, SentBack
from interlock_rca.knowledge.audit import KNOWLEDGE_RULES
from interlock_rca.knowledge.writer import apply_effect
from rca_tests.worlds.suite_database import (
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
from tests.world.places import ROOT


@pytest.fixture
def world(tmp_path: Path) -> Inquiry:
    """Cases 1 and 2 tell one story, 3 another; 4 comes later, with another version."""
    made = Inquiry(tmp_path)
    made.open(launched(failed("a", "f1", bands=(7, 5, 7)), failed("b", "f1"), failed("c", "f2")))
    made.open(launched(failed("d", "f1", launch="L2"), launch_id="L2", version="2.0"))
    return made


SYMPTOM = "select name, component, severity, occurrence_count, status from symptoms"
LINKS = "select symptom_id, rca_id, confidence, notes from symptom_rca order by 1, 2"


def test_triage_makes_the_symptom_of_the_fingerprint(world: Inquiry) -> None:
    world.effect(1, triaged(notes="n", cascade=True))
    assert world.rows("select * from triages") == [
        (1, "product", "high", "pb001", '["engine","door"]', 0, 0, 1, "n", world.at)
    ]
    assert world.one(
        "select fingerprint, name, error_pattern, test_name_pattern, component, severity,"
        " first_seen_at, last_seen_at, occurrence_count, status from symptoms"
    ) == ("f1", "a", "masked f1", "a", "engine", "high", world.at, world.at, 1, "active")
    assert world.rows("select * from symptom_bands") == [(5, 1), (7, 1)]
    assert world.case(1, "status, symptom_id, rca_id, updated_at") == ("triaged", 1, None, world.at)


def test_a_case_counts_once_for_its_symptom(world: Inquiry) -> None:
    world.effect(1, triaged(candidate_repos=(), severity=""))
    world.effect(1, triaged())
    assert world.rows(SYMPTOM) == [("a", "engine", "high", 1, "active")]
    world.effect(2, triaged(category="flake", candidate_repos=("door",)), triaged())
    assert world.rows(SYMPTOM) == [("a", "engine", "high", 2, "active")]
    assert world.rows("select case_no, category from triages") == [(1, "product"), (2, "product")]
    assert world.one("select first_seen_at, last_seen_at from symptoms") == (
        world.at - 2,
        world.at,
    )


def test_a_failure_without_a_fingerprint_tells_no_story(tmp_path: Path) -> None:
    world = Inquiry(tmp_path)
    world.open(launched(failed("a"), failed("b")))
    world.effect(1, triaged(), investigated())
    world.effect(2, correlated(1), APPROVED)
    assert world.rows("select * from symptoms") == []
    assert world.rows("select * from symptom_rca") == []
    assert world.rows("select symptom_id, rca_id from rca_cases order by case_no") == [
        (None, 1),
        (None, 1),
    ]


@pytest.mark.parametrize("status", ["dormant", "resolved"])
def test_a_symptom_that_comes_back_is_a_regression(world: Inquiry, status: str) -> None:
    world.effect(1, triaged())
    world.change(f"update symptoms set status = '{status}'")
    world.effect(1, triaged())
    assert world.rows(SYMPTOM) == [("a", "engine", "high", 1, status)]
    world.effect(4, triaged())
    assert world.rows(SYMPTOM) == [("a", "engine", "high", 2, "active")]
    assert world.rows("select is_regression from rca_cases order by case_no") == [
        (0,),
        (0,),
        (0,),
        (1,),
    ]


@pytest.mark.parametrize(
    ("statuses", "regression"), [(["open"], 0), (["resolved"], 1), (["resolved", "open"], 0)]
)
def test_a_symptom_whose_causes_are_fixed_is_a_regression(
    world: Inquiry, statuses: list[str], regression: int
) -> None:
    for number, status in enumerate(statuses, 1):
        world.effect(number, triaged(), investigated())
        if status == "resolved":
            world.change(
                f"update rcas set status='resolved', resolved_at={world.at} where rca_id={number}"
            )
    world.effect(4, triaged())
    assert world.case(4, "is_regression") == regression


def test_an_investigation_makes_a_root_cause(world: Inquiry) -> None:
    world.effect(1, triaged(), investigated())
    assert world.one(
        "select case_no, attempt, title, description, defect_type, category, component,"
        " affected_versions, convergence_score, status, created_at, resolved_at from rcas"
    ) == (
        1,
        1,
        "cause 1",
        "found in attempt 1",
        "pb001",
        "product",
        "engine",
        '["1.0"]',
        0.8,
        "open",
        world.at,
        None,
    )
    evidence = json.loads(world.one("select evidence from rcas"))
    assert evidence == [{"ref": "engine:a.py:1", "verdict": "found", "why": "", "url": ""}]
    assert world.rows(LINKS) == [(1, 1, 0.8, "investigated")]
    assert world.case(1, "status, symptom_id, rca_id") == ("investigated", 1, 1)


def test_another_attempt_takes_the_place_of_the_first(world: Inquiry) -> None:
    world.effect(1, triaged(), investigated(1))
    world.effect(1, investigated(2, title="", description="\n  a long\nstory"))
    world.effect(1, investigated(2, title="", description="\n  a long\nstory"))
    assert world.rcas() == [(1, 1, 1, "archived"), (2, 1, 2, "open")]
    assert world.one("select title from rcas where rca_id = 2") == "a long"
    assert world.case(1, "rca_id") == 2
    assert world.one("select archived_at from rcas where rca_id = 1") == world.at - 1


def test_an_investigation_without_triage_meets_the_symptom(world: Inquiry) -> None:
    world.effect(1, investigated())
    assert world.case(1, "symptom_id, rca_id, status") == (1, 1, "investigated")


def test_a_duplicate_shares_the_cause_and_leaves_none_of_its_own(world: Inquiry) -> None:
    world.effect(1, triaged(), investigated())
    world.effect(3, triaged(), investigated())
    world.effect(3, correlated(1, "3.0", "0.9"))
    assert world.rcas() == [(1, 1, 1, "open"), (2, 3, 1, "archived")]
    assert world.case(3, "rca_id, status") == (1, "investigated")
    assert (2, 1, 0.9, "correlated") in world.rows(LINKS)
    assert world.one("select affected_versions from rcas where rca_id = 1") == '["0.9","1.0","3.0"]'


def test_those_that_share_a_cause_follow_it(world: Inquiry) -> None:
    world.effect(1, triaged(), investigated())
    world.effect(2, triaged(), correlated(1))
    world.effect(4, triaged(), correlated(1))
    world.effect(1, investigated(2))
    assert world.rcas() == [(1, 1, 1, "archived"), (2, 1, 2, "open")]
    assert world.rows("select rca_id from rca_cases order by case_no") == [
        (2,),
        (2,),
        (None,),
        (2,),
    ]
    assert world.one("select affected_versions from rcas where rca_id = 2") == '["1.0","2.0"]'


def test_what_somebody_agreed_to_stays_theirs(world: Inquiry) -> None:
    world.effect(1, triaged(), investigated())
    world.effect(2, triaged(), correlated(1), APPROVED)
    world.effect(4, triaged(), correlated(1))
    world.effect(1, investigated(2))
    assert world.rcas() == [(1, 2, 1, "open"), (2, 1, 2, "open")]
    assert world.rows("select rca_id from rca_cases order by case_no") == [
        (2,),
        (1,),
        (None,),
        (2,),
    ]


def test_recall_links_what_is_known(world: Inquiry) -> None:
    world.effect(1, triaged(), investigated())
    world.effect(4, recalled(1, 1))
    assert world.case(4, "symptom_id, rca_id, recalled, is_regression, status, notes") == (
        1,
        1,
        1,
        0,
        "open",
        "[]",
    )
    assert world.one("select occurrence_count, last_seen_at from symptoms") == (2, world.at)
    assert world.rows(LINKS) == [(1, 1, 0.8, "investigated")]
    assert world.one("select affected_versions from rcas") == '["1.0","2.0"]'
    world.effect(4, recalled(1, 1))
    assert world.one("select occurrence_count from symptoms") == 2


def test_recall_of_a_cause_that_was_fixed_is_a_regression(world: Inquiry) -> None:
    world.effect(1, triaged(), investigated())
    world.effect(4, recalled(1, 1, regression=True))
    assert world.case(4, "is_regression") == 1
    world.change(f"update rcas set status = 'resolved', resolved_at = {world.at}")
    world.effect(3, recalled(1, 1))
    assert world.case(3, "is_regression, symptom_id") == (1, 1)


@pytest.mark.parametrize("status", ["dormant", "resolved"])
def test_recall_of_a_symptom_that_slept_is_a_regression(world: Inquiry, status: str) -> None:
    world.effect(1, triaged(), investigated())
    world.change(f"update symptoms set status = '{status}'")
    world.effect(4, recalled(1, 1))
    assert (world.case(4, "is_regression"), world.one("select status from symptoms")) == (
        1,
        "active",
    )


def test_numbers_that_nobody_gave_out_link_nothing(world: Inquiry) -> None:
    world.effect(1, triaged(), investigated(1), investigated(2))
    for effect in (recalled(77, 99), correlated(99), correlated(1), recalled(0, 0)):
        world.effect(4, effect)
    assert world.case(4, "symptom_id, rca_id, recalled, status") == (None, None, 0, "open")
    assert json.loads(world.case(4, "notes")) == [
        "recall named symptom 77: there is none",
        "recall named root cause 99: there is none",
        "correlation named root cause 99: there is none",
        "correlation named root cause 1: it is archived",
    ]
    world.effect(4, recalled(1, 1))
    assert world.case(4, "symptom_id, rca_id, recalled") == (1, None, 1)
    world.effect(3, recalled(88, 2))
    assert world.case(3, "symptom_id, rca_id, recalled") == (None, 2, 1)


@pytest.mark.parametrize("number", [-1, 2**63, -(2**63) - 1, 10**40])
def test_numbers_beyond_all_link_nothing(world: Inquiry, number: int) -> None:
    world.effect(4, recalled(number, number), correlated(number))
    assert world.case(4, "symptom_id, rca_id, recalled") == (None, None, 0)
    assert len(json.loads(world.case(4, "notes"))) == 3


def test_words_that_nobody_knows_do_not_stop_a_run(world: Inquiry) -> None:
    world.effect(1, triaged(category="timeout"), investigated(category="", convergence_score=7.0))
    assert world.one("select category from triages") == "unknown"
    assert world.one("select category, convergence_score from rcas") == ("unknown", 1.0)
    assert json.loads(world.case(1, "notes")) == [
        "category 'timeout' is none: taken for unknown",
        "category '' is none: taken for unknown",
    ]


def test_a_recall_that_was_taken_back_is_not_recalled_again(world: Inquiry) -> None:
    world.effect(1, triaged(), investigated())
    world.effect(3, triaged())
    world.effect(4, recalled(2, 1), SentBack(status="open"))
    assert (2, 1, None, "recalled") in world.rows(LINKS)
    world.effect(4, triaged())
    assert world.rows(LINKS) == [(1, 1, 0.8, "investigated")]
    assert world.case(4, "symptom_id, rca_id, recalled, status") == (1, None, 0, "triaged")


def test_a_link_that_others_stand_for_stays(world: Inquiry) -> None:
    world.effect(1, triaged(), investigated())
    world.effect(3, triaged())
    world.effect(4, recalled(2, 1))
    world.effect(3, correlated(1))
    world.effect(4, triaged())
    assert world.rows(LINKS) == [(1, 1, 0.8, "investigated"), (2, 1, 0.9, "recalled")]


def test_who_was_recalled_by_mistake_is_no_sighting_of_that_symptom(world: Inquiry) -> None:
    world.effect(1, triaged(), investigated(), APPROVED)
    world.effect(3, recalled(symptom_id=1, rca_id=1))
    counts = "select symptom_id, occurrence_count from symptoms order by symptom_id"
    assert world.rows(counts) == [(1, 2)]
    world.effect(3, SentBack(status="open"), triaged())
    assert world.rows(counts) == [(1, 1), (2, 1)]
    assert world.rows("select symptom_id, case_no from sightings order by 1") == [(1, 1), (2, 3)]
    world.effect(3, triaged())
    assert world.rows(counts) == [(1, 1), (2, 1)]


def test_approval_says_who(world: Inquiry) -> None:
    world.effect(1, triaged(), investigated(), APPROVED)
    assert world.case(1, "status, decision, reviewed_by") == ("reviewed", "approve", "ann")
    assert len(world.rcas()) == 1


def test_an_approved_triage_becomes_a_root_cause(world: Inquiry) -> None:
    skip = triaged(skip=True, category="infra", hypothesis="si001", notes="disk full\nagain")
    world.effect(1, skip, APPROVED)
    assert world.one(
        "select case_no, attempt, title, description, defect_type, category, component,"
        " affected_versions, convergence_score, status from rcas"
    ) == (
        1,
        0,
        "a broke",
        "disk full\nagain",
        "si001",
        "infra",
        "engine",
        '["1.0"]',
        None,
        "open",
    )
    assert world.case(1, "rca_id") == 1
    assert world.rows(LINKS) == [(1, 1, None, "reviewed")]
    world.effect(2, APPROVED)
    assert world.case(2, "status, rca_id") == ("reviewed", None)


def test_a_triage_that_skips_takes_the_place_of_an_investigation(world: Inquiry) -> None:
    world.effect(1, triaged(), investigated(), SentBack(status="open"))
    world.effect(1, triaged())
    assert world.case(1, "rca_id") == 1
    world.effect(1, triaged(skip=True, hypothesis="nd001"), APPROVED)
    assert world.rcas() == [(1, 1, 1, "archived"), (2, 1, 0, "open")]
    assert world.one("select defect_type from rcas where rca_id = 2") == "nd001"


def test_overturning_rewrites_the_case_s_own_root_cause(world: Inquiry) -> None:
    world.effect(1, triaged(), investigated(), overturned())
    assert world.one("select title, description, defect_type, category, status from rcas") == (
        "it was the door",
        "it was the door",
        "ab001",
        "product",
        "open",
    )
    assert world.case(1, "status, decision") == ("reviewed", "overturn")
    world.effect(1, overturned("", ""))
    assert world.one("select description, defect_type from rcas") == ("it was the door", "ab001")


def test_overturning_one_case_rewrites_no_other(world: Inquiry) -> None:
    world.effect(1, triaged(), investigated())
    world.effect(2, triaged(), correlated(1))
    world.effect(1, overturned())
    assert world.rcas() == [(1, 2, 1, "open"), (2, 1, 0, "open")]
    words = "select description from rcas order by rca_id"
    assert world.rows(words) == [("found in attempt 1",), ("it was the door",)]
    assert world.rows("select rca_id from rca_cases order by case_no") == [
        (2,),
        (1,),
        (None,),
        (None,),
    ]


def test_overturning_a_recall_leaves_the_old_cause_alone(world: Inquiry) -> None:
    world.effect(1, triaged(), investigated(), APPROVED, Closed())
    world.effect(4, recalled(1, 1), overturned())
    assert world.rcas() == [(1, 1, 1, "open"), (2, 4, 0, "open")]
    assert world.one("select affected_versions from rcas where rca_id = 2") == '["2.0"]'


def test_overturning_what_has_no_cause_makes_one(world: Inquiry) -> None:
    world.effect(1, overturned("x" * 200))
    title, description, category = world.one("select title, description, category from rcas")
    assert (len(title), description, category) == (80, "x" * 200, "unknown")
    world.effect(3, triaged(category="flake"), overturned())
    assert world.one("select category, defect_type from rcas where rca_id = 2") == (
        "flake",
        "ab001",
    )


def test_sending_back_takes_the_decision_back(world: Inquiry) -> None:
    world.effect(1, triaged(), investigated(), APPROVED, SentBack(status="triaged"))
    assert world.case(1, "status, decision, reviewed_by, rca_id") == ("triaged", "", "", 1)


def test_the_last_case_closes_the_suite(world: Inquiry) -> None:
    suites = "select status, closed_at from suites order by suite_id"
    for case_no in (1, 2):
        world.effect(case_no, APPROVED, Closed(draft={"summary": "s"}))
    assert world.rows(suites) == [("open", None), ("open", None)]
    world.effect(3, Closed())
    assert world.rows(suites) == [("closed", world.at), ("open", None)]
    assert world.case(1, "status, draft") == ("closed", '{"summary":"s"}')
    world.effect(3, SentBack(status="open"))
    assert world.rows(suites) == [("open", None), ("open", None)]


def test_a_case_that_is_no_failed_test_has_no_effects(world: Inquiry) -> None:
    world.begin("A")
    with pytest.raises(StoreError) as caught:
        world.effect(5, APPROVED)
    assert str(caught.value) == ("case number 5 is not a failed test: only an analysis has effects")


def test_killed_in_the_middle_neither_decision_nor_effect_is_there(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "rca_tests.worlds.kill_commit", str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["wrong"] == []
    assert report["left"] == [[0] * 7, [1, 1, 1, 1, 2, 2, 1]]
    assert report["moments"] > 20


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
    (1, investigated(1)),
    (2, correlated(1)),
    (4, correlated(1)),
    (2, APPROVED),
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
        with open_writer(world.db) as opened:
            world.open_on(opened, [first])
            world.open_on(opened, [later])
            yield opened


def write_story(connection: Connection, story: list[tuple[object, object]]) -> None:
    raw = connection.raw
    for second, (first, then) in enumerate(story):
        if isinstance(first, int):
            apply_effect(first, then, raw, 3e9 + second)  # type: ignore[arg-type]
        else:
            raw.execute(HUMAN[str(first)], (then,))


@settings(max_examples=300)
@given(story=stories)
def test_knowledge_stays_of_one_piece(
    connection: Connection, story: list[tuple[object, object]]
) -> None:
    raw = connection.raw
    raw.execute("begin immediate")
    try:
        write_story(connection, story)
        assert raw.execute("pragma foreign_key_check").fetchall() == []
        assert raw.execute(TWO_OPEN).fetchall() == []
        assert raw.execute(MISCOUNTED).fetchall() == []
        unreviewed = {"rca.early", "rca.unreviewed"}
        found = {fault.id for fault in check_rules(connection, KNOWLEDGE_RULES)}
        assert found <= unreviewed
    finally:
        raw.rollback()


@settings(max_examples=100)
@given(story=stories, case_no=st.integers(1, CASES), effect=effects)
def test_the_same_effect_again_makes_nothing_new(
    connection: Connection, story: list[tuple[object, object]], case_no: int, effect: Effect
) -> None:
    raw = connection.raw
    counts = "select (select count(*) from rcas), (select sum(occurrence_count) from symptoms)"
    raw.execute("begin immediate")
    try:
        write_story(connection, story)
        apply_effect(case_no, effect, raw, 4e9)
        links = "select symptom_id, rca_id, status, decision from rca_cases order by case_no"
        before = raw.execute(counts).fetchall(), raw.execute(links).fetchall()
        apply_effect(case_no, effect, raw, 5e9)
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
    raw = connection.raw
    raw.execute("begin immediate")
    try:
        write_story(connection, story)
        before = raw.execute(agreed, (case_no,)).fetchall()
        apply_effect(case_no, effect, raw, 4e9)
        assert raw.execute(agreed, (case_no,)).fetchall() == before
    finally:
        raw.rollback()
