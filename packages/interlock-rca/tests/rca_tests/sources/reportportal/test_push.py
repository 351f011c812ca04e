"""Findings written back: only what differs, and never twice."""

import copy
from collections.abc import Iterator

import pytest

from interlock_rca.sources.reportportal.client import DELAYS_S, PortalError
from interlock_rca.sources.reportportal.project import ReportPortal
from interlock_rca.sources.reportportal.push import (
    DefectTypes,
    DefectUpdate,
    PushResult,
    format_change,
    format_comment,
    push_updates,
)
from rca_tests.worlds.reportportal import Portal, a_portal, a_type, an_item, stock_types

WORDS = format_comment("The lamp is dark.", submitted_by="mo")


@pytest.fixture
def portal() -> Iterator[Portal]:
    with a_portal() as running:
        yield running


def pushed(portal: Portal, *updates: DefectUpdate, dry_run: bool = False) -> PushResult:
    with ReportPortal(portal.address, sleep=lambda _: None) as client:
        return push_updates(client, updates, dry_run=dry_run)


def update(item_id: int, defect_type: str = "pb001", words: str = WORDS) -> DefectUpdate:
    return DefectUpdate(item_id=item_id, defect_type=defect_type, comment=words)


def writes(portal: Portal) -> int:
    return len([request for request in portal.requests if request.startswith("PUT")])


def test_the_comment_says_what_where_and_who() -> None:
    refs = (
        "https://git.example.org/yard/lamp/commit/abc",
        "https://git.example.org/yard/lamp/-/commit/def",
        "https://git.example.org/yard/lamp/blob/main/a.py",
        "src/lamp.py:3",
        "javascript:/commit/x",
    )
    assert format_comment("Dark.\n", refs, "mo") == (
        "Dark.\n\n---\n**Suspected commit(s):**\n"
        "https://git.example.org/yard/lamp/commit/abc\n"
        "https://git.example.org/yard/lamp/-/commit/def\n\n---\n"
        "Analysis was submitted by mo (via Interlock)"
    )
    assert format_comment("Dark.") == "Dark.\n\n---\nAnalysis was submitted (via Interlock)"


def test_each_item_gets_its_own_type_and_words_in_one_request(portal: Portal) -> None:
    portal.add(an_item(1, "a"))
    portal.add(an_item(2, "b"))
    found = pushed(portal, update(1), update(2, "nd001", format_comment("As designed.")))
    assert [(each.item_id, each.after.issue_type) for each in found.changes] == [
        (1, "pb001"),
        (2, "nd001"),
    ]
    assert writes(portal) == 1
    assert portal.items[1]["issue"]["comment"] == WORDS
    assert portal.items[2]["issue"]["comment"] == format_comment("As designed.")


def test_a_dry_push_writes_nothing_and_shows_the_difference(portal: Portal) -> None:
    portal.add(an_item(1, "glows", issue={"issueType": "ti001", "comment": "old\nwords"}))
    found = pushed(portal, update(1), dry_run=True)
    assert writes(portal) == 0
    assert format_change(found.changes[0])[:5] == [
        "item 1: glows",
        "- type ti001",
        "+ type pb001",
        "  old",
        "  words",
    ]


def test_a_second_push_changes_nothing(portal: Portal) -> None:
    for number, words in enumerate(("", "seen by hand", "one\r\ntwo\n"), 1):
        portal.add(an_item(number, "t", issue={"issueType": "ti001", "comment": words}))
    updates = [update(number) for number in (1, 2, 3)]
    assert len(pushed(portal, *updates).changes) == 3
    before = copy.deepcopy(portal.items)
    again = pushed(portal, *updates)
    assert (again.changes, again.unchanged) == ((), (1, 2, 3))
    assert writes(portal) == 1
    assert portal.items == before


def test_what_others_wrote_and_linked_stays(portal: Portal) -> None:
    links = [{"ticketId": "Y-1", "url": "https://x/Y-1", "btsUrl": "https://x", "btsProject": "Y"}]
    issue = {
        "issueType": "ti001",
        "comment": "seen by hand",
        "ignoreAnalyzer": True,
        "externalSystemIssues": links,
    }
    portal.add(an_item(1, "a", issue=issue))
    pushed(portal, update(1))
    pushed(portal, update(1, words=format_comment("No: the fuse.")))
    assert portal.items[1]["issue"] == {
        "issueType": "pb001",
        "comment": "seen by hand\n\n---\n**Analysis:**\n\n" + format_comment("No: the fuse."),
        "autoAnalyzed": False,
        "ignoreAnalyzer": True,
        "externalSystemIssues": links,
    }


def test_words_of_a_caller_that_signs_nothing_are_not_repeated_either(portal: Portal) -> None:
    portal.add(an_item(1, "a"))
    for _ in range(2):
        pushed(portal, update(1, words="short"))
    assert portal.items[1]["issue"]["comment"] == "short"


def test_only_what_differs_is_sent(portal: Portal) -> None:
    portal.add(an_item(1, "a", issue={"issueType": "pb001", "comment": WORDS}))
    portal.add(an_item(2, "b", issue={"issueType": "ab001", "comment": WORDS}))
    found = pushed(portal, update(1), update(2))
    assert found.unchanged == (1,)
    assert [each["testItemId"] for each in portal.written] == [2]


def test_items_that_must_not_be_touched_are_left_alone(portal: Portal) -> None:
    portal.add(an_item(1, "other launch", launchId=5))
    portal.add(an_item(2, "passed", status="PASSED"))
    foreign = DefectUpdate(item_id=1, defect_type="pb001", comment=WORDS, launch_id="7001")
    found = pushed(portal, foreign, update(2), update(3), update(0), update(-4))
    assert found.changes == ()
    assert dict(found.refused) == {
        1: "it is of launch 5, not of 7001",
        2: "it passed",
        3: "ReportPortal does not have it",
        0: "it is not an item of ReportPortal",
        -4: "it is not an item of ReportPortal",
    }
    assert (found.unwritten, writes(portal)) == ((), 0)


def test_one_item_that_is_refused_does_not_stop_the_others(portal: Portal) -> None:
    portal.add(an_item(1, "a"))
    portal.add(an_item(2, "no issue", issue=None))
    portal.add(an_item(3, "c"))
    found = pushed(portal, *(update(number) for number in (1, 2, 3)))
    assert [each.item_id for each in found.changes] == [1, 3]
    assert [item_id for item_id, _ in found.refused] == [2]
    assert found.unwritten == (2,)
    assert "Items [2] have no issue" in found.refused[0][1]
    assert {each["testItemId"] for each in portal.written} == {1, 3}


@pytest.mark.parametrize("around", ["{}", "I doubt it.\n\n{}", "{}\r\n\r\nJo: agreed"])
def test_what_stands_there_already_is_not_said_again_whoever_says_it(
    portal: Portal, around: str
) -> None:
    issue = {"issueType": "pb001", "comment": around.format(WORDS)}
    portal.add(an_item(1, "a", issue=issue))
    found = pushed(portal, update(1, words=format_comment("The lamp is dark.", submitted_by="Ada")))
    assert (found.changes, found.unchanged, writes(portal)) == ((), (1,), 0)
    longer = update(1, words=format_comment("lamp is dark.", submitted_by="mo"))
    assert len(pushed(portal, longer, dry_run=True).changes) == 1


def test_an_item_that_the_server_chokes_on_does_not_stop_the_others(portal: Portal) -> None:
    for number in (1, 2, 3):
        portal.add(an_item(number, "t"))
    tries = 1 + len(DELAYS_S)
    portal.changes = lambda path: _choke(portal, tries) if path.endswith("/item/3") else None
    found = pushed(portal, *(update(number) for number in (1, 2, 3)))
    assert ([each.item_id for each in found.changes], found.unwritten) == ([2, 3], (1,))
    assert "it answered 500" in dict(found.refused)[1]


def _choke(portal: Portal, tries: int) -> None:
    """The bulk change and the first single one meet the fault."""
    portal.changes = lambda _: None
    portal.fault("500", "/harbour/item", times=2 * tries)


def test_a_server_that_is_down_is_given_up_and_what_was_written_is_told(portal: Portal) -> None:
    for number in range(1, 61):
        portal.add(an_item(number, "t"))
    portal.changes = lambda _: (
        portal.fault("500", "/harbour/item", times=999) if len(portal.written) == 50 else None
    )
    words = "does not accept the changes.*Before that, 50 of 60 items were changed: push again"
    with pytest.raises(PortalError, match=words):
        pushed(portal, *(update(number) for number in range(1, 61)))
    assert writes(portal) == 1 + 3 * (1 + len(DELAYS_S))


def test_a_token_that_may_only_look_is_told_so(portal: Portal) -> None:
    portal.add(an_item(1, "a"))
    portal.changes = lambda path: portal.fault("403") if path.endswith("/item/1") else None
    with pytest.raises(PortalError, match="is not allowed to change items in project harbour"):
        pushed(portal, update(1))


def test_a_name_cannot_pass_for_a_line_of_the_difference(portal: Portal) -> None:
    portal.add(an_item(1, "glows\n+ type nd001" + "!" * 300))
    (change,) = pushed(portal, update(1), dry_run=True).changes
    first, second, *_ = format_change(change)
    assert first.startswith("item 1: glows + type nd001!!!")
    assert (len(first), second) == (208, "- type ti001")


def test_a_project_that_has_none_of_the_items_is_the_wrong_one(portal: Portal) -> None:
    with pytest.raises(PortalError, match=r"none of these 2 items in project harbour: check"):
        pushed(portal, update(1), update(2), dry_run=True)
    portal.add(an_item(2, "b"))
    assert dict(pushed(portal, update(1), update(2)).refused) == {
        1: "ReportPortal does not have it"
    }


def test_many_items_go_in_chunks(portal: Portal) -> None:
    for number in range(1, 121):
        portal.add(an_item(number, "t"))
    assert len(pushed(portal, *(update(number) for number in range(1, 121))).changes) == 120
    assert writes(portal) == 3


def test_a_passing_fault_is_passed_and_a_refusal_stops(portal: Portal) -> None:
    portal.add(an_item(1, "a"))
    portal.fault("503", "item/1")
    portal.fault("403", "item", times=0)
    assert len(pushed(portal, update(1)).changes) == 1
    portal.fault("401", "item/1")
    with pytest.raises(PortalError, match="ASTERISK_RP_TOKEN"):
        pushed(portal, update(1))


def test_without_the_projects_types_our_codes_are_sent(portal: Portal) -> None:
    portal.add(an_item(1, "a"))
    portal.fault("403", "/project/")
    found = pushed(portal, update(1, "si001"))
    assert found.changes[0].after.issue_type == "si001"
    assert "cannot be read" in found.notes[0]


@pytest.mark.parametrize(
    ("code", "locator"),
    [
        ("pb001", "pb001"),
        ("au001", "ab001"),
        ("en001", "si_env"),
        ("fw001", "si_firm"),
        ("ib003", "si001"),
        ("ti001", "ti001"),
        ("zz001", ""),
    ],
)
def test_a_code_becomes_the_projects_own(code: str, locator: str) -> None:
    rows = [row for group in stock_types().values() for row in group]
    rows.append(a_type(20, "si_env", "EN", "SYSTEM_ISSUE", "Lab down"))
    rows.append(a_type(21, "si_firm", "F", "SYSTEM_ISSUE", "Firmware Issue"))
    assert DefectTypes(rows).find_locator(code) == locator


def test_a_code_the_project_has_nothing_for_is_refused(portal: Portal) -> None:
    portal.add(an_item(1, "a"))
    assert pushed(portal, update(1, "zz001")).refused == (
        (1, "the project has no defect type for zz001"),
    )
