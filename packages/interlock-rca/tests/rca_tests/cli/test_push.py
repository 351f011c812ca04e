"""push: ReportPortal is told what was reviewed, once, and nothing else. A real server listens."""

from collections.abc import Iterator
from typing import Any

import pytest

from rca_tests.worlds.red_repository import KEY, junit
from rca_tests.worlds.reportportal import (
    LAUNCH_ID,
    LAUNCH_UUID,
    PROJECT,
    TOKEN,
    Portal,
    a_portal,
    an_item,
)
from tests.world.command_line import CliResult, World

CODE = """\
Traceback (most recent call last):
  File "shop/test_cart.py", line 12, in test_total
    assert total(cart) == 12
  File "shop/cart.py", line 7, in total
    return cart["total"]
KeyError: 'total'
"""
FAMILY = (501, 502)
PUSH = ("push", "--by", "Ada")


@pytest.fixture
def portal(monkeypatch: pytest.MonkeyPatch) -> Iterator[Portal]:
    with a_portal() as running:
        monkeypatch.setenv("ASTERISK_RP_URL", running.url)
        monkeypatch.setenv("ASTERISK_RP_PROJECT", PROJECT)
        monkeypatch.setenv("ASTERISK_RP_API_KEY", TOKEN)
        running.add(an_item(501, "one"), ("ERROR", CODE))
        running.add(an_item(502, "two"), ("ERROR", CODE))
        running.add(an_item(503, "pays"), ("ERROR", "TypeError: a card is no number"))
        running.add(an_item(900, "of others", launchId=1), ("ERROR", CODE))
        yield running


@pytest.fixture
def analysed(world: World, portal: Portal) -> World:
    """Three items of a launch; all wait for review."""
    key = world.write("rp.key", TOKEN)
    key.chmod(0o600)
    assert world.say("analyze", f"rp:{LAUNCH_ID}", "--rp-key", "rp.key").code == 4
    return world


def review(world: World, item: int, *words: str) -> None:
    """Answer the review of that item's whole family, and go on."""
    reviews = world.say("inbox", "--json").json["reviews"]
    case = f"C{item - 500}"
    (numbers,) = [each["question_ids"] for each in reviews if case in each["case_ids"]]
    assert world.say("answer", str(numbers[0]), *words).code == 0
    world.say("resume")


def pushed(world: World, *words: str) -> dict[str, Any]:
    result = world.say(*PUSH, "--rp-key", "rp.key", "--json", *words)
    assert result.code == 0, result.err
    return dict(result.json)


def writes(portal: Portal) -> list[str]:
    return [each for each in portal.requests if not each.startswith("GET ")]


def test_nothing_is_pushed_before_its_review(analysed: World, portal: Portal) -> None:
    result = analysed.say(*PUSH, "--send", "--rp-key", "rp.key")
    problem = (
        "interlock: suite 1 has nothing to push: 3 not reviewed; "
        "'interlock inbox' shows what waits for review\n"
    )
    assert result == CliResult(1, "", problem)
    assert (writes(portal), portal.written) == ([], [])


def test_only_the_reviewed_family_is_pushed_and_only_when_told_so(
    analysed: World, portal: Portal
) -> None:
    review(analysed, 501, "approve")
    dry = pushed(analysed)
    assert dry["dry_run"]
    assert dry["left_out"] == {"not reviewed": 1}
    assert [change["item_id"] for change in dry["changes"]] == [*FAMILY]
    assert (writes(portal), portal.written) == ([], [])
    assert [change["after"]["issue_type"] for change in dry["changes"]] == [
        change["after"]["issue_type"] for change in pushed(analysed, "--dry-run")["changes"]
    ]

    sent = pushed(analysed, "--send")
    assert sent["changes"] == dry["changes"]
    assert sorted(each["testItemId"] for each in portal.written) == [*FAMILY]
    assert all("Ada" in each["issue"]["comment"] for each in portal.written)
    assert portal.items[503]["issue"]["issueType"] == "ti001"
    assert "comment" not in portal.items[900]["issue"]


def test_pushing_twice_changes_nothing(analysed: World, portal: Portal) -> None:
    review(analysed, 501, "approve")
    pushed(analysed, "--send")
    before, items = writes(portal), str(portal.items)
    again = pushed(analysed, "--send")
    assert (again["changes"], again["unchanged"]) == ([], [*FAMILY])
    assert (writes(portal), str(portal.items)) == (before, items)
    output = analysed.say(*PUSH, "--rp-key", "rp.key").out
    assert output.endswith(
        "0 items would change, 2 items are as they should be; --send writes it\n"
    )


def test_each_item_gets_its_own_type(analysed: World, portal: Portal) -> None:
    review(analysed, 501, "approve")
    override = '{defect_type: ab001, rca_message: "the test reads the old name"}'
    review(analysed, 503, "overturn", "--set", f"human_override={override}")
    pushed(analysed, "--send")
    assert portal.items[503]["issue"]["issueType"] == "ab001"
    assert "the test reads the old name" in portal.items[503]["issue"]["comment"]
    assert "the test reads the old name" not in portal.items[501]["issue"]["comment"]


def test_an_item_that_went_to_another_launch_is_left_alone(analysed: World, portal: Portal) -> None:
    review(analysed, 501, "approve")
    portal.items[501]["launchId"] = 1
    found = pushed(analysed, "--send")
    assert found["refused"] == [[501, f"it is of launch 1, not of {LAUNCH_ID}"]]
    assert [each["testItemId"] for each in portal.written] == [502]
    del portal.items[502]
    assert [number for number, _ in pushed(analysed, "--send")["refused"]] == [501, 502]


def test_who_the_token_is_says_so_unless_told_otherwise(
    analysed: World, portal: Portal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ASTERISK_USER", raising=False)
    review(analysed, 501, "approve")
    assert "submitted by Mo Example (via" in analysed.say("push").out
    portal.fault("404", "/users", times=2)
    assert "submitted by Mo Example (via" not in analysed.say("push").out
    monkeypatch.setenv("ASTERISK_USER", "Bo")
    assert "submitted by Bo (via" in analysed.say("push").out


def test_an_item_that_is_not_taken_makes_the_push_fail(analysed: World, portal: Portal) -> None:
    review(analysed, 501, "approve")
    portal.items[502]["issue"] = None
    result = analysed.say(*PUSH, "--send")
    assert result.code == 1
    assert "item 502 was left alone: ReportPortal refuses the changes (400)" in result.out
    assert result.out.endswith(
        "1 item changed, 0 items are as they should be, 1 item was not written\n"
    )
    assert analysed.say(*PUSH).code == 0


def test_a_launch_is_one_suite_however_it_is_named(analysed: World, portal: Portal) -> None:
    page = f"{portal.url}/ui/#{PROJECT}/launches/all/{LAUNCH_ID}"
    for word in (f"rp:{LAUNCH_UUID}", f"rp:{PROJECT}/{LAUNCH_ID}", page, f"{page}/501/log?x=1"):
        result = analysed.say("analyze", word)
        assert f"suite 1 (rp:{LAUNCH_ID}) goes on with 0 new failures\n" in result.err


def test_without_an_address_the_findings_go_where_the_launch_came_from(
    world: World, portal: Portal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ASTERISK_RP_URL")
    monkeypatch.delenv("ASTERISK_RP_PROJECT")
    page = f"{portal.url}/ui/#{PROJECT}/launches/all/{LAUNCH_ID}"
    assert world.say("analyze", page).code == 4
    review(world, 501, "approve")
    result = world.say(*PUSH, "--send")
    assert (result.code, result.err) == (0, "")
    assert {each["testItemId"] for each in portal.written} == {*FAMILY}


@pytest.mark.parametrize(("kind", "word"), [("401", "401"), ("403", "403"), ("page", "")])
def test_a_server_that_refuses_is_told_plainly(
    analysed: World, portal: Portal, kind: str, word: str
) -> None:
    review(analysed, 501, "approve")
    portal.fault(kind, times=20)
    result = analysed.say(*PUSH, "--send", "--rp-key", "rp.key")
    assert (result.code, result.out) == (2, "")
    assert word in result.err
    assert TOKEN not in result.err
    assert result.err.count("\n") == 1
    assert portal.written == []


@pytest.mark.parametrize("kind", ["broken", "403"])
def test_what_was_cut_off_in_the_middle_is_finished_by_the_next_push(
    analysed: World, portal: Portal, kind: str
) -> None:
    """The fault meets the write: it was carried out and the reply got lost, or it was not."""
    review(analysed, 501, "approve")
    portal.changes = lambda path: _break(portal, kind) if path.endswith("/item/502") else None
    cut = analysed.say(*PUSH, "--send", "--rp-key", "rp.key")
    assert "Traceback" not in cut.err
    assert bool(portal.written) == (kind == "broken")
    portal.changes = lambda _path: None
    found = pushed(analysed, "--send")
    assert len(found["changes"]) + len(found["unchanged"]) == 2
    assert {item for item in FAMILY if "comment" in portal.items[item]["issue"]} == {*FAMILY}
    again = pushed(analysed, "--send")
    assert (again["changes"], again["unchanged"]) == ([], [*FAMILY])


def _break(portal: Portal, kind: str) -> None:
    portal.changes = lambda _path: None
    portal.fault(kind, part=f"/{PROJECT}/item", times=1)


def test_a_suite_that_is_not_of_reportportal(world: World, portal: Portal) -> None:
    world.write("red.xml", junit(KEY))
    assert world.say("analyze", "red.xml", "--review", "auto", "--review-above", "0").code in (0, 4)
    for question in world.say("inbox", "--json").json["questions"]:
        world.say("answer", str(question["question_id"]), "approve")
    world.say("analyze", "red.xml")
    result = world.say(*PUSH, "--send")
    problem = "interlock: suite 1 has nothing to push: 1 not from ReportPortal\n"
    assert result == CliResult(1, "", problem)
    assert world.say("push", "9").err == (
        "interlock: there is no suite 9; 'interlock analyze SOURCE' makes one\n"
    )
    assert portal.requests == []
