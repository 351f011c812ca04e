"""The lock of one epic's files: who changes them waits for whoever does so already.

The kernel's lock, which ends with its process. Refuses to know what is changed.
"""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from interlock.system.errors import SourceError

_OPEN: Final = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
_PATIENCE: Final = 20.0
_PAUSE: Final = 0.005


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock; SourceError when another process does not let go of it."""
    deadline = time.monotonic() + _PATIENCE
    while True:
        try:
            opened = os.open(path, _OPEN, 0o600)
        except OSError as error:
            raise SourceError(f"{path} cannot be opened: {error.strerror}") from None
        try:
            if _taken(opened, path):
                yield
                return
        finally:
            os.close(opened)
        if time.monotonic() > deadline:
            raise SourceError(f"{path} is held by another process; try again when it is done")
        time.sleep(_PAUSE)


def _taken(opened: int, path: Path) -> bool:
    """Whether we hold it, and it is still the file of that name."""
    try:
        fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return os.fstat(opened).st_ino == path.lstat().st_ino
    except (BlockingIOError, FileNotFoundError):
        return False
