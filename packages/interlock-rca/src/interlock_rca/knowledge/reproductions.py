"""Runs of tests at single commits, and what they proved about the families of a suite.

A run is kept under a key of all that its result depends on, as soon as it has ended: a search that
was killed goes on without running anything again, and another suite may use it, too.
"""

import hashlib

import msgspec

from interlock.journal.connection import Connection, raw_connection, transaction
from interlock_rca.records import CommandRun, Reproduction


def build_run_key(repo: str, commit: str, setup: str, command: str) -> str:
    """One word for a set-up and a command at a commit."""
    facts = msgspec.json.encode((repo, commit, setup, command))
    return hashlib.blake2b(facts, digest_size=16).hexdigest()


def load_runs(connection: Connection, key: str) -> list[CommandRun]:
    """The runs so far, in their order; those after one that cannot be read do not count."""
    rows = raw_connection(connection).execute(
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
    """What is known about a family by running; it replaces what was known before."""
    with transaction(connection) as raw:
        raw.execute(
            "insert into reproductions (suite_id, family, case_no, record, at)"
            " values (?, ?, ?, ?, ?) on conflict (suite_id, family) do update set"
            " case_no = excluded.case_no, record = excluded.record, at = excluded.at",
            (suite_id, family, case_no, msgspec.json.encode(found).decode(), at),
        )


def load_reproductions(connection: Connection, suite_id: int) -> dict[str, Reproduction]:
    """What is known about the families of a suite by running."""
    rows = raw_connection(connection).execute(
        "select family, record from reproductions where suite_id = ?", (suite_id,)
    )
    return {family: msgspec.json.decode(record, type=Reproduction) for family, record in rows}


def find_reproduction(
    connection: Connection, suite_id: int, rca_id: int | None
) -> Reproduction | None:
    """What is known by running about a root cause of a suite."""
    row = (
        raw_connection(connection)
        .execute(
            "select record from reproductions where suite_id = ? and family = ?",
            (suite_id, name_family(rca_id, "")),
        )
        .fetchone()
    )
    return msgspec.json.decode(row[0], type=Reproduction) if row else None


def name_family(rca_id: int | None, family: str) -> str:
    """What a family is called: by its root cause, or by those who looked alike when they came."""
    return f"rca-{rca_id}" if rca_id else f"like-{family}"
