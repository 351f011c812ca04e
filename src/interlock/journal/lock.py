"""The writer's lock: one process writes to a database, and a second one is told who it is.

The lock is the kernel's (flock), so it ends with its process however that ends; what is written in
the file only says who holds it.
"""

import fcntl
import json
import os
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

import msgspec

from interlock.system.errors import StoreError

_TRIES = 20
_PAUSE = 0.005


class Writer(msgspec.Struct, frozen=True):
    """The process that holds a database."""

    pid: int
    host: str
    command: str

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host} ({self.command})"


@contextmanager
def only_writer(path: Path) -> Iterator[None]:
    """Be the one writer, or StoreError with the name of the one who is."""
    with _lock_file(path).open("a+", encoding="utf-8") as file:
        if not _locked(file):
            who = _signed(path) or "another process"
            raise StoreError(f"{path} is in use by {who}; wait for it, or 'interlock stop' it")
        file.truncate(0)
        command = " ".join([Path(sys.argv[0]).name, *sys.argv[1:3]])
        me = {"pid": os.getpid(), "host": socket.gethostname(), "command": command}
        file.write(json.dumps(me))
        file.flush()
        yield
        file.truncate(0)


def writer_of(path: Path) -> Writer | None:
    """Who writes to the database at this moment."""
    try:
        with _lock_file(path).open(encoding="utf-8") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return None
    except OSError:
        return _signed(path)
    return None


def _locked(file: TextIO) -> bool:
    """Take the lock; somebody who only looks whether there is a writer holds it for a moment."""
    for _ in range(_TRIES):
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(_PAUSE)
        else:
            return True
    return False


def _lock_file(path: Path) -> Path:
    return path.with_name(f"{path.name}.lock")


def _signed(path: Path) -> Writer | None:
    try:
        return msgspec.json.decode(_lock_file(path).read_bytes(), type=Writer)
    except (OSError, msgspec.DecodeError):
        return None
