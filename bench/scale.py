"""How the cost of a step grows with what a journal on PostgreSQL holds: `python -m bench.scale`.

Fills a journal with rows as Interlock writes them, then measures the same work on top: steps a
second, write-ahead log and disk per step, and how long a coordinator takes to load a run. The
numbers of docs/scale.md are from here; its capacity model is `Model`.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack, suppress
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

import psutil
import psycopg

from bench.postgres import (
    PROGRAMS,
    SETTINGS,
    TRIPS,
    Database,
    measure_round_trip,
    read_cpu,
    wait_for_workers,
)
from bench.report import number, table
from interlock.engine.circuit_file import read_circuit
from interlock.journal.address import PostgresAddress
from interlock.journal.database import open_reader, open_writer
from interlock.journal.runs import load_cases, load_open_dispatches
from tests.world.postgres_server import Server, run_server

CASES = 700
SIZES = (0, 100_000, 1_000_000)
"""Steps that the journal holds before."""
FILL = """
set session_replication_role = replica;
insert into blobs select n, '\\x00112233445566778899aabbccddeeff', 0,
  convert_to(repeat(md5(n::text), 5), 'UTF8')
  from generate_series(%(blob)s, %(blob)s + 2 * %(n)s) n;
insert into runs select 1000000 + n, r.circuit, r.version, r.text, r.source, 'filled', r.options,
  'done', 1, 1, 1 from runs r, generate_series(0, %(n)s / 7000) n where r.run_id = %(run)s;
insert into cases select 1000000 + n, 1000000 + n / 1000, 'C' || n, %(blob)s, 0, '[]', 'ended',
  'report', null, '{"moves":7,"end":"DONE"}' from generate_series(0, %(n)s / 7) n;
insert into dispatches select 1000000 + n, 1000000 + n / 7, 'triage', 1, 'agent', %(blob)s + n, 1
  from generate_series(0, %(n)s - 1) n;
insert into journal (case_no, dispatch_id, at, answer, tokens, money, decision, epoch)
  select 1000000 + n / 7, 1000000 + n, 1, %(blob)s + %(n)s + n, 0, 0,
  '{"step":"triage","attempt":1,"signal":"artifact","status":"open","to":"resolve",'
  '"rule":"triage-match","read":{"match":true,"confidence":0.9,"recall_hit":0.8}}', 1
  from generate_series(0, %(n)s - 1) n;
select setval('blob_numbers', %(blob)s + 2 * %(n)s + 1);
select setval('case_numbers', 1000000 + %(n)s);
select setval('dispatch_numbers', 1000000 + %(n)s);
set session_replication_role = origin;
"""


class Model(NamedTuple):
    """What an installation needs, computed from what a step costs."""

    cases_a_day: int
    steps_a_case: float = 7.0
    peak: float = 4.0
    """How much busier the busiest hour is than the average one."""
    agent_s: float = 120.0
    """Seconds that an agent takes for a step, on average."""
    bytes_a_step: float = 1000.0
    """On the disk, with indexes, for texts of a few hundred bytes."""
    wal_a_step: float = 2100.0
    coordinator_ms: float = 1.0
    server_ms: float = 5.0
    """Processor time of a coordinator, and of the server, for a dispatch that goes to a worker."""

    @property
    def peak_steps(self) -> float:
        return self.cases_a_day * self.steps_a_case / 86_400 * self.peak

    @property
    def agents(self) -> float:
        """Agents at work at the peak."""
        return self.peak_steps * self.agent_s

    def describe(self) -> list[str]:
        day = self.cases_a_day * self.steps_a_case
        return [
            f"{self.cases_a_day:,}",
            number(day / 86_400),
            number(self.peak_steps),
            number(self.agents),
            number(self.peak_steps * self.coordinator_ms / 1000),
            number(self.peak_steps * self.server_ms / 1000),
            number(day * self.bytes_a_step / 1e9),
            number(day * self.wal_a_step / 1e9),
        ]


def fill(url: str, steps: int) -> None:
    """Rows of so many steps of runs that are over."""
    with psycopg.connect(url, autocommit=True) as connection:
        (blob,) = connection.execute("select max(blob_id) + 1 from blobs").fetchone() or (1,)
        (run,) = connection.execute("select max(run_id) from runs").fetchone() or (1,)
        for statement in FILL.split(";\n"):
            if statement.strip():
                values = {"n": steps, "blob": blob, "run": run}
                client = psycopg.ClientCursor(connection)
                client.execute(statement, values if "%(" in statement else None)
        connection.execute("vacuum analyze")


def run_steps(url: str) -> float:
    """Steps a second of a run of its own."""
    words = [sys.executable, str(PROGRAMS / "on_postgres.py"), "--style", "interlock"]
    words += ["--url", url, "--cases", str(CASES), "--inflight", "64"]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    return CASES * 7 / float(json.loads(done.stdout)["wall_s"])


def read_size(url: str) -> tuple[int, int]:
    """Bytes of all tables with their indexes, and of write-ahead log so far."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("checkpoint")
        row = connection.execute(
            "select sum(pg_total_relation_size(oid)), pg_current_wal_lsn() - '0/0'"
            " from pg_class where relkind = 'r' and relnamespace = 'public'::regnamespace"
        ).fetchone()
        assert row is not None
        return int(row[0]), int(row[1])


def measure(server: Server, folder: Path, steps: int) -> list[str]:
    name = f"scale_{steps}"
    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute(f"create database {name}")
    url = server.url.replace("/postgres?", f"/{name}?")
    run_steps(url)
    if steps:
        fill(url, steps)
    disk, log = read_size(url)
    rate = run_steps(url)
    disk_after, log_after = read_size(url)
    done = CASES * 7
    return [
        f"{steps:,}",
        number(rate),
        number((log_after - log) / done),
        number((disk_after - disk) / done),
        number(disk_after / 1e6),
        number(measure_loading(PostgresAddress(url, folder))),
    ]


def measure_loading(address: PostgresAddress) -> float:
    """Seconds to load a run of 10,000 open cases, as a coordinator does that takes it over."""
    on_postgres = import_module("on_postgres")
    session = on_postgres.Session(10_000, 64)
    with open_writer(address) as connection:
        run_id, _ = on_postgres.begin(connection, session)
    circuit = read_circuit(json.dumps(on_postgres.CIRCUIT), "seven.yaml").circuit
    with open_reader(address) as connection:
        begun = time.monotonic()
        found = list(load_cases(connection, circuit, run_id))
        list(load_open_dispatches(connection, run_id))
        assert len(found) == len(session.cases)
        return time.monotonic() - begun


def measure_dispatches(server: Server, folder: Path) -> str:
    """What a dispatch through the queue costs each part, in processor time."""
    database = Database(server, folder, "trip")
    database.note_times()
    before = read_server_cpu(server)
    found = measure_round_trip(database)
    server_ms = (read_server_cpu(server) - before) / TRIPS * 1000
    return (
        f"CPU ms for a dispatch: server {server_ms:.2f}, coordinator"
        f" {found['coordinator_ms']:.2f}, worker {found['worker_ms']:.2f}"
    )


def measure_connections(server: Server, folder: Path) -> str:
    """How many connections a coordinator, a worker and a run have."""
    database = Database(server, folder, "connections")
    database.note_times()

    def count() -> int:
        time.sleep(5)  # what is short-lived has gone
        query = (
            "select count(*) from pg_stat_activity where datname = current_database()"
            " and pid <> pg_backend_pid()"
        )
        return int(database.ask(query)[0][0])

    with ExitStack() as held:
        held.enter_context(database.start("coordinator"))
        idle = count()
        words = ("worker", "--role", "agent=script:silent.yaml", "--slots", "50")
        held.enter_context(database.start(*words))
        wait_for_workers(database, 1)
        working = count()
        for _ in range(4):
            database.begin_run(2, "--agent", "worker")
        database.wait_for("taken", 8)
        busy = count()
    return f"connections: coordinator {idle}, worker {working - idle}, 4 runs {busy - working}"


def read_server_cpu(server: Server) -> float:
    """Seconds of processor time of all of the server's processes, also of those that have ended."""
    assert server.process is not None
    first = psutil.Process(server.process.pid)
    times = first.cpu_times()
    ended = float(times.user + times.system + times.children_user + times.children_system)
    for child in first.children():
        with suppress(psutil.NoSuchProcess):  # it has ended meanwhile
            ended += read_cpu(child)
    return ended


def main() -> None:
    sys.path.insert(0, str(PROGRAMS))
    print(f"load {os.getloadavg()[0]:.1f}")
    head = ["steps in the journal", "steps/s", "WAL bytes/step", "bytes/step", "MB in all"]
    settings = {**SETTINGS, "max_wal_size": "4GB"}
    with tempfile.TemporaryDirectory() as folder, run_server(settings) as server:
        rows = [measure(server, Path(folder), steps) for steps in SIZES]
        costs = measure_dispatches(server, Path(folder))
        connections = measure_connections(server, Path(folder))
    print(table([*head, "s to load 10,000 cases"], rows))
    print(costs)
    print(connections)
    print(f"load {os.getloadavg()[0]:.1f}")
    columns = ["cases a day", "steps/s", "at the peak", "agents at work"]
    columns += ["coordinator cores", "server cores", "GB a day", "GB of WAL a day"]
    rows = [Model(cases).describe() for cases in (1_000, 10_000, 100_000, 1_000_000)]
    print(table(columns, rows))


if __name__ == "__main__":
    main()
