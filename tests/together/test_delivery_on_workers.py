"""Test a plan carried out by workers on other hosts: trees travel by a git remote, checks stay
here.
"""

import signal
import subprocess
from pathlib import Path

import psycopg
import pytest

from cluster_tests.test_worker import started
from delivery_tests.world.delivery_project import lay_out
from interlock.carriers.contract import Ask, PushedWork, Reply
from interlock.journal.address import PostgresAddress
from interlock.system.errors import SourceError
from interlock_delivery.worktrees.remote import TreeExchange
from interlock_delivery.worktrees.tree import TaskTree
from tests.world.command_line import World
from tests.world.git_repo import git
from tests.world.places import ROOT
from tests.world.processes import hear

AGENT = ROOT / "packages/interlock-delivery/tests/delivery_tests/world/workers.py"


def test_only_refs_of_the_dispatch_are_fetched() -> None:
    def find_tree(_ask: Ask) -> TaskTree:
        raise AssertionError("it was looked at")

    ask = Ask(7, 1, "A", "IMPLEMENT", 1, "developer", "", 3)
    exchange = TreeExchange("ssh://git@example/x.git", "w", find_tree)
    for ref in ("refs/heads/main", "refs/interlock/w-1/3/70-1", "refs/interlock/w-2/3/7-1"):
        with pytest.raises(SourceError, match="which is not its to make"):
            exchange.take(ask, Reply(7, pushed=PushedWork(ref, "1" * 40)))


def make_host(folder: Path) -> World:
    """Make a host that shares only the remote; its developers leave a file named after it, and
    damage git.
    """
    text = AGENT.read_text(encoding="utf-8")
    mark = f"    Path('by-{folder.name}').write_text('x')\n    os.system('git commit -qam mine')\n"
    world = World(folder)
    world.write("workers.py", text.replace("    return READY\n", f"{mark}    return READY\n"))
    return world


def worker(host: World) -> tuple[str, ...]:
    agent = f"exec:python3 {host.folder / 'workers.py'}"
    roles = [f"{role}={agent}" for role in ("developer", "critic", "auditor")]
    flags = (word for role in roles for word in ("--role", role))
    return ("worker", "--name", host.folder.name, *flags, "--slots", "2", "--lease", "2")


def test_work_of_a_worker_that_comes_late_never_reaches_the_merge_branch(
    tmp_path: Path, postgres: PostgresAddress, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("INTERLOCK_DB", postgres.url)
    remote = tmp_path / "remote.git"
    git(tmp_path, "init", "-q", "--bare", str(remote))
    (tmp_path / "project").mkdir()
    world = lay_out(tmp_path / "project", "adds", "waits>adds")
    said = world.say("deliver", "plan.md", "--agent", "worker")
    assert (said.code, 'set remote = "ADDRESS" in [delivery]' in said.err) == (2, True), said
    world.write("interlock.toml", f'[delivery]\nremote = "{remote}"\n')
    one, two = make_host(tmp_path / "one"), make_host(tmp_path / "two")
    with started(one, *worker(one)) as first:
        hear(first, "is ready")
        with started(world, "deliver", "plan.md", "--agent", "worker") as delivery:
            hear(first, "waits IMPLEMENT, taken")
            first.send_signal(signal.SIGSTOP)
            with started(two, *worker(two)) as second:
                hear(second, "waits IMPLEMENT, taken")
                (one.folder / "go").touch()
                first.send_signal(signal.SIGCONT)
                number = hear(first, "stale").split()[1].removesuffix(":")
                pushed = git(remote, "for-each-ref", "--format=%(refname) %(objectname)")
                (late,) = [
                    line.split()[1] for line in pushed.splitlines() if f"/{number}-1 " in line
                ]
                (two.folder / "go").touch()
                assert delivery.wait(timeout=120) == 0, delivery.communicate()
    files = git(world.folder, "ls-tree", "--name-only", "-r", "interlock/plan").splitlines()
    assert {"adds.py", "test_waits.py", "by-two"} <= {*files}
    # Each change is on the branch once, as a commit of ours, and the late one is nowhere.
    subjects = git(world.folder, "log", "--format=%s", "main..interlock/plan").splitlines()
    assert sorted(subjects) == ["Add adds", "Add waits"]
    ours = world.folder / ".interlock" / "delivery" / "plan" / "repo.git"
    with pytest.raises(subprocess.CalledProcessError):
        git(ours, "cat-file", "-e", late)
    assert git(remote, "for-each-ref", "refs/heads") == ""
    with psycopg.connect(postgres.url) as connection:
        rows = connection.execute("select reason from refusals").fetchall()
    assert rows == [("Stale",)]
