"""Test that an epic killed at bad moments continues without losing or repeating anything."""

import json
import os
import signal
from pathlib import Path

import pytest

from epic_tests.world.epic_project import DONE, WRITE, Project
from tests.world.command_line import World, ended, until


@pytest.fixture
def project(world: World) -> Project:
    return Project(world)


def _records(project: Project) -> list[Path]:
    return sorted(project.world.folder.rglob("sessions/*.jsonl"))


def _list_types(path: Path) -> list[str]:
    return [json.loads(line).get("type", "BEGAN") for line in path.read_text().splitlines()]


def _hangs(project: Project) -> int:
    note = project.script.with_suffix(".hangs")
    until(lambda: note.exists() and note.read_text(), "the session hangs")
    return int(note.read_text())


def _alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().split(")")[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_a_killed_supervisor_leaves_no_session_behind_and_asks_again_under_the_same_number(
    project: Project,
) -> None:
    project.sessions(["SAGE_SIGNAL:STORY_STARTED:3-2", {"hang": 1}], [DONE])
    process = project.world.start("epic", "run", "epic.md", *project.words)
    session = _hangs(project)
    until(lambda: "STORY_STARTED" in _list_types(_records(project)[0]), "it is heard")
    process.kill()
    process.communicate()

    result = project.resume()

    assert (result.json["outcome"], result.json["sessions"]) == ("COMPLETE", 1), result.err
    assert not _alive(session)
    assert _list_types(_records(project)[0]) == [
        "BEGAN",
        "STORY_STARTED",
        "BEGAN",
        "STORY_COMPLETE",
        "EPIC_COMPLETE",
    ]
    assert project.checkpoint()["stories"][1] == {
        **project.checkpoint()["stories"][1],
        "id": "3-2",
        "status": "in_progress",
    }


@pytest.mark.parametrize("both", [False, True])
def test_a_last_word_that_was_heard_before_the_kill_counts_and_is_not_asked_for_again(
    world: World, both: bool
) -> None:
    project = Project(world, '[epic]\ngrace = "1h"\nbackoff = "0"\n')
    project.sessions([WRITE, {"hang": 1}], [DONE])
    process = project.world.start("epic", "run", "epic.md", *project.words)
    session = _hangs(project)
    until(lambda: "CHECKPOINT:WRITE" in _list_types(_records(project)[0]), "it is heard")
    process.kill()
    process.communicate()
    if both:
        os.kill(session, signal.SIGKILL)

    result = project.resume()

    assert (result.json["outcome"], result.json["sessions"], project.started) == ("COMPLETE", 2, 2)
    assert project.ended_by() == ["CHECKPOINT_WRITE", "EPIC_COMPLETE"]
    assert not _alive(session)
    assert "story 3-1, phase-1, task 1." in project.prompt(2)


def test_a_killed_session_is_a_crash_and_another_one_goes_on(project: Project) -> None:
    project.sessions(["SAGE_SIGNAL:STORY_STARTED:3-1", {"hang": 1}], [DONE])
    process = project.world.start("epic", "run", "epic.md", *project.words)
    os.kill(_hangs(project), signal.SIGKILL)
    result = ended(process)

    assert (result.json["outcome"], result.code) == ("COMPLETE", 0), result.err
    assert project.ended_by() == ["CRASH", "EPIC_COMPLETE"]
    assert project.checkpoint()["failures"][0]["message"].startswith("killed by signal 9")


def test_a_second_supervisor_is_told_that_it_is_locked_out(project: Project) -> None:
    project.sessions([{"hang": 1}], [DONE])
    process = project.world.start("epic", "run", "epic.md", *project.words)
    _hangs(project)
    try:
        second = project.world.say("epic", "run", "epic.md", *project.words)
        elsewhere = project.world.say("epic", "resume", *project.words, "--db", "other.db")
    finally:
        process.kill()
        process.communicate()

    for result in (second, elsewhere):
        assert (result.code, result.json["outcome"], result.json["exit_code"]) == (18, "LOCKED", 18)
        assert f"process {process.pid}" in result.json["reason"] or "PID" in result.json["reason"]
    assert project.resume().json["outcome"] == "COMPLETE"


@pytest.mark.soak
def test_a_supervisor_that_is_told_to_stop_twice_ends_its_session_and_can_be_resumed(
    project: Project,
) -> None:
    project.sessions([{"hang": 1}], [DONE])
    process = project.world.start("epic", "run", "epic.md", *project.words)
    session = _hangs(project)
    process.send_signal(signal.SIGTERM)
    process.send_signal(signal.SIGINT)
    result = ended(process)

    assert (result.code, result.json["outcome"]) in ((143, "STOPPED"), (130, "STOPPED"))
    assert not _alive(session)
    assert project.resume().json["outcome"] == "COMPLETE"


def test_a_question_stays_open_over_a_kill_and_so_does_its_deadline(project: Project) -> None:
    project.sessions(["SAGE_SIGNAL:HITL_REQUIRED"], [DONE])
    process = project.world.start("epic", "run", "epic.md", *project.words, "--wait")
    status = ("epic", "status", "--json")
    until(lambda: project.started == 1, "it is asked")
    until(lambda: _questions(project), "it is asked")
    before = _questions(project)
    until(lambda: project.checkpoint()["hitl"]["deadline"], "it is noted until when")
    asked = project.checkpoint()["hitl"]
    process.kill()
    process.communicate()

    again = project.resume()
    assert (again.json["outcome"], again.json["questions"]) == ("WAITING", before)
    assert (project.checkpoint()["hitl"], asked["request_id"]) == (asked, str(before[0]))
    answered = project.world.say("answer", str(before[0]), "approve")
    done = project.resume()
    assert done.json["outcome"] == "COMPLETE", (answered, done)
    assert project.world.say(*status).json["outcome"] == "COMPLETE"


def _questions(project: Project) -> list[int]:
    if not project.world.db.exists():
        return []
    result = project.world.say("epic", "status", "epic-3", "--json")
    found: list[int] = result.json["questions"] if result.out else []
    return found
