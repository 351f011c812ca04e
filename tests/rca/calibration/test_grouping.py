"""Groups held against groups: values by hand, and laws."""

import pytest
from hypothesis import given
from hypothesis import strategies as some

from interlock.rca.calibration.baselines import grouping

GROUPS = some.lists(some.integers(0, 4), min_size=1, max_size=25)


def named(groups: list[int]) -> dict[str, int]:
    return {f"C{number}": group for number, group in enumerate(groups)}


def test_by_hand() -> None:
    found = grouping(named([1, 1, 1, 2, 2, 3]), named([1, 1, 2, 2, 2, 3]))
    assert found is not None
    # precision: C0 C1 2/2, C2 1/3, C3 C4 2/3, C5 1; recall: C0 C1 2/3, C2 1/3, C3 C4 1, C5 1
    assert found.precision == pytest.approx((1 + 1 + 1 / 3 + 2 / 3 + 2 / 3 + 1) / 6)
    assert found.recall == pytest.approx((2 / 3 + 2 / 3 + 1 / 3 + 1 + 1 + 1) / 6)
    # pairs: together 2, in truth 4, in found 4, of 15
    assert found.rand == pytest.approx((2 - 16 / 15) / (4 - 16 / 15))
    assert (found.true_groups, found.found_groups) == (3, 3)


def test_one_heap_is_recalled_and_not_precise_and_chance_is_worth_nothing() -> None:
    heap = grouping(named([1, 1, 2, 2]), named([5, 5, 5, 5]))
    assert heap is not None
    assert (heap.precision, heap.recall, heap.rand) == (0.5, 1.0, 0.0)
    alone = grouping(named([1, 2, 3]), named([7, 8, 9]))
    assert alone is not None
    assert (alone.f, alone.rand) == (1.0, 1.0)
    assert grouping({}, {}) is None


@given(GROUPS)
def test_the_truth_is_perfect_whatever_its_groups_are_called(groups: list[int]) -> None:
    found = grouping(named(groups), {case: f"g{group}" for case, group in named(groups).items()})
    assert found is not None
    assert (found.precision, found.recall, found.f, found.rand) == pytest.approx((1, 1, 1, 1))


@given(some.lists(some.tuples(some.integers(0, 4), some.integers(0, 4)), min_size=1, max_size=25))
def test_order_does_not_matter_and_sides_swap(pairs: list[tuple[int, int]]) -> None:
    truth, said = named([one for one, _ in pairs]), named([other for _, other in pairs])
    there, back = grouping(truth, said), grouping(said, truth)
    assert there is not None
    assert back is not None
    assert (there.precision, there.recall) == pytest.approx((back.recall, back.precision))
    assert there.rand == pytest.approx(back.rand)
    turned = grouping(dict(reversed(truth.items())), said)
    assert turned is not None
    assert turned.f == pytest.approx(there.f)
