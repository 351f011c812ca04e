"""Epics whose sessions run on other hosts: real workers, a real server, a git remote between them.

A worker that dies or comes too late costs its session and nothing else.
"""

import signal
import socket
import sys
from pathlib import Path

import psycopg
import pytest
from tests.api.test_worker import started
from tests.cli.epic_project import DONE, SETTINGS, WRITE, Project
from tests.cli.world import World, until
from tests.world.carrier_bench import gone
from tests.world.git_repo import GitRepo
from tests.world.processes import hear

from interlock.journal.address import PostgresAddress

INTERLOCK = [sys.executable, "-m", "interlock"]
CHECKPOINT = ("epic", "checkpoint", "write", "--epic", "epic-3", "--story", "3-1", "--phase", "p")
FIRST = [*INTERLOCK, *CHECKPOINT, "--task", "1", "--note", "mind the rudder"]
RESTORE = [*INTERLOCK, "epic", "checkpoint", "restore-stash"]
EPIC = ("epic", "run", "epic.md", "--json", "--agent", "worker")


class Fleet(Project):
    """A project, its remote, and hosts that share nothing else with it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "project").mkdir()
        super().__init__(World(folder / "project"), SETTINGS)
        self.remote = GitRepo(folder / "remote.git", bare=True)
        self.script = folder / "script.json"

    def connect(self) -> None:
        self.world.write("interlock.toml", f'{SETTINGS}remote = "{self.remote.folder}"\n')
        self.repo.commit("two", {"b.txt": "b\n"})

    def host(self, name: str) -> tuple[World, tuple[str, ...]]:
        folder = self.folder / name
        folder.mkdir(exist_ok=True)
        role = ("--role", f"session={self.agent}")
        return World(folder), ("worker", "--name", name, *role, "--lease", "2")

    def subjects(self) -> list[str]:
        return self.repo.git("log", "--format=%s").split("\n")


@pytest.fixture
def fleet(tmp_path: Path, postgres: PostgresAddress, monkeypatch: pytest.MonkeyPatch) -> Fleet:
    monkeypatch.setenv("INTERLOCK_DB", postgres.url)
    for who in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{who}_NAME", "Ada")
        monkeypatch.setenv(f"GIT_{who}_EMAIL", "ada@example.org")
    return Fleet(tmp_path)


def commit(name: str) -> list[object]:
    """What a session does to commit a file."""
    return [
        {"write": [name, f"{name}\n"]},
        {"run": ["git", "add", name]},
        {"run": ["git", "commit", "-qm", name]},
    ]


def read(postgres: PostgresAddress, query: str) -> list[tuple[object, ...]]:
    with psycopg.connect(postgres.url) as connection:
        return connection.execute(query).fetchall()


def test_sessions_move_between_hosts_with_their_checkpoint(
    fleet: Fleet, postgres: PostgresAddress
) -> None:
    refused = fleet.world.say(*EPIC)
    assert (refused.code, 'set remote = "ADDRESS" in [epic]' in refused.err) == (2, True), refused
    fleet.connect()
    fleet.sessions(
        [*commit("one.txt"), {"run": FIRST}],
        [{"write": ["a.txt", "half\n"]}, {"write": ["open.txt", "open\n"]}, {"kill": 9}],
        [*commit("lost.txt"), "SAGE_SIGNAL:STORY_STARTED:3-3", {"hang": 1}],
        [{"run": RESTORE}, *commit("three.txt"), DONE],
    )
    one, words = fleet.host("one")
    with started(one, *words) as first:
        hear(first, "is ready")
        with started(fleet.world, *EPIC) as running:
            hanging = fleet.script.with_suffix(".hangs")
            until(lambda: hanging.exists() and hanging.read_text(), "the third session hangs")
            until(  # as of the worker's last heartbeat
                lambda: "epic-3 SESSION (session) for" in fleet.world.say("workers").out,
                "what it does is shown",
            )
            two, others = fleet.host("two")
            with started(two, *others) as second:
                hear(second, "is ready")
                first.kill()
                hear(second, "epic-3 SESSION, taken")
                out, err = running.communicate(timeout=120)
    assert gone(int(hanging.read_text())), "the other worker of this host ended it"
    assert running.returncode == 0, (out, err)
    assert fleet.ended_by() == ["CHECKPOINT_WRITE", "CRASH", "EPIC_COMPLETE"]
    assert fleet.subjects() == ["three.txt", "one.txt", "two", "one"]
    # What the second left uncommitted was set aside, and brought back by the last, on its host.
    assert fleet.repo.git("status", "--porcelain").split("\n") == [" M a.txt", "?? open.txt"]
    assert (fleet.world.folder / "open.txt").read_text() == "open\n"
    found = fleet.checkpoint()
    assert (found["note"], found["position"]["task"]) == ("mind the rudder", "1")
    assert {each["id"]: each["status"] for each in found["stories"]} == {
        "3-1": "done",
        "3-2": "ready",
        "3-3": "ready",
    }
    assert [each["type"] for each in found["failures"]] == ["CRASH"]
    assert [each["state"] for each in found["recoveries"]] == ["restored"]
    assert "The session before you left this note: mind the rudder" in fleet.prompt(4)
    assert fleet.remote.git("for-each-ref") == ""
    rows = read(postgres, "select count(*), count(distinct dispatch_id) from journal")
    assert rows == [(7, 7)]


HOOK = """\
#!/bin/sh
while read -r _ _ ref; do
  case $ref in *-1) touch {0}/pushing; while [ ! -e {0}/go ]; do sleep 0.05; done;; esac
done
"""


def test_a_session_that_comes_too_late_counts_for_nothing(
    fleet: Fleet, postgres: PostgresAddress
) -> None:
    fleet.connect()
    fleet.sessions(
        [*commit("late.txt"), "SAGE_SIGNAL:STORY_STARTED:3-2", WRITE],
        [*commit("right.txt"), DONE],
    )
    hook = fleet.remote.folder / "hooks" / "pre-receive"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(HOOK.format(fleet.folder))
    hook.chmod(0o755)
    one, words = fleet.host("one")
    with started(one, *words) as first, started(fleet.world, *EPIC) as running:
        until((fleet.folder / "pushing").exists, "the first session is handed in")
        first.send_signal(signal.SIGSTOP)
        two, others = fleet.host("two")
        with started(two, *others) as second:
            hear(second, "accepted")
            assert running.wait(timeout=60) == 0, running.communicate()
            (fleet.folder / "go").touch()
            first.send_signal(signal.SIGCONT)
            assert hear(first, "stale") == "dispatch 2: stale"
    late = fleet.remote.git("for-each-ref", "--format=%(objectname)")
    assert fleet.remote.git("log", "-1", "--format=%s", late) == "late.txt"
    with pytest.raises(AssertionError):
        fleet.repo.git("cat-file", "-e", late)
    assert fleet.subjects() == ["right.txt", "two", "one"]
    assert fleet.checkpoint()["stories"][1]["status"] == "ready"
    with started(fleet.world, "coordinator") as coordinator:
        query = "select dispatch_id, reason from refusals"
        until(lambda: bool(read(postgres, query)), "the late answer is journaled")
        coordinator.send_signal(signal.SIGTERM)
        assert coordinator.wait(timeout=30) == 0
    assert read(postgres, query) == [(2, "Stale")]


def move_host(postgres: PostgresAddress, before: str, after: str) -> None:
    """Have the run say that its project lies elsewhere."""
    words = [f'"host":"{host}"' for host in (before, after)]
    with psycopg.connect(postgres.url) as connection:
        done = connection.execute("update runs set options = replace(options, %s, %s)", words)
        assert done.rowcount == 1


def test_a_coordinator_goes_on_with_an_epic_and_another_after_it(
    fleet: Fleet, postgres: PostgresAddress
) -> None:
    fleet.connect()
    fleet.sessions(
        ["SAGE_SIGNAL:HITL_REQUIRED"],
        [*commit("one.txt"), {"wait": "go"}, WRITE],
        ["I have nothing to say."],
        [DONE],
    )
    one, words = fleet.host("one")
    with started(one, *words) as worker:
        hear(worker, "is ready")
        asked = fleet.world.say(*EPIC)
        assert (asked.code, asked.json["outcome"]) == (4, "WAITING"), asked
        with started(fleet.world, "coordinator") as coordinator:
            (question,) = asked.json["questions"]
            fleet.world.say("answer", str(question), "approve")
            until(lambda: fleet.started == 2, "the second session begins")
            locked = fleet.world.say(*EPIC)
            assert (locked.code, locked.json["outcome"]) == (18, "LOCKED"), locked
            elsewhere = fleet.world.say(*EPIC, "--db", str(fleet.folder / "other.db"))
            assert (elsewhere.code, elsewhere.json["outcome"]) == (18, "LOCKED"), elsewhere
            coordinator.kill()
            coordinator.wait()
        # One on a host that has not the project leaves it alone.
        move_host(postgres, socket.gethostname(), "elsewhere")
        with started(fleet.world, "coordinator") as foreign:
            hear(foreign, f"left to others: the epic epic-3 lies in {fleet.world.folder} on elsewh")
        move_host(postgres, "elsewhere", socket.gethostname())
        (fleet.folder / "go").touch()
        hear(worker, "epic-3 SESSION, taken")
        hear(worker, "accepted")
        with started(fleet.world, "coordinator") as coordinator:
            hear(coordinator, "unhealthy")
            coordinator.send_signal(signal.SIGTERM)
            assert coordinator.wait(timeout=30) == 0
        assert fleet.ended_by() == ["HITL_REQUIRED", "CHECKPOINT_WRITE", "NOTHING"]
        silent = fleet.world.say("epic", "status", "--json").json
        assert silent["outcome"] == "NO_SIGNAL", silent
        assert fleet.subjects() == ["one.txt", "two", "one"]
        done = fleet.world.say("epic", "resume", "--json")
        assert (done.code, done.json["outcome"]) == (0, "COMPLETE"), done
