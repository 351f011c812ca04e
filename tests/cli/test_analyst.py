"""The analyst's own verbs over text: templates and evidence, files and stdin, good and bad."""

import json
import subprocess

import pytest
from tests.cli.world import COMMAND, LIMIT, CliResult, World


def rows(result: CliResult) -> list[dict[str, object]]:
    assert (result.code, result.err) == (0, "")
    return [json.loads(line) for line in result.out.splitlines()]


def test_templates(world: World) -> None:
    world.write("box.log", "box 7 is shut\nlid lost\nbox 12 is shut\n")
    assert rows(world.say("analyst", "templates", "box.log")) == [
        {"line": 1, "template_id": 1, "template": "box <*> is shut"},
        {"line": 2, "template_id": 2, "template": "lid lost"},
        {"line": 3, "template_id": 1, "template": "box <*> is shut"},
    ]


@pytest.mark.parametrize("verb", ["templates", "evidence"])
def test_stdin(world: World, verb: str) -> None:
    done = subprocess.run(
        [*COMMAND, "analyst", verb, "-"],
        input=b"\xff\0 ERROR: lid 7 is broken\r\n" * 3,
        capture_output=True,
        timeout=LIMIT,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert [json.loads(line)["line"] for line in done.stdout.splitlines()] == [1, 2, 3]


@pytest.mark.parametrize("verb", ["templates", "evidence"])
def test_an_empty_log_has_nothing(world: World, verb: str) -> None:
    world.write("empty.log", "")
    assert rows(world.say("analyst", verb, "empty.log")) == []


@pytest.mark.parametrize("verb", ["templates", "evidence"])
def test_a_log_that_is_not_there(world: World, verb: str) -> None:
    problem = "interlock: no.log does not exist; name a log file, or - for stdin\n"
    assert world.say("analyst", verb, "no.log") == CliResult(2, "", problem)
    problem = "interlock: . is no regular file; name a log file, or - for stdin\n"
    assert world.say("analyst", verb, ".") == CliResult(2, "", problem)


def test_evidence_against_good_logs(world: World) -> None:
    world.write("good.log", "ERROR: mirror 7 is slow\nfine\n")
    world.write("other.log", "ERROR: no tea\n")
    world.write("bad.log", "ERROR: mirror 9 is slow\nERROR: no tea\nfine\nERROR: lid is shut\n")
    (row,) = rows(world.say("analyst", "evidence", "bad.log", "--against", "good.log", "other.log"))
    assert row == {
        "line": 4,
        "text": "ERROR: lid is shut",
        "score": 0.8,
        "why": "an error, not in the good logs",
    }


def test_two_failing_logs_are_one_too_many(world: World) -> None:
    world.write("bad.log", "ERROR\n")
    problem = "interlock: one failing log at a time; logs of good runs follow --against\n"
    assert world.say("analyst", "evidence", "bad.log", "bad.log") == CliResult(2, "", problem)
