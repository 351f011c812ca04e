"""The kernel's news about folders, through the C library: who was closed after writing or moved in.

Knows inotify(7) and nothing of signals. One descriptor serves any number of folders and wakes the
event loop itself: no thread, no timer, nothing runs while nothing happens. A package on top of the
same calls (watchfiles) was measured against it: see docs/decisions.md.
"""

import ctypes
import os
import struct
from collections.abc import Iterator
from pathlib import Path

CLOSE_WRITE, MOVED_TO, DELETE_SELF, OVERFLOW = 0x8, 0x80, 0x400, 0x4000
_ONLY_FOLDERS, _NO_LINKS = 0x1000000, 0x2000000
_MASK = CLOSE_WRITE | MOVED_TO | DELETE_SELF | _ONLY_FOLDERS | _NO_LINKS
_HEAD = struct.Struct("iIII")
_CHUNK = 64 * 1024


class Inotify:
    """Folders that are watched; OSError where the machine cannot."""

    def __init__(self) -> None:
        self._c = ctypes.CDLL(None, use_errno=True)
        if not hasattr(self._c, "inotify_init1"):
            raise OSError("this system has no inotify")
        self.descriptor: int = self._checked(self._c.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC))

    def add(self, folder: Path) -> int:
        """Watch the folder; the number that its events will carry."""
        path = ctypes.c_char_p(os.fsencode(folder))
        return self._checked(self._c.inotify_add_watch(self.descriptor, path, _MASK))

    def remove(self, number: int) -> None:
        """A folder that is gone has taken its watch along, so a failure means nothing."""
        self._c.inotify_rm_watch(self.descriptor, number)

    def events(self) -> Iterator[tuple[int, int]]:
        """What has happened since the last call: the folder's number and the kind of event."""
        try:
            while block := os.read(self.descriptor, _CHUNK):
                at = 0
                while at < len(block):
                    number, mask, _cookie, length = _HEAD.unpack_from(block, at)
                    yield number, mask
                    at += _HEAD.size + length
        except BlockingIOError:
            return

    def close(self) -> None:
        os.close(self.descriptor)

    def _checked(self, result: int) -> int:
        if result < 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))
        return result
