"""Deadlines: one timer, nothing late, nothing early, nothing forgotten."""

from hypothesis import given
from hypothesis import strategies as st
from tests.world.clock import START, FakeClock

from interlock.runtime.outbox import Deadlines


def made() -> tuple[FakeClock, Deadlines, list[float]]:
    clock = FakeClock()
    rung: list[float] = []
    return clock, Deadlines(clock, lambda: rung.append(clock.time - START)), rung


def test_the_earliest_rings_first_whatever_the_order() -> None:
    clock, deadlines, rung = made()
    for dispatch_id, after in ((1, 30), (2, 10), (3, 20)):
        deadlines.add(START + after, dispatch_id)
    over = []
    while clock.advance():
        over.append(deadlines.pop_passed(clock.now()))
    assert (rung, over) == ([10, 20, 30], [[2], [3], [1]])


def test_those_of_one_moment_come_together() -> None:
    clock, deadlines, rung = made()
    deadlines.add(START + 5, 2)
    deadlines.add(START + 5, 1)
    clock.advance()
    assert (deadlines.pop_passed(clock.now()), rung) == ([1, 2], [5])


def test_a_dropped_one_does_not_ring() -> None:
    clock, deadlines, _ = made()
    deadlines.add(START + 5, 1)
    deadlines.add(START + 9, 2)
    deadlines.drop(1)
    clock.advance()
    assert deadlines.pop_passed(clock.now()) == []
    clock.advance()
    assert deadlines.pop_passed(clock.now()) == [2]


def test_nothing_is_over_before_its_time() -> None:
    _, deadlines, _ = made()
    deadlines.add(START + 5, 1)
    assert deadlines.pop_passed(START + 4.999) == []
    assert deadlines.pop_passed(START + 5) == [1]


def test_one_that_is_long_past_is_over_at_once() -> None:
    _, deadlines, _ = made()
    deadlines.add(START - 100, 1)
    assert deadlines.pop_passed(START) == [1]


def test_a_timer_that_rang_too_early_is_set_again() -> None:
    clock, deadlines, rung = made()
    deadlines.add(START + 5, 1)
    clock.advance()
    clock.time -= 3
    assert deadlines.pop_passed(clock.now()) == []
    assert clock.advance()
    assert (deadlines.pop_passed(clock.now()), rung) == ([1], [5, 5])


def test_nothing_rings_after_close() -> None:
    clock, deadlines, rung = made()
    deadlines.add(START + 5, 1)
    deadlines.close()
    assert not clock.advance()
    assert rung == []


def test_many_that_were_dropped_take_no_room() -> None:
    _, deadlines, _ = made()
    for dispatch_id in range(20_000):
        deadlines.add(START + dispatch_id, dispatch_id)
        deadlines.drop(dispatch_id)
    assert len(deadlines._heap) <= 1_002


@given(st.lists(st.tuples(st.integers(1, 50), st.booleans()), max_size=30))
def test_each_is_told_once_at_its_time_unless_dropped(plan: list[tuple[int, bool]]) -> None:
    clock, deadlines, _ = made()
    for dispatch_id, (after, _) in enumerate(plan):
        deadlines.add(START + after, dispatch_id)
    for dispatch_id, (_, dropped) in enumerate(plan):
        if dropped:
            deadlines.drop(dispatch_id)
    told: list[tuple[int, float]] = []
    while clock.advance():
        told += [(each, clock.time - START) for each in deadlines.pop_passed(clock.now())]
    kept = [(n, float(after)) for n, (after, dropped) in enumerate(plan) if not dropped]
    assert sorted(told) == kept
