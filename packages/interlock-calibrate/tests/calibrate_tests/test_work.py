"""Test the order of cases that run one after another."""

from hypothesis import given
from hypothesis import strategies as st

from interlock.engine.case import Case
from interlock_calibrate.work import SequentialCases


def test_only_the_first_may_go_and_the_next_follows_when_it_is_over() -> None:
    turns = SequentialCases(["a", "b", "c"])
    assert [turns.must_rest(Case(name, "F0")) for name in "abc"] == [False, True, True]
    assert list(turns.released_cases()) == []
    assert not turns.must_rest(Case("a", "F1"))
    turns.must_rest(Case("a", "F6", status="ended", end="DONE"))
    assert list(turns.released_cases()) == ["b"]
    assert list(turns.released_cases()) == []
    turns.must_rest(Case("b", "F1", status="stuck"))
    assert list(turns.released_cases()) == ["c"]
    turns.must_rest(Case("c", "F1", status="stuck"))
    assert list(turns.released_cases()) == []


@given(st.lists(st.sampled_from("abcdef"), unique=True, min_size=1))
def test_every_case_gets_its_turn_once_and_in_order(names: list[str]) -> None:
    turns = SequentialCases(names)
    went = [name for name in names if not turns.must_rest(Case(name, "F0"))]
    for name in names:
        turns.must_rest(Case(name, "F6", status="ended"))
        went += turns.released_cases()
    assert went == names
