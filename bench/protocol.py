"""How the harness and a benchmark program talk, and how the harness checks what it is told.

A program is started in its own process as

    python PROGRAM --job JOB --workdir DIR --cases N --inflight K [arguments of its own]

- `throughput`: DIR is empty. Create DIR/bench.db, take N cases through seven steps with at most
  K in flight, print ONE JSON object (`Outcome` below) on stdout, close the database, exit 0.
- `half`: DIR is empty, K = N. Every case is brought to where its fourth step is asked and never
  answered; then one JSON object (`HalfDone`) is printed, and the harness kills with SIGKILL.
- `resume`: DIR is what `half` left. Go on with every case to its end, report like `throughput`.

Rules: WAL and synchronous=FULL on every connection that writes, read back and reported; a step is
durable before the next step of its case is asked; an answered step is never asked again.
"""

import os
import sqlite3
import subprocess
import tempfile
import threading
import time
from contextlib import closing
from pathlib import Path
from typing import TypeVar

import msgspec

STEPS = 7
HALF = 3
PATIENCE_S = 240
DURABLE = {2, 3}  # FULL, EXTRA


class RejectedError(Exception):
    """The program failed, or what it reported does not hold."""


class HalfDone(msgspec.Struct, frozen=True):
    job: str
    database: str
    steps_sql: str  # counts the finished steps in the database


class Outcome(msgspec.Struct, frozen=True):
    job: str
    cases: int
    inflight: int
    style: str  # which of the library's idioms was used
    versions: dict[str, str]
    database: str  # file name in DIR
    steps_sql: str
    journal_modes: list[str]  # read back, one for each connection
    synchronous: list[int]
    main_at: float  # time.monotonic() when imports were done
    first_ask_at: float | None  # time.monotonic() when the agent was first asked
    done_at: float  # time.monotonic() when the last step was durable
    wall_s: float  # the cases only, without imports and creation of the database
    cpu_s: float  # user and system time of the process in that window
    asks: int  # how often the agent was asked
    peak_rss_bytes: int


Report = TypeVar("Report", HalfDone, Outcome)


class Request(msgspec.Struct, frozen=True):
    command: tuple[str, ...]
    workdir: Path
    cases: int
    inflight: int

    def argv(self, job: str, inflight: int) -> list[str]:
        sizes = ["--cases", str(self.cases), "--inflight", str(inflight)]
        return [*self.command, "--job", job, "--workdir", str(self.workdir), *sizes]


class Run(msgspec.Struct, frozen=True):
    outcome: Outcome
    spawned_at: float
    db_bytes: int


def throughput(request: Request) -> Run:
    return _checked(request, "throughput", asks=request.cases * STEPS)


def resume_after_kill(request: Request) -> Run:
    half = _run_half_and_kill(request)
    steps = count_steps(request.workdir / half.database, half.steps_sql)
    if steps != request.cases * HALF:
        raise RejectedError(f"after kill -9 there are {steps} steps, not {request.cases * HALF}")
    return _checked(request, "resume", asks=request.cases * (STEPS - HALF))


def _checked(request: Request, job: str, asks: int) -> Run:
    spawned_at = time.monotonic()
    argv = request.argv(job, request.inflight)
    try:
        done = subprocess.run(
            argv, capture_output=True, env=_environment(), timeout=PATIENCE_S, check=False
        )
    except subprocess.TimeoutExpired:
        raise RejectedError(f"not done after {PATIENCE_S} s") from None
    if done.returncode != 0:
        raise RejectedError(
            f"exit {done.returncode}: {done.stderr.decode(errors='replace')[-2000:]}"
        )
    outcome = _decode(done.stdout, Outcome)
    database = request.workdir / outcome.database
    steps = count_steps(database, outcome.steps_sql)
    if faults := find_faults(outcome, request, steps=steps, asks=asks):
        raise RejectedError("; ".join(faults))
    return Run(outcome=outcome, spawned_at=spawned_at, db_bytes=_size_at_rest(database))


def find_faults(outcome: Outcome, request: Request, *, steps: int, asks: int) -> list[str]:
    """Why a result must not be counted; empty when it may."""
    faults = []
    if (outcome.cases, outcome.inflight) != (request.cases, request.inflight):
        faults.append(f"ran {outcome.cases} cases with {outcome.inflight} in flight")
    if set(outcome.journal_modes) != {"wal"}:
        faults.append(f"journal_mode is {outcome.journal_modes or 'not reported'}, not WAL")
    if not outcome.synchronous or not set(outcome.synchronous) <= DURABLE:
        faults.append(f"synchronous is {outcome.synchronous or 'not reported'}, not FULL")
    if steps != request.cases * STEPS:
        faults.append(f"{steps} steps in the database, not {request.cases * STEPS}")
    if outcome.asks != asks:
        faults.append(f"the agent was asked {outcome.asks} times, not {asks}")
    return faults


def _run_half_and_kill(request: Request) -> HalfDone:
    with (
        tempfile.TemporaryFile() as errors,
        subprocess.Popen(
            request.argv("half", request.cases),
            stdout=subprocess.PIPE,
            stderr=errors,
            env=_environment(),
        ) as process,
    ):
        assert process.stdout is not None
        watchdog = threading.Timer(PATIENCE_S, process.kill)
        watchdog.start()
        line = process.stdout.readline()
        watchdog.cancel()
        process.kill()
        process.wait()
        if not line:
            errors.seek(0)
            raise RejectedError(
                f"half: no report: {errors.read().decode(errors='replace')[-2000:]}"
            )
    return _decode(line, HalfDone)


def _decode(text: bytes, shape: type[Report]) -> Report:
    try:
        return msgspec.json.decode(text, type=shape)
    except msgspec.DecodeError as error:
        raise RejectedError(f"not a report ({error}): {text[:500]!r}") from None


def count_steps(database: Path, steps_sql: str) -> int:
    """Read-only, so that the write-ahead log of a killed program stays as it was left."""
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection:
        return int(connection.execute(steps_sql).fetchone()[0])


def _size_at_rest(database: Path) -> int:
    with closing(sqlite3.connect(database)) as connection:
        mode = connection.execute("PRAGMA journal_mode").fetchone()[0]
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    if mode != "wal":
        raise RejectedError(f"the database file is in journal mode {mode}, not WAL")
    log = Path(f"{database}-wal")
    return database.stat().st_size + (log.stat().st_size if log.exists() else 0)


def _environment() -> dict[str, str]:
    """No tracing to outside services, whatever the user has set."""
    quiet = {"LANGSMITH_TRACING": "false", "LANGCHAIN_TRACING_V2": "false"}
    return {**os.environ, **quiet}
