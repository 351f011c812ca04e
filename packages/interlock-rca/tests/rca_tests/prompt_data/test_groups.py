"""Signs of clock skew: at each limit there is none, just past it there is."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock_rca.prompt_data.groups import (
    count_days,
    find_skew,
    measure_duration,
)
from interlock_rca.prompt_data.subject import ClockLimits
from interlock_rca.records import Failure, Job, Launch
from rca_tests.world import BARE, RICH, made

START = datetime(2024, 5, 3, 10, tzinfo=UTC)
LIMITS = ClockLimits()


def after(seconds: float) -> str:
    return (START + timedelta(seconds=seconds)).isoformat()


def test_without_times_nothing_is_found_and_that_is_said() -> None:
    skew = find_skew(Failure(id="1"), None, LIMITS)
    assert skew.warning == ""
    assert skew.unchecked == (
        "launch start against CI job start",
        "duration of the test",
        "launch duration against its jobs",
    )
    assert len(find_skew(Failure(id="1"), Launch(launch_id="1"), LIMITS).unchecked) == 3


@pytest.mark.parametrize(
    ("seconds", "sign"),
    [
        (0, ""),
        (299, ""),
        (300, ""),
        (-300, ""),
        (301, "the launch starts 5 m 1 s after its CI job"),
        (-301, "the launch starts 5 m 1 s before its CI job"),
        (36_000, "the launch starts 10 h after its CI job"),
    ],
)
def test_launch_and_ci_job_start_together(seconds: float, sign: str) -> None:
    launch = Launch(launch_id="1", ci_started_at=after(0), started_at=after(seconds))
    skew = find_skew(Failure(id="1"), launch, LIMITS)
    assert skew.warning == sign
    assert "launch start against CI job start" not in skew.unchecked


@pytest.mark.parametrize(
    ("seconds", "sign"),
    [
        (0, ""),
        (7_199, ""),
        (7_200, ""),
        (7_201, "the test took 2 h 1 s, more than 2 h"),
        (-1, "the test ends 1 s before it starts"),
    ],
)
def test_no_test_takes_hours(seconds: float, sign: str) -> None:
    failure = Failure(id="1", at=after(0), ended_at=after(seconds))
    skew = find_skew(failure, None, LIMITS)
    assert skew.warning == sign
    assert "duration of the test" not in skew.unchecked


@pytest.mark.parametrize(
    ("seconds", "jobs", "sign"),
    [
        (1_800, [600], ""),
        (1_801, [600], "the launch took 30 m 1 s, its jobs together 10 m"),
        (1_801, [300, 301], ""),
        (310, [10], ""),
        (311, [10], "the launch took 5 m 11 s, its jobs together 10 s"),
        (-5, [10], "the launch ends 5 s before it starts"),
        (301, [0], "the launch took 5 m 1 s, its jobs together 0 s"),
    ],
)
def test_a_launch_is_not_much_longer_than_its_jobs(
    seconds: float, jobs: list[float], sign: str
) -> None:
    parts = tuple(Job(name="j", started_at=after(0), ended_at=after(each)) for each in jobs)
    launch = Launch(launch_id="1", started_at=after(0), ended_at=after(seconds), jobs=parts)
    skew = find_skew(Failure(id="1"), launch, LIMITS)
    assert skew.warning == sign
    assert "launch duration against its jobs" not in skew.unchecked


def test_one_job_without_times_leaves_the_launch_unchecked() -> None:
    jobs = (Job(name="a", started_at=after(0), ended_at=after(1)), Job(name="b"))
    launch = Launch(launch_id="1", started_at=after(0), ended_at=after(90_000), jobs=jobs)
    skew = find_skew(Failure(id="1"), launch, LIMITS)
    assert skew.warning == ""
    assert "launch duration against its jobs" in skew.unchecked


def test_limits_are_the_callers() -> None:
    failure = Failure(id="1", at=after(0), ended_at=after(61))
    assert find_skew(failure, None, ClockLimits(step_hours=1 / 60)).warning != ""
    assert find_skew(failure, None, ClockLimits(step_hours=2 / 60)).warning == ""


@given(st.text(), st.text())
def test_no_text_upsets_the_clocks(start: str, end: str) -> None:
    measure_duration(start, end)
    count_days(start, end)


def test_days_since() -> None:
    assert count_days("2024-04-01T00:00:00Z", "2024-05-03T10:00:00Z") == 32
    assert count_days("2024-05-03T10:00:00Z", "2024-05-03T10:00:00Z") == 0
    assert count_days("2024-06-01T00:00:00Z", "2024-05-03T10:00:00Z") is None
    assert count_days("", "2024-05-03T10:00:00Z") is None


def test_a_prompt_gets_the_warning_and_the_note() -> None:
    stamps = made("F1", RICH)["timestamps"]
    assert stamps["clock_skew_warning"] == ""
    late = Failure(id="1", at=after(0), ended_at=after(9_000))
    stamps = made("F1", BARE | {"failure": late})["timestamps"]
    assert stamps["clock_skew_warning"] == "the test took 2 h 30 m, more than 2 h"
    assert stamps["clock_plane_note"].startswith("Times are of up to three clocks")


def test_a_duration_that_a_report_counted_counts() -> None:
    slow = Failure(id="1", at=after(0), attributes={"time": "10,800.5"})
    found = made("F1", BARE | {"failure": slow})
    assert found["timestamps"]["failure_duration"] == "3 h"
    assert found["timestamps"]["clock_skew_warning"] == "the test took 3 h, more than 2 h"
    assert "the times of the test" not in found["missing"]
    for word in ("", "soon", "nan", "-1", "1e400"):
        unknown = Failure(id="1", at=after(0), attributes={"time": word})
        found = made("F1", BARE | {"failure": unknown})
        assert found["timestamps"]["failure_duration"] == "(missing)"
        assert "the times of the test" in found["missing"]
