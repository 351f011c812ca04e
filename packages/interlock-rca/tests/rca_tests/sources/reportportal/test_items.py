"""Test items made into failures."""

from typing import Any

import pytest

from interlock_rca.records import Ticket
from interlock_rca.sources.reportportal.items import (
    build_failure,
    filter_own_failures,
    read_attributes,
    read_items,
)
from rca_tests.worlds.reportportal import an_item


def holder(item_id: int, total: int, failed: int, **news: Any) -> dict[str, Any]:
    counts = {"executions": {"total": total, "failed": failed}}
    output: dict[str, Any] = {"type": "TEST", "hasChildren": True, "issue": None}
    return an_item(item_id, f"holder {item_id}", statistics=counts, **(output | news))


def counted(*rows: dict[str, Any]) -> list[int]:
    return [item.item_id for item in filter_own_failures(read_items(rows))[0]]


def test_items_that_only_hold_failed_ones_are_not_counted() -> None:
    assert counted(holder(1, 5, 2), an_item(2, "a", path="1.2"), an_item(3, "b", path="1.3")) == [
        2,
        3,
    ]


def test_a_parent_is_known_without_a_path_too() -> None:
    child = an_item(2, "a", path="", parent=1)
    assert counted(holder(1, 5, 1), child) == [2]
    assert counted(holder(1, 5, 1), {**child, "parent": None, "parent_id": "1"}) == [2]


def test_a_holder_of_tests_that_all_passed_is_not_counted_and_said() -> None:
    own, notes = filter_own_failures(read_items([holder(1, 5, 0)]))
    assert own == []
    assert notes == [
        "TEST 1 (holder 1) failed, but none of the tests in it did: not counted",
    ]


@pytest.mark.parametrize(
    "row",
    [
        holder(1, 1, 1),
        holder(1, 5, 2),
        holder(1, 5, 0, issue={"issueType": "pb001"}),
        an_item(1, "no issue", issue=None),
        an_item(1, "before", type="BEFORE_CLASS"),
        {"id": 1, "name": "told by few words"},
    ],
)
def test_an_item_that_nothing_below_explains_is_counted(row: dict[str, Any]) -> None:
    assert counted(row) == [1]


def test_steps_inside_a_test_are_part_of_it() -> None:
    inner = an_item(2, "step", path="1.2", hasStats=False)
    assert counted(an_item(1, "test", hasChildren=True), inner) == [1]


def test_what_did_not_fail_is_not_counted() -> None:
    assert counted(an_item(1, "a", status="PASSED"), an_item(2, "b", status="SKIPPED")) == []


def test_an_item_tells_all_it_knows() -> None:
    row = an_item(
        7,
        "glows",
        path="5.6.7",
        codeRef="yard.LampTest.glows",
        description="It should glow.",
        startTime="2025-10-09T08:53:20.285955Z",
        pathNames={"itemPaths": [{"id": 5, "name": "unit"}, {"id": 6, "name": "LampTest"}]},
        attributes=[{"key": "os", "value": "a"}, {"key": "os", "value": "b"}, {"value": "slow"}],
        issue={
            "issueType": "ab001",
            "comment": "known",
            "autoAnalyzed": True,
            "externalSystemIssues": [{"ticketId": "Y-1", "url": "https://x/Y-1"}],
        },
    )
    failure = build_failure(read_items([row])[0], {}, "70", "https://rp/7")
    assert (failure.class_name, failure.test_name) == ("yard.LampTest", "glows")
    assert (failure.job, failure.path) == ("unit", "unit / LampTest")
    assert (failure.launch, failure.item_id, failure.url) == ("70", 7, "https://rp/7")
    assert failure.at == "2025-10-09T08:53:20.285955Z"
    assert failure.message == "It should glow."
    assert failure.attributes == {"os": "a, b", "tags": "slow", "item_type": "STEP"}
    assert (failure.issue_type, failure.issue_comment) == ("ab001", "known")
    assert failure.auto_analyzed
    assert failure.tickets == (Ticket("Y-1", "https://x/Y-1"),)


def test_where_names_of_holders_are_not_told_they_are_looked_up() -> None:
    item = read_items([an_item(7, "glows", path="5.7")])[0]
    assert build_failure(item, {5: "unit"}, "70").job == "unit"


@pytest.mark.parametrize(
    "row",
    [
        None,
        7,
        [],
        {},
        {"id": None},
        {"id": True},
        {"id": -3},
        {"id": 10**30},
        {"id": "x"},
        {"id": 1.5},
    ],
)
def test_rows_that_are_no_items_are_passed_over(row: Any) -> None:
    assert read_items([row]) == []


def test_items_with_parts_of_the_wrong_kind_are_still_items() -> None:
    odd: list[Any] = [None, 3, "x", [], {}, [3], {"itemPaths": [3]}, {"executions": 3}]
    keys = ("name", "path", "pathNames", "attributes", "issue", "statistics", "startTime", "status")
    for value in odd:
        (item,) = read_items([{"id": 1, **dict.fromkeys(keys, value)}])
        build_failure(item, {}, "1")


def test_half_signs_cannot_travel_on() -> None:
    (item,) = read_items([{"id": 1, "name": "a\ud800b"}])
    assert item.name == "a?b"
    assert read_attributes({"k": "\udfff"}) == {"k": "?"}
