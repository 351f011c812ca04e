"""Which of an epic's files is the newest sound one, and what is wrong with the others.

Up to four are looked at: the file and the generation before it, each in two folders. One written
by a newer Interlock ends the search: going back behind it would undo what it did.
"""

from pathlib import Path
from typing import Final

import msgspec

from interlock.epic.checkpoints.checkpoint import Checkpoint
from interlock.epic.checkpoints.checkpoint_file import LARGEST
from interlock.epic.checkpoints.migrate import (
    ReadCheckpoint,
    Shape,
    UnreadableCheckpoint,
    UnreadKind,
    read_checkpoint,
)
from interlock.epic.checkpoints.place import StateFolder
from interlock.system.safe_file import UnreadableFile, read_regular

_GRAVE: Final[tuple[UnreadKind, ...]] = ("CORRUPT", "INVALID")
_OURS: Final = 4
_CLEAR: Final = "interlock epic checkpoint clear"


class FoundCheckpoint(msgspec.Struct, frozen=True):
    """One file, and what it holds."""

    path: Path
    read: ReadCheckpoint | UnreadableCheckpoint
    raw: bytes = b""

    @property
    def generation(self) -> int:
        return self.read.checkpoint.generation if isinstance(self.read, ReadCheckpoint) else -1

    @property
    def is_damaged(self) -> bool:
        return isinstance(self.read, UnreadableCheckpoint) and self.read.kind in (
            "CORRUPT",
            "INVALID",
        )


class LoadedCheckpoint(msgspec.Struct, frozen=True):
    """A checkpoint, where it was found, and what there is to say about that."""

    checkpoint: Checkpoint
    path: Path
    shape: Shape
    notices: tuple[str, ...] = ()
    fell_back: bool = False
    """It is not the newest that was written: that one is damaged."""
    raw: bytes = b""


def current(folder: Path, epic_id: str) -> Path:
    return folder / f"{epic_id}.json"


def previous(folder: Path, epic_id: str) -> Path:
    return folder / f"{epic_id}.json.1"


def look(path: Path, epic_id: str) -> FoundCheckpoint:
    """What one file holds for this epic."""
    raw = read_regular(path, LARGEST)
    if isinstance(raw, UnreadableFile):
        return FoundCheckpoint(
            path, UnreadableCheckpoint("MISSING" if raw.kind == "gone" else "CORRUPT", raw.reason)
        )
    read = read_checkpoint(raw)
    if isinstance(read, ReadCheckpoint) and read.checkpoint.epic.id != epic_id:
        read = UnreadableCheckpoint("INVALID", f"it is of epic {read.checkpoint.epic.id!r}")
    return FoundCheckpoint(path, read, raw)


def look_all(place: StateFolder, epic_id: str) -> list[FoundCheckpoint]:
    """The files of both folders, newest generations first; older tools' files if none is there."""
    paths = [current(folder, epic_id) for folder in place.folders]
    paths += [previous(folder, epic_id) for folder in place.folders]
    found = [look(path, epic_id) for path in paths]
    if any(_kind(each) != "MISSING" for each in found):
        return found
    old = [look(path, epic_id) for path in older_files(place, epic_id)]
    own = [each for each in old if isinstance(each.read, ReadCheckpoint)]
    return [*found, *own]


def older_files(place: StateFolder, epic_id: str) -> list[Path]:
    """Where older tools keep the checkpoint of an epic, best first."""
    names = ["current-checkpoint.json", "checkpoint.json"]
    if epic_id:
        stems = (f"epic-{epic_id}", epic_id, f"create-epic-{epic_id}")
        names += [f"{stem}-state.json" for stem in stems]
    beside = [place.root / "state" / f"epic-{epic_id}-state.json"] if epic_id else []
    return [*(place.state / name for name in names), *beside]


def choose(found: list[FoundCheckpoint]) -> LoadedCheckpoint | UnreadableCheckpoint:
    """The newest sound file of all, or the gravest reason why there is none."""
    sound = [each for each in found if isinstance(each.read, ReadCheckpoint)]
    newer = [each for each in found if _kind(each) == "VERSION"]
    if any(not _is_previous(each) for each in newer) or (newer and not sound):
        return UnreadableCheckpoint("VERSION", _told(newer))
    if sound:
        return _loaded(max(sound, key=lambda each: each.generation), found)
    for kind in _GRAVE:
        if any(_kind(each) == kind for each in found):
            damaged = [each for each in found if each.is_damaged]
            return UnreadableCheckpoint(
                kind, f"{_told(damaged)}; repair it, or set it aside with: {_CLEAR}"
            )
    return UnreadableCheckpoint("MISSING", "there is no checkpoint; a session writes the first one")


def _loaded(best: FoundCheckpoint, found: list[FoundCheckpoint]) -> LoadedCheckpoint:
    if not isinstance(best.read, ReadCheckpoint):
        raise TypeError(best.path)
    first = found[0]
    notices = [f"{each.path} is damaged: {_sentence(each)}" for each in found if each.is_damaged]
    if best is not first:
        if isinstance(first.read, ReadCheckpoint):
            notices.append(f"{first.path} is older than {best.path}")
        gone = (
            f"{first.path} is gone: " if _kind(first) == "MISSING" and len(found) <= _OURS else ""
        )
        notices.append(f"{gone}{best.path} is used")
    damaged = any(each.is_damaged and not _is_previous(each) for each in found)
    read, fell_back = best.read, damaged and _is_previous(best)
    return LoadedCheckpoint(
        read.checkpoint, best.path, read.shape, tuple(notices), fell_back, best.raw
    )


def _is_previous(found: FoundCheckpoint) -> bool:
    return found.path.name.endswith(".1")


def _told(found: list[FoundCheckpoint]) -> str:
    return "; ".join(f"{each.path}: {_sentence(each)}" for each in found)


def _kind(found: FoundCheckpoint) -> str:
    return found.read.kind if isinstance(found.read, UnreadableCheckpoint) else ""


def _sentence(found: FoundCheckpoint) -> str:
    return found.read.sentence if isinstance(found.read, UnreadableCheckpoint) else ""
