"""circuit list, show, draw, verify and schema."""

import json
import re

import jsonschema
import pytest
import yaml

from tests.circuits.behaviour_tables import SHIPPED
from tests.world import triage
from tests.world.command_line import CliResult, World

LIST = """\
CIRCUIT   VERSION  STEPS  WHERE
broken    0        0      project   circuits/broken.yaml:1: the circuit: object missing \
required field `start`
house     1        4      project
triage    3        1      project
delivery  1        16     built-in
epic      1        5      built-in
rca       1        7      built-in
"""
SHOW = """\
triage, version 3, at most 10 dispatches
ends: kept, dropped (unhealthy)
thresholds: sure = 0.7, patience = short
loops: more x 1

* look: scout, timeout 60 s
    artifact                    when confidence >= sure  -> kept     [sure]  # Sure enough.
    artifact                                             -> AGAIN    [look-again] (loop more; \
adds before = confidence)  # One more look.
    artifact                                             -> dropped  [unsure]  # Two looks were \
not enough.
    timeout, crash, unreadable                           -> dropped  [failed]  # No answer.
"""
DRAWN = """\
flowchart TD
    start(( )) --> n0
    n0["look<br/>scout"]
    n1(["kept"]):::healthy
    n2(["dropped"]):::unhealthy
    n0 -->|"sure: confidence #gt;= sure"| n1
    n0 -->|"look-again (loop more)"| n0
    n0 -->|"unsure"| n2
    n0 -->|"failed on timeout, crash, unreadable"| n2
    classDef gate fill:#fff4d6,stroke:#b07d00,color:#222
    classDef writes fill:#fde2e2,stroke:#b3261e,color:#222
    classDef healthy fill:#e0f2e3,stroke:#2e7d32,color:#222
    classDef unhealthy fill:#eeeeee,stroke:#616161,color:#222
    classDef helper fill:#ffffff,stroke:#9e9e9e,color:#616161,stroke-dasharray:3 3
"""
WITHOUT_A_WAY_OUT = "  - {id: unsure, at: look, to: dropped, why: Two looks were not enough.}\n"


def test_list_shows_the_projects_own_and_the_built_in_and_what_is_wrong(world: World) -> None:
    triage.lay_out(world)
    world.write("circuits/house/circuit.yaml", SHIPPED["change"].read_text(encoding="utf-8"))
    for prompt in SHIPPED["change"].parent.glob("prompts/*.md"):
        text = prompt.read_text(encoding="utf-8")
        world.write(f"circuits/house/prompts/{prompt.name}", text)
    world.write("circuits/broken.yaml", "circuit: broken\n")
    assert world.say("circuit", "list") == CliResult(0, LIST, "")
    rows = world.say("circuit", "list", "--json").json["circuits"]
    assert [row["name"] for row in rows] == [
        "broken",
        "house",
        "triage",
        "delivery",
        "epic",
        "rca",
    ]
    assert [bool(row["problem"]) for row in rows] == [True, *[False] * 5]


def test_a_circuit_by_name_and_by_path_is_the_same(world: World) -> None:
    triage.lay_out(world)
    assert world.say("circuit", "show", "triage") == CliResult(0, SHOW, "")
    assert world.say("circuit", "show", "circuits/triage.yaml") == CliResult(0, SHOW, "")
    visible = world.say("circuit", "show", "triage", "--json").json
    assert visible == {"file": "circuits/triage.yaml", "circuit": yaml.safe_load(_true_yaml())}


def test_a_projects_circuit_goes_before_the_built_in_of_that_name(world: World) -> None:
    world.write("circuits/epic.yaml", triage.CIRCUIT.replace("triage", "epic"))
    assert world.say("circuit", "show", "epic").out.startswith("epic, version 3,")


def test_draw(world: World) -> None:
    triage.lay_out(world)
    assert world.say("circuit", "draw", "triage") == CliResult(0, DRAWN, "")
    assert world.say("circuit", "draw", "triage", "--json").json == {"mermaid": DRAWN}


def test_verify_of_a_sound_circuit(world: World) -> None:
    triage.lay_out(world)
    sound = "triage v3: at most 2 dispatches per case\nsound\n"
    assert world.say("circuit", "verify", "triage") == CliResult(0, sound, "")
    found = world.say("circuit", "verify", "triage", "--json").json
    hop = {"step": "look", "signal": "artifact", "rule": "look-again", "to": "look"}
    assert found == {
        "circuit": "triage",
        "version": 3,
        "findings": [],
        "worst_case": {"dispatches": 2, "exact": True, "path": [hop], "reason": ""},
        "sound": True,
    }


def test_verify_of_a_broken_circuit_shows_findings_and_an_example(world: World) -> None:
    world.write("bad.yaml", triage.CIRCUIT.replace(WITHOUT_A_WAY_OUT, ""))
    result = world.say("circuit", "verify", "bad.yaml", "--json")
    assert (result.code, result.err) == (6, "")
    found = result.json
    assert found["sound"] is False
    ids = {(each["level"], each["id"]) for each in found["findings"]}
    assert ("error", "circuit.loop-without-exit") in ids
    text = world.say("circuit", "verify", "bad.yaml")
    assert text.code == 6
    for each in found["findings"]:
        place = f"bad.yaml:{each['line']}: {each['level']} {each['id']}: {each['message']}\n"
        assert place in text.out
        assert f"    fix: {each['fix']}\n" in text.out
    assert re.fullmatch(r"not sound: \d errors?(, \d warnings?)?(, \d notes?)?", _last(text.out))


def test_verify_of_a_text_that_is_no_circuit_is_a_finding(world: World) -> None:
    world.write("bad.yaml", "circuit: [\n")
    result = world.say("circuit", "verify", "bad.yaml", "--json")
    assert (result.code, result.err) == (6, "")
    (finding,) = result.json["findings"]
    assert (finding["id"], finding["file"]) == ("circuit.unreadable", "bad.yaml")


def test_verify_with_another_threshold(world: World) -> None:
    triage.lay_out(world)
    result = world.say("circuit", "verify", "triage", "--set", "sure=2")
    assert result.code == 6
    assert "error circuit." in result.out or "warning circuit." in result.out
    wrong = world.say("circuit", "verify", "triage", "--set", "sure=[", "--json")
    assert (wrong.code, wrong.out) == (2, "")
    assert wrong.err.startswith("interlock: --set takes a plain value, not '['")


@pytest.mark.parametrize("verb", ["show", "draw", "verify"])
def test_an_unknown_circuit(world: World, verb: str) -> None:
    triage.lay_out(world)
    known = (
        "interlock: there is no circuit 'nothing'; known are delivery, epic, rca, triage; "
        "your own go into circuits, or give a path ending in .yaml\n"
    )
    assert world.say("circuit", verb, "nothing", "--json") == CliResult(2, "", known)
    missing = "interlock: no.yaml cannot be read: No such file or directory\n"
    assert world.say("circuit", verb, "no.yaml") == CliResult(2, "", missing)


def test_the_schema_admits_every_circuit_we_ship(world: World) -> None:
    result = world.say("circuit", "schema")
    assert (result.code, result.err) == (0, "")
    schema = json.loads(result.out)
    assert world.say("circuit", "schema", "--json").json == {"schema": schema}
    jsonschema.Draft202012Validator.check_schema(schema)
    for name in (*map(str, SHIPPED.values()), "circuits/triage.yaml"):
        triage.lay_out(world)
        visible = world.say("circuit", "show", name, "--json").json["circuit"]
        jsonschema.validate(visible, schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"circuit": "x"}, schema)


def _last(text: str) -> str:
    return text.splitlines()[-1]


def _true_yaml() -> str:
    """PyYAML takes the key `on` for true; Interlock does not."""
    return triage.CIRCUIT.replace(" on:", ' "on":')
