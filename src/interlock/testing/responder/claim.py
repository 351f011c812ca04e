"""Who works on a dispatch: a locked file `.claim-{dispatch_id}` beside its signal.

The operating system holds the lock and lets it go when its owner dies, however that happens; a
claim file without a lock is therefore free to be taken over. Refuses to know processes: the pid and
the host in the file are for people.
"""

import fcntl
import json
import os
import socket
from contextlib import suppress
from pathlib import Path

from interlock.system.errors import SourceError
from interlock.system.tree import OpenFolder


class DispatchClaim:
    """A held claim. Let it go with `settle` when the work is done, with `leave` when it is not."""

    def __init__(self, tree: OpenFolder, path: Path, descriptor: int) -> None:
        self._tree = tree
        self._path = path
        self._descriptor = descriptor

    def settle(self) -> None:
        """The work is done: the file goes while we still hold it."""
        with suppress(OSError, SourceError), self._tree.folder_of(self._path) as (folder, name):
            os.unlink(name, dir_fd=folder)
        self.leave()

    def leave(self) -> None:
        """Let go; the file stays as a sign that somebody began."""
        os.close(self._descriptor)


def take(
    tree: OpenFolder, signal_path: Path, name: str, *, only_abandoned: bool = False
) -> DispatchClaim | None:
    """The claim of that name beside a signal, unless another living responder holds it."""
    path = signal_path.with_name(f".claim-{name}")
    create = 0 if only_abandoned else os.O_CREAT
    try:
        with tree.folder_of(path) as (folder, file):
            descriptor = os.open(file, os.O_RDWR | os.O_NOFOLLOW | create, 0o600, dir_fd=folder)
            if _locked(descriptor) and _same(descriptor, folder, file):
                _sign(descriptor)
                return DispatchClaim(tree, path, descriptor)
            os.close(descriptor)
    except FileNotFoundError:
        pass
    return None


def _locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _same(descriptor: int, folder: int, name: str) -> bool:
    """Whether what we locked still has its name: its last owner may just have removed it."""
    try:
        there = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return os.path.samestat(os.fstat(descriptor), there)


def _sign(descriptor: int) -> None:
    owner = json.dumps({"pid": os.getpid(), "host": socket.gethostname()})
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, owner.encode() + b"\n", 0)
