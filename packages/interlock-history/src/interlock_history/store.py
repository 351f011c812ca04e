"""Where the memory lies: append-only segments in a folder that a CI cache can keep.

`results/` and `names/` are the memory: immutable files named by their content. So two writers
cannot disturb each other, the same results twice are one file, and uniting two memories means
copying what is missing. `index/` is derived and may be removed at any time. Unreadable files (cut
short, damaged, foreign, newer) are named and left out; the rest counts.
"""

import os
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final, Literal

import msgspec

from interlock.system.errors import SourceError, StoreError, UsageError
from interlock.system.files import (
    UnreadableFile,
    create_file,
    make_own_folder,
    read_file,
    remove_staged,
    remove_tree,
    write_file,
)
from interlock_history import segment as packing
from interlock_history.segment import PackedSegment, Segment
from interlock_rca.ci_run import CiRun

FOLDER: Final = Path(".interlock") / "history"
_KEY: Final = re.compile(r"[0-9a-f]{32}")
BlobKind = Literal["results", "names"]
_LARGEST: Final = 1 << 28
_MOST_ADDED: Final = 0.05
"""A new table is written when this share of names is missing from the others."""
_MOST_TABLES: Final = 64
_MOST_NAMES: Final = 150_000
"""The largest table that takes over the names of the one before it. Inheriting lets shards share a
table; the limit keeps names that change every night from piling up."""


class HistoryStore(ABC):
    """Keeps segments and tables of names under the hash of their content. Every method may be
    called twice, and from several processes. Subclasses decide where the bytes are."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name = name
        self.folder = folder
        """The folder for data derived from the segments."""
        self.problems: list[str] = []
        """A sentence for everything that could not be read."""
        self._tables: dict[str, list[str] | None] = {}

    @abstractmethod
    def _list_keys(self, kind: BlobKind) -> list[str]:
        """Return the keys of a kind, oldest first."""

    @abstractmethod
    def _read_blob(self, kind: BlobKind, key: str) -> bytes | None:
        """Return the bytes of a blob; if there are none, add a problem and return None."""

    @abstractmethod
    def _create_blob(self, kind: BlobKind, key: str, data: bytes) -> bool:
        """Keep a blob, whole or not at all; return False if it was there before."""

    @abstractmethod
    def _replace_blob(self, kind: BlobKind, key: str, data: bytes) -> None: ...

    @abstractmethod
    def _remove_blobs(self, kind: BlobKind, keys: Iterable[str]) -> None: ...

    @abstractmethod
    def _describe(self, kind: BlobKind, key: str) -> str:
        """Return the name of a blob for people."""

    def add(self, segment: Segment) -> bool:
        """Keep a segment; return False if it was there before."""
        try:
            table, places = self._choose_table(segment.tests)
            raw = packing.write_segment(segment, table, places)
            is_new = self._create_blob("results", segment.id, raw)
            if not is_new:
                self._keep_earlier(segment.id, segment.run.at, raw)
            if table not in self._list_keys("names"):  # pruned meanwhile, as nobody used it
                self._write_names(self._tables[table] or [])
        except OSError as error:
            raise StoreError(
                f"the history in {self.name} cannot be written: {error.strerror or error}; make "
                "room or grant access, and run the same command again"
            ) from None
        return is_new

    def list_segments(self) -> list[str]:
        """Return the ids of all segments, sorted."""
        return sorted(self._list_keys("results"))

    def read(self, segment_id: str) -> PackedSegment | None:
        """Return one segment; if it is unreadable, add a problem and return None."""
        raw = self._read_blob("results", segment_id)
        if raw is None:
            return None
        name = self._describe("results", segment_id)
        try:
            found = packing.read_segment(raw, name)
            if found.id != segment_id:
                raise SourceError(f"{name} holds the results {found.id}: it was renamed")
        except SourceError as error:
            self._add_problem(str(error))
            return None
        return found

    def read_names(self, table: str) -> list[str] | None:
        """Return a table of names; if it is unreadable, add a problem and return None."""
        if table not in self._tables:
            self._tables[table] = self._load_names(table)
        return self._tables[table]

    def find_known_names(self, names: set[str]) -> set[str]:
        """Return those of the names that the newest tables have."""
        tables = [self.read_names(key) for key in self._list_keys("names")[-_MOST_TABLES // 8 :]]
        return names.intersection(name for table in tables for name in table or ())

    def remove(self, segment_ids: Iterable[str]) -> None:
        """Remove these segments, and the names that nothing else needs."""
        self._remove_blobs("results", segment_ids)
        used = {found.table for each in self.list_segments() if (found := self.read(each))}
        self._remove_blobs("names", set(self._list_keys("names")) - used)

    def list_blobs(self, kind: BlobKind) -> list[str]:
        """Return all keys of a kind, oldest first, for a store that mirrors this one."""
        return self._list_keys(kind)

    def read_blob(self, kind: BlobKind, key: str) -> bytes | None:
        return self._read_blob(kind, key) if _KEY.fullmatch(key) else None

    def put_blob(self, kind: BlobKind, key: str, raw: bytes) -> bool:
        """Keep a blob of another store; return False if it was there before. Raise SourceError if
        it does not match its key, so that no uploader can replace a blob that others trust."""
        if not _KEY.fullmatch(key):
            raise SourceError(f"{key[:40]!r} is no key: 32 hex digits are")
        name = f"{kind} {key}"
        if kind == "names":
            real = packing.write_names(packing.read_names(raw, name))[0]
        else:
            real = self._identify_segment(raw, name)
        if real != key:
            raise SourceError(f"{name} is {real} by its content")
        is_new = self._create_blob(kind, key, raw)
        if kind == "results" and not is_new:
            self._keep_earlier(key, packing.read_segment(raw, name).run.at, raw)
        return is_new

    def _identify_segment(self, raw: bytes, name: str) -> str:
        """Return the id of a segment by its content; its names must be here."""
        packed = packing.read_segment(raw, name)
        names = self.read_names(packed.table)
        if names is None:
            raise SourceError(f"{name} needs the names {packed.table}: send these first")
        found = packed.unpack(names)
        rows = zip(found.tests, zip(found.bits, found.durations, strict=True), strict=True)
        return packing.make_segment(found.run, dict(rows), found.failures).id

    def read_derived(self, name: str) -> bytes | None:
        """Return derived data that was kept, or None."""
        raw = read_file(self.folder / "index" / name, _LARGEST)
        if isinstance(raw, UnreadableFile):
            return None
        try:
            return packing.read_frame(raw, b"I", name)
        except SourceError:
            return None  # it is made again

    def keep_derived(self, name: str, data: bytes) -> None:
        """Keep data that can be computed again."""
        try:
            make_own_folder(self.folder / "index")
            frame = packing.write_frame(b"I", data, level=1)
            write_file(self.folder / "index" / name, frame, sync=False)
        except OSError:
            return  # a folder that may only be read answers all the same

    def _load_names(self, table: str) -> list[str] | None:
        raw = self._read_blob("names", table) if _KEY.fullmatch(table) else None
        try:
            return None if raw is None else packing.read_names(raw, self._describe("names", table))
        except SourceError as error:
            self._add_problem(str(error))
            return None

    def _keep_earlier(self, segment_id: str, at: float, raw: bytes) -> None:
        """Keep the earlier time of two uploads of the same results, whichever came first."""
        kept = self.read(segment_id)
        if kept is None or kept.run.at > at:
            self._replace_blob("results", segment_id, raw)
            remove_tree(self.folder / "index")  # it knows the other time

    def _choose_table(self, tests: Sequence[str]) -> tuple[str, Mapping[str, int]]:
        """Return the table that has most of the names, or a new one if too many are missing."""
        wanted = set(tests)
        most, table = -1, ""
        for key in reversed(self._list_keys("names")[-_MOST_TABLES:]):
            names = self.read_names(key)
            known = -1 if names is None else len(wanted.intersection(names))
            if known > most:
                most, table = known, key
            if len(wanted) - most <= _MOST_ADDED * len(wanted):
                break
        else:
            older = self._tables.get(table) or []
            united = sorted(wanted.union(older))
            table = self._write_names(united if len(united) <= _MOST_NAMES else list(tests))
        return table, {name: at for at, name in enumerate(self._tables[table] or ())}

    def _write_names(self, names: list[str]) -> str:
        table, raw = packing.write_names(names)
        self._create_blob("names", table, raw)
        self._tables[table] = names
        return table

    def _add_problem(self, sentence: str) -> None:
        if sentence not in self.problems:
            self.problems.append(sentence)


class FolderStore(HistoryStore):
    """A memory in a folder, which a CI cache can keep."""

    def __init__(self, folder: Path, *, is_new_ok: bool = True) -> None:
        super().__init__(str(folder), folder)
        if not is_new_ok and not folder.is_dir():
            raise SourceError(f"{folder} is not there: name a folder with a history")
        if folder.exists() and not folder.is_dir():
            raise SourceError(f"{folder} is a file: the history is kept in a folder")

    def _list_keys(self, kind: BlobKind) -> list[str]:
        found: list[tuple[float, str]] = []
        try:
            with os.scandir(self.folder / kind) as entries:
                for entry in entries:
                    key, _, ending = entry.name.partition(".")
                    if ending == kind and _KEY.fullmatch(key):
                        # Only the age of tables matters, and asking for it costs a system call
                        # each.
                        age = entry.stat().st_mtime if kind == "names" else 0.0
                        found.append((age, key))
                    elif not entry.name.startswith("."):
                        self._add_problem(f"{entry.path} is no {kind} file of ours")
        except FileNotFoundError:
            return []
        except OSError as error:
            raise StoreError(f"{self.folder} cannot be read: {error.strerror or error}") from None
        return [key for _, key in sorted(found)]

    def _read_blob(self, kind: BlobKind, key: str) -> bytes | None:
        path = self._path(kind, key)
        raw = read_file(path, _LARGEST)
        if isinstance(raw, UnreadableFile):
            self._add_problem(f"{path.parent}: {raw.reason}")
            return None
        return raw

    def _create_blob(self, kind: BlobKind, key: str, data: bytes) -> bool:
        make_own_folder(self.folder / kind)
        remove_staged(self.folder / kind)
        return create_file(self._path(kind, key), data)

    def _replace_blob(self, kind: BlobKind, key: str, data: bytes) -> None:
        write_file(self._path(kind, key), data)

    def _remove_blobs(self, kind: BlobKind, keys: Iterable[str]) -> None:
        for key in keys:
            self._path(kind, key).unlink(missing_ok=True)

    def _describe(self, kind: BlobKind, key: str) -> str:
        return str(self._path(kind, key))

    def find_blob(self, kind: BlobKind, key: str) -> bytes | None:
        """Return the bytes of a blob, or None."""
        path = self._path(kind, key)
        return self._read_blob(kind, key) if path.exists() else None

    def drop_blob(self, kind: BlobKind, key: str) -> None:
        self._path(kind, key).unlink(missing_ok=True)

    def keep_blob(self, kind: BlobKind, key: str, data: bytes) -> None:
        """Write a blob, replacing any that is there."""
        make_own_folder(self.folder / kind)
        write_file(self._path(kind, key), data, sync=False)

    def _path(self, kind: BlobKind, key: str) -> Path:
        return self.folder / kind / f"{key}.{kind}"


def open_store(word: str) -> HistoryStore:
    """Open the memory that a word names: a folder, or an Interlock server."""
    if "://" not in word:
        return FolderStore(Path(word))
    if not word.startswith(("http://", "https://")):
        raise UsageError(
            f"{word.partition('://')[0]}:// is no memory: name a folder or https://SERVER/"
        )
    from interlock_history.http_store import HttpStore

    return HttpStore(word)


class Merged(msgspec.Struct, frozen=True):
    """The outcome of a merge."""

    added: int
    known: int
    refused: tuple[str, ...]


def merge_stores(
    source: HistoryStore,
    into: HistoryStore,
    is_welcome: Callable[[CiRun], str] = lambda _: "",
) -> Merged:
    """Add what `source` has and `into` lacks. `is_welcome` returns why a run is left out, or ""."""
    known = set(into.list_segments())
    added = repeated = 0
    refused: list[str] = []
    for each in source.list_segments():
        packed = source.read(each)
        names = source.read_names(packed.table) if packed else None
        if packed is None or names is None:
            continue
        if reason := is_welcome(packed.run):
            refused.append(reason)
            continue
        try:
            # Known segments are added too: the earlier of the two times counts.
            into.add(packed.unpack(names))
        except SourceError as error:
            refused.append(str(error))
            continue
        added, repeated = added + (each not in known), repeated + (each in known)
    return Merged(added, repeated, (*source.problems, *refused))
