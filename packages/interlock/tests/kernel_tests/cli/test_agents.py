"""The verbs agents and agents probe, and an agent CLI in a run, from outside."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from interlock.carriers.cli.profiles import PROFILE_NAMES
from tests.world.cli_agent import FakeCli, say
from tests.world.command_line import World, ended, until
from tests.world.streams import Claude, Cursor

HELP = """Options: -p --output-format --verbose --resume --model <m>, --max-budget-usd <n>
  --allowedTools, --add-dir --permission-mode"""
CIRCUIT = """
circuit: try
start: work
ends: {done: healthy, dropped: unhealthy}
steps:
  work:
    role: worker
    answer: {type: object, properties: {n: {type: integer}}, required: [n]}
rules:
  - {id: good, at: work, to: done}
otherwise: dropped
"""


def program(world: World, name: str, version: str, text: str) -> dict[str, str]:
    """A program that tells its version and its help, on a PATH of its own."""
    path = world.write(
        f"bin/{name}",
        f'#!/bin/sh\nif [ "$1" = --version ]; then echo "{version}"; else echo "{text}"; fi\n',
    )
    path.chmod(0o755)
    return {"PATH": f"{path.parent}:/usr/bin:/bin", "HOME": str(world.folder)}


def agents(outcome: Any) -> dict[str, Any]:
    return {each["name"]: each for each in outcome.json["agents"]}


def test_what_is_installed(world: World) -> None:
    env = program(world, "claude", "2.1.197 (Claude Code)", "")
    outcome = world.type("agents", env={**env, "ANTHROPIC_API_KEY": "secret"})
    assert (outcome.code, outcome.err) == (0, "")
    lines = outcome.out.splitlines()
    assert lines[0].split() == ["AGENT", "VERSION", "LOGIN", "MODE", "PROGRAM"]
    known = len(PROFILE_NAMES) + 1
    assert [line.split()[0] for line in lines[1:known]] == list(PROFILE_NAMES)
    assert [line.split()[:3] for line in lines[known:]] == [
        ["ENDPOINT", "DIALECT", "KEY"],
        ["openai", "openai", "OPENAI_API_KEY:"],
        ["anthropic", "anthropic", "ANTHROPIC_API_KEY"],
    ]
    assert "2.1.197  ANTHROPIC_API_KEY" in lines[1]
    assert lines[2].endswith("not installed")
    assert "secret" not in outcome.out


def test_what_is_installed_as_json(world: World) -> None:
    env = program(world, "agent", "no number", "")
    found = agents(world.type("agents", "--json", env=env))
    assert found["cursor"] == {
        "name": "cursor",
        "title": "Cursor CLI",
        "program": str(world.folder / "bin" / "agent"),
        "version": "",
        "login": "",
        "permission_mode": "propose",
        "means": "reads; proposes changes without making them",
        "skips_permissions": False,
        "resumes": True,
    }
    assert found["claude"]["program"] == ""


def test_what_a_user_dared_is_said(world: World) -> None:
    world.write("interlock.toml", '[agent.codex]\npermission_mode = "danger-full-access"\n')
    outcome = world.say("agents")
    assert "codex asks for no permission, because interlock.toml says so" in outcome.out
    assert agents(world.say("agents", "--json"))["codex"]["skips_permissions"] is True


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[agent.claud]\n", "[agent.claud] names no agent; use claude, codex"),
        ("[agent.claude]\nmodle = 'x'\n", "[agent.claude]: Object contains unknown field"),
        ("agent = 3\n", "Expected `object`"),
    ],
)
def test_settings_that_are_wrong(world: World, text: str, words: str) -> None:
    world.write("interlock.toml", text)
    outcome = world.say("agents")
    assert outcome.code == 2
    assert words in outcome.err


def test_probe_finds_what_is_known(world: World) -> None:
    env = program(world, "claude", "2.1.197", HELP)
    outcome = world.type("agents", "probe", "claude", env=env)
    assert outcome.code == 0, outcome
    assert "ok    agent.version: version 2.1.197" in outcome.out
    assert "ok    agent.flags: its help mentions all 9 flags that Interlock uses" in outcome.out


def test_probe_finds_what_is_missing(world: World) -> None:
    env = program(world, "claude", "none", HELP.replace("--verbose", ""))
    outcome = world.type("agents", "probe", "claude", "--json", env=env)
    assert outcome.code == 6
    assert not outcome.json["ok"]
    assert [(each["id"], each["message"]) for each in outcome.json["checks"]] == [
        ("agent.version", "it does not report a version"),
        ("agent.flag", "its help does not mention --verbose"),
    ]


def test_probe_of_what_is_not_installed(world: World) -> None:
    outcome = world.type("agents", "probe", "aider", env={"PATH": "/usr/bin:/bin"})
    assert outcome.code == 6
    assert "BAD   agent.installed: there is no command aider; install Aider" in outcome.out


def test_probe_of_nobody(world: World) -> None:
    outcome = world.say("agents", "probe", "gpt")
    assert (outcome.code, outcome.out) == (2, "")
    assert "'gpt' is not a known agent CLI; use one of claude, codex" in outcome.err


def hired(world: World, *scenes: Any) -> FakeCli:
    fake = FakeCli(world.folder / "cli", *scenes)
    world.write("try.yaml", CIRCUIT)
    world.cases("C1")
    world.write("interlock.toml", f'[agent.claude]\ncommand = "{fake.program}"\n')
    return fake


def test_a_run_with_an_agent_cli(world: World) -> None:
    fake = hired(world, say(Claude.init(), Claude.result('{"n": 1}', total_cost_usd=0.25)))
    outcome = world.type("run", "try.yaml", "--cases", "cases.jsonl", "--agent", "claude:opus")
    assert outcome.code == 0, outcome
    assert fake.calls()[0]["argv"][-4:-2] == ["--model", "opus"]
    assert world.say("status", "--json").json["spent"]["money"] == 0.25
    papers = world.folder / ".interlock" / "interlock.db.agents" / "1" / "1" / "work"
    assert json.loads((papers / "claude-1.json").read_text())["failure"] == ""


def test_what_was_odd_about_an_agent_that_answered_is_explained(world: World) -> None:
    """It asked for a permission, went on without one, and did not exit after its answer."""
    asks = {"type": "interaction_query", "subtype": "request", "query_type": "shell"}
    scene = [*say(Claude.init(), asks, Claude.text_event('{"n": 1}'), Cursor.result('{"n": 1}'))]
    hired(world, [*scene, ("hang", 0)])
    command = world.folder / "cli" / "agent"
    clock = "clocks = {after_result = 0.2}"
    world.write("interlock.toml", f'[agent.cursor]\ncommand = "{command}"\n{clock}\n')
    result = world.type("run", "try.yaml", "--cases", "cases.jsonl", "--agent", "cursor")
    assert result.code == 0, result
    notes = [
        line.strip() for line in world.say("explain", "C1").out.splitlines() if "note:" in line
    ]
    assert notes == [
        "note: it asked for a permission: cursor asks for an approval",
        "note: it did not exit after its result and was killed",
    ]


def test_an_agent_that_is_not_installed_stops_before_anything_begins(world: World) -> None:
    world.write("try.yaml", CIRCUIT)
    world.cases("C1")
    words = ("run", "try.yaml", "--cases", "cases.jsonl", "--agent", "codex")
    outcome = world.type(*words, env={"PATH": "/usr/bin:/bin"})
    assert outcome.code == 2
    assert "Codex CLI is not installed: there is no command codex" in outcome.err
    assert not world.db.exists()


def has_gone(running: "subprocess.Popen[str]") -> bool:
    """Asks once more, if it is still there."""
    running.terminate()
    return running.poll() is not None


def test_status_shows_how_agents_stand(world: World) -> None:
    scene = [*say(Claude.init(), Claude.uses("t-1")), ("hang", 0)]
    hired(world, scene)
    running = world.start("run", "try.yaml", "--cases", "cases.jsonl", "--agent", "claude")
    papers = Path(f"{world.db}.agents")
    try:
        until(lambda: list(papers.glob("standing-*.json")), "an agent at work")
        outcome = world.say("status")
        [found] = world.say("status", "--json").json["agents"]
    finally:
        until(lambda: has_gone(running), "its end: asked twice, it ends at once")
        ended(running)
    assert "1         C1    work  claude  working  its last byte came" in outcome.out
    assert (found["dispatch_id"], found["agent"], found["word"]) == (1, "claude", "working")
    assert not list(papers.glob("standing-*.json"))
    assert not Path(f"/proc/{found['pid']}").exists()
