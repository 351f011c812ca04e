"""Store the checkpoints of a project: one file per epic, and a pointer to the active one.

Every write makes a new generation in both folders and keeps the one before. Reading picks the
newest sound file of up to four, but never one older than a file of a newer Interlock, whose work
would be undone. `hold_epic_lock` lets one process at a time work on an epic; its lock file lies in
the git directory, which all workspaces of a repository share.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Final

import msgspec

from interlock.system.errors import SourceError, StateError
from interlock.system.files import (
    UnreadableFile,
    exists,
    move_aside,
    read_file,
    sync_folder,
    write_files,
)
from interlock.system.locks import LockHeldError, hold_lock
from interlock_epic.checkpoints.place import StateFolder, check_folders, make_folders
from interlock_epic.checkpoints.record import (
    LARGEST,
    Checkpoint,
    UnreadableCheckpoint,
    UnreadKind,
    check_epic_id,
    encode_checkpoint,
    read_checkpoint,
)

_GRAVE: Final[tuple[UnreadKind, ...]] = ("CORRUPT", "INVALID")
_CLEAR: Final = "interlock epic checkpoint clear"


class FoundCheckpoint(msgspec.Struct, frozen=True):
    """One file and its content."""

    path: Path
    read: Checkpoint | UnreadableCheckpoint
    raw: bytes = b""

    @property
    def generation(self) -> int:
        return self.read.generation if isinstance(self.read, Checkpoint) else -1

    @property
    def is_damaged(self) -> bool:
        return isinstance(self.read, UnreadableCheckpoint) and self.read.kind in (
            "CORRUPT",
            "INVALID",
        )


class LoadedCheckpoint(msgspec.Struct, frozen=True):
    """A checkpoint with its path and notices about it."""

    checkpoint: Checkpoint
    path: Path
    notices: tuple[str, ...] = ()
    fell_back: bool = False
    """True if the newest file is damaged, so that the one before it is used."""
    raw: bytes = b""


def current_file(folder: Path, epic_id: str) -> Path:
    return folder / f"{epic_id}.json"


def previous_file(folder: Path, epic_id: str) -> Path:
    return folder / f"{epic_id}.json.1"


def read_checkpoint_file(path: Path, epic_id: str) -> FoundCheckpoint:
    """Return the content of one file for this epic, or why it cannot be used."""
    raw = read_file(path, LARGEST)
    if isinstance(raw, UnreadableFile):
        return FoundCheckpoint(
            path, UnreadableCheckpoint("MISSING" if raw.kind == "gone" else "CORRUPT", raw.reason)
        )
    read = read_checkpoint(raw)
    if isinstance(read, Checkpoint) and read.epic.id != epic_id:
        read = UnreadableCheckpoint("INVALID", f"it belongs to epic {read.epic.id!r}")
    return FoundCheckpoint(path, read, raw)


def read_all_files(place: StateFolder, epic_id: str) -> list[FoundCheckpoint]:
    """Return the files of both folders, newest generations first."""
    paths = [current_file(folder, epic_id) for folder in place.folders]
    paths += [previous_file(folder, epic_id) for folder in place.folders]
    return [read_checkpoint_file(path, epic_id) for path in paths]


def choose_newest(found: list[FoundCheckpoint]) -> LoadedCheckpoint | UnreadableCheckpoint:
    """Return the newest sound file of all, or the gravest reason why there is none."""
    sound = [file for file in found if isinstance(file.read, Checkpoint)]
    newer = [file for file in found if _unread_kind(file) == "VERSION"]
    if any(not _is_previous(file) for file in newer) or (newer and not sound):
        return UnreadableCheckpoint("VERSION", _describe_files(newer))
    if sound:
        return _build_loaded(max(sound, key=lambda file: file.generation), found)
    for kind in _GRAVE:
        if any(_unread_kind(file) == kind for file in found):
            damaged = [file for file in found if file.is_damaged]
            return UnreadableCheckpoint(
                kind, f"{_describe_files(damaged)}; repair it, or archive it with '{_CLEAR}'"
            )
    return UnreadableCheckpoint("MISSING", "there is no checkpoint yet")


def _build_loaded(best: FoundCheckpoint, found: list[FoundCheckpoint]) -> LoadedCheckpoint:
    if not isinstance(best.read, Checkpoint):
        raise TypeError(best.path)
    first = found[0]
    notices = [
        f"{file.path} is damaged: {_unread_sentence(file)}" for file in found if file.is_damaged
    ]
    if best is not first:
        if isinstance(first.read, Checkpoint):
            notices.append(f"{first.path} is older than {best.path}")
        gone = f"{first.path} is gone: " if _unread_kind(first) == "MISSING" else ""
        notices.append(f"{gone}{best.path} is used")
    damaged = any(file.is_damaged and not _is_previous(file) for file in found)
    fell_back = damaged and _is_previous(best)
    return LoadedCheckpoint(best.read, best.path, tuple(notices), fell_back, best.raw)


def _is_previous(found: FoundCheckpoint) -> bool:
    return found.path.name.endswith(".1")


def _describe_files(found: list[FoundCheckpoint]) -> str:
    return "; ".join(f"{file.path}: {_unread_sentence(file)}" for file in found)


def _unread_kind(found: FoundCheckpoint) -> str:
    return found.read.kind if isinstance(found.read, UnreadableCheckpoint) else ""


def _unread_sentence(found: FoundCheckpoint) -> str:
    return found.read.sentence if isinstance(found.read, UnreadableCheckpoint) else ""


_POINTER: Final = "active"
_ARCHIVE: Final = "archive"
_LOCK: Final = ".lock"
"""One lock for all epics, since they share the pointer."""
_SMALL: Final = 1_000
_PATIENCE: Final = 20.0

Change = Callable[[Checkpoint | None], Checkpoint]


class Checkpoints:
    """All checkpoints of one project."""

    def __init__(self, place: StateFolder) -> None:
        self.place = place

    def read(self, epic_id: str) -> LoadedCheckpoint | UnreadableCheckpoint:
        """Return the newest sound checkpoint of an epic, or why there is none."""
        check_epic_id(epic_id)
        check_folders(self.place)
        return choose_newest(read_all_files(self.place, epic_id))

    def update(
        self, epic_id: str, change: Change, at: str, *, if_changed: bool = False
    ) -> LoadedCheckpoint:
        """Read, change and write in one step; `change` may refuse by raising.

        With `if_changed`, an unchanged checkpoint gets no new generation.
        """
        check_epic_id(epic_id)
        with self._hold_write_lock(epic_id):
            found = read_all_files(self.place, epic_id)
            loaded = choose_newest(found)
            if isinstance(loaded, UnreadableCheckpoint) and loaded.kind == "VERSION":
                raise StateError(loaded.sentence)
            before = loaded if isinstance(loaded, LoadedCheckpoint) else None
            after = self._build_next(before, change, at)
            if before and if_changed and _is_same(before.checkpoint, after):
                return before
            if after.epic.id != epic_id:
                raise ValueError(f"{after.epic.id} is not {epic_id}")
            raw = encode_checkpoint(after)
            damaged = [file.path for file in found if file.is_damaged]
            aside = _archive_files(damaged, "damaged", epic_id)
            self._write_files(after, raw, before)
        notices = (*(before.notices if before else ()), *(f"kept as {path}" for path in aside))
        path = current_file(self.place.state, epic_id)
        return LoadedCheckpoint(after, path, notices, raw=raw)

    def _build_next(self, before: LoadedCheckpoint | None, change: Change, at: str) -> Checkpoint:
        known = before.checkpoint if before else None
        after = change(known)
        generation = (known.generation if known else 0) + 1
        created = after.created or at
        return msgspec.structs.replace(after, generation=generation, created=created, updated=at)

    def _write_files(self, after: Checkpoint, raw: bytes, before: LoadedCheckpoint | None) -> None:
        files: list[tuple[Path, bytes]] = []
        for folder in reversed(self.place.folders):
            if before:
                files.append((previous_file(folder, after.epic.id), before.raw))
            files.append((current_file(folder, after.epic.id), raw))
            if read_file(folder / _POINTER, _SMALL) != f"{after.epic.id}\n".encode():
                files.append((folder / _POINTER, f"{after.epic.id}\n".encode()))
        write_files(files)

    @contextmanager
    def _hold_write_lock(self, epic_id: str) -> Iterator[None]:
        make_folders(self.place)
        with _waiting_lock(self.place.safest / _LOCK):
            self._check_plain_files(epic_id)
            try:
                yield
            except OSError as error:
                raise SourceError(
                    f"the checkpoint of {epic_id} cannot be written: {error.strerror or error}; "
                    "the one before is unchanged: make room or grant access, and try again"
                ) from None

    def _check_plain_files(self, epic_id: str) -> None:
        """Refuse links and folders in place of our files, which would redirect a write."""
        for folder in self.place.folders:
            files = (*_list_files(folder, epic_id), folder / _POINTER)
            odd = [path for path in files if exists(path) and not _is_plain(path, path.is_file())]
            archive = folder / _ARCHIVE
            odd += [archive] if exists(archive) and not _is_plain(archive, archive.is_dir()) else []
            if odd:
                raise SourceError(f"{odd[0]} is a link or not a plain file: remove it")

    def find_active(self) -> str:
        """Return the epic that was written last; if unknown, the only one there is, or ""."""
        check_folders(self.place)
        for folder in self.place.folders:
            raw = read_file(folder / _POINTER, _SMALL)
            if not isinstance(raw, UnreadableFile):
                with suppress(SourceError, UnicodeDecodeError):
                    return check_epic_id(raw.decode().strip())
        known = self.list_epics()
        if len(known) > 1:
            raise SourceError(f"there are several epics: name one of {', '.join(known)}")
        return known[0] if known else ""

    def list_epics(self) -> list[str]:
        """Return every epic that has a file here."""
        check_folders(self.place)
        named: set[str] = set()
        for folder in self.place.folders:
            for path in (*folder.glob("*.json"), *folder.glob("*.json.1")):
                with suppress(SourceError):
                    named.add(check_epic_id(path.name.removesuffix(".1").removesuffix(".json")))
        return sorted(named)

    def clear(self, epic_id: str, word: str, delete: bool = False) -> list[Path]:
        """Move the epic's files into the archive, under names with this word, or delete them."""
        check_epic_id(epic_id)
        with self._hold_write_lock(epic_id):
            ours = [path for folder in self.place.folders for path in _list_files(folder, epic_id)]
            ours = [path for path in ours if exists(path)]
            done = _delete_files(ours) if delete else _archive_files(ours, word, epic_id)
            for folder in self.place.folders:
                raw = read_file(folder / _POINTER, _SMALL)
                if not isinstance(raw, UnreadableFile) and raw.strip() == epic_id.encode():
                    (folder / _POINTER).unlink(missing_ok=True)
        return done


def _is_same(before: Checkpoint, after: Checkpoint) -> bool:
    """Return True if two checkpoints differ only in generation and times."""
    kept = {name: getattr(before, name) for name in ("generation", "created", "updated")}
    return msgspec.structs.replace(after, **kept) == before


@contextmanager
def _waiting_lock(path: Path) -> Iterator[None]:
    """Hold a lock, waiting for another process that writes these files."""
    with ExitStack() as held:
        try:
            held.enter_context(hold_lock(path, wait=_PATIENCE))
        except LockHeldError as error:
            raise SourceError(str(error)) from None
        except OSError as error:
            raise SourceError(f"{path} cannot be opened: {error.strerror}") from None
        yield


def _list_files(folder: Path, epic_id: str) -> tuple[Path, ...]:
    """Return every file of an epic in a folder."""
    return (
        current_file(folder, epic_id),
        previous_file(folder, epic_id),
        folder / f"{epic_id}.attempts",
    )


def _delete_files(paths: list[Path]) -> list[Path]:
    for path in paths:
        path.unlink()
    return paths


def _archive_files(paths: list[Path], word: str, epic_id: str) -> list[Path]:
    """Move files into the archive beside them, each under a free name."""
    moved: list[Path] = []
    for path in paths:
        folder = path.parent / _ARCHIVE
        folder.mkdir(mode=0o700, exist_ok=True)
        aside = move_aside(path, word, folder, epic_id)
        moved += [aside] if aside else []
    for folder in dict.fromkeys(path.parent for path in paths):
        sync_folder(folder)
    return moved


def _is_plain(path: Path, right_kind: bool) -> bool:
    return right_kind and not path.is_symlink()


class LockedError(StateError):
    """Another process works on this epic."""


@contextmanager
def hold_epic_lock(place: StateFolder, epic_id: str) -> Iterator[None]:
    """Lock the epic; raise LockedError with the process that holds it."""
    make_folders(place)
    path = place.safest / f".{epic_id}.run"
    with ExitStack() as held:
        try:
            held.enter_context(hold_lock(path, f"{os.getpid()}\n".encode()))
        except LockHeldError as error:
            who = error.owner.decode("ascii", "replace").strip() or "?"
            raise LockedError(
                f"process {who} is working on {epic_id}; wait for it, or 'interlock stop' it"
            ) from None
        except OSError as error:
            raise StateError(f"{path} cannot be opened: {error.strerror}") from None
        yield
