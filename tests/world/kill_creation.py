"""`python -m tests.world.kill_creation FOLDER`: kills the making of a database, and a migration.

Each time in a process of its own; what is left must be nothing or a whole database, and the next
process must be able to go on. Prints one line of JSON.
"""

import os
import shutil
import signal
import sys
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

import msgspec

from interlock.journal import database, schema, sqlite
from interlock.journal.connection import raw_connection, transaction
from interlock.journal.database import open_reader, open_writer
from tests.world.kill_run import in_a_process_of_its_own
from tests.world.tide_tables import ROWS, write_tables

TIMES = 40


class Death:
    """Comes at the n-th line of the modules that make it, or statement; 0 is never."""

    def __init__(self, at: int = 0) -> None:
        self.moments = 0
        self._at = at

    def watch(self, frame: FrameType, event: str, _argument: Any) -> Any:
        here = frame.f_code.co_filename in (database.__file__, schema.__file__, sqlite.__file__)
        if (here and event == "line") or frame.f_code.co_name == "do_execute":
            self.moments += 1
            if self.moments == self._at:
                os.kill(os.getpid(), signal.SIGKILL)
        return self.watch if here else None


def make(path: Path, death: Death) -> None:
    sys.settrace(death.watch)
    with open_writer(path):
        sys.settrace(None)


def migrate(path: Path, folder: Path, death: Death) -> None:
    with open_writer(path) as connection:
        sys.settrace(death.watch)
        schema.bring_up_to_date(connection, path, [write_tables(folder, 2)])
        sys.settrace(None)


def read_harbours(path: Path) -> tuple[int, list[tuple[object, ...]]]:
    with open_reader(path) as connection:
        raw = raw_connection(connection)
        found = raw.execute("select * from harbours").fetchall()
        return schema.read_versions(raw)["tides"], found


def kill_migrations(home: Path) -> list[str]:
    """Return what was wrong after a migration that died somewhere: it must be done or not begun."""
    before = home / "before.db"
    with open_writer(before) as connection:
        schema.bring_up_to_date(connection, before, [write_tables(home / "tides", 1)])
        with transaction(connection) as raw:
            for statement in ROWS:
                raw.execute(statement)
    life = Death()
    shutil.copy(before, home / "migrated.db")
    migrate(home / "migrated.db", home / "tides", life)
    wrong = []
    for moment in range(1, life.moments + 1, max(1, life.moments // TIMES)):
        path = home / f"migrated-{moment}.db"
        shutil.copy(before, path)
        job = partial(migrate, path, home / "tides", Death(moment))
        if in_a_process_of_its_own(job):
            wrong.append(f"{moment}: it did not die while it migrated")
        if read_harbours(path) not in ((1, [("Brest",)]), (2, [("Brest", 7)])):
            wrong.append(f"{moment}: {read_harbours(path)}")
        migrate(path, home / "tides", Death())
        if read_harbours(path) != (2, [("Brest", 7)]):
            wrong.append(f"{moment}: afterwards {read_harbours(path)}")
    return wrong


def tables(path: Path) -> int:
    with open_reader(path) as connection:
        query = "select count(*) from sqlite_master where type = 'table'"
        return int(raw_connection(connection).execute(query).fetchone()[0])


def has_wal_header(path: Path) -> bool:
    """Whether the file says of itself that its journal is a write-ahead log."""
    return path.read_bytes()[18:20] == b"\x02\x02"


def main(home: Path) -> None:
    life = Death()
    make(home / "whole.db", life)
    whole = tables(home / "whole.db")
    wrong: list[str] = []
    absent = 0
    for moment in range(1, life.moments + 1, max(1, life.moments // TIMES)):
        folder = home / str(moment)
        path = folder / "interlock.db"
        if in_a_process_of_its_own(lambda: make(path, Death(moment))):  # noqa: B023
            wrong.append(f"{moment}: it did not die")
        absent += not path.exists()
        if path.exists() and not has_wal_header(path):
            wrong.append(f"{moment}: a rollback journal could come beside it")
        if path.exists() and tables(path) != whole:
            wrong.append(f"{moment}: {tables(path)} tables are there")
        make(path, Death())
        left = {each.name for each in folder.iterdir()} - {path.name, f"{path.name}.lock"}
        if tables(path) != whole or left:
            wrong.append(f"{moment}: afterwards {tables(path)} tables, and {left}")
    wrong += kill_migrations(home)
    report = {"moments": life.moments, "absent": absent, "wrong": wrong}
    sys.stdout.write(msgspec.json.encode(report).decode())


if __name__ == "__main__":
    main(Path(sys.argv[1]))
