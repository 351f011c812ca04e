"""Workers are real processes on one host: they take what is offered, die, come back too late.

Whatever happens to them, every dispatch is accepted once.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import psycopg
import pytest

from interlock.journal.address import PostgresAddress
from tests.world.command_line import World, until
from tests.world.pooler import run_pooler
from tests.world.postgres_server import make_database
from tests.world.processes import hear

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
# It answers at once, but for the first step of some cases: those wait for a file of theirs, or for
# the end of the test, since a worker that was killed cannot end its agents.
AGENT = """\
#!/bin/sh
echo "$1 $INTERLOCK_CASE_ID $INTERLOCK_STEP" >> asked
case $INTERLOCK_STEP$INTERLOCK_CASE_ID in
  writeS*) while [ ! -e "$1-$INTERLOCK_CASE_ID" ] && [ ! -e over ]; do sleep 0.05; done;;
esac
echo "{\\"by\\": \\"$1\\"}"
"""


@pytest.fixture
def world(
    tmp_path: Path, postgres: PostgresAddress, monkeypatch: pytest.MonkeyPatch
) -> Iterator[World]:
    monkeypatch.setenv("INTERLOCK_DB", postgres.url)
    made = World(tmp_path)
    made.write("circuits/paper.yaml", CIRCUIT)
    made.write("agent.sh", AGENT)
    (tmp_path / "agent.sh").chmod(0o755)
    yield made
    made.write("over", "")


@contextmanager
def started(world: World, *words: str, program: str = "") -> Iterator["subprocess.Popen[str]"]:
    how = ("-c", program) if program else ("-m", "interlock")
    process = subprocess.Popen(
        [sys.executable, *how, *words],
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


def worker(name: str, *words: str, lease: int = 2) -> tuple[str, ...]:
    agent = f"exec:./agent.sh {name}"
    roles = ("--role", f"author={agent}", "--role", f"critic={agent}")
    return ("worker", "--name", name, *roles, "--slots", "2", "--lease", f"{lease}", *words)


def run(world: World, *words: str) -> AbstractContextManager["subprocess.Popen[str]"]:
    return started(
        world, "run", "paper", "--cases", "cases.jsonl", *(words or ("--agent", "worker"))
    )


def read(postgres: PostgresAddress, query: str) -> list[tuple[object, ...]]:
    with psycopg.connect(postgres.url) as connection:
        return connection.execute(query).fetchall()


def test_a_worker_that_is_killed_is_replaced_and_every_case_ends_once(
    world: World, postgres: PostgresAddress
) -> None:
    world.cases("S", *(f"C{number}" for number in range(6)))
    with started(world, *worker("one")) as one:
        hear(one, "is ready")
        with run(world) as running:
            hear(one, "S write, taken")
            (seen,) = world.say("workers", "--json").json["workers"]
            assert (seen["name"], seen["state"], seen["slots"]) == ("one", "ready", 2)
            until(lambda: "exec:./agent.sh one on " in world.say("status").out, "an agent is seen")
            with started(world, *worker("two")) as two:
                hear(two, "is ready")
                one.kill()
                hear(two, "S write, taken")
                shown = world.say("workers").out.splitlines()
                assert [line.split()[3] for line in shown[1:3]] == ["dead", "ready"]
                (world.folder / "two-S").touch()
                assert running.wait(timeout=60) == 0
                two.send_signal(signal.SIGTERM)
                assert hear(two, "has stopped")
                assert two.wait(timeout=30) == 0
    assert read(postgres, "select count(*), count(distinct dispatch_id) from journal") == [(14, 14)]
    assert read(postgres, "select state, count(*) from interlock_queue.offers group by 1") == [
        ("settled", 14)
    ]
    assert read(postgres, "select count(*) from interlock_queue.replies") == [(0,)]
    assert [each["name"] for each in world.say("workers", "--json").json["workers"]] == ["one"]


def test_a_worker_that_was_stopped_comes_back_too_late(
    world: World, postgres: PostgresAddress
) -> None:
    world.cases("S", "S2")
    with started(world, *worker("one")) as one, run(world) as running:
        hear(one, "S2 write, taken")
        one.send_signal(signal.SIGSTOP)
        with started(world, *worker("two")) as two:
            hear(two, "S2 write, taken")
            (world.folder / "two-S").touch()
            hear(two, "S judge, taken")
            # Its agent was never stopped, and has an answer when it wakes up.
            (world.folder / "one-S").touch()
            one.send_signal(signal.SIGCONT)
            assert hear(one, "stale") == "dispatch 1: stale"
            (world.folder / "two-S2").touch()
            assert running.wait(timeout=60) == 0
    # The other one's agent had none, and was stopped; nothing was said for it.
    rows = read(
        postgres,
        "select dispatch_id, reason, data from refusals join blobs on blob_id = content",
    )
    assert rows == [(1, "Stale", b'{"by": "one"}\n')]
    answers = read(
        postgres,
        "select convert_from(data, 'UTF8') from journal join blobs on blob_id = answer"
        " where dispatch_id <= 2",
    )
    assert answers == [('{"by":"two"}',)] * 2


def test_a_worker_that_is_asked_to_stop_gives_back_what_it_cannot_finish(
    world: World, postgres: PostgresAddress
) -> None:
    world.cases("S", "S2")
    # A clock that is wrong decides nothing: leases are in the server's time.
    wrong = "import time; now = time.time; time.time = lambda: now() + 3600; "
    wrong += "from interlock.cli.app import main; main()"
    label = ("--label", "gpu")
    with (
        started(world, *worker("one", *label, "--grace", "0", lease=600), program=wrong) as one,
        run(world, "--agent", "author=worker:gpu", "--agent", "critic=worker") as running,
    ):
        hear(one, "S2 write, taken")
        with started(world, *worker("other", lease=600)) as other:
            hear(other, "is ready")
            with started(world, *worker("two", *label, lease=600)) as two:
                hear(two, "is ready")
                one.send_signal(signal.SIGTERM)
                hear(one, "given back")
                assert one.wait(timeout=30) == 0
                hear(two, "S2 write, taken")
                # Once: nothing new is taken, and what is under way is finished.
                two.send_signal(signal.SIGTERM)
                hear(two, "stopping: 2 under way have 600 s to finish")
                for name in ("S", "S2"):
                    (world.folder / f"two-{name}").touch()
                hear(two, "has stopped")
                assert running.wait(timeout=60) == 0
    asked = (world.folder / "asked").read_text().splitlines()
    assert sorted(line for line in asked if line.endswith("judge")) == [
        "other S judge",
        "other S2 judge",
    ]
    assert read(postgres, "select count(*) from refusals") == [(0,)]


def test_a_worker_that_is_asked_twice_gives_back_at_once(
    world: World, postgres: PostgresAddress
) -> None:
    world.cases("S")
    with started(world, *worker("one")) as one, run(world):
        hear(one, "S write, taken")
        one.send_signal(signal.SIGTERM)
        hear(one, "stopping: 1 under way")
        one.send_signal(signal.SIGTERM)
        hear(one, "given back")
        assert one.wait(timeout=30) == 0
        jobs = "select status::text, worker_id from interlock_queue.procrastinate_jobs"
        assert read(postgres, jobs) == [("todo", None)]
        assert world.say("workers", "--json").json["workers"] == []


def test_an_agent_that_takes_too_long_is_stopped(world: World, postgres: PostgresAddress) -> None:
    world.write(
        "circuits/paper.yaml",
        CIRCUIT.replace("write: {role: author, timeout: 5m", "write: {role: author, timeout: 1s"),
    )
    world.cases("S")
    with started(world, *worker("one")) as one, run(world) as running:
        hear(one, "S write, taken")
        hear(one, "no longer this worker's; stopped")
        running.wait(timeout=60)
        one.send_signal(signal.SIGTERM)
        assert one.wait(timeout=30) == 0
    assert read(postgres, "select count(*) from interlock_queue.procrastinate_jobs") == [(0,)]


def test_what_nobody_has_begun_with_rests_with_its_run(
    world: World, postgres: PostgresAddress
) -> None:
    world.cases("S", "B")
    with run(world) as running:
        hear(running, "no worker is there for author")
        running.send_signal(signal.SIGTERM)
        assert running.wait(timeout=30) == 143
    assert read(postgres, "select distinct state from interlock_queue.offers") == [("settled",)]
    assert read(postgres, "select count(*) from interlock_queue.procrastinate_jobs") == [(0,)]
    (world.folder / "one-S").touch()
    # It needs no more rights than those of its role.
    assert world.say("init-db", "--roles").code == 0
    user = f"worker_{os.getpid()}"
    with psycopg.connect(postgres.url) as connection:
        connection.execute(f"create role {user} login in role interlock_worker")
    address = postgres.url.replace("postgres@", f"{user}@", 1)
    with started(world, *worker("one"), "--db", address) as one:
        hear(one, "is ready")
        # A connection that breaks is made anew: by the worker, and by procrastinate.
        kill = "select count(pg_terminate_backend(pid)) from pg_stat_activity"
        read(postgres, f"{kill} where datname = current_database() and pid <> pg_backend_pid()")
        assert world.say("resume", "1").out.startswith("run 1: done; 2 done")
    with psycopg.connect(postgres.url) as connection:
        connection.execute(f"drop role {user}")
    assert read(postgres, "select distinct fence from interlock_queue.offers") == [(1,)]


BAD: dict[str, tuple[tuple[str, ...], str]] = {
    "a file": (("--role", "a=exec:true", "--db", "x.db"), "a worker needs a PostgreSQL database"),
    "no agent": (("--role", "author"), "--role author: write ROLE=AGENT"),
    "an agent that waits for others": (("--role", "a=mcp"), "an agent that answers by itself"),
    "a human": (("--role", "human=exec:true"), "'human' is no role that an agent plays"),
    "a label": (("--role", "a=exec:true", "--label", "a b"), "--label a b: use letters"),
    "a role twice": (("--role", "a=exec:true", "--role", "a=claude"), "a has the agent exec:true"),
    "a command that is not there": (("--role", "a=exec:nowhere"), "no command 'nowhere'"),
}


@pytest.mark.parametrize("what", BAD)
def test_a_worker_that_cannot_be_says_why(what: str, world: World) -> None:
    words, sentence = BAD[what]
    said = world.say("worker", *words)
    assert (said.code, sentence in said.err) == (2, True), said


def test_without_a_journal_or_workers_users_are_told_what_to_do(
    world: World, tmp_path: Path, postgres: PostgresAddress, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "no workers; start one with 'interlock worker" in world.say("workers").out
    world.cases("A")
    said = world.say("run", "paper", "--cases", "cases.jsonl", "--agent", "worker", "--db", "x.db")
    assert said.code == 2
    assert "the agent 'worker' needs a PostgreSQL database" in said.err
    parts = urlsplit(postgres.url)
    named = parse_qs(parts.query)
    socket = Path(named["host"][0]) / f".s.PGSQL.{named['port'][0]}"
    with run_pooler(socket) as port:
        pooled = f"postgresql://postgres@127.0.0.1:{port}{parts.path}?sslmode=disable"
        said = world.say("worker", "--role", "author=exec:true", "--db", pooled)
        assert (said.code, "needs the server itself, not a pooler" in said.err) == (1, True), said
    with make_database(tmp_path / ".interlock", empty=True) as empty:
        monkeypatch.setenv("INTERLOCK_DB", empty.url)
        said = world.say("worker", "--role", "author=exec:true")
        assert (said.code, "run 'interlock init-db' first" in said.err) == (1, True), said
