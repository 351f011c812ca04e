"""Something to read that lies in a folder or in an archive: its name, its neighbours, its bytes.

Knows what a content is by looking at its beginning, never by its name alone. Refuses to know what
is done with it.
"""

import hashlib
import re
from collections.abc import Callable, Mapping
from io import RawIOBase
from pathlib import PurePath
from typing import BinaryIO, Final, Literal, NamedTuple

HEAD: Final = 1 << 16
Kind = Literal["junit", "xml", "envelope", "failures", "zip", "packed", "log", "binary", "empty"]
_JUNIT: Final = re.compile(rb"<(?:[\w.-]+:)?(?:testsuites?|testcase)[\s/>]")
_LATE_JUNIT: Final = re.compile(
    rb"^<\?xml\b[^>]{0,500}>\s*<(?:testsuites?|testcase)[\s/>]", re.MULTILINE
)
"""A report with something printed in front of it."""
_PACKED: Final = (b"\x1f\x8b", b"BZh", b"\xfd7zXZ\0", b"7z\xbc\xaf", b"\x28\xb5\x2f\xfd")
_ODD: Final = bytes(sign for sign in range(32) if sign not in b"\a\b\t\n\v\f\r\x1b")
"""Signs of no text and no terminal."""
_FAILURE: Final = re.compile(rb'\{[^\n]*"(?:test_name|class_name|stack)"\s*:')
"""A failure's keys in the first line."""


class SourceEntry(NamedTuple):
    """One content. `folder` and `name` place it among its neighbours."""

    label: str
    folder: str
    name: str
    open: Callable[[], BinaryIO]
    neighbours: Callable[[], Mapping[str, "SourceEntry"]]
    is_given: bool = True
    """Whether the user named it; else it was found in a folder or an archive."""

    @property
    def stem(self) -> str:
        return PurePath(self.name).stem

    def kind(self) -> Kind:
        with self.open() as stream:
            return kind_of(stream.read(HEAD))


def kind_of(head: bytes) -> Kind:
    """What a content is, by its first bytes."""
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
        return _kind_of_xml(start)
    if start.startswith(b"{"):
        return _kind_of_json(start)
    if _LATE_JUNIT.search(start):
        return "junit"
    return "binary" if _is_binary(head) else "log"


def _kind_of_xml(start: bytes) -> Kind:
    if _JUNIT.search(start):
        return "junit"
    tag = re.match(rb"<(?:\?xml|!--|!DOCTYPE|[A-Za-z_][\w:.-]*[\s/>])", start)
    return "xml" if tag else "log"


def _kind_of_json(start: bytes) -> Kind:
    if b'"failure_list"' in start:
        return "envelope"
    if _FAILURE.match(start):
        return "failures"
    is_log = re.match(rb"\{[^\n]*\}\r?\n\{", start) or not re.match(rb'\{\s*(?:"|\}|\Z)', start)
    return "log" if is_log else "envelope"


def _is_binary(head: bytes) -> bool:
    odd = len(head) - len(head.translate(None, _ODD))
    return odd * 20 > len(head)


class Hashing(RawIOBase):
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

    def digest(self) -> str:
        """Of all bytes, those not yet read too."""
        while self.read(1 << 20):
            pass
        return self._hash.hexdigest()
