"""Files that are whole or not there: a temporary one beside it, synced, then renamed.

Two steps, so that several files can be made ready before any takes its place. Refuses to know
what is in them.
"""

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final

_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_MODE: Final = 0o600


def prepare(path: Path, content: bytes) -> Path:
    """The content beside `path`, safe on disk. OSError leaves nothing behind."""
    fresh = path.with_name(f".{path.name}.new")
    fresh.unlink(missing_ok=True)
    opened = os.open(fresh, _NEW, _MODE)
    try:
        left = memoryview(content)
        while left:
            left = left[os.write(opened, left) :]
        os.fsync(opened)
    except OSError:
        fresh.unlink(missing_ok=True)
        raise
    finally:
        os.close(opened)
    return fresh


def put(files: Iterable[tuple[Path, bytes]]) -> None:
    """All files in their places, in this order; if one cannot be made ready, none is changed."""
    ready: list[tuple[Path, Path]] = []
    try:
        for path, content in files:
            ready.append((prepare(path, content), path))
    except OSError:
        for fresh, _ in ready:
            fresh.unlink(missing_ok=True)
        raise
    for fresh, path in ready:
        fresh.rename(path)
    for folder in dict.fromkeys(path.parent for _, path in ready):
        sync_folder(folder)


def sync_folder(folder: Path) -> None:
    """Renames in a folder are safe on disk; some file systems cannot promise it."""
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with suppress(OSError):
            os.fsync(opened)
    finally:
        os.close(opened)
