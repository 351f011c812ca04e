"""Confine reads and writes to one folder, for paths that others supply.

A path may climb, be a link or lead through one: each name is opened below the one before it,
starting at the open root, no link below the root is followed, and only regular files count.
"""

import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from interlock.system.errors import SourceError
from interlock.system.files import UnreadableFile, read_file, stage_file, sync_folder

LARGEST_FILE: Final = 1 << 24
_LONGEST_PATH: Final = 4_000
_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class OpenFolder:
    """The files below one root, which itself may be reached by any path."""

    def __init__(self, root: Path) -> None:
        self.root = Path(os.path.abspath(root))  # noqa: PTH100 - resolve() would follow symlinks
        self._real = Path(os.path.realpath(root))

    def split_path(self, path: Path) -> tuple[str, ...]:
        """Return the names that lead from the root to this absolute path; raise SourceError if none
        do."""
        if "\0" in str(path) or ".." in path.parts or len(str(path)) > _LONGEST_PATH:
            raise SourceError(f"{str(path)[:200]!r} is not a plain path")
        for root in (self.root, self._real):
            if path != root and path.is_relative_to(root):
                return path.relative_to(root).parts
        raise SourceError(f"{path} is not inside {self.root}")

    @contextmanager
    def open_parent(self, path: Path, *, make: bool = False) -> Iterator[tuple[int, str]]:
        """Open the folder that holds a file, and yield it with the file's name; `make` missing
        ones."""
        *folders, name = self.split_path(path)
        opened = os.open(self._real, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            for folder in folders:
                deeper = _enter(folder, opened, path, make)
                os.close(opened)
                opened = deeper
            yield opened, name
        finally:
            os.close(opened)

    def read(self, path: Path, most: int = LARGEST_FILE) -> bytes:
        """Return a regular file's content; raise FileNotFoundError if it does not exist."""
        with self.open_parent(path) as (folder, name):
            _refuse_odd(folder, name, path)
            found = read_file(Path(name), most, dir_fd=folder)
        if isinstance(found, UnreadableFile):
            if found.kind == "gone":
                raise FileNotFoundError(str(path))
            large = found.kind == "large"
            raise SourceError(f"{path} has more than {most:,} bytes" if large else found.reason)
        return found

    def write(
        self,
        path: Path,
        content: bytes,
        still: Callable[[], bool] = lambda: True,
        *,
        make: bool = False,
    ) -> bool:
        """Write a file whole, unless `still` returns False just before; return True if written."""
        with self.open_parent(path, make=make) as (folder, name):
            with suppress(FileNotFoundError):
                _refuse_odd(folder, name, path)
            staged = stage_file(Path(name), content, dir_fd=folder)
            try:
                if not still():
                    return False
                os.rename(staged, name, src_dir_fd=folder, dst_dir_fd=folder)
                sync_folder(Path(), dir_fd=folder)
                return True
            finally:
                with suppress(FileNotFoundError):
                    os.unlink(staged, dir_fd=folder)


def _enter(name: str, folder: int, path: Path, make: bool) -> int:
    try:
        if make:
            with suppress(FileExistsError):
                os.mkdir(name, 0o700, dir_fd=folder)
        return os.open(name, _FOLDER, dir_fd=folder)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise SourceError(f"{path}: {name!r} is a symlink or not a folder") from error


def _refuse_odd(folder: int, name: str, path: Path) -> None:
    mode = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
    if stat.S_ISLNK(mode):
        raise SourceError(f"{path} is a symlink")
    if not stat.S_ISREG(mode):
        raise SourceError(f"{path} is not a regular file")
