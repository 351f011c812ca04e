"""`python -m tests.world.kill_creation FOLDER [DATABASE]`: kills the making of a database
everywhere, or a migration of the one that is named.

Each time in a process of its own; what is left must be nothing or a whole database, and the next
process must be able to go on. Prints one line of JSON.
"""

import os
import signal
import sys
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

import msgspec

from interlock.journal import database, schema, sqlite
from interlock.journal.address import DatabaseAddress, parse_address
from interlock.journal.connection import transaction
from interlock.journal.database import open_reader, open_writer
from interlock.journal.server import load_driver
from tests.world.kill_run import in_a_process_of_its_own
from tests.world.tide_tables import ROWS, write_tables

TIMES, MIGRATIONS = 40, 15
WATCHED = tuple(getattr(each, "__file__", "") for each in (database, load_driver(), schema, sqlite))


class Death:
    """Comes at the n-th line of the modules that make it, or statement; 0 is never."""

    def __init__(self, at: int = 0) -> None:
        self.moments = 0
        self._at = at

    def watch(self, frame: FrameType, event: str, _argument: Any) -> Any:
        here = frame.f_code.co_filename in WATCHED
        if (here and event == "line") or frame.f_code.co_name == "do_execute":
            self.moments += 1
            if self.moments == self._at:
                os.kill(os.getpid(), signal.SIGKILL)
        return self.watch if here else None


def make(path: Path, death: Death) -> None:
    sys.settrace(death.watch)
    with open_writer(path):
        sys.settrace(None)


def migrate(db: DatabaseAddress, folder: Path, death: Death) -> None:
    with open_writer(db) as connection:
        sys.settrace(death.watch)
        schema.bring_up_to_date(connection, db, [write_tables(folder, 2)])
        sys.settrace(None)


def begin(db: DatabaseAddress, folder: Path) -> None:
    """Bring the made-up tables to their first version, with some rows."""
    with open_writer(db) as connection:
        with transaction(connection) as raw:
            for name in ("tides", "harbours"):
                raw.execute(f"drop table if exists {name}")
            raw.execute("delete from schema_versions where part = 'tides'")
        schema.bring_up_to_date(connection, db, [write_tables(folder / "old", 1)])
        with transaction(connection) as raw:
            for statement in ROWS:
                raw.execute(statement)


def read_harbours(db: DatabaseAddress) -> tuple[int, list[tuple[object, ...]]]:
    with open_reader(db) as connection:
        raw = connection.raw
        found = raw.execute("select * from harbours").fetchall()
        return schema.read_versions(raw)["tides"], found


def kill_migrations(db: DatabaseAddress, folder: Path) -> dict[str, object]:
    """Return what was wrong after a migration that died somewhere: it must be done or not begun."""
    life, wrong, undone = Death(), list[str](), 0
    begin(db, folder)
    migrate(db, folder, life)
    for moment in range(1, life.moments + 1, max(1, life.moments // MIGRATIONS)):
        begin(db, folder)
        if in_a_process_of_its_own(partial(migrate, db, folder, Death(moment))):
            wrong.append(f"{moment}: it did not die while it migrated")
        undone += read_harbours(db)[0] == 1
        if read_harbours(db) not in ((1, [("Brest",)]), (2, [("Brest", 7)])):
            wrong.append(f"{moment}: {read_harbours(db)}")
        migrate(db, folder, Death())
        if read_harbours(db) != (2, [("Brest", 7)]):
            wrong.append(f"{moment}: afterwards {read_harbours(db)}")
    return {"moments": life.moments, "undone": undone, "wrong": wrong}


def tables(path: Path) -> int:
    with open_reader(path) as connection:
        query = "select count(*) from sqlite_master where type = 'table'"
        return int(connection.raw.execute(query).fetchone()[0])


def has_wal_header(path: Path) -> bool:
    """Whether the file says of itself that its journal is a write-ahead log."""
    return path.read_bytes()[18:20] == b"\x02\x02"


def kill_creations(home: Path) -> dict[str, object]:
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
    return {"moments": life.moments, "absent": absent, "wrong": wrong}


def main(home: Path, address: str = "") -> None:
    db = parse_address(address, home)
    report = kill_migrations(db, home / "tables") if address else kill_creations(home)
    sys.stdout.write(msgspec.json.encode(report).decode())


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
