"""Test the board: the state of each task, bounded."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.carriers.cli.health import HealthFacts, assess_health
from interlock.carriers.status import AgentStatus
from interlock.engine.schedule import Spent
from interlock.journal.history import CaseSummary
from interlock.journal.journal import State
from interlock_delivery.report.board import (
    MOST_ROWS,
    LastSign,
    assess_tasks,
    build_board,
    build_records,
    delivery_outcome,
    name_agent,
    read_last_sign,
)
from interlock_delivery.report.records import Outcome


def summary(
    name: str,
    status: str,
    end: str,
    step: str,
    needs: tuple[str, ...] = (),
    dispatch_id: int | None = None,
    role: str = "",
    since: float = 0.0,
) -> CaseSummary:
    return CaseSummary(1, name, 1, status, step, dispatch_id, State(end=end), needs, role, since)


STANDS = [
    summary("a", "ended", "COMPLETE", "MERGE"),
    summary("b", "open", "", "CLARIFY", (), 9, "human", 20.0),
    summary("c", "open", "", "IMPLEMENT", (), 7, "developer", 10.0),
    summary("d", "open", "", "PREPARE", ("c",)),
    summary("e", "ended", "FAILED", "CHECK"),
    summary("f", "open", "", "PREPARE", ("e",)),
]


def test_rows_are_what_is_at_work_and_what_waits() -> None:
    records = build_records(
        STANDS,
        titles={"c": "The c"},
        agents={"developer": "claude", "": "codex"},
        costs={"c": (1200, 0.25)},
        signs={7: LastSign(12.0, "working")},
    )
    found = build_board(3, records, "RUNNING", spent=Spent(dispatches=4))
    assert (found.run_id, found.outcome, found.spent.dispatches) == (3, "RUNNING", 4)
    assert found.counts == {
        "at work": 1,
        "asks": 1,
        "waits": 1,
        "blocked": 1,
        "failed": 1,
        "skipped": 0,
        "complete": 1,
    }
    assert [row.task_id for row in found.rows] == ["c", "b", "d"]
    row = found.rows[0]
    assert (row.title, row.agent, row.since, row.sign) == ("The c", "claude", 10.0, 12.0)
    assert (row.tokens, row.money, row.standing) == (1200, 0.25, "working")
    assert [(each.question_id, each.task_id) for each in found.questions] == [(9, "b")]
    assert found.rows[2].why == "comes after c"


def test_many_rows_are_counted_not_kept() -> None:
    many = [summary(f"t{at}", "open", "", "PREPARE") for at in range(MOST_ROWS + 5)]
    found = build_board(1, build_records(many, {}, {}, {}), "RUNNING")
    assert (len(found.rows), found.left_out) == (MOST_ROWS, 5)


def test_who_plays_a_role() -> None:
    given = {"critic": "codex", "": "claude"}
    assert [name_agent(role, given) for role in ("critic", "auditor", "checks", "human")] == [
        "codex",
        "claude",
        "interlock",
        "human",
    ]
    assert name_agent("auditor", {}) == "auditor"


def test_the_last_sign_of_life_is_read_from_the_reasons_of_a_standing() -> None:
    facts = HealthFacts(state="S", age=90.0, stream_age=12.0, has_spoken=True, silence=600.0)
    seen = assess_health(facts)
    output = AgentStatus(7, 1, "c", "IMPLEMENT", "claude", seen.word, seen.reasons, 1, 100.0)
    assert read_last_sign(output) == LastSign(88.0, "working")
    mute = assess_health(
        HealthFacts(state="S", age=9.0, stream_age=9.0, has_spoken=False, silence=600.0)
    )
    output = AgentStatus(7, 1, "c", "IMPLEMENT", "claude", mute.word, mute.reasons, 1, 100.0)
    assert read_last_sign(output) == LastSign(0.0, mute.word)


def stand(
    name: str, *needs: str, end: str = "", role: str = "", status: str = "open"
) -> CaseSummary:
    status = "ended" if end else status
    return summary(name, status, end, "IMPLEMENT", needs, 7 if role else None, role, 1.0)


def words(*stands: CaseSummary) -> dict[str, tuple[str, str]]:
    return {name: (each.word, each.why) for name, each in assess_tasks(stands).items()}


def test_each_task_has_a_word_and_a_reason() -> None:
    assert words(
        stand("done", end="COMPLETE"),
        stand("bad", end="FAILED"),
        stand("left", end="SKIPPED"),
        stand("lost", status="stuck"),
        stand("writes", role="developer"),
        stand("asks", role="human"),
        stand("next", "done"),
        stand("later", "done", "writes"),
    ) == {
        "done": ("complete", "COMPLETE"),
        "bad": ("failed", "FAILED"),
        "left": ("skipped", "SKIPPED"),
        "lost": ("failed", "STUCK"),
        "writes": ("at work", "waits for the developer"),
        "asks": ("asks", "waits for the human"),
        "next": ("waits", "waits for its turn"),
        "later": ("waits", "comes after writes"),
    }


def test_what_comes_after_a_failure_is_blocked_however_far() -> None:
    found = words(
        stand("far", "near"),
        stand("near", "bad"),
        stand("stuck", "lost"),
        stand("bad", end="FAILED"),
        stand("lost", status="stuck"),
        stand("free", "unknown"),
    )
    assert found["near"] == ("blocked", "comes after bad, which is FAILED")
    assert found["far"] == ("blocked", "comes after near, which is blocked")
    assert found["stuck"] == ("blocked", "comes after lost, which is stuck")
    assert found["free"] == ("waits", "waits for its turn")


@given(
    st.lists(
        st.tuples(
            st.sampled_from(("", "COMPLETE", "FAILED")),
            st.sampled_from(("", "developer", "human")),
            st.lists(st.integers(0, 7), max_size=3),
        ),
        max_size=8,
    )
)
def test_no_task_waits_for_one_that_cannot_end_well(
    rows: list[tuple[str, str, list[int]]],
) -> None:
    stands = [
        stand(str(at), *map(str, needs), end=end, role="" if end else role)
        for at, (end, role, needs) in enumerate(rows)
    ]
    found = assess_tasks(stands)
    bad = {each.case_id for each in stands if each.end == "FAILED"}
    bad |= {name for name, each in found.items() if each.word == "blocked"}
    for each in stands:
        if found[each.case_id].word == "waits":
            assert not bad.intersection(each.needs)


@pytest.mark.parametrize(
    ("status", "ends", "held", "expected"),
    [
        ("running", {"open": 1}, False, "RUNNING"),
        ("running", {"open": 1}, True, "REMEDIATING"),
        ("interrupted", {"open": 1}, True, "PAUSED"),
        ("waiting", {"open": 1, "FAILED": 1}, False, "PAUSED"),
        ("budget", {"open": 1}, False, "PAUSED"),
        ("done", {"COMPLETE": 2}, False, "COMPLETE"),
        ("unhealthy", {"COMPLETE": 1, "FAILED": 1}, False, "PARTIAL"),
        ("unhealthy", {"FAILED": 2}, False, "FAILED"),
        ("stopped", {"HALTED": 1, "open": 4}, False, "HALTED"),
    ],
)
def test_the_word_for_a_run(
    status: str, ends: dict[str, int], held: bool, expected: Outcome
) -> None:
    assert delivery_outcome(status, ends, is_held=held) == expected
