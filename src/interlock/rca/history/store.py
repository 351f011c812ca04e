"""Where the memory lies: segments that are only added to, in a folder that a CI cache can keep.

`results/` and `names/` are the memory: files that never change, called by what is in them. So two
writers cannot disturb each other, the same results twice are one file, and uniting two memories is
copying what is missing. `index/` is worked out from them and may be removed at any time. What
cannot be read (cut short, damaged, foreign, of a newer version) is named and left out; the rest
counts.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final, Protocol

import msgspec

from interlock.rca.history import segment as packing
from interlock.rca.history.identity import CiRun
from interlock.rca.history.segment import PackedSegment, Segment
from interlock.system.errors import SourceError, StoreError
from interlock.system.files import (
    UnreadableFile,
    create_file,
    make_own_folder,
    read_file,
    remove_staged,
    remove_tree,
    write_file,
)

FOLDER: Final = Path(".interlock") / "history"
_SEGMENT: Final = re.compile(r"([0-9a-f]{32})\.results")
_LARGEST: Final = 1 << 28
_MOST_ADDED: Final = 0.05
"""From this share of names that a table lacks, a new table is worth its bytes."""
_MOST_TABLES: Final = 64
_MOST_NAMES: Final = 150_000
"""A table takes over the names of the one before it, so that shards come to share one; up to this
size, so that names that change every night do not pile up."""


class HistoryStore(Protocol):
    """What keeps segments. All of it is safe to call twice, and from several processes."""

    problems: list[str]
    """What could not be read, a sentence each."""

    def add(self, segment: Segment) -> bool:
        """Keep it; whether it is new."""

    def list_segments(self) -> list[str]:
        """The ids of all segments, sorted."""

    def read(self, segment_id: str) -> PackedSegment | None:
        """One segment; None, and a problem, if it cannot be read."""

    def read_names(self, table: str) -> Sequence[str] | None:
        """A table of names; None, and a problem, if it cannot be read."""

    def remove(self, segment_ids: Iterable[str]) -> None:
        """Forget these."""

    def read_derived(self, name: str) -> bytes | None:
        """What was worked out from the segments and kept, or None."""

    def keep_derived(self, name: str, data: bytes) -> None:
        """Keep something that can be worked out again."""


class FolderStore:
    """A memory in a folder."""

    def __init__(self, folder: Path, *, is_new_ok: bool = True) -> None:
        self.folder = folder
        self.problems: list[str] = []
        self._tables: dict[str, list[str] | None] = {}
        if not is_new_ok and not folder.is_dir():
            raise SourceError(f"{folder} is not there: name a folder with a history")
        if folder.exists() and not folder.is_dir():
            raise SourceError(f"{folder} is a file: the history is kept in a folder")

    @property
    def is_empty(self) -> bool:
        return not self.list_segments()

    def add(self, segment: Segment) -> bool:
        try:
            for name in ("results", "names"):
                make_own_folder(self.folder / name)
                remove_staged(self.folder / name)
            table, places = self._choose_table(segment.tests)
            path, raw = self._path(segment.id), packing.write_segment(segment, table, places)
            is_new = create_file(path, raw)
            if not is_new:
                self._keep_earlier(segment, path, raw)
            if not self._names_path(table).exists():  # pruned meanwhile, as nobody used it
                self._write_names(self._tables[table] or [])
        except OSError as error:
            raise StoreError(
                f"the history in {self.folder} cannot be written: {error.strerror or error}; make "
                "room or grant access, and run the same command again"
            ) from None
        return is_new

    def list_segments(self) -> list[str]:
        try:
            names = [path.name for path in (self.folder / "results").iterdir()]
        except FileNotFoundError:
            return []
        except OSError as error:
            raise StoreError(f"{self.folder} cannot be read: {error.strerror or error}") from None
        found = []
        for name in names:
            if match := _SEGMENT.fullmatch(name):
                found.append(match[1])
            elif not name.startswith("."):
                self._add_problem(f"{self.folder / 'results' / name} is no results file of ours")
        return sorted(found)

    def read(self, segment_id: str) -> PackedSegment | None:
        path = self._path(segment_id)
        raw = self._read(path)
        if raw is None:
            return None
        try:
            found = packing.read_segment(raw, str(path))
            if found.id != segment_id:
                raise SourceError(f"{path} holds the results {found.id}: it was renamed")
        except SourceError as error:
            self._add_problem(str(error))
            return None
        return found

    def read_names(self, table: str) -> list[str] | None:
        if table not in self._tables:
            self._tables[table] = self._load_names(table)
        return self._tables[table]

    def remove(self, segment_ids: Iterable[str]) -> None:
        for each in segment_ids:
            self._path(each).unlink(missing_ok=True)
        used = {found.table for each in self.list_segments() if (found := self.read(each))}
        for path in self._names_folder.glob("*.names"):
            if path.stem not in used:
                path.unlink(missing_ok=True)

    def read_derived(self, name: str) -> bytes | None:
        raw = read_file(self.folder / "index" / name, _LARGEST)
        if isinstance(raw, UnreadableFile):
            return None
        try:
            return packing.read_frame(raw, b"I", name)
        except SourceError:
            return None  # it is made again

    def keep_derived(self, name: str, data: bytes) -> None:
        try:
            make_own_folder(self.folder / "index")
            frame = packing.write_frame(b"I", data, level=1)
            write_file(self.folder / "index" / name, frame, sync=False)
        except OSError:
            return  # a folder that may only be read answers all the same

    @property
    def _names_folder(self) -> Path:
        return self.folder / "names"

    def _names_path(self, table: str) -> Path:
        return self._names_folder / f"{table}.names"

    def _path(self, segment_id: str) -> Path:
        return self.folder / "results" / f"{segment_id}.results"

    def _read(self, path: Path) -> bytes | None:
        raw = read_file(path, _LARGEST)
        if isinstance(raw, UnreadableFile):
            self._add_problem(f"{path.parent}: {raw.reason}")
            return None
        return raw

    def _load_names(self, table: str) -> list[str] | None:
        path = self._names_path(table)
        raw = self._read(path) if re.fullmatch(r"[0-9a-f]{32}", table) else None
        try:
            return None if raw is None else packing.read_names(raw, str(path))
        except SourceError as error:
            self._add_problem(str(error))
            return None

    def _keep_earlier(self, segment: Segment, path: Path, raw: bytes) -> None:
        """Of two uploads of the same results the earlier time counts, whichever came first."""
        kept = self.read(segment.id)
        if kept is None or kept.run.at > segment.run.at:
            write_file(path, raw)
            remove_tree(self.folder / "index")  # it knows the other time

    def _choose_table(self, tests: Sequence[str]) -> tuple[str, Mapping[str, int]]:
        """The table that has most of the names; a new one, where too many are in none."""
        wanted = set(tests)
        most, table = -1, ""
        by_age = sorted(self._names_folder.glob("*.names"), key=lambda path: path.stat().st_mtime)
        for path in reversed(by_age[-_MOST_TABLES:]):
            names = self.read_names(path.stem)
            known = -1 if names is None else len(wanted.intersection(names))
            if known > most:
                most, table = known, path.stem
            if len(wanted) - most <= _MOST_ADDED * len(wanted):
                break
        else:
            older = self._tables.get(table) or []
            united = sorted(wanted.union(older))
            table = self._write_names(united if len(united) <= _MOST_NAMES else list(tests))
        return table, {name: at for at, name in enumerate(self._tables[table] or ())}

    def _write_names(self, names: list[str]) -> str:
        table, raw = packing.write_names(names)
        create_file(self._names_path(table), raw)
        self._tables[table] = names
        return table

    def _add_problem(self, sentence: str) -> None:
        if sentence not in self.problems:
            self.problems.append(sentence)


class Merged(msgspec.Struct, frozen=True):
    """What a merge did."""

    added: int
    known: int
    refused: tuple[str, ...]


def merge_stores(
    source: HistoryStore, into: HistoryStore, is_welcome: Callable[[CiRun], str] = lambda _: ""
) -> Merged:
    """Add what `source` has and `into` has not. `is_welcome` says why a run is left out, or ""."""
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
            # What is known is added again, too: the earlier time of the two counts.
            into.add(packed.unpack(names))
        except SourceError as error:
            refused.append(str(error))
            continue
        added, repeated = added + (each not in known), repeated + (each in known)
    return Merged(added, repeated, (*source.problems, *refused))
