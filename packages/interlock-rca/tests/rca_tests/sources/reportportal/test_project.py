"""What can be asked of a project: lists of both generations, pages that change."""

from collections.abc import Iterator

import pytest

from interlock_rca.sources.reportportal.client import PortalError
from interlock_rca.sources.reportportal.project import ReportPortal
from rca_tests.worlds.reportportal import LAUNCH_ID, LAUNCH_UUID, Portal, a_portal, an_item


@pytest.fixture
def portal() -> Iterator[Portal]:
    with a_portal() as running:
        yield running


@pytest.fixture
def client(portal: Portal) -> Iterator[ReportPortal]:
    with ReportPortal(portal.address, sleep=lambda _: None) as opened:
        yield opened


def test_a_launch_by_id_and_by_uuid(portal: Portal, client: ReportPortal) -> None:
    assert client.get_launch(str(LAUNCH_ID)) == client.get_launch(LAUNCH_UUID) == portal.launch


@pytest.mark.parametrize("lists", [{"item"}, {"item/v2"}, {"item", "item/v2"}])
def test_items_come_by_the_list_that_exists(
    portal: Portal, client: ReportPortal, lists: set[str]
) -> None:
    portal.lists = lists
    portal.add(an_item(1, "a"))
    portal.add(an_item(2, "b", status="PASSED"))
    portal.add(an_item(3, "c", launchId=5))
    assert [row["id"] for row in client.list_items(LAUNCH_ID, "FAILED")] == [1]


def test_all_pages_are_read_whatever_their_size(portal: Portal, client: ReportPortal) -> None:
    portal.page_limit = 7
    for number in range(1, 31):
        portal.add(an_item(number, f"t{number}"))
    assert len(client.list_items(LAUNCH_ID, "FAILED")) == 30
    assert len(portal.requests) == 5


def test_a_broken_page_is_read_again(portal: Portal, client: ReportPortal) -> None:
    portal.page_limit = 2
    for number in range(1, 6):
        portal.add(an_item(number, f"t{number}"))
    portal.fault("half", "page.page=2", times=2)
    portal.fault("500", "page.page=3")
    assert len(client.list_items(LAUNCH_ID, "FAILED")) == 5


def test_a_list_that_shifts_while_it_is_read_is_read_again(
    portal: Portal, client: ReportPortal
) -> None:
    portal.page_limit = 2
    for number in range(1, 6):
        portal.add(an_item(number, f"t{number}"))

    def first_one_goes(path: str) -> None:
        portal.items.pop(1, None)

    portal.changes = first_one_goes
    assert [row["id"] for row in client.list_items(LAUNCH_ID, "FAILED")] == [2, 3, 4, 5]
    assert client.notes == []


def test_a_list_that_never_agrees_with_itself_is_said(portal: Portal, client: ReportPortal) -> None:
    portal.add(an_item(1, "a"))
    portal.add({**an_item(2, "b"), "id": 1, "launchId": LAUNCH_ID})
    portal.items[99] = {**portal.items[1]}
    assert len(client.list_items(LAUNCH_ID, "FAILED")) == 1
    assert "gave 1 of the failed items of launch 7001, and says there are 2" in client.notes[0]


def test_something_that_is_no_list_is_said(portal: Portal, client: ReportPortal) -> None:
    portal.fault("odd", "/item")
    with pytest.raises(PortalError, match="is not a list"):
        client.list_items(LAUNCH_ID, "FAILED")


@pytest.mark.parametrize("lists", [{"log"}, {"log/nested"}])
def test_logs_come_by_the_list_that_exists(
    portal: Portal, client: ReportPortal, lists: set[str]
) -> None:
    portal.lists = lists
    portal.add(an_item(1, "a"), ("INFO", "one"), ("ERROR", "two"))
    rows, more = client.list_logs(1)
    assert ([row["message"] for row in rows], more) == (["two", "one"], False)


def test_of_a_long_log_the_newest_rows_come(portal: Portal, client: ReportPortal) -> None:
    portal.page_limit = 10
    portal.add(an_item(1, "a"), *(("INFO", f"row {number}") for number in range(95)))
    rows, more = client.list_logs(1)
    assert (len(rows), more) == (40, True)
    assert rows[0]["message"] == "row 94"


def test_defect_types_of_all_groups(portal: Portal, client: ReportPortal) -> None:
    assert {row["locator"] for row in client.list_defect_types()} == {
        *("pb001", "ab001", "si001", "nd001", "ti001"),
    }


def test_the_user_is_told_or_not(portal: Portal, client: ReportPortal) -> None:
    assert client.get_user() == "Mo Example"
    portal.fault("403", "/users")
    assert client.get_user() == ""
