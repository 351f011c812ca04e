"""Test grids of thresholds from a user's words."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.runtime.circuits import find_circuit
from interlock.system.errors import UsageError
from interlock_calibrate.tune import parse_axis, parse_grid

RCA = find_circuit("rca", Path("/nonexistent")).open().circuit


def test_a_span_has_both_ends_and_so_many_values() -> None:
    name, values = parse_axis("recall_hit=0.6..0.9/7", RCA)
    assert name == "recall_hit"
    assert values == (0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9)
    assert parse_axis("max_investigate_loops=0..3/4", RCA) == (
        "max_investigate_loops",
        (0, 1, 2, 3),
    )
    assert parse_axis("recall_hit=0.9,0.5,0.9", RCA)[1] == (0.9, 0.5)


@given(st.integers(2, 50), st.floats(0, 0.4), st.floats(0.5, 1))
def test_values_rise_from_one_end_to_the_other(many: int, low: float, high: float) -> None:
    _, values = parse_axis(f"recall_hit={low:.4f}..{high:.4f}/{many}", RCA)
    assert len(values) == many
    assert list(values) == sorted(set(values))
    assert (values[0], values[-1]) == (round(low, 4), round(high, 4))


def test_axes_multiply() -> None:
    found = parse_grid(["recall_hit=0.6,0.7", "correlate_dup=0.8,0.9"], RCA)
    assert len(found) == 4
    assert found[1] == {"recall_hit": 0.6, "correlate_dup": 0.9}


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("recall_hit",),
        ("nothing=0.1,0.2",),
        ("recall_hit=0.9..0.6/3",),
        ("recall_hit=0.6..0.9/1",),
        ("recall_hit=0.6..0.9",),
        ("recall_hit=0.6..0.9/x",),
        ("recall_hit=nan,0.5",),
        ("recall_hit=1.5,2",),
        ("recall_hit=",),
        ("max_investigate_loops=0..1/3",),
        ("recall_hit=0.5", "recall_hit=0.6"),
        ("recall_hit=0..1/1000", "correlate_dup=0..1/1000"),
    ],
)
def test_what_is_no_grid_is_refused(words: tuple[str, ...]) -> None:
    with pytest.raises(UsageError):
        parse_grid(words, RCA)
