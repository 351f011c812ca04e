"""A folder tree with signals in it, as the only place that is read or written.

Knows how to stay inside: names are opened one below the other, never through a symlink, and only
regular files count. Refuses to know what the files mean.
"""

import os
import secrets
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from interlock.system.errors import SourceError

LARGEST_FILE = 1 << 24
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW


class OpenFolder:
    """Everything below one folder. The folder itself may be reached in any way its user likes."""

    def __init__(self, root: Path) -> None:
        self.root = Path(os.path.abspath(root))  # noqa: PTH100 - resolve() would follow symlinks
        self._real = Path(os.path.realpath(root))

    def parts(self, path: Path) -> tuple[str, ...]:
        """The names that lead from the root to this absolute path."""
        if "\0" in str(path) or ".." in path.parts:
            raise SourceError(f"{str(path)!r} is no plain path")
        for root in (self.root, self._real):
            if path != root and path.is_relative_to(root):
                return path.relative_to(root).parts
        raise SourceError(f"{path} is not inside {self.root}")

    @contextmanager
    def folder_of(self, path: Path) -> Iterator[tuple[int, str]]:
        """The open folder that holds a file, and the file's name in it."""
        *folders, name = self.parts(path)
        opened = os.open(self._real, os.O_RDONLY | os.O_DIRECTORY)
        try:
            for folder in folders:
                deeper = _enter(folder, opened, path)
                os.close(opened)
                opened = deeper
            yield opened, name
        finally:
            os.close(opened)

    def read(self, path: Path, largest: int = LARGEST_FILE) -> bytes:
        """A regular file's content. `FileNotFoundError` when there is none."""
        with self.folder_of(path) as (folder, name):
            _refuse_odd(folder, name, path)
            descriptor = os.open(name, _READ, dir_fd=folder)
            with os.fdopen(descriptor, "rb") as file:
                if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                    raise SourceError(f"{path} is no regular file")
                content = file.read(largest + 1)
        if len(content) > largest:
            raise SourceError(f"{path} has more than {largest:,} bytes")
        return content

    def replace(self, path: Path, content: bytes, still: Callable[[], bool]) -> bool:
        """Put a file in place whole, unless meanwhile it is not wanted any more."""
        with self.folder_of(path) as (folder, name):
            with suppress(FileNotFoundError):
                _refuse_odd(folder, name, path)
            fresh = f".{name}.{os.getpid()}.{secrets.token_hex(4)}.new"
            try:
                _write(folder, fresh, content)
                if not still():
                    return False
                os.rename(fresh, name, src_dir_fd=folder, dst_dir_fd=folder)
                os.fsync(folder)
                return True
            finally:
                with suppress(FileNotFoundError):
                    os.unlink(fresh, dir_fd=folder)


def _enter(name: str, folder: int, path: Path) -> int:
    try:
        return os.open(name, _FOLDER, dir_fd=folder)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise SourceError(f"{path}: {name!r} is a symlink or no folder") from error


def _refuse_odd(folder: int, name: str, path: Path) -> None:
    mode = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
    if stat.S_ISLNK(mode):
        raise SourceError(f"{path} is a symlink")
    if not stat.S_ISREG(mode):
        raise SourceError(f"{path} is no regular file")


def _write(folder: int, name: str, content: bytes) -> None:
    with os.fdopen(os.open(name, _NEW, 0o600, dir_fd=folder), "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
