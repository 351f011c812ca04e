"""The analyst's judgement as verbs: JSON lines in and out, and one sentence for what is wrong."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.world.places import ROOT


class Result(NamedTuple):
    code: int
    out: str
    err: str


class World:
    """A folder with files, and the program that reads them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def write(self, name: str, text: str) -> None:
        (self.folder / name).write_text(text)

    def say(self, *words: str, stdin: bytes = b"") -> Result:
        done = subprocess.run(
            [sys.executable, "-m", "bench.analyst", *words],
            cwd=self.folder,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            input=stdin,
            capture_output=True,
            timeout=60,
            check=False,
        )
        return Result(done.returncode, done.stdout.decode(), done.stderr.decode())


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def rows(result: Result) -> list[dict[str, Any]]:
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
    assert rows(lids.say("cluster", "failures.jsonl")) == [
        {"id": "b", "family": "a"},
        {"id": "oven", "family": "oven"},
        {"id": "a", "family": "a"},
        {"id": "silent", "family": "silent"},
    ]


def test_recall(lids: World) -> None:
    found = rows(lids.say("recall", "failures.jsonl"))
    assert [(row["id"], row["verdict"], row["match_id"]) for row in found] == [
        ("b", "new", None),
        ("oven", "new", None),
        ("a", "match", "b"),
        ("silent", "new", None),
    ]
    assert found[2]["score"] > 0.9
    assert found[2]["why"]


def test_triage(lids: World) -> None:
    found = rows(lids.say("triage", "failures.jsonl"))
    kinds = {row["id"]: row["category"] for row in found}
    assert kinds == {"b": "product", "oven": "infra", "a": "product", "silent": "unknown"}
    assert found[1]["reasons"] == ["connection: a connection could not be made or was lost"]
    assert found[3]["confidence"] == 0


def test_triage_as_taught(lids: World) -> None:
    taught = [{**lid("x", 7), "label": "JOINERY"}, {**OVEN, "label": "HEATING"}]
    write(lids, "taught.jsonl", *taught)
    found = rows(lids.say("triage", "failures.jsonl", "--learn", "taught.jsonl"))
    assert [row["category"] for row in found] == ["JOINERY", "HEATING", "JOINERY", "unknown"]


def test_suspect(lids: World) -> None:
    listed = {"id": "a", "candidates": ["box.Box", "box.Lid", "oven.Gas"]}
    write(lids, "candidates.jsonl", listed)
    found = rows(lids.say("suspect", "failures.jsonl", "--candidates", "candidates.jsonl"))
    assert [row["id"] for row in found] == ["b", "oven", "a", "silent"]
    assert [len(row["ranked"]) for row in found] == [0, 0, 2, 0]
    best = found[2]["ranked"][0]
    assert best["candidate"] == "box.Lid"
    assert set(best) == {"candidate", "score", "why"}


VERBS = ("cluster", "recall", "triage", "suspect")


def asked(world: World, verb: str, file: str) -> Result:
    world.write("none.jsonl", "")
    more = ("--candidates", "none.jsonl") if verb == "suspect" else ()
    return world.say(verb, file, *more)


@pytest.mark.parametrize("verb", VERBS)
def test_no_failures(world: World, verb: str) -> None:
    world.write("empty.jsonl", "\n \n")
    assert asked(world, verb, "empty.jsonl") == Result(0, "", "")


@pytest.mark.parametrize("verb", VERBS)
def test_a_line_that_cannot_be_used(world: World, verb: str) -> None:
    world.write("bad.jsonl", '{"id": "1"}\n{"id": \n')
    result = asked(world, verb, "bad.jsonl")
    assert result.code == 2
    assert result.err == "bad.jsonl, line 2: is not JSON; write one object per line\n"


@pytest.mark.parametrize("verb", VERBS)
def test_a_file_that_is_not_there(world: World, verb: str) -> None:
    problem = "no.jsonl does not exist; name a JSONL file, or - for stdin\n"
    assert asked(world, verb, "no.jsonl") == Result(2, "", problem)


def test_examples_without_labels(lids: World) -> None:
    result = lids.say("triage", "failures.jsonl", "--learn", "failures.jsonl")
    problem = "failures.jsonl, line 1: a failure to learn from needs a `label`"
    assert result == Result(2, "", f"{problem}\n")


@pytest.mark.parametrize(("verb", "option"), [("triage", "--learn"), ("suspect", "--candidates")])
def test_two_files_from_one_stdin(world: World, verb: str, option: str) -> None:
    problem = "only one of two files can be stdin; name the other\n"
    assert world.say(verb, "-", option, "-") == Result(2, "", problem)


def test_text_that_a_terminal_could_obey(world: World) -> None:
    write(world, "f.jsonl", {"id": "\x1b[2J", "message": "x"})
    result = world.say("cluster", "f.jsonl")
    assert "\x1b" not in result.out
    assert rows(result)[0]["id"] == "\x1b[2J"


def test_evidence_against_good_logs(world: World) -> None:
    world.write("good.log", "ERROR: mirror 7 is slow\nfine\n")
    world.write("other.log", "ERROR: no tea\n")
    world.write("bad.log", "ERROR: mirror 9 is slow\nERROR: no tea\nfine\nERROR: lid is shut\n")
    (row,) = rows(world.say("evidence", "bad.log", "--against", "good.log", "other.log"))
    assert (row["line"], row["text"]) == (4, "ERROR: lid is shut")
    assert set(row) == {"line", "text", "score", "why"}


def test_evidence_from_stdin(world: World) -> None:
    found = rows(world.say("evidence", "-", stdin=b"\xff\0 ERROR: lid 7 is broken\r\n" * 3))
    assert [row["line"] for row in found] == [1, 2, 3]


REPORT = """<testsuite name="s"><testcase classname="C" name="glows"><failure message="dark &#27;"/>
</testcase><testcase name="a"/><testcase name="b"><skipped/></testcase></testsuite>"""


def read(world: World, path: Path) -> tuple[int, list[dict[str, Any]], str]:
    done = world.say("read", str(path))
    return done.code, [json.loads(line) for line in done.out.splitlines()], done.err


def test_a_report_whatever_it_is_called(world: World) -> None:
    path = world.folder / "console.log"
    path.write_text(REPORT)
    code, (failure, summary), errors = read(world, path)
    assert (code, errors) == (0, "")
    assert (failure["id"], failure["test_name"], failure["class_name"]) == (
        "C.glows",
        "glows",
        "C",
    )
    assert failure["message"] == "dark \x1b"
    assert summary == {"summary": {"tests": 3, "failed": 1, "skipped": 1}}


def test_a_log_whatever_it_is_called(world: World) -> None:
    path = world.folder / "report.xml"
    path.write_text("=== RUN   TestGlow\n--- FAIL: TestGlow (0.00s)\nFAIL\n")
    code, (failure, summary), _ = read(world, path)
    assert (code, failure["test_name"]) == (0, "TestGlow")
    assert summary["summary"]["failed"] == 1


def test_a_broken_report_gives_what_stands_in_it_and_a_notice(world: World) -> None:
    path = world.folder / "r.xml"
    path.write_text(REPORT[: REPORT.index("</testcase>")])
    code, rows, errors = read(world, path)
    assert code == 0
    assert [row.get("test_name") for row in rows] == ["glows", None]
    assert "r.xml: it ends too early" in errors


@pytest.mark.parametrize(
    ("content", "result"),
    [
        (b"<project/>", "is not JUnit XML"),
        (b"<!DOCTYPE a [<!ENTITY a 'x'>]><testsuite/>", "declares XML entities"),
        (bytes(range(16)) * 50, "is neither a report nor text"),
        (None, "does not exist"),
    ],
)
def test_what_cannot_be_read_is_said_in_one_sentence(
    world: World, content: bytes | None, result: str
) -> None:
    path = world.folder / "f"
    if content is not None:
        path.write_bytes(content)
    code, rows, errors = read(world, path)
    assert (code, rows) == (2, [])
    assert result in errors
    assert errors.count("\n") == 1


def test_a_folder_is_too_much(world: World) -> None:
    code, _, errors = read(world, world.folder)
    assert (code, errors) == (2, f"{world.folder} is a folder: give one file.\n")


def test_an_empty_file_is_a_log_without_tests(world: World) -> None:
    (world.folder / "f").write_bytes(b"")
    assert read(world, world.folder / "f")[:2] == (
        0,
        [{"summary": {"tests": 0, "failed": 0, "skipped": 0}}],
    )
