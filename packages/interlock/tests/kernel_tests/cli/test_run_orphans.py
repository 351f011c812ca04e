"""What agents left when Interlock was killed is ended when the run goes on; nobody else's is."""

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from interlock.carriers.cli.ownership import ProcessTag
from interlock.carriers.registry import workspace_owner
from interlock.journal.runs import FINISHED
from tests.world import triage
from tests.world.carrier_bench import gone, noted
from tests.world.command_line import LIMIT, World, until

DAEMON = """\
#!/bin/sh
if [ -e answer ]; then echo '{"confidence": 0.9}'; exit; fi
trap '' TERM
setsid sh -c 'trap "" TERM; echo $$ > daemon; exec sleep 300' &
setsid env -i sh -c 'trap "" TERM; echo $$ > stranger; exec sleep 300' &
echo $$ > agent
exec sleep 300
"""
RUN = ("run", "triage", "--cases", "cases.jsonl", "--agent", "exec:./agent.sh", "--json")


@contextmanager
def at_work(folder: Path) -> Iterator[tuple[World, "subprocess.Popen[str]", list[int]]]:
    """A run whose agent has left a daemon in a session of its own; whoever is left is ended."""
    folder.mkdir()
    world = triage.lay_out(World(folder))
    world.cases("A")
    world.write("agent.sh", DAEMON).chmod(0o755)
    run = world.start(*RUN)
    names = ("agent", "daemon", "stranger")
    until(lambda: all(noted(folder / name) for name in names), "the agent works")
    pids = [int(noted(folder / name)) for name in names]
    try:
        yield world, run, pids
    finally:
        run.kill()
        run.communicate(timeout=LIMIT)
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def lives(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


def test_what_a_killed_interlock_left_is_ended_when_the_run_goes_on(tmp_path: Path) -> None:
    with at_work(tmp_path / "killed") as (world, run, pids):
        run.send_signal(signal.SIGKILL)
        run.communicate(timeout=LIMIT)
        assert all(map(lives, pids))
        world.write("answer", "")
        result = world.type("resume", "--json")
        assert (result.code, result.json["ends"]) == (0, {"kept": 1})
        assert all(map(gone, pids))
        output = "ended 3 processes that agents of an earlier Interlock had left: "
        assert output in result.err
        assert all(f"({pid})" in result.err for pid in pids)


def test_a_second_interlock_that_lives_keeps_its_agents(tmp_path: Path) -> None:
    with (
        at_work(tmp_path / "here") as (world, run, pids),
        at_work(tmp_path / "there") as (_, _theirs, others),
    ):
        run.send_signal(signal.SIGKILL)
        run.communicate(timeout=LIMIT)
        world.write("answer", "")
        assert world.type("resume", "--json").code == 0
        assert all(map(gone, pids))
        assert all(map(lives, others))


@pytest.mark.parametrize("run", ["1", "2", "99", "x", "9" * 60])
def test_which_runs_are_over_is_what_the_database_says(tmp_path: Path, run: str) -> None:
    world = triage.lay_out(World(tmp_path))
    our = workspace_owner(world.db)
    assert not our.is_over(ProcessTag(our.workspace, run, "1", "a")), "there is no database yet"
    assert triage.done(world).code == 3
    assert world.say("runs", "--json").json["runs"][0]["status"] in FINISHED
    assert our.is_over(ProcessTag(our.workspace, run, "1", "a")) is (run == "1")
