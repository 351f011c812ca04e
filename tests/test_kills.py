"""Real commands, killed at random moments and started again: every circuit and both file carriers.

`make soak` kills a few times in each world, `make soak KILLS=10000` as often as that in all of them
together. A failure names its seed, and `KILLS_SEED=N` begins with that one.
"""

import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import NamedTuple

import pytest

from delivery_tests.world import delivery_agent
from delivery_tests.world.delivery_world import TEST, plan, task
from epic_tests.world.epic_project import DONE, EPIC, SETTINGS
from tests.world.git_repo import GitRepo
from tests.world.project import Project

KILLS = int(os.environ.get("KILLS", "25"))
"""In all worlds together."""
SEED = int(os.environ.get("KILLS_SEED", "1"))
MOST_A_TRIAL = 12
GIVE_UP = 180.0
REPORT = """\
<testsuite name="shop" tests="3">
  <testcase classname="cart" name="adds"/>
  <testcase classname="cart" name="totals"><failure message="expected 3, got 4"/></testcase>
  <testcase classname="stock" name="counts"><failure message="KeyError: 'tea'"/></testcase>
</testsuite>
"""
SESSION = f"#!/bin/sh\ncat > /dev/null\necho '{DONE}'\n"


class Scene(NamedTuple):
    """A world to be killed in: the command, its exit code at the end, who works beside it."""

    words: list[str]
    end: int
    beside: AbstractContextManager[object] = nullcontext()


def analyze(folder: Path) -> Scene:
    (folder / "results").mkdir()
    (folder / "results" / "junit.xml").write_text(REPORT)
    return Scene(["analyze", "results", "--agent", "basic"], 4)


def deliver(folder: Path) -> Scene:
    (folder / "test_calc.py").write_text(TEST)
    (folder / "calc.py").write_text("def add(a, b):\n    return a + b\n")
    tasks = [task("one", "none"), task("two", "one")]
    (folder / "plan.md").write_text(plan(*tasks, command="python3 -m unittest -v"))
    GitRepo(folder).commit("first", {"a.txt": "one\n"})
    agent = f"exec:{sys.executable} {delivery_agent.__file__} {folder.parent / 'log'}"
    return Scene(["deliver", "plan.md", "--agent", agent], 0)


def run_epic(folder: Path) -> Scene:
    (folder / "epic.md").write_text(EPIC)
    (folder / "interlock.toml").write_text(SETTINGS)
    (folder / ".gitignore").write_text("session.sh\n.interlock/\n.sage/\n")
    (folder / "session.sh").write_text(SESSION)
    (folder / "session.sh").chmod(0o755)
    GitRepo(folder).commit("one", {"a.txt": "one\n"})
    return Scene(["epic", "run", "epic.md", "--agent", f"exec:{folder / 'session.sh'}"], 0)


def ask_watchers(folder: Path) -> Scene:
    project = Project(folder)
    return Scene([*project.run("--dispatch", "file")], 0, project.watcher("single"))


def ask_a_parent(folder: Path) -> Scene:
    project = Project(folder)
    return Scene([*project.run("--dispatch", "batch-file")], 0, project.watcher("batch"))


SCENES = (analyze, deliver, run_epic, ask_watchers, ask_a_parent)


def start(folder: Path, words: list[str]) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-m", "interlock", *words],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def kill_at_random(folder: Path, scene: Scene, chance: random.Random, most: int) -> int:
    """Start it and kill it again and again; how often it was killed before it came to its end."""
    killed = 0
    for _ in range(most):
        process = start(folder, scene.words)
        try:
            out, _ = process.communicate(timeout=chance.uniform(0.05, 3.0))
            assert process.returncode == scene.end, out
            break
        except subprocess.TimeoutExpired:
            os.kill(process.pid, signal.SIGKILL)
            process.communicate()
            killed += 1
    return killed


def finish(folder: Path, words: list[str]) -> tuple[int, str]:
    process = start(folder, words)
    out, _ = process.communicate(timeout=GIVE_UP)
    return process.returncode, out


@pytest.mark.soak
@pytest.mark.parametrize("stage", SCENES, ids=lambda stage: stage.__name__)
def test_killed_at_random_it_comes_to_its_end(
    tmp_path: Path, stage: Callable[[Path], Scene]
) -> None:
    seed, kills = SEED, 0
    while kills < KILLS / len(SCENES):
        folder = tmp_path / f"seed-{seed}" / "project"
        folder.mkdir(parents=True)
        scene, chance = stage(folder), random.Random(seed)
        sys.stdout.write(f"KILLS_SEED={seed}\n")  # shown where the test fails
        with scene.beside:
            kills += kill_at_random(folder, scene, chance, MOST_A_TRIAL)
            code, out = finish(folder, scene.words)
        assert code == scene.end, f"KILLS_SEED={seed}: exit {code}\n{out}"
        code, out = finish(folder, ["doctor", "--deep"])
        assert code == 0, f"KILLS_SEED={seed}: the journal does not add up\n{out}"
        seed += 1
