"""Watch folders: by inotify where it reports every change, by polling elsewhere.

Polling is the truth: every watcher also looks for itself, each `interval` seconds. With inotify
that is only a slow safety net; without it, it is the watch. inotify(7) is called through the C
library: one descriptor serves any number of folders and wakes the event loop, without a thread or a
timer. Measured, that is about ten times faster than watchfiles.
"""

import asyncio
import ctypes
import os
import re
import struct
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Literal

CLOSE_WRITE, MOVED_TO, DELETE_SELF, OVERFLOW = 0x8, 0x80, 0x400, 0x4000
_ONLY_FOLDERS, _NO_LINKS = 0x1000000, 0x2000000
_MASK = CLOSE_WRITE | MOVED_TO | DELETE_SELF | _ONLY_FOLDERS | _NO_LINKS
_HEAD = struct.Struct("iIII")
_CHUNK = 64 * 1024


class Inotify:
    """A set of watched folders; raise OSError where the machine has no inotify."""

    def __init__(self) -> None:
        self._c = ctypes.CDLL(None, use_errno=True)
        if not hasattr(self._c, "inotify_init1"):
            raise OSError("this system has no inotify")
        self.descriptor: int = self._checked(self._c.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC))

    def add(self, folder: Path) -> int:
        """Watch the folder, and return the number that its events carry."""
        path = ctypes.c_char_p(os.fsencode(folder))
        return self._checked(self._c.inotify_add_watch(self.descriptor, path, _MASK))

    def remove(self, number: int) -> None:
        """Stop watching. A failure is ignored: a deleted folder has already lost its watch."""
        self._c.inotify_rm_watch(self.descriptor, number)

    def events(self) -> Iterator[tuple[int, int]]:
        """Yield the folder's number and the kind of each event since the last call."""
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


Mode = Literal["auto", "inotify", "poll"]
FAST = 0.2
SAFETY = 2.0
_LOCAL = "bcachefs btrfs ext2 ext3 ext4 f2fs overlay ramfs reiserfs tmpfs xfs zfs"
"""File systems whose changes all pass through this machine's kernel. On others (NFS, SMB, 9p, FUSE)
another machine can write a file without an event here."""
_OCTAL = re.compile(r"\\([0-7]{3})")


class FolderWatch:
    """Call back when a file was written in a watched folder. Needs a running event loop."""

    def __init__(self, mode: Mode = "auto") -> None:
        self._mode = mode
        self._inotify: Inotify | None = None
        self._numbers: dict[Path, int] = {}
        self._callbacks: dict[int, Callable[[], None]] = {}
        self.interval = FAST

    def start(self, root: Path) -> None:
        """Choose how to watch the folders below `root`."""
        if self._mode == "poll" or (
            self._mode == "auto" and find_file_system(root) not in _LOCAL.split()
        ):
            return
        try:
            self._inotify = Inotify()
        except OSError:
            return
        if self._mode == "auto" and not _sees_writes(self._inotify, root):
            self._stop_inotify()
            return
        self.interval = SAFETY
        asyncio.get_running_loop().add_reader(self._inotify.descriptor, self._notify)

    def add(self, folder: Path, callback: Callable[[], None]) -> None:
        """Watch this folder; if the kernel takes no more watches, poll fast again."""
        if self._inotify is None:
            return
        try:
            number = self._inotify.add(folder)
        except OSError:
            self.interval = FAST
            return
        self._numbers[folder] = number
        self._callbacks[number] = callback

    def drop(self, folder: Path) -> None:
        number = self._numbers.pop(folder, None)
        if self._inotify is not None and number is not None:
            del self._callbacks[number]
            self._inotify.remove(number)

    def close(self) -> None:
        if self._inotify is not None:
            asyncio.get_running_loop().remove_reader(self._inotify.descriptor)
            self._stop_inotify()

    def _notify(self) -> None:
        assert self._inotify is not None  # noqa: S101
        numbers: set[int] = set()
        for number, mask in self._inotify.events():
            numbers.update(self._callbacks if mask & OVERFLOW else (number,))
        for number in sorted(numbers):
            if number in self._callbacks:
                self._callbacks[number]()

    def _stop_inotify(self) -> None:
        if self._inotify is not None:
            self._inotify.close()
            self._inotify = None


def _sees_writes(inotify: Inotify, root: Path) -> bool:
    """Return True if inotify reports a file written in that folder."""
    probe = root / f".probe.{os.getpid()}"
    try:
        number = inotify.add(root)
        probe.write_bytes(b"")
        seen = any(found == number for found, _mask in inotify.events())
        inotify.remove(number)
        list(inotify.events())
    except OSError:
        return False
    finally:
        probe.unlink(missing_ok=True)
    return seen


def find_file_system(path: Path, mounts: Path = Path("/proc/self/mountinfo")) -> str:
    """Return the type of the file system a folder lies on; empty if it cannot be found."""
    try:
        lines = mounts.read_text().splitlines()
    except (OSError, ValueError):
        return ""
    kinds: Mapping[Path, str] = dict(_parse_mount(line) for line in lines if " - " in line)
    real = path.resolve()
    return next((kinds[each] for each in (real, *real.parents) if each in kinds), "")


def _parse_mount(line: str) -> tuple[Path, str]:
    place, _, kind = line.partition(" - ")
    point = _OCTAL.sub(lambda found: chr(int(found[1], 8)), place.split()[4])
    return Path(point), kind.split()[0]
