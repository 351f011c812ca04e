"""One case after another: whose turn it is, also when some are over already."""

from hypothesis import given
from hypothesis import strategies as st

from interlock.calibrate.campaign import SequentialCases
from interlock.engine.case import Case
from interlock.runtime.application import DefaultHooks


def test_only_the_first_may_go_and_the_next_follows_when_it_is_over() -> None:
    turns = SequentialCases(DefaultHooks(), ["a", "b", "c"])
    assert [turns.held(1, Case(name, "F0")) for name in "abc"] == [False, True, True]
    assert list(turns.let_go()) == []
    assert not turns.held(1, Case("a", "F1"))
    turns.held(1, Case("a", "F6", status="ended", end="DONE"))
    assert list(turns.let_go()) == ["b"]
    assert list(turns.let_go()) == []
    turns.held(2, Case("b", "F1", status="stuck"))
    assert list(turns.let_go()) == ["c"]
    turns.held(3, Case("c", "F1", status="stuck"))
    assert list(turns.let_go()) == []


@given(st.lists(st.sampled_from("abcdef"), unique=True, min_size=1))
def test_every_case_gets_its_turn_once_and_in_order(names: list[str]) -> None:
    turns = SequentialCases(DefaultHooks(), names)
    went = [name for name in names if not turns.held(0, Case(name, "F0"))]
    for name in names:
        turns.held(0, Case(name, "F6", status="ended"))
        went += turns.let_go()
    assert went == names
