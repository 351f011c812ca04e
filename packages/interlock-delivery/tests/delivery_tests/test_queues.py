"""Test waits and what ends them, by laws over any order of events."""

from hypothesis import given
from hypothesis import strategies as st

from interlock_delivery.queues import WaitQueues

NAMES = ("a", "b", "c", "d")


def test_an_expert_has_so_many_at_once_and_the_next_is_let_go() -> None:
    queues = WaitQueues(1, lambda: ["a"])
    assert not queues.ask_expert("a", "maths")
    assert queues.ask_expert("b", "maths")
    assert not queues.ask_expert("c", "law"), "another expert is free"
    assert queues.release(lambda _: True) == []
    queues.leave_expert("a")
    assert queues.release(lambda _: True) == ["b"]
    assert not queues.is_waiting("b")


def test_one_that_was_with_an_expert_before_a_restart_counts() -> None:
    queues = WaitQueues(1, lambda: ["a"])
    queues.resume_expert("a", "maths")
    assert queues.ask_expert("b", "maths")


def test_a_wait_for_a_task_ends_with_it() -> None:
    queues = WaitQueues(2, lambda: ["b"])
    queues.wait_for("a", "b")
    assert queues.release(lambda name: name == "b") == []
    assert queues.release(lambda _: False) == ["a"]


def test_a_wait_for_anybody_ends_when_anybody_is_over() -> None:
    queues = WaitQueues(2, lambda: ["b"])
    queues.wait_for("a")
    assert queues.release(lambda _: True) == []
    queues.end("c")
    assert queues.release(lambda _: True) == ["a"]


def test_a_wait_that_nobody_can_end_is_ended() -> None:
    queues = WaitQueues(2, list)
    queues.wait_for("a", "b")
    queues.wait_for("b", "a")
    assert sorted(queues.release(lambda _: True)) == ["a", "b"]


@given(st.lists(st.tuples(st.sampled_from(NAMES), st.sampled_from(NAMES)), max_size=12))
def test_never_does_everybody_wait(waits: list[tuple[str, str]]) -> None:
    waiting: set[str] = set()
    queues = WaitQueues(1, lambda: [name for name in NAMES if name not in waiting])
    for name, other in waits:
        queues.wait_for(name, other if other != name else "")
        waiting.add(name)
        waiting -= {*queues.release(lambda _: True)}
        assert waiting != {*NAMES}
