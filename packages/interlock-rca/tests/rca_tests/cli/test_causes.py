"""causes and cause: what is known, what became of it, and what it means when it comes back."""

import pytest

from rca_tests.worlds.red_repository import KEY, junit
from tests.world.change import CHANGE
from tests.world.command_line import CliResult, World


@pytest.fixture
def known(world: World) -> World:
    """One failure, analysed and agreed to."""
    world.write("monday.xml", junit(KEY))
    assert world.say("analyze", "monday.xml").code == 4
    (review,) = world.say("inbox", "--json").json["reviews"]
    assert world.say("answer", str(review["question_ids"][0]), "approve").code == 0
    assert world.say("resume").code == 0
    return world


def test_nothing_is_known_at_first(world: World) -> None:
    world.write("crew.yaml", '"*": {draft: {crash: no}}')
    world.cases("one")
    world.say("run", CHANGE, "--cases", "cases.jsonl", "--agent", "script:crew.yaml")
    line = "no root cause is known yet; 'interlock analyze' finds some\n"
    assert world.say("causes") == CliResult(0, line, "")


def test_causes_are_listed_with_their_cases(known: World) -> None:
    (only,) = known.say("causes", "--json").json["causes"]
    assert (only["cases"], only["reviewed"], only["rca"]["status"]) == (1, 1, "open")
    assert "no total" in known.say("causes").out


def test_a_resolved_cause_that_comes_back_is_a_regression(known: World) -> None:
    result = known.say(
        "cause", "1", "resolved", "--ticket", "SHOP-1", "--link", "https://x.example/1"
    )
    assert (result.code, result.err) == (0, "")
    assert result.out.startswith("root cause 1 is resolved: ")
    assert "ticket SHOP-1" in result.out
    known.write("friday.xml", junit(KEY))
    assert known.say("analyze", "friday.xml", "--suite", "friday").code == 4
    found = known.say("report", "--json").json["summary"]
    assert (found["failures"], found["regressions"]) == (1, 1)
    story = known.say("explain", "C1").out
    assert "rule H3 -> F1_TRIAGE" in story, "what was resolved is looked at again"
    page = (known.folder / "interlock-report/friday/regression-report.md").read_text()
    assert "No regressions" not in page


def test_a_cause_only_becomes_what_can_follow(known: World) -> None:
    result = known.say("cause", "1", "verified")
    problem = "interlock: root cause 1 is open: next it can be resolved or archived\n"
    assert result == CliResult(1, "", problem)
    assert known.say("cause", "7", "resolved").code == 1
    assert known.say("cause", "7") == CliResult(
        2, "", "interlock: there is no root cause 7; 'interlock causes' lists them\n"
    )
    assert known.say("cause", "1", "--ticket", "A", "--link", "javascript:x").code == 2
    assert known.say("cause", "1", "gone").code == 2
    assert known.say("causes", "--json").json["causes"][0]["rca"]["status"] == "open"
