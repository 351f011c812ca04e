"""One supervisor for one epic: the lock that says so, and ends with its process.

It lies where no reset and no clean reaches, so two workspaces on one repository meet here too.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from interlock.epic.checkpoints.place import StateFolder, make_folders
from interlock.system.errors import StateError

_OPEN: Final = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC


class LockedError(StateError):
    """Somebody else works on this epic."""


@contextmanager
def sole(place: StateFolder, epic_id: str) -> Iterator[None]:
    """Be the one who works on the epic, or LockedError with the process that does."""
    make_folders(place)
    path = place.safest / f".{epic_id}.run"
    try:
        opened = os.open(path, _OPEN, 0o600)
    except OSError as error:
        raise StateError(f"{path} cannot be opened: {error.strerror}") from None
    try:
        try:
            fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            who = os.pread(opened, 20, 0).decode("ascii", "replace").strip() or "?"
            raise LockedError(
                f"process {who} works on {epic_id}; wait for it, or 'interlock stop' it"
            ) from None
        os.ftruncate(opened, 0)
        os.pwrite(opened, f"{os.getpid()}\n".encode(), 0)
        yield
        os.ftruncate(opened, 0)
    finally:
        os.close(opened)
