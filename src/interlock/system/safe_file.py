"""Files shared with strangers: written whole or not at all, read without trust.

Knows that a name may lead to a link, a pipe, a folder, something huge, or to nothing a moment
later. Refuses to know what the bytes mean.
"""

import os
import stat
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec

_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_WRITE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_MODE = 0o600
_KINDS = {
    stat.S_IFLNK: "a symbolic link",
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


class FileStamp(NamedTuple):
    """What changes when a file changes; only its size does not tell everything."""

    inode: int
    size: int
    modified: int
    changed: int


class UnreadableFile(msgspec.Struct, frozen=True):
    """Why a file was not read: it is gone, not a plain readable file (odd), or too large."""

    reason: str
    kind: Literal["gone", "odd", "large"] = "odd"


def stamp(path: Path) -> FileStamp | None:
    """How the file stands, or None if there is none; links are not followed."""
    try:
        found = os.lstat(path)
    except OSError:
        return None
    return FileStamp(found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)


def read_regular(path: Path, most: int) -> bytes | UnreadableFile:
    """The bytes of a regular file of at most that size; anything else is named, not opened."""
    try:
        kind = stat.S_IFMT(os.lstat(path).st_mode)
        if kind != stat.S_IFREG:
            return UnreadableFile(
                f"{path.name} is {_KINDS.get(kind, 'no regular file')}, not a file"
            )
        opened = os.open(path, _READ)
    except (FileNotFoundError, NotADirectoryError):
        return UnreadableFile(f"{path.name} is not there", "gone")
    except OSError as error:
        return UnreadableFile(f"{path.name} cannot be opened: {error.strerror}")
    try:
        return _content(opened, path.name, most)
    except OSError as error:
        return UnreadableFile(f"{path.name} cannot be read: {error.strerror}")
    finally:
        os.close(opened)


def _content(opened: int, name: str, most: int) -> bytes | UnreadableFile:
    if not stat.S_ISREG(os.fstat(opened).st_mode):
        return UnreadableFile(f"{name} is not a file")
    parts = bytearray()
    while part := os.read(opened, most + 1 - len(parts)):
        parts += part
    if len(parts) > most:
        return UnreadableFile(f"{name} has more than {most:,} bytes", "large")
    return bytes(parts)


def write_whole(path: Path, content: bytes, *, sync: bool = True, mode: int = _MODE) -> FileStamp:
    """Put the content under that name: temporary file, sync, rename. OSError if it cannot be.
    Without `sync` it is still whole for every reader, only not safe from a power cut. `mode` is
    what the user's umask may take from; by default the file is for its owner alone."""
    fresh = path.with_name(f".{path.name}.{os.getpid()}.new")
    fresh.unlink(missing_ok=True)
    opened = os.open(fresh, _WRITE, mode)
    try:
        left = memoryview(content)
        while left:
            left = left[os.write(opened, left) :]
        if sync:
            os.fsync(opened)
        fresh.rename(path)
        found = os.fstat(opened)
    except OSError:
        fresh.unlink(missing_ok=True)
        raise
    finally:
        os.close(opened)
    return FileStamp(found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)


def set_aside(path: Path, word: str) -> Path | None:
    """Rename whatever lies there to `NAME.word.EXT`, or the next such name that is free."""
    if stamp(path) is None:
        return None
    aside = path.with_name(f"{path.stem}.{word}{path.suffix}")
    number = 1
    while stamp(aside) is not None:
        number += 1
        aside = path.with_name(f"{path.stem}.{word}-{number}{path.suffix}")
    path.rename(aside)
    return aside
