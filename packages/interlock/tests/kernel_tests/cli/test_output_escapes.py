"""Text from outside cannot move the cursor, ring the bell or rewrite the screen."""

import json
import sys

import pytest

from interlock.cli.output import escape_json, escape_text
from tests.world import triage
from tests.world.change import CHANGE
from tests.world.command_line import CliResult, World

EVIL = "\x1b[2J\x1b]0;owned\x07 \x9b31m \x7f \r back \u202e reversed \u2028 \U000e0001"
AGENT = """\
import json, os, sys
evil = json.loads(os.environ["EVIL"])
if os.environ["INTERLOCK_CASE_ID"] == "crash":
    sys.exit(evil)
if os.environ["INTERLOCK_CASE_ID"] == "babble":
    print(evil)
elif os.environ["INTERLOCK_STEP"] == "draft":
    print(json.dumps({"text": evil}))
else:
    print(json.dumps({"score": 0.9, "risky": False, "remarks": [evil]}, ensure_ascii=False))
"""
READERS = [
    ("explain", "good"),
    ("explain", "good", "--prompts"),
    ("explain", "good", "--json"),
    ("explain", "babble"),
    ("explain", "babble", "--json"),
    ("explain", "crash"),
    ("status",),
    ("status", "--json"),
    ("logs",),
    ("logs", "--json"),
    ("logs", "-f", "--json"),
    ("inbox",),
    ("inbox", "--json"),
    ("runs", "--json"),
]


def test_what_agents_say_reaches_no_terminal_raw(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVIL", json.dumps(EVIL))
    agent = world.write("agent.py", AGENT)
    world.cases("good", "babble", "crash")
    run = ("run", CHANGE, "--cases", "cases.jsonl", "--agent", f"exec:{sys.executable} {agent}")
    result = [world.say(*run), *(world.say(*words) for words in READERS)]
    assert [each.code for each in result] == [4] + [0] * len(READERS)
    for each in result:
        assert _controls(each.out) == set()
        assert each.err == ""
    found = world.say("explain", "good", "--json").json
    assert found["dispatches"][0]["answer"] == {"text": EVIL}, "escaped, and still the same text"
    (question,) = world.say("inbox", "--json").json["questions"]
    visible = world.say("inbox", str(question["question_id"])).out
    assert "\\x1b[2J\\x1b]0;owned\\x07" in visible


def test_what_a_circuit_says_reaches_no_terminal_raw(world: World) -> None:
    written = '"' + "".join(f"\\U{ord(sign):08x}" for sign in EVIL) + '"'
    world.write("evil.yaml", triage.CIRCUIT.replace("why: Sure enough.", f"why: {written}"))
    world.write("worse.yaml", triage.CIRCUIT.replace("id: sure", f"id: {written}"))
    world.write("worst.yaml", triage.CIRCUIT.replace("to: kept", f"to: {written}"))
    assert "\\x1b[2J" in world.say("circuit", "show", "evil.yaml").out
    for name in ("evil", "worse", "worst"):
        for verb in ("show", "draw", "verify"):
            result = world.say("circuit", verb, f"{name}.yaml")
            assert _controls(result.out + result.err) == set()
    result = world.say("run", "worst.yaml", "--cases", "cases.jsonl", "--agent", "exec:true")
    assert (result.code, _controls(result.err)) == (6, set())
    assert _controls(world.say("explain", EVIL, "--db", EVIL).err) == set()


def test_printable_keeps_what_people_write() -> None:
    text = "größer → 大 … \n\tindented"
    assert escape_text(text) == text
    assert escape_text("\x1b[31m\x00\x9b") == "\\x1b[31m\\x00\\x9b"


def test_harmless_json_means_the_same() -> None:
    written = json.dumps({"said": EVIL, "fine": "größer → 大"}, ensure_ascii=False, indent=2)
    escaped = escape_json(written)
    assert _controls(escaped) == set()
    assert json.loads(escaped) == json.loads(written)
    assert "größer → 大" in escaped
    assert escape_json(json.dumps({"a": 1}, indent=2)) == '{\n  "a": 1\n}'


def test_nothing_to_show_shows_nothing(world: World) -> None:
    triage.done(world)
    assert world.say("inbox") == CliResult(0, "nothing waits for a human\n", "")


def _controls(text: str) -> set[str]:
    return {sign for sign in text if not sign.isprintable() and sign != "\n"}
