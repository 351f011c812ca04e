"""Many machines, on one: a PostgreSQL with fsync, coordinators and workers as real processes.

Triggers note when something was offered, taken, answered and decided; PostgreSQL itself says when
each of these was committed (`track_commit_timestamp`), so no clock but its own is read.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median, quantiles

import psutil
import psycopg

from bench.environment import peers_python
from bench.results import Sample
from interlock.journal.address import PostgresAddress
from interlock.journal.database import open_writer
from interlock_cluster.postgres import server_connection
from interlock_cluster.queue import ensure_queue
from tests.world.postgres_server import Server, find_binaries, run_server

PROGRAMS = Path(__file__).parent / "programs"
SETTINGS = {"track_commit_timestamp": "on", "max_connections": "200", "shared_buffers": "128MB"}
PATIENCE_S = 300
TRIPS = 5000
"""Dispatches that go to workers and back."""
CIRCUIT = """\
circuit: ping
start: ask
ends: [done]
steps: {ask: {role: agent, timeout: 1h, prompt: "Answer {{ case_id }}."}}
rules: [{at: ask, to: done}]
otherwise: done
"""
AGENTS = {
    "at-once": '"*": {ask: {answer: {ok: true}}}\n',
    "half-second": '"*": {ask: {answer: {ok: true}, delay: 0.5}}\n',
    "silent": '"*": {ask: {silent: true}}\n',
}
NOTES = """
create table note (place bigserial, what text, dispatch_id bigint);
create function note() returns trigger language plpgsql as $$
begin
  insert into public.note (what, dispatch_id) values (tg_argv[0], new.dispatch_id);
  return new;
end $$;
create trigger note_decided after insert on journal for each row execute function note('decided');
create trigger note_replied after insert on interlock_queue.replies
  for each row execute function note('replied');
create trigger note_offered after insert on interlock_queue.offers
  for each row execute function note('offered');
create trigger note_taken after update on interlock_queue.offers for each row
  when (new.fence <> old.fence) execute function note('taken');
"""
SPAN = """
select extract(epoch from pg_xact_commit_timestamp(b.xmin) - pg_xact_commit_timestamp(a.xmin))
from note a join note b on b.dispatch_id = a.dispatch_id where a.what = %s and b.what = %s"""
Say = Callable[[str], None]


class Database:
    """A journal of its own on the server, with a project's folder."""

    def __init__(self, server: Server, folder: Path, name: str) -> None:
        with psycopg.connect(server.url, autocommit=True) as connection:
            connection.execute(f"create database {name}")
        self.url = server.url.replace("/postgres?", f"/{name}?")
        self.folder = folder / name
        (self.folder / "circuits").mkdir(parents=True)
        (self.folder / "circuits" / "ping.yaml").write_text(CIRCUIT)
        for agent, text in AGENTS.items():
            (self.folder / f"{agent}.yaml").write_text(text)

    def note_times(self) -> None:
        """Have the tables, and let the database note what happens."""
        with open_writer(PostgresAddress(self.url, self.folder)) as connection:
            ensure_queue(server_connection(connection))
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(NOTES)

    def ask(self, query: str, *values: object) -> list[tuple[float, ...]]:
        with psycopg.connect(self.url, autocommit=True) as connection:
            return connection.execute(query, values).fetchall()

    def count(self, what: str) -> int:
        return int(self.ask("select count(*) from note where what = %s", what)[0][0])

    def read_span(self, what: str, until: str) -> float:
        """Seconds from the first commit of one kind to the last of another."""
        query = (
            "select extract(epoch from (select max(pg_xact_commit_timestamp(xmin)) from note"
            " where what = %s) - (select min(pg_xact_commit_timestamp(xmin)) from note"
            " where what = %s))"
        )
        return float(self.ask(query, until, what)[0][0])

    def begin_run(self, cases: int, *words: str) -> None:
        """Leave a run to coordinators."""
        rows = "".join(json.dumps({"id": f"C{number}"}) + "\n" for number in range(cases))
        (self.folder / "cases.jsonl").write_text(rows)
        command = ("run", "ping", "--cases", "cases.jsonl", "--detach", "--new", *words)
        subprocess.run(
            self._build_command(*command), cwd=self.folder, check=True, capture_output=True
        )

    @contextmanager
    def start(self, *words: str) -> Iterator["psutil.Popen"]:
        """A process of Interlock, ended at the end."""
        process = psutil.Popen(
            self._build_command(*words),
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            yield process
        finally:
            process.kill()
            process.wait()

    def _build_command(self, *words: str) -> list[str]:
        return [sys.executable, "-m", "interlock", *words, "--db", self.url]

    def wait_for(self, what: str, count: int) -> None:
        """Until so many of a kind are noted."""
        limit = time.monotonic() + PATIENCE_S
        while self.count(what) < count:
            if time.monotonic() > limit:
                raise ValueError(f"only {self.count(what)} of {count} {what} in {PATIENCE_S} s")
            time.sleep(0.1)


def measure_all(workdir: Path, rounds: int, say: Say) -> list[Sample]:
    """Every measure on one server, in turn."""
    samples: list[Sample] = []

    def keep(program: str, measure: str, number: int, values: dict[str, float]) -> None:
        samples.append(Sample(program, measure, number, values))
        shown = "  ".join(f"{name} {value:,.4g}" for name, value in values.items())
        say(f"round {number}  {measure:<12}  {program:<10}  {shown}  load {os.getloadavg()[0]:.1f}")

    with run_server(SETTINGS) as server:
        # Short and often: other work on the machine comes and goes.
        for number in range(1, 3 * rounds + 1):
            programs = ("plain", "interlock", "dbos")
            for program in programs[number % 3 :] + programs[: number % 3]:
                keep(program, "pg-many", number, measure_steps(server, program, number))
        for number in range(1, rounds + 1):
            for measure, take in MEASURES.items():
                database = Database(server, workdir, f"{measure.replace('-', '_')}_{number}")
                database.note_times()
                keep("interlock", measure, number, take(database))
    return samples


def measure_steps(server: Server, program: str, number: int) -> dict[str, float]:
    """Cases of seven steps, 64 in flight: the same work for everybody."""
    name = f"many_{program}_{number}"
    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute(f"create database {name}")
    url = server.url.replace("/postgres?", f"/{name}?")
    cases = 60 if program == "dbos" else 700
    if program == "dbos":
        words = [peers_python(), str(PROGRAMS / "on_dbos.py"), "--job", "throughput"]
        words += ["--workdir", "."]
    else:
        words = [sys.executable, str(PROGRAMS / "on_postgres.py"), "--style", program]
    words += ["--url", url, "--cases", str(cases), "--inflight", "64"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    if done.returncode != 0:
        raise ValueError(f"{program}: {done.stderr[-1500:]}")
    facts = json.loads(done.stdout.splitlines()[-1])
    table = "dbos.operation_outputs" if program == "dbos" else "journal"
    with psycopg.connect(url) as connection:
        (steps,) = connection.execute(f"select count(*) from {table}").fetchone() or (0,)
    if steps != cases * 7 or facts["asks"] != cases * 7:
        raise ValueError(f"{program}: {steps} steps, {facts['asks']} asked, not {cases * 7}")
    return {
        "steps_per_s": cases * 7 / facts["wall_s"],
        "cpu_ms": facts["cpu_s"] / (cases * 7) * 1000,
    }


WORKER = ("worker", "--role")


def measure_round_trip(database: Database) -> dict[str, float]:
    """Dispatches a second that workers answer at once and that are decided: two of them share this
    machine's processors with the coordinator and the server. What one dispatch costs each of them
    says what more machines could do."""
    cases = TRIPS
    with ExitStack() as held:
        words = ("agent=script:at-once.yaml", "--slots", "100", "--name")
        workers = [
            held.enter_context(database.start(*WORKER, *words, f"w{number}")) for number in (1, 2)
        ]
        coordinator = held.enter_context(database.start("coordinator"))
        wait_for_workers(database, 2)
        database.begin_run(cases, "--agent", "worker", "--parallel", "1000")
        database.wait_for("offered", 1)
        before = read_cpu(coordinator), sum(map(read_cpu, workers))
        database.wait_for("decided", cases)
        coordinating = read_cpu(coordinator) - before[0]
        working = sum(map(read_cpu, workers)) - before[1]
    return {
        "dispatches_per_s": cases / database.read_span("offered", "decided"),
        "coordinator_ms": coordinating / cases * 1000,
        "worker_ms": working / cases * 1000,
    }


def read_cpu(process: psutil.Process) -> float:
    """Seconds of processor time so far."""
    times = process.cpu_times()
    return float(times.user + times.system)


def measure_latency(database: Database) -> dict[str, float]:
    """One dispatch at a time: how long until a worker has it, and until its reply is decided."""
    cases = 100
    with ExitStack() as held:
        words = ("agent=script:at-once.yaml", "--slots", "4")
        held.enter_context(database.start(*WORKER, *words))
        held.enter_context(database.start("coordinator"))
        wait_for_workers(database, 1)
        database.begin_run(cases, "--agent", "worker", "--parallel", "1")
        database.wait_for("decided", cases)
    pick_up = [row[0] * 1000 for row in database.ask(SPAN, "offered", "taken")]
    decide = [row[0] * 1000 for row in database.ask(SPAN, "replied", "decided")]
    return {
        "pick_up_p50_ms": float(median(pick_up)),
        "pick_up_p95_ms": float(quantiles(pick_up, n=20)[-1]),
        "decide_p50_ms": float(median(decide)),
        "decide_p95_ms": float(quantiles(decide, n=20)[-1]),
    }


def measure_take_over(database: Database) -> dict[str, float]:
    """From the death of a coordinator to the moment when another has its run."""
    query = "select extract(epoch from clock_timestamp()), epoch, since from owners"
    with ExitStack() as held:
        held.enter_context(database.start(*WORKER, "agent=script:silent.yaml", "--slots", "4"))
        wait_for_workers(database, 1)
        first = held.enter_context(database.start("coordinator", "--name", "first"))
        database.begin_run(4, "--agent", "worker")
        database.wait_for("taken", 4)
        held.enter_context(database.start("coordinator", "--name", "second"))
        time.sleep(3)  # it is there, and has looked
        first.send_signal(signal.SIGKILL)
        ((died, epoch, _),) = database.ask(query)
        limit = time.monotonic() + PATIENCE_S
        while time.monotonic() < limit:
            ((_, now, since),) = database.ask(query)
            if now > epoch:
                return {"take_over_s": float(since) - float(died)}
            time.sleep(0.05)
    raise ValueError("nobody took the run over")


def measure_scaling(database: Database) -> dict[str, float]:
    """The same work by one worker and by four, with agents that take half a second."""
    seconds = {}
    cases = 120
    with ExitStack() as held:
        held.enter_context(database.start("coordinator"))
        for workers in (1, 4):
            with ExitStack() as crew:
                for number in range(workers):
                    name = ("--slots", "2", "--lease", "1", "--name", f"w{number}")
                    words = (*WORKER, "agent=script:half-second.yaml", *name)
                    crew.enter_context(database.start(*words))
                wait_for_workers(database, workers)
                with psycopg.connect(database.url, autocommit=True) as connection:
                    connection.execute("truncate note")
                database.begin_run(cases, "--agent", "worker", "--parallel", "64")
                database.wait_for("decided", cases)
                seconds[workers] = database.read_span("offered", "decided")
    return {"speed_up": seconds[1] / seconds[4], "one_s": seconds[1], "four_s": seconds[4]}


def measure_waiting(database: Database) -> dict[str, float]:
    """5,000 agents at work that say nothing: what their coordinator costs meanwhile; and how fast
    it had offered them all."""
    cases, seconds = 5000, 20.0
    with ExitStack() as held:
        words = ("agent=script:silent.yaml", "--slots", "5000")
        held.enter_context(database.start(*WORKER, *words))
        wait_for_workers(database, 1)
        coordinator = held.enter_context(database.start("coordinator"))
        database.begin_run(cases, "--agent", "worker", "--parallel", str(cases))
        database.wait_for("offered", cases)
        offered = database.read_span("offered", "offered")
        database.wait_for("taken", cases)
        taken = database.read_span("offered", "taken")
        before = read_cpu(coordinator)
        time.sleep(seconds)
        cpu = read_cpu(coordinator) - before
        rss = coordinator.memory_info().rss
    return {
        "offered_per_s": cases / offered,
        "taken_per_s": cases / taken,
        "cpu_percent": 100 * cpu / seconds,
        "rss_mb": rss / 1e6,
    }


def wait_for_workers(database: Database, count: int) -> None:
    """Until so many workers are there that live."""
    query = (
        "select count(*) from interlock_queue.workers w"
        " join interlock_queue.procrastinate_workers p on p.id = w.worker"
        " where p.last_heartbeat >= clock_timestamp() - w.lease * interval '1 s'"
    )
    limit = time.monotonic() + PATIENCE_S
    while database.ask(query)[0][0] != count:
        if time.monotonic() > limit:
            raise ValueError(f"{count} workers were expected")
        time.sleep(0.1)


MEASURES: dict[str, Callable[[Database], dict[str, float]]] = {
    "pg-workers": measure_round_trip,
    "pg-latency": measure_latency,
    "pg-take-over": measure_take_over,
    "pg-scaling": measure_scaling,
    "pg-waiting": measure_waiting,
}


def describe_server() -> str:
    words = [str(find_binaries() / "postgres"), "--version"]
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip()
