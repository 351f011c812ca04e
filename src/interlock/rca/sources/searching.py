"""From a user's word to what there is to read: a file, a folder, a glob, a zip.

Knows folders and their hidden corners. Refuses to read: what something is, others find out.
"""

import glob
import os
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import BinaryIO, Final, cast

from interlock.rca.sources import archive
from interlock.rca.sources.beside import is_log_name
from interlock.rca.sources.leaf import SourceEntry
from interlock.system.errors import SourceError

_MOST_FILES: Final = 50_000
_PASSED_OVER: Final = ("node_modules", "__pycache__", "__MACOSX")


def leaves_of(word: str) -> tuple[list[SourceEntry], list[str]]:
    """What the word names, in a stable order, and notes. SourceError if it names nothing."""
    search = _Search()
    if os.path.isdir(word):  # noqa: PTH112  never raises, however odd the word
        return search.folder(Path(word))
    if not os.path.exists(word) and glob.has_magic(word):  # noqa: PTH110
        return search.matching(word)
    return search.file(Path(word))


class _Search:
    """One search; each folder is asked for its logs once."""

    def __init__(self) -> None:
        self._logs: dict[Path, Mapping[str, SourceEntry]] = {}

    def matching(self, word: str) -> tuple[list[SourceEntry], list[str]]:
        found = _each_once(glob.glob(word, recursive=True))  # noqa: PTH207  may be absolute
        leaves: list[SourceEntry] = []
        notes: list[str] = []
        for path in map(Path, found):
            more, said = self.folder(path) if path.is_dir() else self.file(path)
            leaves += more
            notes += said
        if not found:
            raise SourceError(f"{word} matches no file: check the pattern, and quote it.")
        return leaves, notes

    def file(self, path: Path) -> tuple[list[SourceEntry], list[str]]:
        try:
            mode = path.stat().st_mode
        except (OSError, ValueError) as error:
            reason = "is not there" if isinstance(error, FileNotFoundError) else "cannot be read"
            raise SourceError(
                f"{str(path)[:300]} {reason}: "
                "give a file, a folder, a glob, a zip, or rp:LAUNCH_ID."
            ) from None
        if not stat.S_ISREG(mode):
            raise SourceError(f"{path} is no regular file: save its content to one and give that.")
        leaf = self._leaf(path, is_given=True)
        with leaf.open() as stream:
            is_zip = stream.read(4) in (b"PK\x03\x04", b"PK\x05\x06")
        return archive.members(path, str(path)) if is_zip else ([leaf], [])

    def folder(self, folder: Path) -> tuple[list[SourceEntry], list[str]]:
        leaves: list[SourceEntry] = []
        notes: list[str] = []
        for path in _walk(folder):
            if len(leaves) >= _MOST_FILES:
                return leaves, [f"{folder}: only its first {_MOST_FILES:,} files were looked at"]
            if path.suffix.lower() == ".zip":
                more, said = _reports_in(path)
                leaves += more
                notes += said
            else:
                leaves.append(self._leaf(path, is_given=False))
        return leaves, notes

    def _leaf(self, path: Path, *, is_given: bool) -> SourceEntry:
        return SourceEntry(
            label=str(path),
            folder=str(path.parent),
            name=path.name,
            open=lambda: _opened(path),
            neighbours=lambda: self._logs_in(path.parent),
            is_given=is_given,
        )

    def _logs_in(self, folder: Path) -> Mapping[str, SourceEntry]:
        if folder not in self._logs:
            try:
                found = sorted(each for each in folder.iterdir() if is_log_name(each.name))
            except OSError:
                found = []
            self._logs[folder] = {
                each.name: self._leaf(each, is_given=False) for each in found if each.is_file()
            }
        return self._logs[folder]


def _reports_in(path: Path) -> tuple[list[SourceEntry], list[str]]:
    """A zip that nobody named counts if it holds reports: traces and packages are zips, too."""
    try:
        leaves, notes = archive.members(path, str(path))
    except SourceError as error:
        return [], [str(error)]
    has_reports = any(leaf.name.lower().endswith(".xml") for leaf in leaves)
    return (leaves, notes) if has_reports else ([], [])


def _each_once(paths: list[str]) -> list[str]:
    """Links that lead to each other make many names for one thing: the shortest is kept."""
    by_length = sorted(paths, key=lambda path: (-len(path), path))
    return sorted({os.path.realpath(path): path for path in by_length}.values())


def _walk(folder: Path) -> Iterator[Path]:
    for at, folders, names in os.walk(folder):
        folders[:] = sorted(
            name for name in folders if not name.startswith(".") and name not in _PASSED_OVER
        )
        for name in sorted(names):
            path = Path(at, name)
            fits = path.suffix.lower() in (".xml", ".zip") or is_log_name(name)
            if fits and not name.startswith(".") and path.is_file():
                yield path


def _opened(path: Path) -> BinaryIO:
    try:
        return cast("BinaryIO", path.open("rb"))
    except OSError as error:
        raise SourceError(f"{path} cannot be read: {error.strerror}.") from None
