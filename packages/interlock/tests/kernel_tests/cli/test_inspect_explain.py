"""explain and replay, against what was worked out by hand."""

import pytest

from tests.world import triage
from tests.world.command_line import CliResult, World

B_IN_FULL = """\
case B of run 1, circuit triage v3

look, attempt 1: dispatch 2 to scout at TIME
  came back: artifact {"confidence":0.6}
  read confidence = 0.6
  read sure = 0.7
  passed over sure: not confidence >= sure
  added before = 0.6
  rule look-again -> look (One more look.)

look, attempt 2: dispatch 5 to scout at TIME
  refused (Stale): Dispatch 5 is not open: it is settled, or never was.
  came back: artifact {"confidence":0.8}
  read confidence = 0.8
  read sure = 0.7
  rule sure -> kept when confidence >= sure (Sure enough.)
ended: kept
"""
C_LAST = """\
  passed over sure: not confidence >= sure
  passed over look-again: loop more is spent (1)
  rule unsure -> dropped (Two looks were not enough.)
ended: dropped
"""
D_IN_FULL = """\
case D of run 1, circuit triage v3

look, attempt 1: dispatch 4 to scout at TIME
  came back: crash {"reason":"exit code 1"}
  rule failed -> dropped (No answer.)
ended: dropped
"""
LOWER = """\
run 1 decided again with sure=0.6
CASE  AT      WAS                WOULD BE      DISPATCHES  END
B     look#1  look-again -> look  sure -> kept  -1          kept -> kept
C     look#2  unsure -> dropped   sure -> kept  +0          dropped -> kept
2 of 4 cases go another way; 6 dispatches before, 5 after
"""
HIGHER = """\
run 1 decided again with sure=0.95
CASE  AT      WAS           WOULD BE            DISPATCHES  END
A     look#1  sure -> kept  look-again -> look  +1 or more  kept -> look
B     look#2  sure -> kept  unsure -> dropped   +0          kept -> dropped
2 of 4 cases go another way; 6 dispatches before, 7 after
1 of them needs answers that were never given: 7 is a lower bound
"""


def test_explain_tells_the_life_of_a_case(world: World) -> None:
    triage.done(world)
    assert world.say("explain", "B") == (0, B_IN_FULL, "")
    assert world.say("explain", "C").out.endswith(C_LAST)
    assert world.say("explain", "D") == (0, D_IN_FULL, "")


def test_explain_shows_prompts_when_asked(world: World) -> None:
    triage.done(world)
    result = world.say("explain", "D", "--prompts", "--run", "1")
    visible = D_IN_FULL.replace("TIME\n", "TIME\n  prompt:\n  | Look at the D.\n")
    assert result == (0, visible, "")


def test_explain_as_json(world: World) -> None:
    triage.done(world)
    life = world.say("explain", "B", "--json").json
    dispatches = life.pop("dispatches")
    assert life == {
        "case_id": "B",
        "run_id": 1,
        "circuit": "triage",
        "status": "ended",
        "step": "look",
        "moves": 2,
        "end": "kept",
        "reason": "",
        "loops": {"more": 1},
        "visits": {"look": 2},
        "stack": [],
        "context": {"before": 0.6},
    }
    assert [each["answer"] for each in dispatches] == [{"confidence": 0.6}, {"confidence": 0.8}]
    assert [each["prompt"] for each in dispatches] == ["Look at the B."] * 2
    assert dispatches[0]["refused"] == []
    refused = dispatches[1]["refused"][0]
    assert (refused["reason"], refused["content"]) == ("Stale", '{"confidence":0.8}')
    decision = dispatches[0]["decision"]
    assert decision["read"] == {"confidence": 0.6, "sure": 0.7}
    assert decision["passed"] == [
        {"rule": "sure", "why": "false", "because": "not confidence >= sure"}
    ]
    assert (decision["rule"], decision["why"]) == ("look-again", "One more look.")


def test_explain_of_a_case_that_is_not_there(world: World) -> None:
    triage.done(world)
    missing = "interlock: there is no case 'Z' in any run; see 'interlock status'\n"
    assert world.say("explain", "Z") == (1, "", missing)
    other = "interlock: there is no case 'A' in run 7; see 'interlock status'\n"
    assert world.say("explain", "A", "--run", "7", "--json") == (1, "", other)


def test_explain_takes_the_newest_run_that_has_the_case(world: World) -> None:
    triage.done(world)
    world.say(*triage.RUN, "--parallel", "1")
    assert world.say("explain", "A").out.startswith("case A of run 2,")
    assert world.say("explain", "A", "--run", "1").out.startswith("case A of run 1,")


@pytest.mark.parametrize(("value", "text"), [("0.6", LOWER), ("0.95", HIGHER)])
def test_replay_says_which_cases_go_another_way(world: World, value: str, text: str) -> None:
    triage.done(world)
    assert world.say("replay", "1", "--set", f"sure={value}") == (0, _aligned(text), "")


def test_replay_with_nothing_changed_finds_nothing(world: World) -> None:
    triage.done(world)
    assert world.say("replay") == CliResult(
        0,
        "run 1 decided again with nothing changed\n"
        "0 of 4 cases go another way; 6 dispatches before, 6 after\n",
        "",
    )


def test_replay_as_json_and_of_one_case(world: World) -> None:
    triage.done(world)
    found = world.say("replay", "--set", "sure=0.95", "--case", "A", "--json").json
    assert found == {
        "run_id": 1,
        "set": {"sure": 0.95},
        "cases": 1,
        "changed": [
            {
                "case_id": "A",
                "turn": {
                    "step": "look",
                    "attempt": 1,
                    "rule_before": "sure",
                    "rule_after": "look-again",
                    "to_before": "kept",
                    "to_after": "look",
                    "read": {"confidence": 0.9, "sure": 0.95},
                },
                "dispatches_before": 1,
                "dispatches_after": 2,
                "path_before": ["look"],
                "path_after": ["look", "look"],
                "end_before": "kept",
                "end_after": "look",
                "lacks": "look",
            }
        ],
        "dispatches_before": 1,
        "dispatches_after": 2,
        "exact": False,
    }


@pytest.mark.parametrize(
    ("word", "problem"),
    [
        ("sure", "--set 'sure': write --set name=value"),
        ("sore=1", "triage has no threshold 'sore'; it has sure, patience"),
        ("sure=high", "threshold sure is a number (0.7), not 'high'"),
        ("sure=true", "threshold sure is a number (0.7), not True"),
        ("patience=3", "threshold patience is a text (short), not 3"),
        ("sure=[1]", "--set takes a plain value, not '[1]'"),
        ("sure=]", "--set takes a plain value, not ']': did not find"),
    ],
)
def test_replay_refuses_other_words(world: World, word: str, problem: str) -> None:
    triage.done(world)
    result = world.say("replay", "--set", word, "--json")
    assert (result.code, result.out) == (2, "")
    assert result.err.startswith(f"interlock: {problem}")


def _aligned(text: str) -> str:
    """The expected table with its second and third columns as wide as their widest cell."""
    return text.replace("WAS                WOULD", "WAS                 WOULD")


def test_what_a_command_left_running_is_told(world: World) -> None:
    triage.lay_out(world)
    world.cases("A")
    agent = "setsid sleep 300 > /dev/null 2>&1 &\necho '{\"confidence\": 0.9}'\n"
    world.write("agent.sh", f"#!/bin/sh\n{agent}").chmod(0o755)
    run = ("run", "triage", "--cases", "cases.jsonl", "--agent", "exec:./agent.sh")
    assert world.say(*run).code == 0
    assert "note: 1 process had to be ended with it" in world.say("explain", "A").out
