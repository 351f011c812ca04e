"""The ceiling: plain Python and sqlite3 writing the rows that Interlock writes for a step.

Knows the shape of those rows and when to commit them; has no rules, no loop, no checks.
`--group 1` commits every step by itself, `--group 64` commits up to 64 steps together.
No index beyond the keys and no work beyond the rows: a real engine does more for each step.
"""

import hashlib
import json
import sqlite3
import threading
from collections import deque
from collections.abc import Iterable

from session import Session, job_parser, make_durable, read_pragmas
from workload import HALF, STEPS, opening, prompt

SCHEMA = """
CREATE TABLE journal (seq INTEGER PRIMARY KEY, case_id TEXT NOT NULL, body BLOB NOT NULL);
CREATE TABLE dispatches (dispatch_id INTEGER PRIMARY KEY, case_id TEXT NOT NULL,
    step TEXT NOT NULL, attempt INTEGER NOT NULL, prompt BLOB NOT NULL, answer BLOB NOT NULL);
CREATE TABLE cases (case_id TEXT PRIMARY KEY, done INTEGER NOT NULL, state BLOB NOT NULL)
    WITHOUT ROWID;
CREATE TABLE blobs (hash BLOB NOT NULL UNIQUE, body BLOB NOT NULL);
"""
JOURNAL = "INSERT INTO journal (case_id, body) VALUES (?, ?)"
DISPATCH = "INSERT INTO dispatches (case_id, step, attempt, prompt, answer) VALUES (?, ?, ?, ?, ?)"
CASE = (
    "INSERT INTO cases (case_id, done, state) VALUES (?, ?, ?) "
    "ON CONFLICT (case_id) DO UPDATE SET done = excluded.done, state = excluded.state"
)
BLOB = "INSERT OR IGNORE INTO blobs (hash, body) VALUES (?, ?)"

Place = tuple[str, int]  # a case and how many of its steps are done


def advance(connection: sqlite3.Connection, session: Session, places: Iterable[Place]) -> None:
    """One step of each of these cases, in one transaction."""
    journal, dispatches, cases, blobs = [], [], [], []
    for case_id, done in places:
        step = STEPS[done]
        asked = prompt(case_id, step).encode()
        data = session.agent.answer(case_id, step)
        answered = json.dumps(data).encode()
        asked_hash, answered_hash = digest(asked), digest(answered)
        decision = {
            "case_id": case_id,
            "step": step,
            "attempt": 1,
            "signal": {"name": "answer", "role": "agent", "hash": answered_hash.hex()[:16]},
            "rule": f"{step}-match",
            "when": "match and confidence >= 0.8",
            "read": {"match": data["match"], "confidence": data["confidence"], "recall_hit": 0.8},
            "passed_over": [{"rule": f"{step}-retry", "because": "match is true"}],
            "to": STEPS[done + 1] if done + 1 < len(STEPS) else "DONE",
        }
        journal.append((case_id, json.dumps(decision)))
        dispatches.append((case_id, step, 1, asked_hash, answered_hash))
        cases.append((case_id, done + 1, json.dumps({**opening(case_id), "answer": data})))
        blobs += [(asked_hash, asked), (answered_hash, answered)]
    connection.execute("BEGIN IMMEDIATE")
    connection.executemany(JOURNAL, journal)
    connection.executemany(DISPATCH, dispatches)
    connection.executemany(CASE, cases)
    connection.executemany(BLOB, blobs)
    connection.execute("COMMIT")


def digest(body: bytes) -> bytes:
    return hashlib.sha256(body).digest()


def run(
    connection: sqlite3.Connection, session: Session, waiting: Iterable[Place], group: int, to: int
) -> None:
    """Keep `inflight` cases open; a case never has two steps in one transaction."""
    queue = deque(waiting)
    active: deque[Place] = deque()
    while queue or active:
        while queue and len(active) < session.inflight:
            active.append(queue.popleft())
        places = [active.popleft() for _ in range(min(group, len(active)))]
        advance(connection, session, places)
        active.extend((case_id, done + 1) for case_id, done in places if done + 1 < to)


def waiting_cases(connection: sqlite3.Connection, session: Session) -> list[Place]:
    if session.job == "resume":
        unfinished = "SELECT case_id, done FROM cases WHERE done < ?"
        return connection.execute(unfinished, (len(STEPS),)).fetchall()
    connection.executescript(SCHEMA)
    return [(case_id, 0) for case_id in session.cases]


def main() -> None:
    parser = job_parser()
    parser.add_argument("--group", type=int, default=64)
    arguments = parser.parse_args()
    session = Session(arguments, steps_sql="SELECT count(*) FROM journal")
    connection = sqlite3.connect(session.database, isolation_level=None)
    make_durable(connection)
    waiting = waiting_cases(connection, session)
    if session.job == "half":
        run(connection, session, waiting, arguments.group, HALF)
        session.announce_half_done()
        threading.Event().wait()
    with session.measured():
        run(connection, session, waiting, arguments.group, len(STEPS))
    commits = "a commit for each step" if arguments.group == 1 else "a commit for many cases"
    session.report(
        style=f"one thread, {commits}",
        versions={"sqlite": sqlite3.sqlite_version},
        pragmas=[read_pragmas(connection)],
    )
    connection.close()


if __name__ == "__main__":
    main()
