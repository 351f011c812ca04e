"""Model endpoints as agents in runs, from the command line and from Python."""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

import interlock
from interlock.testing import make_project
from tests.world.command_line import World
from tests.world.model_server import KEY, MODEL, ModelServer, Said, model_server
from tests.world.note import NOTE, PATIENCE, RAIN, approve

SETTINGS = """\
[agent.local]
dialect = "{dialect}"
base_url = "{url}"
key_env = "LOCAL_KEY"
model = "{model}"
prices = {{input = 1.0, output = 1.0}}

[agents]
author = "local:{model}"
critic = "local"
mailer = "exec:cat"
"""
TEXT, SCORE = Said("It rains a lot."), Said('{"score": 0.9}')
RUN = ("run", "note.yaml", "--cases", "cases.jsonl")


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with model_server() as made:
        yield made


def lay_out(world: World, server: ModelServer, dialect: str = "openai") -> None:
    world.write("note.yaml", NOTE)
    world.cases("C1")
    settings = SETTINGS.format(dialect=dialect, url=server.url, model=MODEL)
    world.write("interlock.toml", settings)


def with_key(key: str = KEY) -> Mapping[str, str]:
    return {**os.environ, "LOCAL_KEY": key, "PYTHONDONTWRITEBYTECODE": "1"}


@pytest.mark.parametrize("dialect", ["openai", "anthropic"])
def test_a_run_from_the_command_line(world: World, server: ModelServer, dialect: str) -> None:
    lay_out(world, server, dialect)
    again = "{at: judge, on: unreadable, loop: rework, to: judge}"
    world.write("note.yaml", NOTE.replace("rules:\n", f"rules:\n  - {again}\n"))
    cut_off = "length" if dialect == "openai" else "max_tokens"
    server.say(TEXT, Said('{"score": "high"}'), Said('{"score": 0.5}', stop=cut_off), SCORE)
    result = world.type(*RUN, env=with_key())
    assert result.code == 4, result
    assert "run 1: waiting; 1 open; 4 dispatches" in result.out
    story = world.say("explain", "C1", "--json").json
    calls = [call for each in story["dispatches"] for call in each["calls"]]
    assert [call["model"] for call in calls] == [f"{MODEL}-2026"] * len(server.requests)
    assert calls[0]["request_id"] == "req_1"
    assert calls[0]["money"] == 150 / 1_000_000
    assert not calls[0]["is_estimate"]
    refused = [each["refused"] for each in story["dispatches"][1:3]]
    assert [each["reason"] for (each,) in refused] == ["Malformed", "Unusable"]
    assert "cut off" in str(server.requests[3]["messages"]), "the model is told why"
    output = world.say("explain", "C1").out
    assert f"{MODEL}-2026 answered request req_1: 120 tokens in (100 from the cache)" in output
    assert KEY not in output
    assert KEY.encode() not in world.db.read_bytes()


def test_a_wrong_key_stops_the_run_and_a_right_one_continues_it(
    world: World, server: ModelServer
) -> None:
    lay_out(world, server)
    result = world.type(*RUN, env=with_key("sk-of-somebody-else"))
    assert result.code == 1
    assert "local:small-1: HTTP 401 from 127.0.0.1:" in result.err
    assert "check the key (LOCAL_KEY), then 'interlock resume 1'" in result.err
    assert "run 1: stopped; 1 open; 1 dispatch\n'interlock resume 1' continues" in result.out
    assert "sk-of-somebody" not in result.out + result.err
    server.say(TEXT, SCORE)
    assert world.type("resume", "1", env=with_key()).code == 4
    (first, *_) = world.say("explain", "C1", "--json").json["dispatches"]
    assert (first["dispatch_id"], first["attempt"]) == (1, 1), "it cost no attempt"
    assert [each["reason"] for each in first["refused"]] == ["Endpoint"]


def test_a_busy_endpoint_pauses_its_account_and_costs_no_attempt(
    world: World, server: ModelServer
) -> None:
    lay_out(world, server)
    server.say(Said(status=529, message="overloaded", headers={"retry-after": "3600"}))
    result = world.type(*RUN, "--on-limit", "leave", env=with_key())
    assert result.code == 75
    (first,) = world.say("explain", "C1", "--json").json["dispatches"]
    (pause,) = first["pauses"]
    assert pause["reason"].endswith("overloaded")
    assert 3_500 < pause["until"] - pause["at"] <= 3_600
    assert first["attempt"] == 1


def test_a_run_from_python(tmp_path: Path, server: ModelServer) -> None:
    model = interlock.Model(f"openai:{MODEL}", base_url=server.url, key=KEY)
    server.say(TEXT, SCORE)
    with make_project(tmp_path, circuits={"note": NOTE}) as project:
        run = project.start("note", RAIN, agents={"": model, "mailer": lambda _dispatch: {}})
        assert run.wait(PATIENCE).status == "waiting"
        approve(project, run)
        result = run.wait(PATIENCE)
        assert (result.status, result.spent.tokens) == ("done", 300)
        bad = interlock.Model(f"openai:{MODEL}", base_url=server.url, key="sk-wrong")
        stopped = project.start("note", RAIN, agents=bad).wait(PATIENCE)
        assert stopped.status == "stopped"
        assert "check the key" in stopped.counts.problem


def test_doctor_and_agents_know_the_endpoints(world: World, server: ModelServer) -> None:
    lay_out(world, server)
    without = {name: value for name, value in os.environ.items() if name != "LOCAL_KEY"}
    found = world.type("doctor", env=without)
    assert found.code == 6
    assert "BAD   agent.local: local: there is no key for 127.0.0.1:" in found.out
    assert "set the environment variable LOCAL_KEY" in found.out
    listed = world.type("agents", "--json", env=with_key()).json["endpoints"]
    assert [(each["name"], each["key"]) for each in listed][2] == ("local", "LOCAL_KEY")
    probed = world.type("agents", "probe", "local", env=with_key())
    assert (probed.code, probed.out.splitlines()[1:]) == (
        0,
        ["ok    2 models", "      local:large-1", f"      local:{MODEL}"],
    )
    probed = world.type("agents", "probe", "local", env=with_key("sk-wrong"))
    assert (probed.code, "BAD   HTTP 401" in probed.out) == (6, True)
