"""What the disk and SQLite themselves can do here: appends made durable, bare commits.

Knows no program and no workload. The numbers say how much of a result is the machine.
"""

import os
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path


def fsyncs_per_s(workdir: Path, seconds: float) -> float:
    """A 4 KiB append and an fsync, again and again."""
    page = b"\0" * 4096
    descriptor = os.open(workdir / "append", os.O_CREAT | os.O_WRONLY | os.O_APPEND)

    def append() -> None:
        os.write(descriptor, page)
        os.fsync(descriptor)

    try:
        return rate(append, seconds)
    finally:
        os.close(descriptor)


def commits_per_s(workdir: Path, seconds: float) -> float:
    """A transaction with one row of 100 bytes, WAL and synchronous=FULL."""
    path = workdir / "commits.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=FULL")
        connection.execute("CREATE TABLE rows (id INTEGER PRIMARY KEY, body BLOB)")
        insert, body = "INSERT INTO rows (body) VALUES (?)", (b"\0" * 100,)
        return rate(lambda: connection.execute(insert, body), seconds)


def rate(action: Callable[[], object], seconds: float) -> float:
    count, started = 0, time.monotonic()
    while time.monotonic() - started < seconds:
        action()
        count += 1
    return count / (time.monotonic() - started)
