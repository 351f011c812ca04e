"""The analyst's judgement as verbs: JSON lines in and out, and one sentence for what is wrong."""

import json
from typing import Any

import pytest
from tests.cli.world import CliResult, World


def rows(result: CliResult) -> list[dict[str, Any]]:
    assert (result.code, result.err) == (0, "")
    return [json.loads(line) for line in result.out.splitlines()]


def write(world: World, name: str, *failures: dict[str, Any]) -> None:
    world.write(name, "".join(json.dumps(failure) + "\n" for failure in failures))


def lid(number: str, shut: int) -> dict[str, Any]:
    return {
        "id": number,
        "test_name": "opens",
        "class_name": "box.LidTest",
        "type": "box.ShutException",
        "message": f"lid {shut} of the kitchen box is shut",
        "stack": "\tat box.Lid.open(Lid.java:3)\n\tat box.LidTest.opens(LidTest.java:9)\n",
        "log": None,
    }


OVEN = {"id": "oven", "type": "OSError", "message": "connection refused by the oven", "log": None}


@pytest.fixture
def lids(world: World) -> World:
    write(world, "failures.jsonl", lid("b", 1), OVEN, lid("a", 2), {"id": "silent"})
    return world


def test_cluster(lids: World) -> None:
    assert rows(lids.say("analyst", "cluster", "failures.jsonl")) == [
        {"id": "b", "family": "a"},
        {"id": "oven", "family": "oven"},
        {"id": "a", "family": "a"},
        {"id": "silent", "family": "silent"},
    ]


def test_recall(lids: World) -> None:
    found = rows(lids.say("analyst", "recall", "failures.jsonl"))
    assert [(row["id"], row["verdict"], row["match_id"]) for row in found] == [
        ("b", "new", None),
        ("oven", "new", None),
        ("a", "match", "b"),
        ("silent", "new", None),
    ]
    assert found[2]["score"] > 0.9
    assert found[2]["why"]


def test_triage(lids: World) -> None:
    found = rows(lids.say("analyst", "triage", "failures.jsonl"))
    kinds = {row["id"]: row["category"] for row in found}
    assert kinds == {"b": "product", "oven": "infra", "a": "product", "silent": "unknown"}
    assert found[1]["reasons"] == ["connection: a connection could not be made or was lost"]
    assert found[3]["confidence"] == 0


def test_triage_as_taught(lids: World) -> None:
    taught = [{**lid("x", 7), "label": "JOINERY"}, {**OVEN, "label": "HEATING"}]
    write(lids, "taught.jsonl", *taught)
    found = rows(lids.say("analyst", "triage", "failures.jsonl", "--learn", "taught.jsonl"))
    assert [row["category"] for row in found] == ["JOINERY", "HEATING", "JOINERY", "unknown"]


def test_suspect(lids: World) -> None:
    listed = {"id": "a", "candidates": ["box.Box", "box.Lid", "oven.Gas"]}
    write(lids, "candidates.jsonl", listed)
    found = rows(
        lids.say("analyst", "suspect", "failures.jsonl", "--candidates", "candidates.jsonl")
    )
    assert [row["id"] for row in found] == ["b", "oven", "a", "silent"]
    assert [len(row["ranked"]) for row in found] == [0, 0, 2, 0]
    best = found[2]["ranked"][0]
    assert best["candidate"] == "box.Lid"
    assert set(best) == {"candidate", "score", "why"}


VERBS = ("cluster", "recall", "triage", "suspect")


def asked(world: World, verb: str, file: str) -> CliResult:
    world.write("none.jsonl", "")
    more = ("--candidates", "none.jsonl") if verb == "suspect" else ()
    return world.say("analyst", verb, file, *more)


@pytest.mark.parametrize("verb", VERBS)
def test_no_failures(world: World, verb: str) -> None:
    world.write("empty.jsonl", "\n \n")
    assert asked(world, verb, "empty.jsonl") == CliResult(0, "", "")


@pytest.mark.parametrize("verb", VERBS)
def test_a_line_that_cannot_be_used(world: World, verb: str) -> None:
    world.write("bad.jsonl", '{"id": "1"}\n{"id": \n')
    result = asked(world, verb, "bad.jsonl")
    assert result.code == 2
    assert result.err == "interlock: bad.jsonl, line 2: is not JSON; write one object per line\n"


@pytest.mark.parametrize("verb", VERBS)
def test_a_file_that_is_not_there(world: World, verb: str) -> None:
    problem = "interlock: no.jsonl does not exist; name a JSONL file, or - for stdin\n"
    assert asked(world, verb, "no.jsonl") == CliResult(2, "", problem)


def test_examples_without_labels(lids: World) -> None:
    result = lids.say("analyst", "triage", "failures.jsonl", "--learn", "failures.jsonl")
    problem = "failures.jsonl, line 1: a failure to learn from needs a `label`"
    assert result == CliResult(2, "", f"interlock: {problem}\n")


@pytest.mark.parametrize(("verb", "option"), [("triage", "--learn"), ("suspect", "--candidates")])
def test_two_files_from_one_stdin(world: World, verb: str, option: str) -> None:
    problem = "interlock: only one of two files can be stdin; name the other\n"
    assert world.type("analyst", verb, "-", option, "-") == CliResult(2, "", problem)


def test_text_that_a_terminal_could_obey(world: World) -> None:
    write(world, "f.jsonl", {"id": "\x1b[2J", "message": "x"})
    result = world.say("analyst", "cluster", "f.jsonl")
    assert "\x1b" not in result.out
    assert rows(result)[0]["id"] == "\x1b[2J"
