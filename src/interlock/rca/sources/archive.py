"""A zip of CI artifacts, read in place: nothing is ever unpacked to the disk.

Knows what a bomb looks like and stops at bounds; a member's name is a label and never a path.
"""

import zipfile
import zlib
from collections.abc import Iterator, Mapping
from io import RawIOBase
from pathlib import Path, PurePosixPath
from typing import BinaryIO, Final, cast

from interlock.rca.sources.leaf import SourceEntry
from interlock.system.errors import SourceError

MOST_MEMBERS: Final = 20_000
LARGEST: Final = 2 * 1024**3
"""Of one archive, unpacked."""
_ENDINGS: Final = (".xml", ".log", ".txt", ".out", ".zip")
_SUSPICIOUS: Final = 64 * 1024**2
_MOST_RATIO: Final = 200


class _Member(RawIOBase):
    """One member's bytes; raises when it unpacks to more than it may."""

    def __init__(self, archive: zipfile.ZipFile, info: zipfile.ZipInfo, label: str) -> None:
        self._archive = archive
        self._info = info
        self._label = label
        self._done = 0
        try:
            self._stream = archive.open(info)
        except (zipfile.BadZipFile, NotImplementedError, RuntimeError, OSError) as error:
            archive.close()
            raise SourceError(f"{label} cannot be unpacked: {error}.") from None

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1, /) -> bytes:
        try:
            part = self._stream.read(min(size, 1 << 20) if size >= 0 else 1 << 20)
        except (zipfile.BadZipFile, zlib.error, EOFError, OSError) as error:
            raise SourceError(f"{self._label} cannot be unpacked: {error}.") from None
        self._done += len(part)
        if _is_bomb(self._done, self._info.compress_size):
            raise SourceError(
                f"{self._label} unpacks to far more than it should: refused as a zip bomb."
            )
        return part

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        part = self.read(len(buffer))
        buffer[: len(part)] = part
        return len(part)

    def close(self) -> None:
        if not self.closed:
            self._stream.close()
            self._archive.close()
        super().close()


def members(path: Path, label: str) -> tuple[list[SourceEntry], list[str]]:
    """What lies in the archive, by name, and notes on what is left out."""
    try:
        with zipfile.ZipFile(path) as archive:
            infos = archive.infolist()
    except (zipfile.BadZipFile, NotImplementedError, OSError, ValueError) as error:
        raise SourceError(f"{label} is no zip that can be read: {error}.") from None
    if len(infos) > MOST_MEMBERS or sum(info.file_size for info in infos) > LARGEST:
        raise SourceError(
            f"{label} holds more than {MOST_MEMBERS:,} files or {LARGEST // 1024**3} GiB: "
            "unpack what is needed and give the folder."
        )
    notes: list[str] = []
    fit = list(_fit(infos, label, notes))
    folders: dict[str, dict[str, SourceEntry]] = {}
    leaves = [_leaf(path, label, info, folders) for info in fit]
    for leaf in leaves:
        folders.setdefault(leaf.folder, {})[leaf.name] = leaf
    return sorted(leaves, key=lambda leaf: leaf.label), notes


def _fit(infos: list[zipfile.ZipInfo], label: str, notes: list[str]) -> Iterator[zipfile.ZipInfo]:
    for info in infos:
        if info.is_dir() or not _is_wanted(info.filename):
            continue
        if info.flag_bits & 0x1:
            notes.append(
                f"{label}!{info.filename}: skipped, it is encrypted; unpack it and give the folder"
            )
        elif _is_bomb(info.file_size, info.compress_size):
            notes.append(f"{label}!{info.filename}: skipped, it looks like a zip bomb")
        else:
            yield info


def _is_wanted(name: str) -> bool:
    parts = PurePosixPath(name).parts
    hidden = any(part.startswith((".", "__MACOSX")) and part != ".." for part in parts)
    return not hidden and PurePosixPath(name).suffix.lower() in _ENDINGS


def _is_bomb(size: int, packed: int) -> bool:
    return size > _SUSPICIOUS and size > _MOST_RATIO * max(packed, 1)


def _leaf(
    path: Path, label: str, info: zipfile.ZipInfo, folders: Mapping[str, Mapping[str, SourceEntry]]
) -> SourceEntry:
    place = PurePosixPath(info.filename)
    folder, named = f"{label}!{place.parent}", f"{label}!{info.filename}"
    return SourceEntry(
        label=named,
        folder=folder,
        name=place.name,
        open=lambda: cast("BinaryIO", _Member(zipfile.ZipFile(path), info, named)),
        neighbours=lambda: folders[folder],
        is_given=False,
    )
