"""Test every end of a session and what follows it, with real sessions and the real command."""

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from epic_tests.world.epic_project import DONE, SETTINGS, SUCCESS, WRITE, Project
from interlock_epic.checkpoints.place import find_state_folder
from interlock_epic.checkpoints.record import Checkpoint
from interlock_epic.checkpoints.store import Checkpoints
from interlock_epic.status import Status
from tests.world.cli_agent import FakeCli, say
from tests.world.command_line import World
from tests.world.streams import Claude


@pytest.fixture
def project(world: World) -> Project:
    return Project(world)


ENDS: list[tuple[str, list[list[Any]], str, int, list[str]]] = [
    ("says nothing and leaves well", [[]], "NO_SIGNAL", 17, ["NOTHING"]),
    ("leaves with 1", [[{"exit": 1}]] * 4, "FATAL", 1, ["CRASH"] * 4),
    ("leaves with 2", [[{"exit": 2}], [DONE]], "COMPLETE", 0, ["CRASH", "EPIC_COMPLETE"]),
    ("leaves with 3", [[{"exit": 3}], [DONE]], "COMPLETE", 0, ["CRASH", "EPIC_COMPLETE"]),
    ("is killed", [[{"kill": signal.SIGKILL}], [DONE]], "COMPLETE", 0, ["CRASH", "EPIC_COMPLETE"]),
    ("says success and goes on", [[DONE, {"flood": 5000}]], "COMPLETE", 0, ["EPIC_COMPLETE"]),
    ("says success and leaves badly", [[DONE, {"exit": 1}]], "COMPLETE", 0, ["EPIC_COMPLETE"]),
    (
        "says partial",
        [["SAGE_SIGNAL:EPIC_COMPLETE:epic-3:partial"]],
        "PARTIAL",
        3,
        ["EPIC_COMPLETE"],
    ),
    ("says it bare", [["SAGE_SIGNAL:EPIC_COMPLETE"]], "PARTIAL", 3, ["EPIC_COMPLETE"]),
    (
        "says it of another epic",
        [["SAGE_SIGNAL:EPIC_COMPLETE:epic-4:success"]],
        "NO_SIGNAL",
        17,
        ["NOTHING"],
    ),
    (
        "says it in another case",
        [["SAGE_SIGNAL:epic_complete:epic-3:success"]],
        "NO_SIGNAL",
        17,
        ["NOTHING"],
    ),
    ("quotes it", [[f"the doc says {SUCCESS}", f"  {SUCCESS}"]], "NO_SIGNAL", 17, ["NOTHING"]),
    (
        "hangs after a checkpoint",
        [[WRITE, {"hang": 1}], [DONE]],
        "COMPLETE",
        0,
        ["CHECKPOINT_WRITE", "EPIC_COMPLETE"],
    ),
    (
        "says LOADED",
        [["SAGE_SIGNAL:CHECKPOINT:LOADED:epic-3:3-1", DONE]],
        "COMPLETE",
        0,
        ["EPIC_COMPLETE"],
    ),
    (
        "says only LOADED",
        [["SAGE_SIGNAL:CHECKPOINT:LOADED:epic-3:3-1"]],
        "NO_SIGNAL",
        17,
        ["NOTHING"],
    ),
    ("says MISSING", [["SAGE_SIGNAL:CHECKPOINT:MISSING"]], "NO_SIGNAL", 17, ["NOTHING"]),
    (
        "writes an implicit checkpoint",
        [["SAGE_SIGNAL:CHECKPOINT:epic-3:3-1:p:5"], [DONE]],
        "COMPLETE",
        0,
        ["CHECKPOINT_WRITE", "EPIC_COMPLETE"],
    ),
    (
        "writes a checkpoint without a task",
        [["SAGE_SIGNAL:CHECKPOINT:WRITE:epic-3:3-1:p"]],
        "NO_SIGNAL",
        17,
        ["NOTHING"],
    ),
    (
        "names no story",
        [["SAGE_SIGNAL:CHECKPOINT:WRITE:epic-3:a story:p:1"]],
        "NO_SIGNAL",
        17,
        ["NOTHING"],
    ),
    (
        "is fatal",
        [["SAGE_SIGNAL:FATAL_ERROR:SUBAGENT_FAILED:no: way"]],
        "FATAL",
        1,
        ["FATAL_ERROR"],
    ),
    (
        "is fatal beside a checkpoint",
        [[WRITE, "SAGE_SIGNAL:FATAL_ERROR:NO_CHECKPOINT"]],
        "FATAL",
        1,
        ["FATAL_ERROR"],
    ),
    (
        "can be tried again",
        [["SAGE_SIGNAL:RECOVERABLE_ERROR:SUBAGENT_FAILED:x"], [DONE]],
        "COMPLETE",
        0,
        ["RECOVERABLE_ERROR", "EPIC_COMPLETE"],
    ),
    (
        "recovered by itself",
        [["SAGE_SIGNAL:RECOVERY_COMPLETE:abc"], [DONE]],
        "COMPLETE",
        0,
        ["RECOVERY_COMPLETE", "EPIC_COMPLETE"],
    ),
    (
        "could not recover",
        [["SAGE_SIGNAL:RECOVERY_FAILED:no way back"]],
        "FATAL",
        1,
        ["RECOVERY_FAILED"],
    ),
    ("claims an approval", [["SAGE_SIGNAL:HITL_APPROVED:issue:7"]], "NO_SIGNAL", 17, ["NOTHING"]),
    ("asks a human", [["SAGE_SIGNAL:HITL_REQUIRED:issue:7"]], "WAITING", 4, ["HITL_REQUIRED"]),
    (
        "asks a human beside success",
        [["SAGE_SIGNAL:HITL_REQUIRED", DONE]],
        "WAITING",
        4,
        ["HITL_REQUIRED"],
    ),
    ("ends in half a line", [[{"raw": DONE}]], "COMPLETE", 0, ["EPIC_COMPLETE"]),
    (
        "is killed in half a line",
        [[{"raw": DONE[:-3]}, {"kill": 9}], [DONE]],
        "COMPLETE",
        0,
        ["CRASH", "EPIC_COMPLETE"],
    ),
    ("writes the same checkpoint twice", [[WRITE], [WRITE]], "LIMIT", 14, ["CHECKPOINT_WRITE"] * 2),
    ("uses unknown types", [["SAGE_SIGNAL:MOON_LANDED:1", DONE]], "COMPLETE", 0, ["EPIC_COMPLETE"]),
]


@pytest.mark.parametrize(
    ("sessions", "outcome", "code", "ends"), [row[1:] for row in ENDS], ids=[row[0] for row in ENDS]
)
def test_how_a_session_ends_decides_what_follows(
    project: Project, sessions: list[list[Any]], outcome: str, code: int, ends: list[str]
) -> None:
    output = project.run(*sessions)

    assert (output.json["outcome"], output.code) == (outcome, code), output.err
    assert output.json.get("exit_code", 4) == code
    assert project.ended_by() == ends
    assert project.started == len(ends)


def test_an_epic_from_its_first_session_to_its_last_leaves_all_in_its_checkpoint(
    project: Project,
) -> None:
    output = project.run(
        ["SAGE_SIGNAL:STORY_STARTED:3-1", WRITE],
        [
            "SAGE_SIGNAL:STORY_COMPLETE:3-1:success",
            "SAGE_SIGNAL:CHECKPOINT:WRITE:epic-3:3-2:phase-2:4",
        ],
        ["SAGE_SIGNAL:STORY_COMPLETE:3-2", "SAGE_SIGNAL:STORY_COMPLETE:3-3:skipped", DONE],
    )

    assert output.code == 0, output.err
    assert output.json["signals"] == [
        "SAGE_SIGNAL:CHECKPOINT:MISSING",
        "SAGE_SIGNAL:EPIC_STARTED:epic-3",
        "SAGE_SIGNAL:CHECKPOINT:LOADED:epic-3:3-1",
        "SAGE_SIGNAL:CHECKPOINT:LOADED:epic-3:3-2",
        "SAGE_SIGNAL:EPIC_COMPLETE:epic-3:success",
    ]
    kept = project.checkpoint()
    assert {each["id"]: each["status"] for each in kept["stories"]} == {
        "3-1": "done",
        "3-2": "done",
        "3-3": "skipped",
    }
    assert kept["epic"]["status"] == "done"
    assert kept["position"]["task"] == "4"
    assert kept["git"]["commit"] == project.repo.git("rev-parse", "HEAD")
    assert "story 3-2, phase-2, task 4." in project.prompt(3)
    assert not project.prompt(1).startswith("/")
    assert "must hold: A sailor can log in." in project.prompt(1)

    again = project.run([{"exit": 97}])
    assert (again.code, again.json["outcome"], project.started) == (0, "COMPLETE", 0)


WRITTEN = "SAGE_SIGNAL:CHECKPOINT:WRITE:epic-3:3-1:p:1"


def test_a_line_for_a_checkpoint_that_was_written_goes_on(project: Project) -> None:
    words = ("--epic", "epic-3", "--story", "3-1", "--phase", "p", "--task", "1")
    write = [sys.executable, "-m", "interlock", "epic", "checkpoint", "write", *words]
    output = project.run([{"run": ["env", "-u", "INTERLOCK_CHANNEL", *write]}, WRITTEN], [DONE])

    assert (output.json["outcome"], output.json["sessions"]) == ("COMPLETE", 2), output.err


def test_success_without_a_story_that_is_done_is_none(project: Project) -> None:
    output = project.run(["SAGE_SIGNAL:STORY_STARTED:3-1", SUCCESS])

    assert (output.json["outcome"], output.code) == ("PARTIAL", 3)
    assert output.json["reason"] == "the session reported success, but none of 3 stories is done"


def test_a_completion_for_another_epic_is_named(project: Project) -> None:
    output = project.run(["SAGE_SIGNAL:EPIC_COMPLETE:epic-4:success"])

    assert output.json["reason"].startswith(
        "EPIC_COMPLETE:epic-4:success does not count: this session works on epic-3; "
    )


@pytest.mark.parametrize(
    ("lines", "code", "reason"),
    [
        (["SAGE_SIGNAL:RECOVERY_FAILED:disk full"], "GIT_STATE_MISMATCH", "disk full"),
        (
            ["SAGE_SIGNAL:RECOVERY_FAILED:MAX_RETRIES_EXCEEDED: tried five times"],
            "MAX_RETRIES_EXCEEDED",
            "tried five times",
        ),
    ],
)
def test_a_sessions_own_reason_why_recovery_failed_is_kept(
    project: Project, lines: list[str], code: str, reason: str
) -> None:
    output = project.run(lines)

    assert (output.json["outcome"], output.json["code"], output.json["reason"]) == (
        "FATAL",
        code,
        reason,
    )
    assert output.json["signals"][-1] == f"SAGE_SIGNAL:FATAL_ERROR:{code}:{reason}"
    assert project.checkpoint()["failures"][-1]["message"] == reason


def test_our_own_signals_are_on_stdout(project: Project) -> None:
    project.sessions([WRITE], [{"exit": 1}], [DONE])
    output = project.world.say("epic", "run", "epic.md", "--agent", project.agent)

    lines = [line for line in output.out.splitlines() if line.startswith("SAGE_SIGNAL:")]
    assert lines == [
        "SAGE_SIGNAL:CHECKPOINT:MISSING",
        "SAGE_SIGNAL:EPIC_STARTED:epic-3",
        "SAGE_SIGNAL:CHECKPOINT:LOADED:epic-3:3-1",
        "SAGE_SIGNAL:CHECKPOINT:LOADED:epic-3:3-1",
        "SAGE_SIGNAL:EPIC_COMPLETE:epic-3:success",
    ]
    assert "SAGE_SIGNAL" not in output.err
    assert project.checkpoint()["metrics"]["clears_performed"] == 1


def test_a_loaded_checkpoint_names_its_story_before_there_is_a_position(project: Project) -> None:
    output = project.run([{"exit": 1}], [DONE])

    assert "SAGE_SIGNAL:CHECKPOINT:LOADED:epic-3:3-1" in output.json["signals"]


def test_a_failed_story_contradicts_success(project: Project) -> None:
    output = project.run(["SAGE_SIGNAL:STORY_COMPLETE:3-1:failed", SUCCESS])

    assert (output.json["outcome"], output.code) == ("PARTIAL", 3)
    assert output.json["reason"] == "the session reported success, but story 3-1 is failed"


def test_a_crash_is_told_to_the_next_session_and_counted_anew_after_progress(
    project: Project,
) -> None:
    die: list[Any] = [{"tell": "the disk is on fire"}, {"exit": 9}]
    other = "SAGE_SIGNAL:CHECKPOINT:WRITE:epic-3:3-2:phase-1:1"
    output = project.run(die, die, die, [WRITE], die, die, die, [other], [DONE])

    assert (output.json["outcome"], output.json["sessions"]) == ("COMPLETE", 9), output.err
    assert "CRASH: exit code 9: the disk is on fire" in project.prompt(2)


def test_the_limits_of_cycles_and_of_retries(project: Project) -> None:
    writes = [[f"SAGE_SIGNAL:CHECKPOINT:WRITE:epic-3:3-1:p:{number}"] for number in range(4)]
    output = project.run(*writes, more=("--max-cycles", "2"))
    assert (output.json["outcome"], output.code, project.started) == ("LIMIT", 14, 3)

    error = ["SAGE_SIGNAL:RECOVERABLE_ERROR:SUBAGENT_FAILED:the tests are red"]
    output = project.resume(*[error] * 7)
    assert (output.json["outcome"], output.code, project.started) == ("FATAL", 1, 6)
    assert (output.json["code"], output.json["reason"]) == (
        "MAX_RETRIES_EXCEEDED",
        "the tests are red",
    )
    assert output.json["signals"][-1] == (
        "SAGE_SIGNAL:FATAL_ERROR:MAX_RETRIES_EXCEEDED:the tests are red"
    )
    assert project.checkpoint()["epic"]["status"] == "failed"


@pytest.mark.parametrize(
    ("flag", "ended"),
    [("--session-timeout", "SESSION_TIMEOUT"), ("--idle-timeout", "IDLE_TIMEOUT")],
)
def test_a_session_that_takes_too_long_is_ended_and_at_last_a_limit(
    project: Project, flag: str, ended: str
) -> None:
    output = project.run(*[["working", {"hang": 1}]] * 4, more=(flag, "300ms"))

    assert (output.json["outcome"], output.code) == ("LIMIT", 14), output.err
    assert project.ended_by() == [ended] * 4


DECISIONS = [
    ("discuss", "PAUSED_DISCUSS", 10, "paused", "HITL_DISCUSS"),
    ("defer", "PAUSED_DEFERRED", 12, "deferred", "HITL_WAITING"),
    ("halt", "HALTED", 13, "halted", "HITL_HALT"),
]


@pytest.mark.parametrize(("word", "outcome", "code", "status", "signal"), DECISIONS)
def test_a_human_who_does_not_approve_holds_the_work_until_one_does(
    project: Project, word: str, outcome: str, code: int, status: str, signal: str
) -> None:
    project.run(["SAGE_SIGNAL:HITL_REQUIRED:issue:7"])
    question = str(_question(project))
    project.world.say("answer", question, word)
    output = project.resume()

    assert (output.json["outcome"], output.code) == (outcome, code), output.err
    assert output.json["signals"][-1] == f"SAGE_SIGNAL:{signal}:issue:7"
    assert project.checkpoint()["epic"]["status"] == status

    late = project.world.say("answer", question, "approve")
    assert late.code == 1, "the question is settled"
    again = project.resume([DONE])
    assert (again.json["outcome"], again.code, project.started) == ("WAITING", 4, 0)
    project.world.say("answer", str(_question(project)), "approve")
    done = project.resume()
    assert (done.json["outcome"], project.started) == ("COMPLETE", 1)


def test_what_a_human_wants_changed_reaches_the_next_session(project: Project) -> None:
    project.run([WRITE], ["SAGE_SIGNAL:HITL_REQUIRED"], [DONE])
    question = str(_question(project))
    project.world.say("answer", question, "revise", "-m", "rename the table")
    output = project.resume()

    assert output.json["outcome"] == "COMPLETE"
    assert f"SAGE_SIGNAL:HITL_REVISE:issue:{question}" in output.json["signals"]
    assert "First: A human wants changes: rename the table" in project.prompt(3)


def test_nobody_answers_in_time(world: World) -> None:
    project = Project(world, SETTINGS + 'hitl_timeout = "50ms"\n')
    output = project.run(["SAGE_SIGNAL:HITL_REQUIRED"], more=("--wait",))

    assert (output.json["outcome"], output.code) == ("PAUSED_TIMEOUT", 11)
    assert output.json["signals"][-1].startswith("SAGE_SIGNAL:HITL_TIMEOUT:issue:")
    assert project.checkpoint()["hitl"]["response"] == "timeout"


def _question(project: Project) -> int:
    found = project.world.say("epic", "status", "--json").json["questions"]
    assert len(found) == 1
    return int(found[0])


def test_git_that_went_back_is_asked_about_and_taken_as_it_is_when_a_human_says_so(
    project: Project,
) -> None:
    first = project.repo.git("rev-parse", "HEAD")
    project.repo.commit("two", {"a.txt": "two\n"})
    project.run([WRITE, {"exit": 0}], [{"exit": 0}])
    project.repo.git("reset", "--hard", "-q", first)

    output = project.resume([DONE])
    assert (output.json["outcome"], output.code, project.started) == ("WAITING", 4, 0)
    assert [line.split(":")[1] for line in output.json["signals"]] == [
        "CHECKPOINT",
        "RECOVERY_STARTED",
        "HITL_REQUIRED",
        "HITL_WAITING",
    ]
    project.world.say("answer", str(_question(project)), "continue")
    done = project.resume()
    assert (done.json["outcome"], project.started) == ("COMPLETE", 1), done.err
    assert f"SAGE_SIGNAL:RECOVERY_COMPLETE:{first}" in done.json["signals"]


def test_git_that_the_policy_refuses_is_its_own_end(project: Project) -> None:
    project.run([WRITE], [])
    project.world.write("interlock.toml", SETTINGS + '[epic.git]\nother_branch = "refuse"\n')
    project.repo.git("checkout", "-q", "-b", "elsewhere")
    output = project.resume([DONE])

    assert (output.json["outcome"], output.code, project.started) == ("GIT_MISMATCH", 16, 0)
    assert output.json["code"] == "GIT_STATE_MISMATCH"
    assert output.json["signals"][-1].startswith("SAGE_SIGNAL:FATAL_ERROR:GIT_STATE_MISMATCH:")


def test_nothing_to_resume_from(project: Project) -> None:
    for words in (("resume",), ("resume", "epic-3"), ("run", "epic-3")):
        output = project.world.say("epic", *words, *project.words)
        assert (output.json["outcome"], output.code) == ("NO_CHECKPOINT", 15), words
        assert output.json["signals"][-1].startswith("SAGE_SIGNAL:FATAL_ERROR:NO_CHECKPOINT:")
    assert project.started == 0


def test_a_damaged_checkpoint_is_fatal_and_starts_nothing(project: Project) -> None:
    project.run([WRITE], [])
    for path in project.world.folder.rglob("epic-3.json*"):
        path.write_text('{"version": 2, "epic"')
    output = project.resume([DONE])

    assert (output.json["outcome"], output.code, project.started) == ("FATAL", 1, 0)
    assert output.json["code"] == "CHECKPOINT_CORRUPT"


def test_what_a_session_says_over_the_channel_counts_and_printed_too_it_counts_once(
    project: Project,
) -> None:
    command = [sys.executable, "-m", "interlock"]
    write = [*command, "epic", "checkpoint", "write", "--epic", "epic-3", "--story", "3-2"]
    output = project.run(
        [{"run": [*write, "--phase", "p", "--task", "9", "--note", "mind the gap"]}, {"hang": 1}],
        [
            "SAGE_SIGNAL:STORY_COMPLETE:3-2:done",
            {"run": [*command, "emit", "EPIC_COMPLETE", "epic-3:success"]},
        ],
    )

    assert (output.json["outcome"], output.code) == ("COMPLETE", 0), output.err
    assert "left this note: mind the gap" in project.prompt(2)
    found = project.world.say("epic", "status", "--json").json["sessions"]
    received = [json.loads(line) for line in _lines(found[0]["record"])]
    assert [each["via"] for each in received[1:]] == ["channel"]


def _lines(path: str) -> list[str]:
    return Path(path).read_text().splitlines()


def test_the_resume_prompt_of_the_project_is_sent_as_it_is(world: World) -> None:
    project = Project(world, SETTINGS + 'resume_prompt = "/assistant *resume"\n')
    project.run([DONE])
    assert project.prompt(1).strip() == "/assistant *resume"


def test_a_flood_of_signals_is_counted_and_changes_no_outcome(project: Project) -> None:
    """Test a flood of signals; INTERLOCK_SIGNALS=1000000 sends more."""
    many = int(os.environ.get("INTERLOCK_SIGNALS", "100000"))
    story = "SAGE_SIGNAL:STORY_COMPLETE:3-1:done"
    output = project.run([story, {"flood": many}, SUCCESS])

    assert (output.json["outcome"], output.code) == ("COMPLETE", 0), output.err
    found = project.world.say("epic", "status", "--json").json["sessions"]
    assert found[0]["counted"] == {"all": many + 2, "refused": 0, "repeated": 0}


def test_an_agent_cli_is_heard_by_its_own_messages_and_not_by_its_tools(world: World) -> None:
    fatal = "SAGE_SIGNAL:FATAL_ERROR:SUBAGENT_FAILED:quoted from a document"
    fake = FakeCli(
        world.folder / "claude",
        say(
            Claude.init(),
            Claude.uses("t"),
            Claude.used("t", f"{fatal}\n{SUCCESS}"),
            Claude.text_event(f"The document says:\n```\n{fatal}\n```\n\n{WRITE}"),
            Claude.result("x"),
        ),
        say(Claude.init(), Claude.text_event(DONE), Claude.result(DONE)),
    )
    settings = f'{SETTINGS}[agent.claude]\ncommand = "{fake.program}"\nclocks = {{grace = 0.3}}\n'
    project = Project(world, settings)
    output = world.say("epic", "run", "epic.md", "--agent", "claude", "--json")

    assert (output.json["outcome"], output.code) == ("COMPLETE", 0), output.err
    assert project.ended_by() == ["CHECKPOINT_WRITE", "EPIC_COMPLETE"]
    assert {call["env"]["SAGE_ORCHESTRATOR"] for call in fake.calls()} == {"1"}
    assert project.checkpoint()["position"]["story_id"] == "3-1"


def test_a_checkpoint_that_cannot_be_written_is_fatal_and_never_a_restart(
    project: Project,
) -> None:
    link = ".sage/state/epic-3.json"
    act = {"run": ["sh", "-c", f"rm -f {link}; ln -s /dev/null {link}"]}
    output = project.run([act, WRITE], [DONE])

    assert (output.json["outcome"], output.code, project.started) == ("FATAL", 1, 1), output.err


def test_an_epic_that_was_cancelled_is_not_begun_again(project: Project) -> None:
    project.run([WRITE], [])
    kept = Checkpoints(find_state_folder(project.world.folder))
    kept.update("epic-3", _cancelled, "2026-01-01T00:00:00+00:00")
    output = project.resume([DONE])

    assert (output.json["outcome"], project.started) == ("FATAL", 0)
    assert "the epic is cancelled" in output.json["reason"]


def _cancelled(before: Checkpoint | None) -> Checkpoint:
    assert before is not None
    epic = msgspec.structs.replace(before.epic, status=Status.CANCELLED)
    return msgspec.structs.replace(before, epic=epic)


def test_the_circuit_is_not_run_with_cases_of_somebodys_own(project: Project) -> None:
    project.world.cases("A")
    words = ("run", "epic", "--cases", "cases.jsonl", "--agent", project.agent)
    output = project.world.say(*words)
    assert (output.code, "interlock epic run" in output.err) == (2, True)
