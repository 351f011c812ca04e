"""`python -m tests.world.kill_creation FOLDER`: kills the making of a database everywhere.

Each time in a process of its own; what is left must be nothing or a whole database, and the next
process must be able to go on. Prints one line of JSON.
"""

import os
import signal
import sys
from pathlib import Path
from types import FrameType
from typing import Any

import msgspec
from tests.world.kill_run import in_a_process_of_its_own

from interlock.journal import database, sqlite
from interlock.journal.connection import raw_connection
from interlock.journal.database import open_reader, open_writer

TIMES = 40


class Death:
    """Comes at the n-th line of the modules that make it, or statement; 0 is never."""

    def __init__(self, at: int = 0) -> None:
        self.moments = 0
        self._at = at

    def watch(self, frame: FrameType, event: str, _argument: Any) -> Any:
        here = frame.f_code.co_filename in (database.__file__, sqlite.__file__)
        if (here and event == "line") or frame.f_code.co_name == "do_execute":
            self.moments += 1
            if self.moments == self._at:
                os.kill(os.getpid(), signal.SIGKILL)
        return self.watch if here else None


def make(path: Path, death: Death) -> None:
    sys.settrace(death.watch)
    with open_writer(path):
        sys.settrace(None)


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
    report = {"moments": life.moments, "absent": absent, "wrong": wrong}
    sys.stdout.write(msgspec.json.encode(report).decode())


if __name__ == "__main__":
    main(Path(sys.argv[1]))
