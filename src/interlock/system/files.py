"""Files and folders of ours: written whole or not at all, removed without following a link.

Knows disks. Refuses to know what is written.
"""

import os
import shutil
import stat
from pathlib import Path

from interlock.system.errors import SourceError


def write_whole(file: Path, content: bytes) -> None:
    """Either the old content or the new one is there, also after a power cut."""
    beside = file.with_name(f".{file.name}.new")
    try:
        with beside.open("wb") as opened:
            opened.write(content)
            opened.flush()
            os.fsync(opened.fileno())
        beside.replace(file)
    except OSError as error:
        raise SourceError(f"{file} cannot be written: {error}; make room or grant access") from None


def is_folder(path: Path) -> bool:
    """A folder itself, not a link to one."""
    try:
        return stat.S_ISDIR(path.lstat().st_mode)
    except (OSError, ValueError):
        return False


def exists(path: Path) -> bool:
    """Whether something is there, also a link that leads nowhere."""
    return os.path.lexists(path)


def remove(path: Path) -> None:
    """Remove a file, a link, or a folder with all in it. Links are not followed."""
    if not exists(path):
        return
    try:
        if is_folder(path):
            _open_up(path)
            shutil.rmtree(path)
        else:
            path.unlink()
    except OSError as error:
        raise SourceError(
            f"{path} cannot be removed: {error}; grant access and try again"
        ) from None


def put_aside(path: Path, aside: Path) -> Path:
    """Move what is not ours out of the way instead of removing it."""
    aside.mkdir(parents=True, exist_ok=True)
    number = 1
    while exists(place := aside / f"{path.name}.{number}"):
        number += 1
    shutil.move(path, place)
    return place


def _open_up(folder: Path) -> None:
    """Build tools leave folders without the right to write; they are removed all the same."""
    for root, folders, _ in os.walk(folder):
        for name in (".", *folders):
            place = Path(root, name)
            if is_folder(place) and not os.access(place, os.W_OK | os.X_OK):
                place.chmod(stat.S_IRWXU)
