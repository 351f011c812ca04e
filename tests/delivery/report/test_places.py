"""Where tasks stand, as words; and the word for all of them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.delivery.report.board import Outcome, outcome, places
from interlock.journal.history import CaseProgress


def stand(
    name: str, *needs: str, end: str = "", role: str = "", status: str = "open"
) -> CaseProgress:
    status = "ended" if end else status
    return CaseProgress(name, status, end, "IMPLEMENT", needs, 7 if role else 0, role, 1.0)


def words(*stands: CaseProgress) -> dict[str, tuple[str, str]]:
    return {name: (each.word, each.why) for name, each in places(stands).items()}


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
        "left": ("failed", "SKIPPED"),
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
    found = places(stands)
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
    assert outcome(status, ends, is_held=held) == expected
