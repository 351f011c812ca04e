"""A project's folder: a circuit, cases, and real processes that work on them."""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from interlock.journal.database import open_reader
from interlock.journal.history import DispatchRecord, find_case, list_dispatches
from tests.world.command_line import World

CIRCUIT = """\
circuit: trip
start: pack
ends: {home: healthy, lost: unhealthy}
loops: {retry: {max: 1, per: step}, round: 1}
steps:
  pack: {role: worker, timeout: 20s, answer: {type: object, required: [n]}}
  drive: {role: worker, timeout: 20s, answer: {type: object, required: [n]}}
rules:
  - {id: packed, at: pack, to: drive}
  - {id: round, at: drive, loop: round, to: pack}
  - {id: arrived, at: drive, to: home}
  - {id: again, at: ANY, on: [timeout, crash, unreadable], loop: retry, to: AGAIN}
otherwise: lost
"""
WATCHER = Path(__file__).with_name("watcher.py")
GIVE_UP = 180.0


class Project:
    """A folder with a circuit and cases, and processes that work in it."""

    def __init__(self, folder: Path, cases: int = 3, circuit: str = CIRCUIT) -> None:
        self.folder = folder
        self.root = folder / ".interlock" / "runs"
        (folder / "trip.yaml").write_text(circuit)
        names = ["odd", *(f"C{number}" for number in range(2, cases + 1))]
        (folder / "cases.jsonl").write_text("".join(f'{{"id": "{name}"}}\n' for name in names))

    def start(self, *words: str) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            [sys.executable, "-m", "interlock", *words],
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def do(self, *words: str, code: int = 0) -> Any:
        """A command that ends by itself, in this process: what it says."""
        result = World(self.folder).say(*words)
        assert result.code == code, result.out + result.err
        return json.loads(result.out) if "--json" in words else result.out + result.err

    def run(self, *words: str) -> list[str]:
        return ["run", "trip.yaml", "--cases", "cases.jsonl", "--json", *words]

    @contextmanager
    def watcher(self, kind: str) -> Iterator["subprocess.Popen[str]"]:
        self.root.mkdir(parents=True, exist_ok=True)
        process = subprocess.Popen(
            [sys.executable, str(WATCHER), kind, str(self.root)],
            cwd=self.folder,
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            yield process
        finally:
            process.kill()
            process.communicate()

    def signals(self) -> list[dict[str, Any]]:
        return [json.loads(path.read_bytes()) for path in sorted(self.root.glob("*/*/signal.json"))]

    def waiting(self) -> list[dict[str, Any]]:
        return [signal for signal in self.signals() if signal["status"] == "waiting"]

    def story(self, case_id: str) -> list[tuple[str, str, int | None]]:
        """Each decision of a case: step, signal, and the `n` of the answer."""
        return [
            (each.step, each.decision.signal, each.answer.get("n"))
            for each in self.life(case_id)
            if each.decision is not None
        ]

    def refused(self, case_id: str) -> list[str]:
        return [line.reason for each in self.life(case_id) for line in each.refused]

    def life(self, case_id: str) -> list[DispatchRecord]:
        with open_reader(self.folder / ".interlock" / "interlock.db") as connection:
            case_no = find_case(connection, case_id).case_no
            return list_dispatches(connection, case_no=case_no)


def until(true: Callable[[], object]) -> None:
    """Wait for another process, but not for ever."""
    give_up = time.monotonic() + GIVE_UP
    while not true():
        assert time.monotonic() < give_up, "it never happened"
        time.sleep(0.01)
