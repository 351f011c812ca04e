"""The verb doctor: is this machine fit, and with --deep, is the database sound to the last row?"""

import os
import sqlite3
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from interlock.cli.door import Exit, app
from interlock.cli.show import Db, Json, document, say

if TYPE_CHECKING:
    from collections.abc import Iterator

_WAL_RESET_FIXED = (3, 51, 3)


class Check(msgspec.Struct, frozen=True):
    """One thing that was looked at. `ok` false is a finding; a `note` is only worth knowing."""

    id: str
    ok: bool
    message: str
    note: bool = False


@app.command()
def doctor(
    deep: Annotated[
        bool, typer.Option("--deep", help="Also check that every case is the fold of its journal.")
    ] = False,
    db: Db = None,
    json: Json = False,
) -> None:
    """Check the machine and the database. Exit 6 on findings."""
    from interlock import wiring

    path = wiring.database(Path(), db)
    checks = [*_machine(), *_database(path)]
    if deep and path.exists():
        checks += _deep(path)
    if json:
        document({"checks": msgspec.to_builtins(checks), "ok": all(each.ok for each in checks)})
    for each in [] if json else checks:
        say(f"{'note' if each.note else 'ok  ' if each.ok else 'BAD '}  {each.id}: {each.message}")
    if not all(each.ok for each in checks):
        raise typer.Exit(Exit.FINDINGS)


def _machine() -> "Iterator[Check]":
    version = ".".join(map(str, sys.version_info[:3]))
    yield Check("machine.python", sys.version_info >= (3, 11), f"Python {version}")
    old = sqlite3.sqlite_version_info < _WAL_RESET_FIXED
    message = f"SQLite {sqlite3.sqlite_version}"
    if old:
        message += (
            " has the rare WAL-reset bug, fixed in 3.51.3: Interlock writes with one process only,"
            " which avoids it; do not write to the database with other tools while it runs"
        )
    yield Check("machine.sqlite", True, message, note=old)


def _database(path: Path) -> "Iterator[Check]":
    from interlock.store.lock import writer_of

    if not path.exists():
        yield Check("store.file", True, f"no database at {path} yet", note=True)
        return
    writable = os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)
    yield Check("store.file", writable, f"{path}, {path.stat().st_size:,} bytes")
    writer = writer_of(path)
    yield Check("store.writer", True, f"worked on by {writer}" if writer else "nobody writes to it")


def _deep(path: Path) -> "Iterator[Check]":
    from interlock.cli.run import open_run
    from interlock.store.audit import audit
    from interlock.store.database import reading
    from interlock.store.runs import all_runs

    with reading(path) as connection:
        faults = audit(connection, open_run)
        number = len(all_runs(connection))
    for fault in faults:
        yield Check(fault.id, False, f"{fault.subject}: {fault.message}")
    if not faults:
        yield Check("store.fold", True, f"{number} runs: every case is the fold of its journal")
