"""How often something was tried: one line per try, only ever added to, in the safest folder.

A counter inside a file that a reset brings back would begin anew each time. Refuses to know what
is tried, and how often is too often.
"""

import os
from pathlib import Path
from typing import Final

import msgspec

from interlock.epic.checkpoints.place import StateFolder, make_folders
from interlock.system.errors import SourceError
from interlock.system.safe_file import UnreadableFile, read_regular

_LARGEST: Final = 1 << 22
_ADD: Final = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC


class RecoveryAttempt(msgspec.Struct, frozen=True):
    """One try."""

    key: str
    at: str


def ledger_file(place: StateFolder, epic_id: str) -> Path:
    return place.safest / f"{epic_id}.attempts"


def tried(place: StateFolder, epic_id: str, key: str) -> int:
    """How often this was tried. A damaged line still counts for every key: it was a try."""
    raw = read_regular(ledger_file(place, epic_id), _LARGEST)
    if isinstance(raw, UnreadableFile):
        if raw.kind == "gone":
            return 0
        raise SourceError(f"{ledger_file(place, epic_id)}: {raw.reason}: look at it, and remove it")
    return sum(_key(line) in (key, None) for line in raw.splitlines())


def add_try(place: StateFolder, epic_id: str, key: str, at: str) -> int:
    """Note one more try, safe on disk, and say how many there were with it."""
    make_folders(place)
    path = ledger_file(place, epic_id)
    line = msgspec.json.encode(RecoveryAttempt(key, at)) + b"\n"
    try:
        opened = os.open(path, _ADD, 0o600)
        try:
            # A newline first: what a crash left half written stays a line of its own.
            os.write(opened, b"\n" + line if _is_torn(path) else line)
            os.fsync(opened)
        finally:
            os.close(opened)
    except OSError as error:
        raise SourceError(f"{path} cannot be written: {error.strerror}") from None
    return tried(place, epic_id, key)


def _is_torn(path: Path) -> bool:
    raw = read_regular(path, _LARGEST)
    return isinstance(raw, bytes) and bool(raw) and not raw.endswith(b"\n")


def _key(line: bytes) -> str | None:
    try:
        return msgspec.json.decode(line, type=RecoveryAttempt).key
    except (msgspec.DecodeError, msgspec.ValidationError):
        return None
