"""`interlock deliver` as a user runs it: a process of its own, on a real repository, to be killed.

Knows how it is started, waited for and looked at from outside. Knows nothing of what is delivered.
"""

import os
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import psutil

from tests.world.git_repo import git
from tests.world.places import PYTHONPATH

GIVE_UP = 120.0


class Delivering:
    """One repository and its plan; commands one after the other, or at once."""

    def __init__(self, repo: Path, *agents: str) -> None:
        self.repo = repo
        self.db = repo / ".interlock" / "interlock.db"
        self.words = [word for agent in agents for word in ("--agent", agent)]

    def start(self, *words: str) -> "subprocess.Popen[str]":
        around = {**os.environ, "PYTHONPATH": PYTHONPATH}
        return subprocess.Popen(
            [sys.executable, "-m", "interlock", "deliver", "plan.md", *self.words, *words],
            cwd=self.repo,
            env=around,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def finish(self, *words: str) -> tuple[int, str]:
        run = self.start(*words)
        result, _ = run.communicate(timeout=GIVE_UP)
        return run.returncode, result

    def kill_when(self, true: Callable[[], object]) -> bool:
        """Start it, and kill it as soon as that holds; False if it ended before."""
        run = self.start()
        give_up = time.monotonic() + GIVE_UP
        while run.poll() is None and not true():
            assert time.monotonic() < give_up, "neither killed nor at its end"
            time.sleep(0.01)
        killed = run.poll() is None
        run.kill()
        run.communicate()
        return killed

    def rows(self, query: str) -> list[tuple[str, ...]]:
        if not self.db.exists():
            return []
        try:
            with closing(sqlite3.connect(f"file:{self.db}?mode=ro", uri=True)) as connection:
                return connection.execute(query).fetchall()
        except sqlite3.OperationalError:
            return []

    def dispatches(self) -> Counter[tuple[str, ...]]:
        """How often each task was asked at each step."""
        return Counter(
            self.rows(
                "select c.case_id, d.step from dispatches d join cases c on c.case_no = d.case_no"
            )
        )

    def rules(self) -> set[str]:
        """The rules that were ever taken."""
        found = self.rows("select json_extract(decision, '$.rule') from journal")
        return {rule for (rule,) in found}

    def open_steps(self) -> set[str]:
        """The steps at which something is out now."""
        found = self.rows(
            "select d.step from cases c join dispatches d on d.dispatch_id = c.dispatch_id"
        )
        return {step for (step,) in found}

    def subjects(self) -> list[str]:
        words = ("log", "--reverse", "--format=%s", "main..interlock/plan")
        return git(self.repo, *words).splitlines()

    def tree(self) -> str:
        """The files of the published branch, as one hash."""
        return git(self.repo, "rev-parse", "interlock/plan^{tree}")

    def processes(self) -> list[str]:
        """What still runs for this repository: by its tag, or in one of its folders."""
        found = []
        for process in psutil.process_iter():
            try:
                tagged = "INTERLOCK_TAG" in process.environ()
                here = str(self.repo) in process.cwd()
            except psutil.Error:
                continue
            if tagged and here:
                found.append(" ".join(process.cmdline()))
        return found
