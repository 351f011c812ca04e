"""Store runs of tests at single commits, and what they proved about a suite's families.

A run is stored as soon as it ends, under a key of everything that its result depends on: a killed
search continues without repeating runs, and other suites may use them too.
"""

import hashlib

import msgspec

from interlock.journal.connection import Connection, transaction
from interlock_rca.records import CommandRun, Reproduction


def build_run_key(repo: str, commit: str, setup: str, command: str) -> str:
    """Return a key for a set-up and a command at a commit."""
    facts = msgspec.json.encode((repo, commit, setup, command))
    return hashlib.blake2b(facts, digest_size=16).hexdigest()


def load_runs(connection: Connection, key: str) -> list[CommandRun]:
    """Return the runs so far, in order, up to the first unreadable one."""
    rows = connection.raw.execute(
        "select record from reproduction_runs where key = ? order by attempt", (key,)
    )
    found: list[CommandRun] = []
    for (record,) in rows:
        try:
            found.append(msgspec.json.decode(record, type=CommandRun))
        except msgspec.DecodeError:
            break
    return found


def save_run(connection: Connection, key: str, attempt: int, run: CommandRun) -> None:
    with transaction(connection) as raw:
        raw.execute(
            "insert into reproduction_runs (key, attempt, record, at) values (?, ?, ?, ?)"
            " on conflict (key, attempt) do update set record = excluded.record, at = excluded.at",
            (key, attempt, msgspec.json.encode(run).decode(), run.at),
        )


def save_reproduction(
    connection: Connection, suite_id: int, family: str, case_no: int, found: Reproduction, at: float
) -> None:
    """Store the result of running a family's test, replacing an earlier one."""
    with transaction(connection) as raw:
        raw.execute(
            "insert into reproductions (suite_id, family, case_no, record, at)"
            " values (?, ?, ?, ?, ?) on conflict (suite_id, family) do update set"
            " case_no = excluded.case_no, record = excluded.record, at = excluded.at",
            (suite_id, family, case_no, msgspec.json.encode(found).decode(), at),
        )


def load_reproductions(connection: Connection, suite_id: int) -> dict[str, Reproduction]:
    """Return the results of running tests, by family."""
    rows = connection.raw.execute(
        "select family, record from reproductions where suite_id = ?", (suite_id,)
    )
    return {family: msgspec.json.decode(record, type=Reproduction) for family, record in rows}


def find_reproduction(
    connection: Connection, suite_id: int, rca_id: int | None
) -> Reproduction | None:
    """Return the result of running a root cause's test."""
    row = connection.raw.execute(
        "select record from reproductions where suite_id = ? and family = ?",
        (suite_id, name_family(rca_id, "")),
    ).fetchone()
    return msgspec.json.decode(row[0], type=Reproduction) if row else None


def name_family(rca_id: int | None, family: str) -> str:
    """Return a family's name: its root cause, or the group in which its cases arrived."""
    return f"rca-{rca_id}" if rca_id else f"like-{family}"
