"""A run as programs hold it: watched, awaited, stopped, killed, taken up again."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import interlock
from interlock.system.errors import StateError, StoreError, UsageError
from interlock.testing import make_project
from tests.world.carrier_bench import appears
from tests.world.note import AGENTS, NOTE, PATIENCE, RAIN, approve, author, until
from tests.world.places import ROOT


def test_start_watch_answer_wait_explain(project: interlock.Project) -> None:
    run = project.start("note", RAIN, id="monday", agents=AGENTS)
    assert [str(event) for event in run.events()] == [
        "C1: write #1 artifact -> judge",
        "C1: judge #1 artifact -> allow",
    ]
    assert (run.status, run.counts) == ("waiting", {"open": 1})
    (question,) = project.inbox(run)
    assert (question.case_id, question.step) == ("C1", "allow")
    assert question.options == ("approve", "revise", "reject")
    saved = project.answer(question, "approve", by="reviewer")
    assert (saved.question_id, saved.run_id) == (question.question_id, run.number)
    result = run.wait(PATIENCE)
    assert (result.status, result.run_id) == ("done", run.number)
    assert "came back by reviewer: artifact" in str(run.explain("C1"))
    assert (run.id, run.counts) == ("monday", {"sent": 1})
    assert [case.end for case in run.cases("ended")] == ["sent"]
    assert repr(run) == "<Run monday: done>"


async def test_the_same_in_async_code(project: interlock.Project) -> None:
    """A loop runs in the calling thread already, as in a notebook."""
    run = project.start("note", RAIN, agents=AGENTS)
    seen = [event.to async for event in run.events()]
    assert seen == ["judge", "allow"]
    approve(project, run)
    assert (await run).status == "done"
    assert [event.seq async for event in run.events(after=2)] == [3, 4]


async def test_plain_calls_work_beside_a_running_loop(project: interlock.Project) -> None:
    run = project.start("note", RAIN, agents=AGENTS)
    assert run.wait(PATIENCE).status == "waiting"
    assert len(list(run.events())) == 2


async def test_who_gives_up_waiting_can_go_on(project: interlock.Project) -> None:
    going = threading.Event()
    run = project.start("note", RAIN, agents={**AGENTS, "author": until(going)})
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await run
    going.set()
    assert (await run).status == "waiting"


def test_events_go_on_once_people_have_answered(project: interlock.Project) -> None:
    run = project.start("note", RAIN, agents=AGENTS)
    last = list(run.events())[-1]
    approve(project, run)
    assert [event.to for event in run.events(after=last.seq)] == ["send", "sent"]


def test_a_run_is_found_by_number_id_and_age(project: interlock.Project) -> None:
    one = project.start("note", RAIN, id="monday", agents=AGENTS)
    one.wait(PATIENCE)
    two = project.start("note", RAIN, id="tuesday", agents=AGENTS)
    two.wait(PATIENCE)
    assert (project.run("monday"), project.run(1), project.run()) == (one, one, two)
    assert project.runs() == [one, two]
    assert project.runs("done") == []
    with pytest.raises(StateError, match="there is no run 'friday'"):
        project.run("friday")


def test_stop_and_resume(project: interlock.Project) -> None:
    going, asked = threading.Event(), threading.Event()

    def slow(dispatch: interlock.Dispatch) -> str:
        asked.set()
        return str(until(going)(dispatch))

    run = project.start("note", RAIN, agents={**AGENTS, "author": slow})
    assert asked.wait(PATIENCE)
    run.stop(now=True)
    assert run.status == "stopped"
    going.set()
    assert run.resume().wait(PATIENCE).status == "waiting"
    assert [event.attempt for event in run.events()] == [1, 1]


def test_leaving_the_block_stops_the_work_and_loses_nothing(tmp_path: Path) -> None:
    going, asked = threading.Event(), threading.Event()

    def slow(dispatch: interlock.Dispatch) -> str:
        asked.set()
        return str(until(going)(dispatch))

    with make_project(tmp_path, circuits={"note": NOTE}) as project:
        run = project.start("note", RAIN, id="monday", agents={**AGENTS, "critic": slow})
        assert asked.wait(PATIENCE)
    assert run.status == "stopped"
    with pytest.raises(StateError, match="this project is closed"):
        run.resume()
    going.set()
    with interlock.Project(tmp_path) as project:
        with pytest.raises(UsageError, match=r"critic was answered by the Python function .*slow"):
            project.resume("monday", agents={"author": author, "mailer": "exec:true"})
        again = project.resume("monday", agents=AGENTS)
        assert again.wait(PATIENCE).status == "waiting"
        assert [event.step for event in again.events()] == ["write", "judge"]


def test_leaving_at_once_does_not_wait_for_anybody(tmp_path: Path) -> None:
    """The work may not even have begun."""
    asked = list[str]()

    def author(dispatch: interlock.Dispatch) -> str:
        asked.append(dispatch.case_id)
        threading.Event().wait(PATIENCE)
        return "Too late."

    for number in range(5):
        with make_project(tmp_path, circuits={"note": NOTE}) as project:
            run = project.start("note", RAIN, id="monday", agents={**AGENTS, "author": author})
        assert run.status == "stopped", number
    assert len(asked) <= 5
    assert list(run.events()) == []


def test_what_is_over_is_not_resumed(project: interlock.Project) -> None:
    run = project.start("note", RAIN, agents={**AGENTS, "author": ValueError_})
    assert run.wait(PATIENCE).status == "unhealthy"
    assert interlock.Project(project.path).run().wait().counts.unhealthy == 1
    with pytest.raises(StateError, match=r"is over \(unhealthy\); there is nothing to do"):
        run.resume()


def ValueError_(dispatch: interlock.Dispatch) -> str:  # noqa: N802 - an agent that only fails
    raise ValueError


def test_wait_gives_up_after_its_timeout(project: interlock.Project) -> None:
    going = threading.Event()
    run = project.start("note", RAIN, id="monday", agents={**AGENTS, "author": until(going)})
    with pytest.raises(TimeoutError, match=r"run monday is still at work after 0\.01 s"):
        run.wait(0.01)
    going.set()
    assert run.wait(PATIENCE).status == "waiting"


PROGRAM = """\
import json, os, sys, time
from pathlib import Path
import interlock
from tests.world.note import AGENTS

def author(dispatch):
    with Path("calls").open("a") as calls:
        calls.write(f"{dispatch.id} {dispatch.case_id}\\n")
    if dispatch.case_id == "C2" and sys.argv[1] == "hang":
        Path("hangs").write_text("now\\n")
        time.sleep(600)
    return "Text."

cases = [{"id": f"C{n}", "topic": "rain"} for n in (1, 2, 3)]
with interlock.Project(".") as project:
    run = project.start("note", cases, id="monday", slots=1,
                        agents={**AGENTS, "author": author})
    print(json.dumps({"status": run.wait().status, "counts": run.counts, "run": run.number}))
"""


def start_program(folder: Path, word: str) -> "subprocess.Popen[str]":
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, word],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path},
        stdout=subprocess.PIPE,
        text=True,
    )


async def test_a_program_that_is_killed_goes_on_under_the_same_id(
    project: interlock.Project, tmp_path: Path
) -> None:
    first = start_program(tmp_path, "hang")
    await appears(tmp_path / "hangs")

    # Meanwhile another process sees the run, and may not write.
    seen = project.run("monday")
    assert seen.status == "running"
    assert [event.case_id for event in project.run("monday").cases("open")] == ["C1", "C2", "C3"]
    with pytest.raises(TimeoutError):
        seen.wait(0.01)
    with pytest.raises(StateError, match="not worked on by this program"):
        seen.stop()
    with pytest.raises(StoreError, match=f"in use by process {first.pid}"):
        project.start("note", RAIN, id="tuesday", agents=AGENTS)

    first.send_signal(signal.SIGKILL)
    first.wait()
    assert first.stdout is not None
    first.stdout.close()
    assert seen.status == "interrupted"
    assert project.runs("interrupted") == [seen]
    assert project.runs("running") == []
    before = [str(event) for event in seen.events()]
    assert len(before) >= 1

    second = start_program(tmp_path, "go")
    out, _ = second.communicate(timeout=PATIENCE)
    assert json.loads(out) == {"status": "waiting", "counts": {"open": 3}, "run": 1}
    events = list(seen.events())
    assert [str(event) for event in events][: len(before)] == before
    decided = [(event.case_id, event.step) for event in events]
    assert sorted(decided) == sorted({*decided})  # each decision exactly once
    assert len(decided) == 6
    # The dispatch that was out came again under its number; none that was decided did.
    calls = (tmp_path / "calls").read_text().split("\n")[:-1]
    assert sorted(calls) == sorted([*{*calls}, next(c for c in calls if c.endswith("C2"))])


def test_the_shell_says_how_a_run_with_functions_goes_on(
    project: interlock.Project, tmp_path: Path
) -> None:
    run = project.start("note", RAIN, agents=AGENTS)
    run.wait(PATIENCE)
    approve(project, run)
    words = [sys.executable, "-m", "interlock", "resume"]
    found = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert found.returncode == 2
    assert found.stderr == (
        "interlock: author was answered by the Python function author; continue from the "
        "program that has it, or name another agent: --agent author=AGENT\n"
    )
    others = [f"--agent={role}=exec:echo '{{}}'" for role in ("author", "critic", "mailer")]
    subprocess.run([*words, *others], cwd=tmp_path, capture_output=True, check=True)
    assert run.status == "done"


def test_two_projects_on_one_database(tmp_path: Path) -> None:
    going = threading.Event()
    with (
        make_project(tmp_path, circuits={"note": NOTE}) as one,
        interlock.Project(tmp_path) as two,
    ):
        run = one.start("note", RAIN, agents={**AGENTS, "author": until(going)})
        with pytest.raises(StoreError, match="is in use by process"):
            two.start("note", RAIN, id="other", agents=AGENTS)
        assert one.writer() is not None
        going.set()
        run.wait(PATIENCE)
        assert one.writer() is None
        assert two.start("note", RAIN, id="other", agents=AGENTS).wait(PATIENCE)
