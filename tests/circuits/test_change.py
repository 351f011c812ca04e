"""The example circuit `change`, played by the real command: what the behaviour table says of the
engine holds for a run as well, gates answered by a script."""

import json
from pathlib import Path
from typing import Any

from tests.circuits.behaviour_tables import Behaviour, behaviours
from tests.world.change import CHANGE
from tests.world.command_line import World

SIGNS = {"crash": {"crash": "out of order"}, "unreadable": {"raw": "trust me"}}


def test_a_run_ends_every_case_as_the_table_says(tmp_path: Path) -> None:
    world = World(tmp_path)
    played = [each for each in behaviours("change") if not _has_timeout(each)]
    world.cases(*(f"T{number}" for number in range(len(played))))
    helpers = {f"T{number}": _behaviours(each) for number, each in enumerate(played)}
    world.write("crew.yaml", json.dumps(helpers))
    agents = ("--agent", "script:crew.yaml", "--agent", "human=script:crew.yaml")

    result = world.say("run", CHANGE, "--cases", "cases.jsonl", *agents, "--json")

    assert result.code == 3
    found = world.say("status", "--json").json["cases"]
    ends = {each.name: each.end for each in played}
    assert {played[int(row["case_id"][1:])].name: row["end"] for row in found} == ends
    contexts = [each.context for each in played]
    assert [row["context"] for row in found] == contexts
    assert world.say("doctor", "--deep").code == 0


def test_the_author_sees_the_remarks_and_the_human_the_warning(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.cases("login")
    world.write("crew.yaml", json.dumps({"*": _behaviours(_named("a risk is remembered"))}))
    agents = ("--agent", "script:crew.yaml", "--agent", "human=script:crew.yaml")

    result = world.say("run", CHANGE, "--cases", "cases.jsonl", *agents)

    assert result.code == 0, result
    asked = world.say("explain", "login", "--json").json["dispatches"]
    prompts = {(each["step"], each["attempt"]): each["prompt"] for each in asked}
    assert prompts["draft", 1] == (
        "Write the change described below.\n\nTopic: the login\n\n"
        'Answer with one JSON object: {"text": "the change"}. '
        'If it cannot be done, add "gave_up" with the reason.\n'
    )
    assert prompts["draft", 2] == (
        "Write the change described below.\n\nTopic: the login\n\n"
        'Your last draft came back with these remarks:\n\n[\n  "safer"\n]\n\n'
        "Your last draft was:\n\none\n\n"
        'Answer with one JSON object: {"text": "the change"}. '
        'If it cannot be done, add "gave_up" with the reason.\n'
    )
    assert prompts["review", 2] == (
        'Judge this draft on the topic "the login". You did not write it; be exact.\n\ntwo\n\n'
        'Answer with one JSON object: {"score": 0.0 to 1.0, "risky": true or false, '
        '"remarks": ["what to change"]}.\n'
    )
    assert prompts["approve", 1] == (
        'Publish this change on "the login"?\n\nThe critic calls this change risky.\n\ntwo\n\n'
        "The critic gave it 0.9.\n"
    )
    assert prompts["publish", 1] == "Publish this, unchanged:\n\ntwo\n"


def _has_timeout(wanted: Behaviour) -> bool:
    return any(answer == "timeout" for _, answer in wanted.answers)


def _named(start: str) -> Behaviour:
    return next(each for each in behaviours("change") if each.name.startswith(start))


def _behaviours(wanted: Behaviour) -> dict[str, list[Any]]:
    script: dict[str, list[Any]] = {}
    for step, answer in wanted.answers:
        script.setdefault(step, []).append(SIGNS.get(str(answer), {"answer": answer}))
    return script
