"""Agents over the Agent Client Protocol at the command line: run, inbox, answer, settings."""

import getpass
import json
import sys
from pathlib import Path

import pytest

from interlock.carriers.cli.ownership import TAGS
from interlock.carriers.registry import workspace_id
from interlock.system.process_table import list_processes
from tests.docs.commands import find_unprinted
from tests.soak import again
from tests.world.acp_agents import GOOD
from tests.world.command_line import CliResult, World, ended, until

CIRCUIT = """\
circuit: one
start: work
ends: {done: healthy, failed: unhealthy}
steps:
  work: {role: worker, timeout: 60s}
rules:
  - {id: worked, at: work, to: done}
otherwise: failed
"""
WISH = json.dumps({"kind": "execute", "title": "make\x1b[2J test", "rawInput": {"cmd": "make"}})


def set_up(world: World, scene: str, settings: str = "") -> tuple[str, ...]:
    """The words of a run of one case by an agent of that scene."""
    world.write("one.yaml", CIRCUIT)
    world.cases("A")
    world.write("interlock.toml", f"[acp]\nenv = {{WISH = {json.dumps(WISH)}}}\n{settings}")
    return (
        "run",
        "./one.yaml",
        "--cases",
        "cases.jsonl",
        "--agent",
        f"acp:{sys.executable} {GOOD} {scene}",
    )


def answer_of(world: World) -> object:
    (case,) = world.say("explain", "A", "--json").json["dispatches"]
    return case["answer"]


def test_a_run_by_an_agent(world: World) -> None:
    assert world.say(*set_up(world, "answers")) == CliResult(
        0, "run 1: done; 1 done; 1 dispatch\n", ""
    )
    assert answer_of(world) == {"n": 1}
    work = world.folder / ".interlock" / "interlock.db.agents" / "1" / "1" / "work" / "work"
    assert work.is_dir()


@pytest.mark.parametrize(("decision", "option"), [("allow", "yes"), again("reject", "no")])
def test_a_human_gives_leave_while_the_run_works(world: World, decision: str, option: str) -> None:
    process = world.start(*set_up(world, "asks"))
    until(lambda: world.db.exists() and "May it" in world.say("inbox").out, "a question")
    listed = world.say("inbox").out
    assert "1.1  1    A     work  TIME  May it execute: make\\x1b[2J test " in listed
    assert find_unprinted("docs/howto/drive-over-acp.md", listed.replace("\\x1b[2J", "")) == []
    (query,) = world.say("inbox", "--json").json["questions"]
    assert (query["options"], query["kind"]) == (["allow", "reject"], "permission")
    assert "\nanswers: allow, reject\n" in world.say("inbox", "1.1").out
    until(lambda: "waiting-for-permission" in world.say("status").out, "how it stands")
    wrong = "interlock: question 1.1 takes allow, reject, not 'yes'\n"
    assert world.say("answer", "1.1", "yes") == CliResult(2, "", wrong)
    saved = "saved the answer to question 1.1; the agent that asked gets it\n"
    assert world.say("answer", "1.1", decision, "--by", "Ada") == CliResult(0, saved, "")
    assert ended(process).code == 0
    assert answer_of(world) == {"chosen": option}
    assert world.say("inbox") == CliResult(0, "nothing waits for a human\n", "")
    late = (
        "interlock: question 1.1 is answered already by Ada; the answer changes nothing, "
        "and is kept as refused\n"
    )
    assert world.say("answer", "1.1", "allow") == CliResult(1, "", late)
    refused = "refused (Stale): Question 1.1 is answered already by Ada."
    assert refused in world.say("explain", "A").out
    assert "note: it asked for a permission: execute: make" in world.say("explain", "A").out


def test_a_project_says_what_is_allowed_unasked(world: World) -> None:
    words = set_up(world, "asks", '[acp.permissions]\nexecute = "allow"\n')
    assert world.say(*words).code == 0
    assert answer_of(world) == {"chosen": "yes"}


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        (
            '[acp.permissions]\nexecute = "alow"',
            "interlock.toml: Invalid enum value 'alow' - at `$.acp.permissions.execute`",
        ),
        (
            '[acp.permissions]\nexec = "allow"',
            "interlock.toml: Object contains unknown field `exec` - at `$.acp.permissions`",
        ),
        (
            'files = "all"',
            "interlock.toml: Invalid enum value 'all' - at `$.acp.files`",
        ),
        (
            'permission_timeout = "soon"',
            "interlock.toml: [acp] 'soon' is not a duration; write 90s, 10m, 2h or 7d",
        ),
        (
            "clocks = {noon = 1}",
            "[acp] clocks: use only after_result, first_byte, grace, silence, tool, wall",
        ),
    ],
)
def test_settings_that_are_none(world: World, settings: str, problem: str) -> None:
    result = world.say(*set_up(world, "answers", settings))
    assert result == CliResult(2, "", f"interlock: {problem}\n")
    assert not Path(world.db).exists()


def test_an_agent_that_fails_is_told_in_the_journal(world: World) -> None:
    assert world.say(*set_up(world, "stops_refusal")).code == 3
    assert "the agent refused to answer" in world.say("explain", "A").out


def test_killed_with_a_question_open_it_goes_on_with_another(world: World) -> None:
    words = set_up(world, "asks")
    process = world.start(*words)
    until(lambda: world.db.exists() and "May it" in world.say("inbox").out, "a question")
    (agent,) = tagged(world)
    process.kill()
    ended(process)
    world.say("answer", "1.1", "allow")

    process = world.start("resume")
    until(lambda: "1.2 " in world.say("inbox").out, "the question of the next agent")
    until(lambda: agent not in tagged(world), "the end of the agent that was left")
    assert world.say("answer", "1.2", "reject").code == 0
    assert ended(process).code == 0
    assert answer_of(world) == {"chosen": "no"}
    assert tagged(world) == []


def tagged(world: World) -> list[int]:
    """Agents of this workspace that are alive."""
    mark = f"{workspace_id(world.db)}:1:1:"
    found = list_processes(TAGS).items()
    return [pid for pid, seen in found if seen.alive and any(t.startswith(mark) for t in seen.tags)]


def test_leave_is_given_by_those_who_may(world: World) -> None:
    """In one's own name; the run looks at whose file it is, whatever `answer` let pass."""
    me = getpass.getuser()
    inbox = f'[inbox]\nstep.permission = ["ann", "{me}"]\n'
    notify = '[notify]\ncommand = ["tee", "-a", "told"]\n'
    process = world.start(*set_up(world, "asks", inbox + notify))
    until(lambda: world.db.exists() and "May it" in world.say("inbox").out, "a question")
    result = world.say("answer", "1.1", "allow", "--by", "ann")
    assert (result.code, f"{me} may not answer in the name of ann" in result.err) == (1, True)
    world.write("interlock.toml", "")
    assert world.say("answer", "1.1", "allow", "--by", "ann").code == 0
    until(lambda: "refused (WrongRole)" in world.say("explain", "A").out, "the run refuses it")
    assert "May it" in world.say("inbox").out, "it is open again"
    assert world.say("answer", "1.1", "allow").code == 0
    output = ended(process)
    assert output.code == 0
    assert "interlock answer 1.1 allow|reject" in output.err
    assert answer_of(world) == {"chosen": "yes"}
    assert '"event":"query"' in (world.folder / "told").read_text().replace(" ", "")
