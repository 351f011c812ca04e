"""Hold locks between processes with flock, so that a lock always ends with its holder.

The file names its holder and stays after the release: removing it would let two processes lock two
files of one name. If someone removes it anyway, that is noticed, because the locked file must still
be the one the name leads to. (filelock truncates before it locks and removes on release.)
"""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from interlock.system.errors import StateError
from interlock.system.files import private_mode

_OPEN: Final = os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC
_READ: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC
_PAUSE: Final = 0.005
_LONGEST_OWNER: Final = 4_096
BRIEFLY: Final = 0.1
"""Seconds to wait where only a reader of the owner (`lock_owner`) can be in the way."""


class LockHeldError(StateError):
    """Another process holds the lock; `owner` is what it wrote into the file."""

    def __init__(self, path: Path, owner: bytes) -> None:
        super().__init__(f"{path} is held by another process; try again when it is done")
        self.owner = owner


@contextmanager
def hold_lock(path: Path, owner: bytes = b"", *, wait: float = 0.0) -> Iterator[None]:
    """Hold the lock; raise LockHeldError if it is not free within `wait` seconds.

    Raise OSError if the file cannot be opened.
    """
    opened = take_lock(path, owner, wait=wait)
    if opened is None:
        raise LockHeldError(path, lock_owner(path) or b"")
    try:
        yield
    finally:
        if owner:
            os.ftruncate(opened, 0)
        os.close(opened)


def take_lock(
    path: Path,
    owner: bytes = b"",
    *,
    wait: float = 0.0,
    create: bool = True,
    dir_fd: int | None = None,
) -> int | None:
    """Return a descriptor that holds the lock until it is closed, in children too.

    Return None if another process holds the lock longer than `wait` seconds. A folder can be locked
    as well, but without an `owner`.
    """
    flags = _OPEN | (os.O_CREAT if create else 0)
    if dir_fd is None and path.is_dir():
        flags = _READ
    deadline = time.monotonic() + wait
    while True:
        opened = _open(path, flags, dir_fd)
        try:
            if _locks(opened, path, dir_fd):
                if owner:
                    os.ftruncate(opened, 0)
                    os.pwrite(opened, owner, 0)
                return opened
        except OSError:
            os.close(opened)
            raise
        os.close(opened)
        if time.monotonic() >= deadline:
            return None
        time.sleep(_PAUSE)


def _open(path: Path, flags: int, dir_fd: int | None) -> int:
    """Open or create the lock file; in a shared folder, the group may take the lock as well."""
    if flags & os.O_CREAT and dir_fd is None:
        with suppress(FileExistsError):
            opened = os.open(path, flags | os.O_EXCL, 0o600)
            os.fchmod(opened, private_mode(path.parent))
            return opened
    return os.open(path, flags, 0o600, dir_fd=dir_fd)


def _locks(opened: int, path: Path, dir_fd: int | None) -> bool:
    """Lock the open file, and return True if it still has its name: an owner may have removed
    it."""
    try:
        fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
        there = os.stat(path, dir_fd=dir_fd, follow_symlinks=False)
    except (BlockingIOError, FileNotFoundError):
        return False
    return os.path.samestat(os.fstat(opened), there)


def lock_owner(path: Path) -> bytes | None:
    """Return what the lock's holder wrote into its file; None if nobody holds it."""
    try:
        opened = os.open(path, _READ)
    except OSError:
        return None
    try:
        # A shared lock, so that two readers do not take each other for the holder.
        fcntl.flock(opened, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return os.pread(opened, _LONGEST_OWNER, 0)
    else:
        return None
    finally:
        os.close(opened)
