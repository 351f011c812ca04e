"""Files that an agent reads and writes through Interlock: those of its work folder, no others.

Knows that a path may climb, be a link, or lead through one; each part of it is opened on its own
and links are not followed. Refuses to know who allowed it.
"""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath

MOST = 1024 * 1024
"""Bytes of a file."""
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class NotAllowedError(Exception):
    """Why a file is not read or written: one sentence for the agent."""


class OpenFolder:
    """The text files under one folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder.resolve(strict=True)

    def read(self, path: str, line: int | None = None, limit: int | None = None) -> str:
        """The text, or that many lines of it from that line (the first is 1)."""
        with self._place(path) as (place, name), _told(path):
            opened = os.open(name, _READ, dir_fd=place)
            try:
                content = _content(opened)
            finally:
                os.close(opened)
        text = content.decode("utf-8")
        if line is None and limit is None:
            return text
        first = max(line or 1, 1) - 1
        lines = text.splitlines(keepends=True)
        return "".join(lines[first : None if limit is None else first + limit])

    def write(self, path: str, text: str) -> None:
        """The text takes the place of what is there, whole or not at all."""
        content = text.encode("utf-8", "replace")
        if len(content) > MOST:
            raise NotAllowedError(f"a file may have {MOST:,} bytes")
        with self._place(path, make=True) as (place, name), _told(path):
            with suppress(FileNotFoundError):
                if not stat.S_ISREG(os.lstat(name, dir_fd=place).st_mode):
                    raise NotAllowedError(f"{path!r} is no plain file")
            fresh = f".interlock.{os.getpid()}.new"
            with suppress(FileNotFoundError):
                os.unlink(fresh, dir_fd=place)
            opened = os.open(fresh, _NEW, 0o600, dir_fd=place)
            with os.fdopen(opened, "wb") as file:
                file.write(content)
            os.rename(fresh, name, src_dir_fd=place, dst_dir_fd=place)

    @contextmanager
    def _place(self, path: str, *, make: bool = False) -> Iterator[tuple[int, str]]:
        """The folder of a path, opened part by part, and the last part."""
        *above, name = self._parts(path)
        place = os.open(self._folder, _FOLDER)
        try:
            for part in above:
                with _told(path):
                    if make:
                        with suppress(FileExistsError):
                            os.mkdir(part, 0o700, dir_fd=place)
                    inner = os.open(part, _FOLDER, dir_fd=place)
                os.close(place)
                place = inner
            yield place, name
        finally:
            os.close(place)

    def _parts(self, path: str) -> tuple[str, ...]:
        if "\0" in path or len(path) > 4_000:
            raise NotAllowedError("this is no path")
        pure = PurePosixPath(path)
        inside = pure.is_relative_to(self._folder) and ".." not in pure.parts
        if not pure.is_absolute() or not inside or pure == PurePosixPath(self._folder):
            raise NotAllowedError(f"only absolute paths of files under {self._folder} are allowed")
        return pure.relative_to(self._folder).parts


def _content(opened: int) -> bytes:
    if not stat.S_ISREG(os.fstat(opened).st_mode):
        raise NotAllowedError("it is no plain file")
    with os.fdopen(os.dup(opened), "rb") as file:
        content = file.read(MOST + 1)
    if len(content) > MOST:
        raise NotAllowedError(f"it has more than {MOST:,} bytes")
    try:
        content.decode("utf-8")
    except UnicodeDecodeError:
        raise NotAllowedError("it is no UTF-8 text") from None
    return content


@contextmanager
def _told(path: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise NotAllowedError(f"{path!r}: {error.strerror}") from None
