"""One readable content of a folder or a zip: its name, its neighbours, its bytes.

The first bytes decide what a content is, never the name alone. A zip of CI artifacts is read in
place: nothing is unpacked to disk, bombs stop at bounds, and a member's name is a label and never a
path.
"""

import hashlib
import re
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from io import RawIOBase
from pathlib import Path, PurePath, PurePosixPath
from typing import BinaryIO, Final, Literal, NamedTuple, cast

from interlock.system.errors import SourceError

HEAD_SIZE: Final = 1 << 16
ContentKind = Literal[
    "junit", "xml", "envelope", "failures", "zip", "packed", "log", "binary", "empty"
]
_JUNIT: Final = re.compile(rb"<(?:[\w.-]+:)?(?:testsuites?|testcase)[\s/>]")
_LATE_JUNIT: Final = re.compile(
    rb"^<\?xml\b[^>]{0,500}>\s*<(?:testsuites?|testcase)[\s/>]", re.MULTILINE
)
"""A report with other output in front of it."""
_PACKED: Final = (b"\x1f\x8b", b"BZh", b"\xfd7zXZ\0", b"7z\xbc\xaf", b"\x28\xb5\x2f\xfd")
_ODD: Final = bytes(character for character in range(32) if character not in b"\a\b\t\n\v\f\r\x1b")
"""Bytes found neither in text nor in terminal output."""
_FAILURE: Final = re.compile(rb'\{[^\n]*"(?:test_name|class_name|stack)"\s*:')
"""Keys of a failure in the first line."""


class SourceEntry(NamedTuple):
    """One content. `folder` and `name` place it among its neighbours."""

    label: str
    folder: str
    name: str
    open: Callable[[], BinaryIO]
    neighbours: Callable[[], Mapping[str, "SourceEntry"]]
    is_given: bool = True
    """True if the user named it, False if it was found in a folder or an archive."""

    @property
    def stem(self) -> str:
        return PurePath(self.name).stem

    def detect_kind(self) -> ContentKind:
        with self.open() as stream:
            return detect_content_kind(stream.read(HEAD_SIZE))


def detect_content_kind(head: bytes) -> ContentKind:
    """Return the kind of a content by its first bytes."""
    if head.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        return "zip"
    if head.startswith(_PACKED):
        return "packed"
    if head[:2] in (b"\xff\xfe", b"\xfe\xff", b"<\0", b"\0<"):
        head = head.replace(b"\0", b"")[2 if head[0] > 127 or head[1] > 127 else 0 :]
    start = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if not start:
        return "empty"
    if start.startswith(b"<"):
        return _detect_xml_kind(start)
    if start.startswith(b"{"):
        return _detect_json_kind(start)
    if _LATE_JUNIT.search(start):
        return "junit"
    return "binary" if _is_binary(head) else "log"


def _detect_xml_kind(start: bytes) -> ContentKind:
    if _JUNIT.search(start):
        return "junit"
    tag = re.match(rb"<(?:\?xml|!--|!DOCTYPE|[A-Za-z_][\w:.-]*[\s/>])", start)
    return "xml" if tag else "log"


def _detect_json_kind(start: bytes) -> ContentKind:
    if b'"failure_list"' in start:
        return "envelope"
    if _FAILURE.match(start):
        return "failures"
    is_log = re.match(rb"\{[^\n]*\}\r?\n\{", start) or not re.match(rb'\{\s*(?:"|\}|\Z)', start)
    return "log" if is_log else "envelope"


def _is_binary(head: bytes) -> bool:
    odd = len(head) - len(head.translate(None, _ODD))
    return odd * 20 > len(head)


class HashingStream(RawIOBase):
    """A stream that is hashed as it is read."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._hash = hashlib.sha256()

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1, /) -> bytes:
        part = self._stream.read(size)
        self._hash.update(part)
        return part

    def readinto(self, buffer: bytearray | memoryview, /) -> int:  # type: ignore[override]
        part = self.read(len(buffer))
        buffer[: len(part)] = part
        return len(part)

    def finish_digest(self) -> str:
        """Return the digest of all bytes, including unread ones."""
        while self.read(1 << 20):
            pass
        return self._hash.hexdigest()


MAX_MEMBERS: Final = 20_000
MAX_UNPACKED: Final = 2 * 1024**3
"""The most unpacked bytes of one archive."""
_ENDINGS: Final = (".xml", ".log", ".txt", ".out", ".zip")
_SUSPICIOUS: Final = 64 * 1024**2
_MOST_RATIO: Final = 200


class _ZipMember(RawIOBase):
    """The bytes of one member; reading raises when it unpacks to more than allowed."""

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

    def readinto(self, buffer: bytearray | memoryview, /) -> int:  # type: ignore[override]
        try:
            part = self._stream.read(min(len(buffer), 1 << 20))
        except (zipfile.BadZipFile, zlib.error, EOFError, OSError) as error:
            raise SourceError(f"{self._label} cannot be unpacked: {error}.") from None
        self._done += len(part)
        if _is_bomb(self._done, self._info.compress_size):
            raise SourceError(
                f"{self._label} unpacks to far more than it should: refused as a zip bomb."
            )
        buffer[: len(part)] = part
        return len(part)

    def close(self) -> None:
        if not self.closed:
            self._stream.close()
            self._archive.close()
        super().close()


def list_members(path: Path, label: str) -> tuple[list[SourceEntry], list[str]]:
    """Return the contents of the archive by name, and notes on what is left out."""
    try:
        with zipfile.ZipFile(path) as archive:
            infos = archive.infolist()
    except (zipfile.BadZipFile, NotImplementedError, OSError, ValueError) as error:
        raise SourceError(f"{label} is not a readable zip: {error}.") from None
    if len(infos) > MAX_MEMBERS or sum(info.file_size for info in infos) > MAX_UNPACKED:
        raise SourceError(
            f"{label} holds more than {MAX_MEMBERS:,} files or {MAX_UNPACKED // 1024**3} GiB: "
            "unpack what is needed and give the folder."
        )
    notes: list[str] = []
    fit = list(_filter_members(infos, label, notes))
    folders: dict[str, dict[str, SourceEntry]] = {}
    entries = [_make_entry(path, label, info, folders) for info in fit]
    for entry in entries:
        folders.setdefault(entry.folder, {})[entry.name] = entry
    return sorted(entries, key=lambda entry: entry.label), notes


def _filter_members(
    infos: list[zipfile.ZipInfo], label: str, notes: list[str]
) -> Iterator[zipfile.ZipInfo]:
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


def _make_entry(
    path: Path, label: str, info: zipfile.ZipInfo, folders: Mapping[str, Mapping[str, SourceEntry]]
) -> SourceEntry:
    place = PurePosixPath(info.filename)
    folder, named = f"{label}!{place.parent}", f"{label}!{info.filename}"
    return SourceEntry(
        label=named,
        folder=folder,
        name=place.name,
        open=lambda: cast("BinaryIO", _ZipMember(zipfile.ZipFile(path), info, named)),
        neighbours=lambda: folders[folder],
        is_given=False,
    )
