"""A launch in ReportPortal as a launch of ours."""

from collections.abc import Iterator

import pytest

from interlock.system.errors import SourceError
from interlock.system.test_output import TestCounts
from interlock_rca.records import Failure
from interlock_rca.sources.reportportal.launch import read_launch
from interlock_rca.sources.reportportal.project import ReportPortal
from rca_tests.worlds.reportportal import LAUNCH_ID, Portal, a_portal, an_item


@pytest.fixture
def portal() -> Iterator[Portal]:
    with a_portal() as running:
        yield running


def read(portal: Portal) -> tuple[Failure, list[str]]:
    with ReportPortal(portal.address, sleep=lambda _: None) as client:
        _, (failure, *_), notes = read_launch(client, str(LAUNCH_ID))
    return failure, notes


def test_a_launch_with_its_failed_tests(portal: Portal) -> None:
    portal.add(an_item(1, "lamps", type="TEST", issue=None))
    portal.add(an_item(2, "glows", path="1.2"), ("ERROR", "dark\n at Lamp:3"))
    portal.add(an_item(3, "dims", path="1.3", status="PASSED"))
    with ReportPortal(portal.address) as client:
        launch, failures, notes = read_launch(client, str(LAUNCH_ID))
    assert (launch.launch_id, launch.name, launch.number) == ("7001", "nightly", 12)
    assert (launch.version, launch.branch) == ("2.14.0", "release-2.14")
    assert (launch.started_at, launch.ended_at) == (
        "2025-10-09T08:53:20Z",
        "2025-10-09T08:59:20.500Z",
    )
    assert launch.tally == TestCounts(tests=9, failed=2, skipped=1)
    assert launch.url == f"{portal.url}/ui/#harbour/launches/all/7001"
    assert [(job.name, job.item_id) for job in launch.jobs] == [("lamps", 1)]
    assert [(each.id, each.item_id, each.job) for each in failures] == [("glows", 2, "lamps")]
    assert failures[0].url == f"{launch.url}/1/2/log"
    assert notes == []


def test_the_log_tells_the_error_and_the_lines_around_it(portal: Portal) -> None:
    portal.add(
        an_item(1, "glows", description="It should glow."),
        ("INFO", "plug in"),
        ("ERROR", "Dark: no light\n at Lamp:3"),
        ("WARN", "unplug"),
        ("ERROR", "cleaning failed"),
    )
    failure, _ = read(portal)
    assert failure.message == "Dark: no light"
    assert failure.stack == "Dark: no light\n at Lamp:3"
    assert failure.log == (
        "2025-10-09T08:53:00.100Z INFO plug in\n"
        "2025-10-09T08:53:00.101Z ERROR Dark: no light\n at Lamp:3\n"
        "2025-10-09T08:53:00.102Z WARN unplug\n"
        "2025-10-09T08:53:00.103Z ERROR cleaning failed"
    )
    assert not failure.log_truncated


def test_without_logs_the_description_is_the_message(portal: Portal) -> None:
    portal.add(an_item(1, "glows", description="It should glow."))
    failure, notes = read(portal)
    assert (failure.message, failure.log, notes) == ("It should glow.", "", [])


def test_the_log_of_a_failed_inner_step_is_read_too(portal: Portal) -> None:
    portal.lists = {"item", "log/nested"}
    portal.add(an_item(1, "glows"), ("INFO", "begin"))
    portal.logs[1].append({"id": 50, "name": "step", "status": "FAILED", "startTime": 1})
    portal.logs[1].append({"id": 51, "name": "step", "status": "PASSED", "startTime": 1})
    portal.logs[50] = [{"id": 9, "level": "ERROR", "message": "inside", "time": 1_760_000_000_000}]
    portal.logs[51] = [{"id": 8, "level": "ERROR", "message": "beside", "time": 1}]
    failure, _ = read(portal)
    assert failure.message == "inside"
    assert "beside" not in failure.log


def test_steps_that_hold_themselves_do_not_go_on_for_ever(portal: Portal) -> None:
    portal.lists = {"item", "log/nested"}
    portal.add(an_item(1, "glows"))
    portal.logs[1] = [{"id": 1, "name": "step", "status": "FAILED"}]
    assert read(portal)[0].log == ""


def test_a_long_log_is_marked_as_cut(portal: Portal) -> None:
    portal.page_limit = 2
    portal.add(an_item(1, "glows"), *(("INFO", f"row {number}") for number in range(20)))
    failure, _ = read(portal)
    assert failure.log_truncated
    assert failure.log.endswith("row 19")


def test_logs_that_are_refused_are_said_and_not_asked_for_ever(portal: Portal) -> None:
    for number in range(1, 11):
        portal.add(an_item(number, f"t{number}"))
    portal.fault("403", "/log", times=99)
    _, notes = read(portal)
    assert len([request for request in portal.requests if "/log" in request]) == 3
    assert notes[-1] == "further logs were not requested: the failures have none"


def test_many_logs_are_asked_for_at_once_and_each_comes_to_its_own_test(portal: Portal) -> None:
    for number in range(1, 121):
        portal.add(an_item(number, f"t{number}"), ("ERROR", f"dark {number}"))
    with ReportPortal(portal.address) as client:
        _, failures, notes = read_launch(client, str(LAUNCH_ID))
    output = [(each.item_id, each.message) for each in failures]
    assert output == [(number, f"dark {number}") for number in range(1, 121)]
    assert notes == []
    portal.fault("403", "/log", times=999)
    with ReportPortal(portal.address) as client:
        _, failures, notes = read_launch(client, str(LAUNCH_ID))
    assert (len(failures), len(notes)) == (120, 9)
    assert notes[-1] == "further logs were not requested: the failures have none"


def test_a_launch_without_an_id_is_said(portal: Portal) -> None:
    portal.launch = {"name": "odd"}
    with (
        ReportPortal(portal.address) as client,
        pytest.raises(SourceError, match="answer for launch 7001 has no id"),
    ):
        read_launch(client, str(LAUNCH_ID))


def test_a_test_that_was_interrupted_failed(portal: Portal) -> None:
    portal.add(an_item(1, "glows"), ("ERROR", "dark"))
    portal.add(an_item(2, "dims", status="INTERRUPTED"), ("ERROR", "cut off"))
    with ReportPortal(portal.address) as client:
        _, failures, _ = read_launch(client, str(LAUNCH_ID))
    assert [(each.item_id, each.message) for each in failures] == [(1, "dark"), (2, "cut off")]


def test_nobody_asks_for_interrupted_tests_where_none_are_missing(portal: Portal) -> None:
    portal.add(an_item(1, "glows"))
    portal.add(an_item(2, "dims"))
    with ReportPortal(portal.address) as client:
        read_launch(client, str(LAUNCH_ID))
    assert not [request for request in portal.requests if "INTERRUPTED" in request]


def test_a_launch_that_is_not_over_is_said_to_be_so(portal: Portal) -> None:
    portal.add(an_item(1, "glows"))
    assert read(portal)[1] == []
    portal.launch["status"] = "IN_PROGRESS"
    (note,) = read(portal)[1]
    assert note.startswith("launch 7001 is still in progress")
