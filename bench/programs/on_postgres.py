"""The same cases of seven steps on PostgreSQL: by Interlock, and by plain psycopg.

`--style plain` writes what Interlock writes for a step, into the same tables, in the same groups
and in one conversation with the server for each; it has no rules, no loop, no checks.
"""

import argparse
import asyncio
import json
import sys
import time
from collections import deque
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path
from typing import Any

import psycopg
from on_interlock import CIRCUIT, Inside
from session import cpu_seconds, peak_rss_bytes
from workload import STEPS, Agent, case_ids, opening, prompt

from interlock.engine.circuit_file import read_circuit
from interlock.journal.address import PostgresAddress
from interlock.journal.database import open_writer
from interlock.journal.journal import Journal
from interlock.journal.ownership import own_run
from interlock.journal.runs import NewCase, NewRun, begin_run
from interlock.runtime.loop import RunLoop
from interlock.runtime.terms import RunTerms
from interlock.system.clock import SystemClock

BLOB = "insert into blobs values (%s, %s, %s, %s)"
DISPATCH = "insert into dispatches values (%s, %s, %s, %s, %s, %s, %s)"
JOURNAL = (
    "insert into journal (case_no, dispatch_id, at, answer, tokens, money, decision, epoch)"
    " values (%s, %s, %s, %s, %s, %s, %s, %s)"
)
CASE = "update cases set status = %s, step = %s, dispatch_id = %s, state = %s where case_no = %s"


class Session:
    """What a carrier and the report need."""

    job = "throughput"

    def __init__(self, cases: int, inflight: int) -> None:
        self.cases = case_ids(cases)
        self.inflight = inflight
        self.agent = Agent()
        self.wall_s = self.cpu_s = 0.0

    @contextmanager
    def measured(self) -> Any:
        started, cpu_started = time.monotonic(), cpu_seconds()
        yield
        self.wall_s, self.cpu_s = time.monotonic() - started, cpu_seconds() - cpu_started


def begin(connection: Any, session: Session) -> tuple[int, Any]:
    text = json.dumps(CIRCUIT)
    circuit = read_circuit(text, "seven.yaml").circuit
    cases = (NewCase(case_id, opening(case_id)) for case_id in session.cases)
    new = NewRun(
        circuit=circuit, text=text, source="bench", fingerprint="bench", options={}, at=1.0
    )
    return begin_run(connection, new, cases), circuit


async def work_by_interlock(address: PostgresAddress, session: Session) -> None:
    with open_writer(address) as connection:
        run_id, circuit = begin(connection, session)
        with own_run(connection, run_id) as ownership, session.measured():
            loop = RunLoop(
                Journal(connection, run_id, 0, ownership),
                RunTerms(circuit=circuit, parallel=session.inflight),
                dict.fromkeys(circuit.roles, Inside(session)),  # type: ignore[arg-type]
                SystemClock(),
            )
            loop.restore(connection)
            await loop.run()


def work_plainly(address: PostgresAddress, session: Session) -> None:
    with open_writer(address) as connection:
        run_id, _ = begin(connection, session)
    with psycopg.connect(address.url, autocommit=True) as connection:
        rows = connection.execute("select case_id, case_no from cases where run_id = %s", (run_id,))
        numbers = dict(rows.fetchall())
        blob = connection.execute("select max(blob_id) from blobs").fetchone()[0]  # type: ignore[index]
        writer = PlainWriter(connection, session, numbers, blob)
        with session.measured():
            writer.run()


class PlainWriter:
    """A group of cases moves on by a step in each transaction."""

    def __init__(
        self, connection: Any, session: Session, numbers: dict[str, int], blob: int
    ) -> None:
        self.connection = connection
        self.session = session
        self.numbers = numbers
        self.blob = blob
        self.dispatch = 0

    def run(self) -> None:
        queue = deque((case_id, 0) for case_id in self.session.cases)
        active: deque[tuple[str, int, int]] = deque()
        group: list[tuple[str, int, int]] = []
        while queue or active or group:
            new = [
                queue.popleft() for _ in range(min(len(queue), self.session.inflight - len(group)))
            ]
            active.extend(self.turn(group, new))
            group = [active.popleft() for _ in range(min(len(active), self.session.inflight))]

    def turn(
        self, answered: list[tuple[str, int, int]], new: list[tuple[str, int]]
    ) -> list[tuple[str, int, int]]:
        """Decide on what was asked before, ask what comes next; one transaction."""
        blobs, journal, dispatches, cases, out = [], [], [], [], []
        asking = list(new)
        at = time.time()
        for case_id, done, dispatch in answered:
            data = self.session.agent.answer(case_id, STEPS[done])
            to = STEPS[done + 1] if done + 1 < len(STEPS) else "DONE"
            decision = {
                "step": STEPS[done],
                "attempt": 1,
                "signal": "artifact",
                "status": "open" if to != "DONE" else "ended",
                "to": to,
                "rule": f"{STEPS[done]}-match",
                "read": {"match": True, "confidence": 0.9, "recall_hit": 0.8},
            }
            answer = self.put(blobs, json.dumps(data).encode())
            text = json.dumps(decision)
            journal.append((self.numbers[case_id], dispatch, at, answer, 0, 0.0, text, 1))
            if done + 1 < len(STEPS):
                asking.append((case_id, done + 1))
            else:
                state = json.dumps({"moves": done + 1, "end": "DONE"})
                cases.append(("ended", "report", None, state, self.numbers[case_id]))
        for case_id, done in asking:
            self.dispatch += 1
            asked = self.put(blobs, prompt(case_id, STEPS[done]).encode())
            number = self.numbers[case_id]
            dispatches.append((self.dispatch, number, STEPS[done], 1, "agent", asked, at))
            visits = dict.fromkeys(STEPS[: done + 1], 1)
            state = json.dumps({"moves": done, "visits": visits})
            cases.append(("open", STEPS[done], self.dispatch, state, number))
            out.append((case_id, done, self.dispatch))
        with self.connection.transaction(), self.connection.pipeline():
            for statement, rows in (
                (BLOB, blobs),
                (DISPATCH, dispatches),
                (JOURNAL, journal),
                (CASE, cases),
            ):
                if rows:
                    self.connection.cursor().executemany(statement, rows)
        return out

    def put(self, blobs: list[Any], data: bytes) -> int:
        self.blob += 1
        blobs.append((self.blob, blake2b(data, digest_size=16).digest(), 0, data))
        return self.blob


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--style", choices=("interlock", "plain"), required=True)
    parser.add_argument("--url", required=True)
    parser.add_argument("--cases", type=int, required=True)
    parser.add_argument("--inflight", type=int, required=True)
    words = parser.parse_args()
    session = Session(words.cases, words.inflight)
    address = PostgresAddress(words.url, Path.cwd())
    if words.style == "interlock":
        asyncio.run(work_by_interlock(address, session))
    else:
        work_plainly(address, session)
    facts = {"wall_s": session.wall_s, "cpu_s": session.cpu_s, "rss_bytes": peak_rss_bytes()}
    sys.stdout.write(json.dumps({**facts, "asks": session.agent.asks}) + "\n")


if __name__ == "__main__":
    main()
