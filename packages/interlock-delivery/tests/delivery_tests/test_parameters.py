"""Test the open points of judges: newest first, and none dropped silently."""

from hypothesis import given
from hypothesis import strategies as st

from interlock_delivery.parameters import LONGEST_POINT, format_points
from interlock_delivery.task_context import Point

POINTS = st.lists(
    st.builds(
        Point,
        by=st.sampled_from(["critic", "auditor", "checks", "merge"]),
        attempt=st.integers(1, 9),
        text=st.text(min_size=1, max_size=40) | st.just("words " * 2_000),
    ),
    max_size=30,
)


def test_the_newest_point_comes_first() -> None:
    output = format_points([Point("critic", 1, "name it"), Point("checks", 2, "tests fail")], 1_000)
    assert output.text == "[checks, look 2]\ntests fail\n\n[critic, look 1]\nname it"
    assert (output.shown, output.total, output.cut) == (2, 2, 0)


def test_what_has_no_room_is_counted() -> None:
    output = format_points(
        [Point("critic", number, f"point {number}") for number in range(1, 100)], 300
    )
    assert output.text.startswith("[critic, look 99]\npoint 99\n")
    assert output.text.endswith(f"[... {99 - output.shown} older points are not shown ...]")
    assert output.cut == sum(len(f"point {number}") for number in range(1, 100 - output.shown))


def test_no_points_are_no_text() -> None:
    assert format_points([], 1_000).text == ""


@given(POINTS, st.integers(LONGEST_POINT + 200, 20_000))
def test_it_is_bounded_and_shows_the_newest(points: list[Point], most: int) -> None:
    output = format_points(points, most)
    assert len(output.text) <= most
    assert output.total == len(points)
    assert bool(output.shown) == bool(points)
    assert output.text.count("\n[") + bool(points) >= output.shown
