"""Test epic status and epic story, and bad input to them."""

import json
import sys
from pathlib import Path

import pytest

from epic_tests.world.epic_project import DONE, SETTINGS, WRITE, Project
from tests.world.command_line import World


@pytest.fixture
def project(world: World) -> Project:
    return Project(world)


def test_status_shows_place_stories_and_sessions(project: Project) -> None:
    project.run(["SAGE_SIGNAL:STORY_COMPLETE:3-1:done", WRITE], ["SAGE_SIGNAL:HITL_REQUIRED"])
    result = project.world.say("epic", "status")

    lines = [" ".join(line.split()) for line in result.out.splitlines()]
    assert result.code == 0
    assert lines[:6] == [
        "epic-3: waiting; at 3-1, phase-1, 1",
        "1 of 3 stories done",
        "STORY STATUS",
        "3-1 done",
        "3-2 ready",
        "3-3 ready",
    ]
    assert lines[6:8] == ["run 1: WAITING, at REVIEW", "SESSION ENDED BY TOOK SAID"]
    assert [line.split()[:2] for line in lines[8:10]] == [
        ["1", "CHECKPOINT_WRITE"],
        ["2", "HITL_REQUIRED"],
    ]


def test_stories_are_listed_and_set_and_what_cannot_follow_is_refused(project: Project) -> None:
    project.run([WRITE], [])
    assert project.world.say("epic", "story", "set", "3-2", "in-progress").out == (
        "3-2 is in_progress\n"
    )
    done = project.world.say("epic", "story", "set", "3-2", "completed", "--json").json
    assert done["story"]["status"] == "done"
    back = project.world.say("epic", "story", "set", "3-2", "ready")
    assert (back.code, "possible: nothing" in back.err) == (1, True)
    assert project.world.say("epic", "story", "set", "9-9", "done").code == 2
    assert project.world.say("epic", "story", "set", "3-3", "blocked").code == 2
    assert project.world.say("epic", "story", "set", "3-3", "banana").code == 2
    found = project.world.say("epic", "story", "list", "--json").json["stories"]
    assert {each["id"]: each["status"] for each in found} == {
        "3-1": "in_progress",
        "3-2": "done",
        "3-3": "ready",
    }


def test_what_is_not_there(project: Project) -> None:
    for words in (("status",), ("story", "list"), ("story", "set", "1", "done")):
        result = project.world.say("epic", *words)
        assert (result.code, result.out) == (2, ""), words
        assert "interlock epic run FILE" in result.err
    assert project.world.say("epic", "status", "nowhere").code == 1


BAD = [
    ("no-such-file.md", "cannot be read"),
    ("../../etc/passwd", "is not an epic's id"),
    ("a" * 300, "is not an epic's id"),
    ("empty.md", "is not an epic"),
    ("twice.yaml", "appears twice"),
    ("status.yaml", "is not a status"),
    ("list.yaml", "as a mapping"),
    ("nul.md", "NUL"),
    ("binary.md", "not UTF-8"),
    ("ids.yaml", "is not an epic's id"),
]


@pytest.mark.parametrize(("what", "complaint"), BAD)
def test_a_bad_epic_starts_nothing(project: Project, what: str, complaint: str) -> None:
    world = project.world
    world.write("empty.md", "nothing here\n")
    world.write("twice.yaml", "id: e\nstories: [{id: 1}, {id: 1}]\n")
    world.write("status.yaml", "id: e\nstatus: banana\n")
    world.write("list.yaml", "- 1\n")
    world.write("nul.md", "# Epic 1: \0\n")
    (world.folder / "binary.md").write_bytes(b"# Epic \xff\xfe\n")
    world.write("ids.yaml", "id: ../../x\n")
    result = world.say("epic", "run", what, *project.words)

    assert (result.code, result.out) == (2, ""), result.err
    assert complaint in result.err
    assert project.started == 0


@pytest.mark.parametrize(
    "words",
    [
        ("--agent", "basic"),
        ("--agent", "script:x.yaml"),
        ("--agent", "exec:no-such-command-here"),
        ("--session-timeout", "soon"),
        ("--idle-timeout", "0"),
        ("--max-cycles", "-1"),
        ("--hitl", "pigeon"),
    ],
)
def test_bad_words_start_nothing(project: Project, words: tuple[str, ...]) -> None:
    agent = () if words[0] == "--agent" else ("--agent", project.agent)
    result = project.world.say("epic", "run", "epic.md", *agent, *words)
    assert (result.code, project.started) == (2, 0), result.err


@pytest.mark.parametrize(
    "line",
    ['hitl = "pigeon"', "max_recoveries = 0", 'grace = "soon"', "[epic.git]\nahead = 'fly'"],
)
def test_bad_settings_are_told(world: World, line: str) -> None:
    project = Project(world, f"[epic]\n{line}\n")
    result = project.run([DONE])
    assert (result.code, project.started) == (2, 0)
    assert "interlock.toml" in result.err or "[epic]" in result.err or "ahead" in result.err


def test_an_epic_is_found_by_its_id_where_projects_keep_them(project: Project) -> None:
    project.world.write("docs/epics/sea/epic.md", "# The sea\n## Story 1.1: Waves\n")
    project.sessions(["SAGE_SIGNAL:STORY_COMPLETE:1-1", "SAGE_SIGNAL:EPIC_COMPLETE:sea:success"])
    result = project.world.say("epic", "run", "sea", *project.words)
    assert (result.json["epic_id"], result.json["outcome"]) == ("sea", "COMPLETE"), result.err


def test_people_are_told_of_the_question_and_of_the_end(world: World) -> None:
    notes = world.folder / "notes.jsonl"
    program = f"import sys; open({str(notes)!r}, 'a').write(sys.stdin.read())"
    teller = json.dumps([sys.executable, "-c", program])
    project = Project(world, SETTINGS + f"[notify]\ncommand = {teller}\n")
    project.run(["SAGE_SIGNAL:HITL_REQUIRED"])
    question = str(project.world.say("epic", "status", "--json").json["questions"][0])
    project.world.say("answer", question, "halt")
    project.resume()

    output = [each for each in _documents(notes) if each["event"] in ("gate", "over")]
    assert [each["event"] for each in output] == ["gate", "over"]
    assert output[1]["text"] == "run 1: unhealthy; 1 HALTED"


def _documents(path: Path) -> list[dict[str, str]]:
    decoder, text, found = json.JSONDecoder(), path.read_text().strip(), []
    while text:
        value, end = decoder.raw_decode(text)
        found.append(value)
        text = text[end:].strip()
    return found
