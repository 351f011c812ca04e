"""Words that carry more than a text: refused with what to write, before anything is touched."""

import pytest

from interlock.cli.options import parse_counts, parse_pairs
from tests.world import triage
from tests.world.change import CHANGE
from tests.world.command_line import CliResult, World

BEHIND = "'role.ROLE.' or 'day.'"
WRONG = [
    (("--set", "sure"), "--set 'sure': write --set name=value"),
    (("--set", "="), "--set '=': write --set name=value"),
    (("--set", "sore=1"), "triage has no threshold 'sore'; it has sure, patience"),
    (("--set", "sure=.nan"), "threshold sure is a number (0.7), not '.nan'"),
    (("--slots", "scout"), "--slots 'scout': write --slots name=value"),
    (("--slots", "scout=many"), "--slots scout=many: 'many' is not a whole number"),
    (("--slots", "scout=0"), "slots scout=0: give at least 1 to one of human, scout"),
    (("--slots", "pilot=1"), "slots pilot=1: give at least 1 to one of human, scout"),
    (("--budget", "time"), "--budget 'time': write --budget name=value"),
    (("--budget", "time=soon"), "budget time=soon: 'soon' is not an amount; write time=2h"),
    (
        ("--budget", "beer=6"),
        "budget 'beer' is unknown; use dispatches, tokens, money or time, alone or after " + BEHIND,
    ),
    (
        ("--budget", "role.pilot.tokens=6"),
        "budget role.pilot.tokens: no step has the role 'pilot'; roles are scout",
    ),
    (("--budget", "money=nan"), "budget money=nan: 'nan' is not an amount; write money=2.50"),
    (("--budget", "money=-1"), "budget money=-1: '-1' is not an amount; write money=2.50"),
    (
        ("--budget", "dispatches=1.5"),
        "budget dispatches=1.5: '1.5' is not an amount; write dispatches=100",
    ),
    (("--agent", "pilot=script:scout.yaml"), "no step has the role 'pilot'; roles are scout"),
    (
        ("--agent", "scout=gpt:4"),
        (
            "'gpt:4' names no agent; use exec:COMMAND, acp:COMMAND, script:FILE or a name that "
            "'interlock agents' lists"
        ),
    ),
    (
        ("--agent", "exec:"),
        "exec: there is no command '' to run",
    ),
    (("--agent", "basic"), "the built-in analyst answers only for rca, not for triage"),
    (("--agent", "exec:nobody"), "exec:nobody: there is no command 'nobody' to run"),
    (("--agent", "exec:'nobody"), "exec:'nobody: No closing quotation"),
    (("--agent", "script:no.yaml"), "no.yaml cannot be read: No such file or directory"),
]


@pytest.mark.parametrize(("words", "problem"), WRONG)
def test_a_word_that_is_wrong_stops_before_anything_begins(
    world: World, words: tuple[str, ...], problem: str
) -> None:
    triage.lay_out(world)
    assert world.say(*triage.RUN, *words, "--json") == CliResult(2, "", f"interlock: {problem}\n")
    assert not world.db.parent.exists()


def test_roles_without_an_agent_are_named(world: World) -> None:
    triage.lay_out(world)
    result = world.say("run", CHANGE, "--cases", "cases.jsonl", "--agent", "author=exec:true")
    assert result == CliResult(
        2,
        "",
        "interlock: no agent is named for critic, publisher; use "
        "--agent critic=exec:COMMAND or --agent critic=script:FILE, "
        "or --dispatch file, batch-file, manual or mcp for all roles without an agent\n",
    )
    assert not world.db.parent.exists()


def test_a_command_that_is_there_but_may_not_run(world: World) -> None:
    triage.lay_out(world).write("agent.sh", "#!/bin/sh\necho {}\n")
    words = triage.RUN[:-1]
    assert world.say(*words, "exec:./agent.sh --fast") == CliResult(
        2,
        "",
        "interlock: exec:./agent.sh --fast: './agent.sh' may not be executed; chmod +x it, "
        "or name its interpreter first\n",
    )
    near = "interlock: exec:agent.sh: there is no command 'agent.sh' to run; did you mean "
    assert world.say(*words, "exec:agent.sh") == CliResult(2, "", f"{near}'./agent.sh'?\n")


def test_words_that_are_right() -> None:
    assert parse_pairs(["a=1", "b = x=y "], "--set") == {"a": "1", "b": "x=y"}
    assert parse_counts(["a=3"], "--slots") == {"a": 3}


@pytest.mark.parametrize(
    ("limit", "code"),
    [("dispatches=0", 5), ("tokens=5", 5), ("money=0.25", 5), ("time=1000d", 3)],
)
def test_each_limit_of_the_budget_stops_the_run(world: World, limit: str, code: int) -> None:
    triage.lay_out(world)
    result = world.say(*triage.RUN, "--parallel", "1", "--budget", limit)
    assert result.code == code
    spent = world.say("runs", "--json").json["runs"][0]["spent"]["dispatches"]
    assert spent == {"dispatches=0": 0, "tokens=5": 1, "money=0.25": 1, "time=1000d": 6}[limit]
