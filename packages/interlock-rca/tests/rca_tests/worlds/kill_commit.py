"""`python -m rca_tests.worlds.kill_commit FOLDER`: a batch of decisions that dies all over.

The process is killed before each statement that SQLite runs for it, commit included, each time on a
copy of the database. What is left must be all of the batch or nothing. Prints one line of JSON.
"""

import shutil
import sqlite3
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import cast

import msgspec

from interlock.engine.case import Decision
from interlock.journal.database import open_writer
from interlock.journal.journal import Journal, JournalEntry, NewDispatch, TurnWrites
from interlock_rca.knowledge.writer import apply_effect
from rca_tests.worlds.suite_database import (
    APPROVED,
    Inquiry,
    failed,
    investigated,
    launched,
    triaged,
)
from tests.world.kill_run import Death, in_a_process_of_its_own

EFFECTS = (triaged(), investigated(1), investigated(2), APPROVED)
LEFT = (
    "select (select count(*) from journal), (select count(*) from triages),"
    " (select count(*) from symptoms), (select count(*) from sightings),"
    " (select count(*) from rcas), (select count(*) from symptom_rca),"
    " (select count(*) from rca_cases where status = 'reviewed')"
)


def commit(db: Path, moment: Callable[[str], None]) -> None:
    with open_writer(db) as connection:
        journal = Journal(connection, 1)
        cast(sqlite3.Connection, connection.raw).set_trace_callback(moment)
        for each in EFFECTS:
            journal.apply_effect(partial(apply_effect, 1, each), 2e9)
        journal.commit(
            TurnWrites(
                at=2e9,
                dispatches=[NewDispatch(1, 1, "write", 1, "author", "p")],
                entries=[
                    JournalEntry(1, 1, Decision("write", 1, "artifact", "open", "judge"), b"{}")
                ],
            )
        )
        cast(sqlite3.Connection, connection.raw).set_trace_callback(None)


def main(home: Path) -> None:
    started = home / "begun"
    started.mkdir()
    Inquiry(started).open(launched(failed("a", "f1", bands=(1, 2))))
    left: list[object] = []
    wrong: list[int] = []
    moment = 0
    done = False
    while not done:
        moment += 1
        folder = home / str(moment)
        shutil.copytree(started, folder)
        done = in_a_process_of_its_own(
            lambda: commit(folder / "interlock.db", Death(moment).moment)  # noqa: B023
        )
        rows = Inquiry(folder).one(LEFT)
        if rows not in left:
            left.append(rows)
        if rows != ((1, 1, 1, 1, 2, 2, 1) if done else (0,) * 7):
            wrong.append(moment)
    report = {"moments": moment - 1, "left": left, "wrong": wrong}
    sys.stdout.write(msgspec.json.encode(report).decode())


if __name__ == "__main__":
    main(Path(sys.argv[1]))
