"""lint as a user types it: findings, verdicts, exit codes, whole output."""

import json
import os
from typing import Any

import pytest

from tests.world.command_line import CliResult, World
from tests.world.places import ROOT

CORPUS = ROOT / "docs" / "protocols" / "corpus.jsonl"
READY = "All done.\n\nREADY_FOR_REVIEW: t1\n\nSummary: done\n"
ROLE = ("--role", "developer", "--task", "t1")


def jsonl(*records: object) -> str:
    return "".join(f"{json.dumps(record)}\n" for record in records)


def test_a_clean_prompt(world: World) -> None:
    world.write("SKILL.md", "End with\n\n    READY_FOR_REVIEW: [task_id]\n")
    assert world.say("lint", "SKILL.md") == CliResult(0, "no findings\n", "")
    assert world.say("lint", "SKILL.md", "--json").json == {"findings": [], "records": []}


def test_a_prompt_with_a_live_example(world: World) -> None:
    world.write("p.md", "End with `READY_FOR_REVIEW: [id]`, like so:\n\nREADY_FOR_REVIEW: t1\n")
    out = (
        "p.md:3: signal.live-example: An agent that repeats this text says READY_FOR_REVIEW.\n"
        "    fix: Indent the example by four blanks, put it into a fence, or leave a [placeholder]"
        " in it.\n"
    )
    assert world.say("lint", "p.md") == CliResult(6, out, "")
    (finding,) = world.say("lint", "p.md", "--json").json["findings"]
    assert (finding["id"], finding["file"], finding["line"]) == ("signal.live-example", "p.md", 3)


def test_a_prompt_for_a_role(world: World) -> None:
    world.write("critic.md", "Say\n\n    READY_FOR_REVIEW: [task_id]\n")
    outcome = world.say("lint", "critic.md", "--as", "prompt", "--role", "critic")
    assert outcome.code == 6
    assert outcome.out.startswith(
        "critic.md:3: signal.wrong-role: The critic may not send READY_FOR_REVIEW."
    )


def test_an_accepted_transcript(world: World) -> None:
    world.write("a.txt", READY)
    for words in (("a.txt", *ROLE), ("a.txt",), ("a.txt", "--as", "transcript")):
        assert world.say("lint", *words) == CliResult(
            0, "a.txt:3: accepted READY_FOR_REVIEW t1\n", ""
        )


def test_a_refused_transcript(world: World) -> None:
    world.write("a.txt", "**READY_FOR_REVIEW: t1**\n")
    out = (
        "a.txt:1: refused Malformed: A line names READY_FOR_REVIEW but is not a legal signal. Write"
        " it alone on its line, at column 0, without markup, outside fences and quotes, exactly:"
        " `READY_FOR_REVIEW: t1`.\n"
    )
    assert world.say("lint", "a.txt", *ROLE) == CliResult(6, out, "")
    (record,) = world.say("lint", "a.txt", *ROLE, "--json").json["records"]
    assert (record["id"], record["refused"], record["where"]) == ("a.txt", "Malformed", 1)


def test_strict_signals(world: World) -> None:
    world.write("a.txt", READY)
    assert (
        "refused Stale" in world.say("lint", "a.txt", *ROLE, "--strict-signals", "--nonce", "n").out
    )
    world.write("b.txt", READY + "\nDispatch: n\n")
    assert world.say("lint", "b.txt", *ROLE, "--strict-signals", "--nonce", "n").code == 0
    refused = world.say("lint", "a.txt", *ROLE, "--strict-signals")
    assert refused == CliResult(
        2, "", "interlock: --strict-signals needs the dispatch's nonce: --nonce NONCE\n"
    )


def test_plain_output_of_a_command(world: World) -> None:
    world.write("out.log", "```\nSAGE_SIGNAL:STORY_STARTED:3-1\nSAGE_SIGNAL:HITL_HALT\n")
    out = (
        "out.log:2: accepted STORY_STARTED 3-1\n"
        "out.log:3: refused Malformed: HITL_HALT lacks issue: write"
        " SAGE_SIGNAL:HITL_HALT:issue:{issue_number}\n"
    )
    assert world.say("lint", "out.log", "--format", "lines") == CliResult(6, out, "")


def test_a_recorded_stream_is_known_by_its_events(world: World) -> None:
    result = {"type": "result", "subtype": "success", "num_turns": 1, "result": READY}
    world.write("s.jsonl", jsonl({"type": "system", "subtype": "init"}, result))
    outcome = world.say("lint", "s.jsonl", *ROLE)
    assert outcome == CliResult(0, "s.jsonl:3: accepted READY_FOR_REVIEW t1\n", "")
    world.write("cut.jsonl", jsonl({"type": "system", "subtype": "init"}))
    assert "refused Missing: There is no final message" in world.say("lint", "cut.jsonl", *ROLE).out


def test_many_at_once(world: World) -> None:
    """A refusal is an answer, so it is no finding; a broken record is one, and the rest goes on."""
    records = [
        {"id": "good", "role": "developer", "task_id": "t1", "text": READY},
        {"id": "bad", "role": "critic", "task_id": "t1", "text": READY},
        {"id": "lines", "format": "lines", "stream": "SAGE_SIGNAL:EPIC_STARTED:e\n"},
        {"id": "none", "format": "lines", "stream": "nothing\n"},
    ]
    world.write("r.jsonl", jsonl(*records))
    outcome = world.say("lint", "--jsonl", "r.jsonl")
    assert outcome.code == 0
    assert [line.split(" ")[:2] for line in outcome.out.splitlines()] == [
        ["good:3:", "accepted"],
        ["bad:3:", "refused"],
        ["lines:1:", "accepted"],
        ["none:", "no"],
    ]
    world.write("r.jsonl", "{broken\n\n" + jsonl(*records))
    found = world.say("lint", "--jsonl", "r.jsonl", "--json")
    assert found.code == 6
    assert [one["id"] for one in found.json["records"]] == ["good", "bad", "lines", "none"]
    (finding,) = found.json["findings"]
    assert (finding["id"], finding["line"]) == ("record.unreadable", 1)


def test_the_published_corpus_through_the_command(world: World) -> None:
    outcome = world.say("lint", "--json", "--jsonl", str(CORPUS))
    assert outcome.code == 0
    expected = [json.loads(line) for line in CORPUS.read_text(encoding="utf-8").splitlines()]
    found = outcome.json["records"]
    assert [one["id"] for one in found] == [one["id"] for one in expected]
    for record, row in zip(found, expected, strict=True):
        output = record["lines"] if isinstance(row["expect"], list) else record
        assert _words(output) == row["expect"], row["id"]


def _words(output: Any) -> Any:
    if isinstance(output, list):
        return [_words(one) for one in output]
    return output["accepted"]["signal"] if output["accepted"] else output["refused"]


def test_bytes_that_are_no_text(world: World) -> None:
    (world.folder / "a.bin").write_bytes(b"fine\n\xff\xfe\x00\n")
    outcome = world.say("lint", "a.bin", *ROLE)
    assert outcome.code == 6
    assert outcome.out.startswith("a.bin:2: file.not-utf8: Byte 6 is not UTF-8")
    assert "refused Missing" in outcome.out


def test_an_empty_file(world: World) -> None:
    world.write("empty", "")
    assert "signal.none" in world.say("lint", "empty").out
    assert "refused Missing" in world.say("lint", "empty", *ROLE).out
    assert world.say("lint", "--jsonl", "empty").code == 0


NAME_ONE = "; name a prompt, skill, transcript or comment, or - for stdin"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ([], "name a file to check, or many transcripts with --jsonl FILE"),
        (["none.md"], f"none.md does not exist{NAME_ONE}"),
        (["."], f". is not a regular file{NAME_ONE}"),
        (["pipe"], f"pipe is not a regular file{NAME_ONE}"),
    ],
)
def test_what_cannot_be_read(world: World, words: list[str], sentence: str) -> None:
    os.mkfifo(world.folder / "pipe")
    assert world.say("lint", *words) == CliResult(2, "", f"interlock: {sentence}\n")


def test_a_comment(world: World) -> None:
    world.write("yes.md", "/approve thanks\n")
    world.write("no.md", "Looks good, but wait\n")
    yes = world.say("lint", "--as", "comment", "yes.md", "--json")
    assert (yes.code, yes.json["records"][0]["decision"]) == (0, "APPROVE")
    no = world.say("lint", "--as", "comment", "no.md")
    assert (no.code, no.out.startswith("no.md: UNCLEAR, ")) == (6, True)
