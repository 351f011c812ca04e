"""Files on disk: write them whole or not at all, read them without trust, move them without loss.

A write goes to a temporary file beside the target, is synced and renamed into place, and then the
folder is synced, so that a power cut leaves the old content or the new one. A read of a file that
others wrote never blocks on a pipe, follows a link, or takes more than its limit.
"""

import itertools
import os
import re
import shutil
import stat
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final, Literal, NamedTuple

import msgspec

from interlock.system.errors import SourceError

_READ: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_APPEND: Final = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
_PRIVATE: Final = 0o600
_LONGEST_NAME: Final = 200
_KINDS: Final = {
    stat.S_IFLNK: "a symbolic link",
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}
_serial = itertools.count()
_STAGED: Final = re.compile(r"\..+\.([0-9]{1,18})-[0-9]+\.new")


class FileStamp(NamedTuple):
    """Values that change whenever a file changes; its size alone would miss some changes."""

    inode: int
    size: int
    modified: int
    changed: int


class UnreadableFile(msgspec.Struct, frozen=True):
    """The reason a file was not read: it is gone, not a regular readable file (odd), or too
    large."""

    reason: str
    kind: Literal["gone", "odd", "large"] = "odd"


def read_stamp(path: Path) -> FileStamp | None:
    """Return the file's stamp, or None if it does not exist; links are not followed."""
    try:
        return _stamp(os.lstat(path))
    except OSError:
        return None


def _stamp(found: os.stat_result) -> FileStamp:
    return FileStamp(found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)


def read_file(path: Path, most: int, *, dir_fd: int | None = None) -> bytes | UnreadableFile:
    """Return the bytes of a regular file of at most `most` bytes; report anything else unopened."""
    try:
        kind = stat.S_IFMT(os.stat(path, dir_fd=dir_fd, follow_symlinks=False).st_mode)
        if kind != stat.S_IFREG:
            return UnreadableFile(
                f"{path.name} is {_KINDS.get(kind, 'of an unknown kind')}, not a file"
            )
        opened = os.open(path, _READ, dir_fd=dir_fd)
    except (FileNotFoundError, NotADirectoryError):
        return UnreadableFile(f"{path.name} is not there", "gone")
    except OSError as error:
        return UnreadableFile(f"{path.name} cannot be opened: {error.strerror}")
    try:
        return _read_opened(opened, path.name, most)
    except OSError as error:
        return UnreadableFile(f"{path.name} cannot be read: {error.strerror}")
    finally:
        os.close(opened)


def _read_opened(opened: int, name: str, most: int) -> bytes | UnreadableFile:
    if not stat.S_ISREG(os.fstat(opened).st_mode):
        return UnreadableFile(f"{name} is not a file")
    parts = bytearray()
    while part := os.read(opened, most + 1 - len(parts)):
        parts += part
    if len(parts) > most:
        return UnreadableFile(f"{name} has more than {most:,} bytes", "large")
    return bytes(parts)


def read_text(path: Path, most: int) -> str:
    """Return a user's text file; raise SourceError if it is unreadable, too large or not UTF-8."""
    try:
        with path.open("rb") as file:
            content = file.read(most + 1)
        if len(content) > most:
            raise SourceError(f"{path} has more than the {most:,} bytes that are read")
        return content.decode().replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        raise SourceError(f"{path} is not UTF-8 text (byte {error.start})") from None
    except OSError as error:
        raise SourceError(f"{path} cannot be read: {error.strerror}") from None


def write_file(
    path: Path,
    data: bytes | Iterable[bytes],
    *,
    mode: int = _PRIVATE,
    sync: bool = True,
    dir_fd: int | None = None,
) -> FileStamp:
    """Write the data, or its pieces, under that name, whole or not at all; an error leaves nothing.

    The umask may reduce `mode`; by default only the owner can read the file. Without `sync`,
    readers still see a whole file, but a power cut may lose it. With `dir_fd`, the path is relative
    to that open folder.
    """
    staged = stage_file(path, data, mode=mode, sync=sync, dir_fd=dir_fd)
    # Held open over the rename, so that the stamp is of our file even if it is replaced at once.
    held = os.open(staged, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=dir_fd)
    try:
        try:
            os.rename(staged, path, src_dir_fd=dir_fd, dst_dir_fd=dir_fd)
        except OSError:
            os.unlink(staged, dir_fd=dir_fd)
            raise
        if sync:
            sync_folder(path.parent, dir_fd=dir_fd)
        return _stamp(os.fstat(held))
    finally:
        os.close(held)


def create_file(path: Path, data: bytes) -> bool:
    """Create a private file, whole or not at all; return False if the name is already taken. Of
    several concurrent calls, one succeeds."""
    staged = stage_file(path, data)
    try:
        try:
            os.link(staged, path, follow_symlinks=False)
        except FileExistsError:
            raise
        except OSError:
            # This file system has no hard links: take the name first, then fill the file.
            os.close(os.open(path, _NEW, _PRIVATE))
            staged.rename(path)
    except FileExistsError:
        return False
    finally:
        staged.unlink(missing_ok=True)
    sync_folder(path.parent)
    return True


def private_mode(folder: Path) -> int:
    """Return the mode of a private file in a folder: readable by its owner, and also by the group
    if the folder is shared with it (group-writable and setgid)."""
    shared = stat.S_IWGRP | stat.S_ISGID
    return 0o660 if folder.stat().st_mode & shared == shared else _PRIVATE


def make_private_folder(path: Path) -> None:
    """Create a folder for its owner, or for the group that the parent folder is shared with."""
    if path.is_dir():
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.mkdir(mode=0o700, exist_ok=True)
    if private_mode(path.parent) != _PRIVATE:
        path.chmod(0o2770)  # restore what the umask removed


def make_own_folder(path: Path, *, mode: int = 0o777) -> None:
    """Create a folder and its parents; if the topmost new one is hidden, hide it from git as
    well."""
    missing = [each for each in (path, *path.parents) if not each.exists()]
    path.mkdir(mode=mode, parents=True, exist_ok=True)
    if missing and missing[-1].name.startswith("."):
        (missing[-1] / ".gitignore").write_text("*\n", encoding="utf-8")


def write_files(files: Iterable[tuple[Path, bytes]], *, mode: int = _PRIVATE) -> None:
    """Write all files, in this order; if one cannot be prepared, none is changed. The caller must
    hold a lock on them."""
    ready: list[tuple[Path, Path]] = []
    try:
        for path, data in files:
            # A fixed name, so that the next call overwrites what a crash left. The caller's lock
            # keeps other writers away.
            staged = path.with_name(f".{path.name}.new")
            _write_new(staged, data, mode)
            ready.append((staged, path))
    except OSError:
        for staged, _ in ready:
            staged.unlink(missing_ok=True)
        raise
    for staged, path in ready:
        staged.rename(path)
    for folder in dict.fromkeys(path.parent for _, path in ready):
        sync_folder(folder)


def save_file(path: Path, data: bytes, *, mode: int = 0o666) -> None:
    """Write a file of the user's under their umask; raise SourceError if that fails."""
    try:
        write_file(path, data, mode=mode)
    except OSError as error:
        why = error.strerror or error
        raise SourceError(f"{path} cannot be written: {why}; make room or grant access") from None


def stage_file(
    path: Path,
    data: bytes | Iterable[bytes],
    *,
    mode: int = _PRIVATE,
    sync: bool = True,
    dir_fd: int | None = None,
) -> Path:
    """Write the data to a new file beside `path`, ready to be renamed to it."""
    # The target's name may already be as long as the file system allows.
    name = os.fsdecode(os.fsencode(path.name)[:_LONGEST_NAME])
    staged = path.with_name(f".{name}.{os.getpid()}-{next(_serial)}.new")
    _write_new(staged, data, mode, sync, dir_fd)
    return staged


def remove_staged(folder: Path) -> None:
    """Remove files that a process staged in this folder and did not rename before it ended."""
    with suppress(OSError):
        for path in folder.iterdir():
            staged = _STAGED.fullmatch(path.name)
            if staged and not _is_writing(int(staged[1])):
                path.unlink(missing_ok=True)


def _is_writing(pid: int) -> bool:
    """Return True if another process with that id lives; this one renames without a pause."""
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return pid != os.getpid()


def _write_new(
    path: Path,
    data: bytes | Iterable[bytes],
    mode: int,
    sync: bool = True,
    dir_fd: int | None = None,
) -> None:
    with suppress(FileNotFoundError):
        os.unlink(path, dir_fd=dir_fd)
    opened = os.open(path, _NEW, mode, dir_fd=dir_fd)
    try:
        if mode == _PRIVATE and dir_fd is None:
            os.fchmod(opened, private_mode(path.parent))
        for piece in (data,) if isinstance(data, bytes) else data:
            _write_all(opened, piece)
        if sync:
            os.fsync(opened)
    except BaseException:
        os.unlink(path, dir_fd=dir_fd)
        raise
    finally:
        os.close(opened)


def rename_synced(made: Path, path: Path) -> None:
    """Rename a finished file, such as a database, and sync both it and its folder."""
    opened = os.open(made, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
    made.rename(path)
    sync_folder(path.parent)


def sync_folder(folder: Path, *, dir_fd: int | None = None) -> None:
    """Make renames in a folder safe on disk, where the file system can promise that."""
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=dir_fd)
    try:
        with suppress(OSError):
            os.fsync(opened)
    finally:
        os.close(opened)


def append_line(target: Path | int, line: bytes, *, sync: bool = False) -> None:
    """Append one line to a file, by path or descriptor (see `open_log`), in one write.

    If a crash left half a line, a newline is written first, so that the half stays on its own line.
    """
    if isinstance(target, Path):
        opened = open_log(target)
        try:
            append_line(opened, line, sync=sync)
        finally:
            os.close(opened)
        return
    size = os.fstat(target).st_size
    torn = size > 0 and os.pread(target, 1, size - 1) != b"\n"
    _write_all(target, b"\n" * torn + line + b"\n")
    if sync:
        os.fsync(target)


def open_log(path: Path) -> int:
    """Return a descriptor that only appends to a private file and never follows a link."""
    return os.open(path, _APPEND, _PRIVATE)


def _write_all(opened: int, data: bytes) -> None:
    left = memoryview(data)
    while left:
        left = left[os.write(opened, left) :]


def move_aside(path: Path, word: str, folder: Path | None = None, name: str = "") -> Path | None:
    """Rename the path to `NAME.word.EXT`, or to the next such name that is free.

    It stays in its folder unless another `folder` is given; `name` replaces `NAME`. Return None if
    the path does not exist.
    """
    if not exists(path):
        return None
    stem = name or path.stem
    ending = path.name.removeprefix(stem).lstrip(".")
    ending = f".{ending}" if ending else ""
    folder = folder or path.parent
    aside = folder / f"{stem}.{word}{ending}"
    number = 1
    while exists(aside):
        number += 1
        aside = folder / f"{stem}.{word}-{number}{ending}"
    path.rename(aside)
    return aside


def move_into(path: Path, aside: Path) -> Path:
    """Move someone else's file or folder into another folder, under the first free number."""
    aside.mkdir(parents=True, exist_ok=True)
    number = 1
    while exists(place := aside / f"{path.name}.{number}"):
        number += 1
    shutil.move(path, place)
    return place


def is_folder(path: Path) -> bool:
    """Return True if the path is a folder and not a link to one."""
    try:
        return stat.S_ISDIR(path.lstat().st_mode)
    except (OSError, ValueError):
        return False


def exists(path: Path) -> bool:
    """Return True if the path exists, including a link that leads nowhere."""
    return os.path.lexists(path)


def remove_tree(path: Path) -> None:
    """Remove a file, a link, or a folder with its content. Links are not followed."""
    if not exists(path):
        return
    try:
        if is_folder(path):
            _make_writable(path)
            shutil.rmtree(path)
        else:
            path.unlink()
    except OSError as error:
        raise SourceError(
            f"{path} cannot be removed: {error}; grant access and try again"
        ) from None


def _make_writable(folder: Path) -> None:
    """Grant the rights that removal needs: build tools leave folders that cannot be written."""
    for root, folders, _ in os.walk(folder):
        for name in (".", *folders):
            place = Path(root, name)
            if is_folder(place) and not os.access(place, os.W_OK | os.X_OK):
                place.chmod(stat.S_IRWXU)
