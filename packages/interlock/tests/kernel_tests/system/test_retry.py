"""When a request is tried again: statuses, the server's wish, and where a schedule ends."""

import pytest

from interlock.system.retry import RetrySchedule, is_transient, read_retry_after

SCHEDULE = RetrySchedule((1.0, 5.0), longest=60.0)


def test_a_schedule_has_one_wait_for_each_further_try() -> None:
    assert [SCHEDULE.find_wait(failures) for failures in (1, 2, 3)] == [1.0, 5.0, None]


def test_the_server_may_ask_for_another_wait_but_not_for_any() -> None:
    assert SCHEDULE.find_wait(1, 60.0) == 60.0
    assert SCHEDULE.find_wait(2, 0.0) == 0.0
    assert SCHEDULE.find_wait(1, 61.0) is None
    assert SCHEDULE.find_wait(3, 1.0) is None


def test_which_refusals_may_pass() -> None:
    statuses = (200, 301, 400, 401, 404, 408, 410, 429, 500, 503, 529)
    assert [status for status in statuses if is_transient(status)] == [408, 429, 500, 503, 529]


@pytest.mark.parametrize(
    ("headers", "wait"),
    [
        ({}, None),
        ({"retry-after": " 7 "}, 7.0),
        ({"retry-after": "-7"}, None),
        ({"retry-after": "9" * 30}, None),
        ({"retry-after": "\u0667"}, None),
        ({"retry-after": "soon", "date": "Thu, 09 Oct 2025 08:53:20 GMT"}, None),
        ({"retry-after": "Thu, 09 Oct 2025 08:53:50 GMT"}, None),
        (
            {
                "retry-after": "Thu, 09 Oct 2025 08:53:50 GMT",
                "date": "Thu, 09 Oct 2025 08:53:20 GMT",
            },
            30.0,
        ),
        (
            {
                "retry-after": "Thu, 09 Oct 2025 08:53:20 GMT",
                "date": "Thu, 09 Oct 2025 08:53:50 GMT",
            },
            0.0,
        ),
    ],
)
def test_how_long_the_server_asks_to_wait(headers: dict[str, str], wait: float | None) -> None:
    assert read_retry_after(headers) == wait
