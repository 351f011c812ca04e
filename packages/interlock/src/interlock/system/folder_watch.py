"""Watching folders: inotify where it tells everything, polling where it does not.

Polling is the truth: whoever watches also looks by itself, every `interval` seconds. With inotify
that is only a safety net, and slow; without it, it is the watch. inotify(7) is called through the C
library: one descriptor serves any number of folders and wakes the event loop itself, with no thread
and no timer. (A package on top of the same calls, watchfiles, was measured against it: see
docs/decisions.md.)
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


Mode = Literal["auto", "inotify", "poll"]
FAST = 0.2
SAFETY = 2.0
_LOCAL = {
    "bcachefs",
    "btrfs",
    "ext2",
    "ext3",
    "ext4",
    "f2fs",
    "overlay",
    "ramfs",
    "reiserfs",
    "tmpfs",
    "xfs",
    "zfs",
}
"""File systems whose every change passes through this machine's kernel. On others (NFS, SMB, 9p,
FUSE) somebody elsewhere can write a file without an event here."""
_OCTAL = re.compile(r"\\([0-7]{3})")


class FolderWatch:
    """Calls back when something was written into one of its folders. For use in an event loop."""

    def __init__(self, mode: Mode = "auto") -> None:
        self._mode = mode
        self._inotify: Inotify | None = None
        self._numbers: dict[Path, int] = {}
        self._callbacks: dict[int, Callable[[], None]] = {}
        self.interval = FAST

    def start(self, root: Path) -> None:
        """Choose how to watch what lies below that folder."""
        if self._mode == "poll" or (self._mode == "auto" and find_file_system(root) not in _LOCAL):
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
        """Watch this folder. When the kernel takes no more watches, polling is fast again."""
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
    """Whether inotify reports a file that is written there."""
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
    """The kind of file system a folder lies on; "" where that cannot be told."""
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
