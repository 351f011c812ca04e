"""One invocation of a benchmark program: its arguments, its measured window, its report.

The program's side of the protocol; `bench/protocol.py` describes it and checks the answers.
Knows how to read clocks and memory of this process, nothing of databases or libraries.
"""

import argparse
import json
import resource
import sqlite3
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from workload import HALF, STEPS, Agent, case_ids


def job_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser()
    parser.add_argument("--job", choices=("throughput", "half", "resume"), required=True)
    parser.add_argument("--workdir", type=Path, required=True)
    parser.add_argument("--cases", type=int, required=True)
    parser.add_argument("--inflight", type=int, required=True)
    return parser


class Session:
    """What a program shares with the harness; create it first thing in main()."""

    def __init__(self, arguments: argparse.Namespace, *, steps_sql: str) -> None:
        self.main_at = time.monotonic()
        self.job: str = arguments.job
        self.cases: list[str] = case_ids(arguments.cases)
        self.inflight: int = arguments.inflight
        self.database: Path = arguments.workdir / "bench.db"
        self.steps_sql = steps_sql
        self.agent = Agent(hold_at=STEPS[HALF] if self.job == "half" else None)
        self.wall_s = self.cpu_s = self.done_at = 0.0
        if self.job == "half":
            threading.Thread(target=self._announce_when_held, daemon=True).start()

    @contextmanager
    def measured(self) -> Iterator[None]:
        """Around the cases only: not the imports, not the creation of the database."""
        started, cpu_started = time.monotonic(), cpu_seconds()
        yield
        self.done_at = time.monotonic()
        self.wall_s = self.done_at - started
        self.cpu_s = cpu_seconds() - cpu_started

    def report(
        self, *, style: str, versions: dict[str, str], pragmas: Iterable[tuple[str, int]]
    ) -> None:
        """The one line on stdout; `pragmas` are read back from every connection in use."""
        read_back = list(pragmas)
        facts: dict[str, Any] = {
            "job": self.job,
            "cases": len(self.cases),
            "inflight": self.inflight,
            "style": style,
            "versions": versions,
            "database": self.database.name,
            "steps_sql": self.steps_sql,
            "journal_modes": [mode for mode, _ in read_back],
            "synchronous": [level for _, level in read_back],
            "main_at": self.main_at,
            "first_ask_at": self.agent.first_ask_at,
            "done_at": self.done_at,
            "wall_s": self.wall_s,
            "cpu_s": self.cpu_s,
            "asks": self.agent.asks,
            "peak_rss_bytes": peak_rss_bytes(),
        }
        print(json.dumps(facts), flush=True)

    def announce_half_done(self) -> None:
        """The one line of the job `half`; the harness kills the process when it reads it."""
        facts = {"job": "half", "database": self.database.name, "steps_sql": self.steps_sql}
        print(json.dumps(facts), flush=True)

    def _announce_when_held(self) -> None:
        while self.agent.held < len(self.cases):
            time.sleep(0.01)
        self.announce_half_done()


def cpu_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def peak_rss_bytes() -> int:
    """VmHWM, because ru_maxrss survives exec and would show the harness's own memory."""
    status = Path("/proc/self/status")
    if status.exists():
        for line in status.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def make_durable(connection: sqlite3.Connection) -> None:
    """The durability every program is held to: what was committed survives a power cut."""
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")


def read_pragmas(connection: sqlite3.Connection) -> tuple[str, int]:
    mode = connection.execute("PRAGMA journal_mode").fetchone()[0]
    level = connection.execute("PRAGMA synchronous").fetchone()[0]
    return str(mode), int(level)
