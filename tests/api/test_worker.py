"""Workers are real processes on one host: they take what is offered, die, come back too late.

Whatever happens to them, every dispatch is accepted once.
"""

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psycopg
import pytest
from tests.cli.world import World
from tests.world.processes import hear

from interlock.journal.address import PostgresAddress

CIRCUIT = """\
circuit: paper
version: 1
start: write
ends: {done: healthy, dropped: unhealthy}
steps:
  write: {role: author, timeout: 5m, prompt: "Write {{ case.topic }}."}
  judge: {role: critic, timeout: 5m, prompt: "Judge {{ case.topic }}."}
rules:
  - {at: write, to: judge}
  - {at: judge, to: done}
otherwise: {to: dropped}
"""
# It answers at once; the case S only when the test lets it.
AGENT = """\
#!/bin/sh
echo "$INTERLOCK_CASE_ID $INTERLOCK_STEP" >> asked
if [ "$INTERLOCK_CASE_ID$INTERLOCK_STEP" = Swrite ]; then
  while [ ! -e go ]; do sleep 0.05; done
fi
echo "{\\"by\\": \\"$1\\"}"
"""


@pytest.fixture
def world(tmp_path: Path, postgres: PostgresAddress, monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setenv("INTERLOCK_DB", postgres.url)
    made = World(tmp_path)
    made.write("circuits/paper.yaml", CIRCUIT)
    made.write("agent.sh", AGENT)
    (tmp_path / "agent.sh").chmod(0o755)
    return made


@contextmanager
def started(world: World, *words: str) -> Iterator["subprocess.Popen[str]"]:
    process = subprocess.Popen(
        [sys.executable, "-m", "interlock", *words],
        cwd=world.folder,
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            process.send_signal(signal.SIGCONT)
            process.kill()
        process.communicate(timeout=30)


def worker(name: str) -> tuple[str, ...]:
    agent = f"exec:./agent.sh {name}"
    roles = ("--role", f"author={agent}", "--role", f"critic={agent}")
    return ("worker", "--name", name, *roles, "--slots", "2", "--lease", "2")


def count(postgres: PostgresAddress, query: str) -> object:
    with psycopg.connect(postgres.url) as connection:
        row = connection.execute(query).fetchone()
        assert row is not None
        return row[0]


def test_a_worker_that_is_killed_is_replaced_and_every_case_ends_once(
    world: World, postgres: PostgresAddress
) -> None:
    world.cases("S", *(f"C{number}" for number in range(6)))
    with started(world, *worker("one")) as one:
        hear(one, "is ready")
        words = ("--cases", "cases.jsonl", "--agent", "worker", "--json")
        with started(world, "run", "paper", *words) as run:
            hear(one, "S write, taken")
            shown = json.loads(world.say("workers", "--json").out)["workers"]
            assert [(each["name"], each["state"]) for each in shown] == [("one", "ready")]
            with started(world, *worker("two")) as two:
                hear(two, "is ready")
                one.kill()
                hear(two, "S write, taken")
                (world.folder / "go").touch()
                assert run.wait(timeout=60) == 0
                two.send_signal(signal.SIGTERM)
                assert hear(two, "has stopped")
                assert two.wait(timeout=30) == 0
    assert count(postgres, "select count(*) from journal") == 14
    assert (world.folder / "asked").read_text().count("S write") == 2
