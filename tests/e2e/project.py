"""A project with red tests, and `interlock` run in it as a user with a real agent would.

Everything is a process of its own with the agent's home, so that what is left of it can be found.
"""

import json
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from typing import Any

from rca_tests.worlds.rca_oracle import walks
from rca_tests.worlds.red_repository import F0, F1, F2, F3, F4, F5, F6, KEY, TYPE, junit
from tests.world.agent_cli import Cli
from tests.world.places import PYTHONPATH

GIVE_UP = 60.0
WALK = [
    (F0, "H2", F1),
    (F1, "H6", F2),
    (F2, "H8", F3),
    (F3, "H9", F4),
    (F4, "H15b", F5),
    (F5, "H12", F6),
    (F6, "H16", "DONE"),
]
"""Where the usual answers lead."""
REDS = junit(KEY, TYPE)


class Project:
    """A folder with red tests, where a CLI works for Interlock."""

    def __init__(self, cli: Cli) -> None:
        self.cli = cli
        self.folder = cli.work
        self.db = self.folder / ".interlock" / "interlock.db"
        (self.folder / "red.xml").write_text(REDS)
        self._install()

    def env(self) -> dict[str, str]:
        path = f"{self.cli.home / 'bin'}:{self.cli.env()['PATH']}"
        return self.cli.env() | {"PATH": path, "PYTHONPATH": PYTHONPATH}

    def _install(self) -> None:
        """`interlock` as a command that clients find, whatever environment they give it."""
        command = self.cli.home / "bin" / "interlock"
        command.parent.mkdir(exist_ok=True)
        line = f'PYTHONPATH={PYTHONPATH} exec {sys.executable} -m interlock "$@"'
        command.write_text(f"#!/bin/sh\n{line}\n")
        command.chmod(0o755)

    def start(self, *words: str) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            [sys.executable, "-m", "interlock", *words],
            cwd=self.folder,
            env=self.env(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def finish(self, process: "subprocess.Popen[str]", code: int = 0) -> str:
        out, err = process.communicate(timeout=GIVE_UP)
        assert process.returncode == code, out + err
        return out

    def do(self, *words: str, code: int = 0) -> str:
        return self.finish(self.start(*words), code)

    def json(self, *words: str, code: int = 0) -> Any:
        return json.loads(self.do(*words, "--json", code=code))

    def walks(self) -> dict[str, list[tuple[str, str, str]]]:
        return walks(self.json("logs")["entries"])

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        with closing(sqlite3.connect(f"file:{self.db}?mode=ro", uri=True)) as connection:
            return connection.execute(query).fetchall()

    def dispatches(self) -> int:
        """How many askings are on record."""
        if not self.db.exists():
            return 0
        try:
            return int(self.rows("select count(*) from dispatches")[0][0])
        except sqlite3.OperationalError:
            return 0

    def until_dispatched(self, more: int) -> None:
        until(lambda: self.dispatches() > more, f"more than {more} askings")


def until(true: Callable[[], object], what: str) -> None:
    """Wait for another process, but not for ever."""
    give_up = time.monotonic() + GIVE_UP
    while not true():
        assert time.monotonic() < give_up, f"it never happened: {what}"
        time.sleep(0.02)
