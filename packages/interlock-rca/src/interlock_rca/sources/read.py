"""Read everything that a user names into launches: reports, folders, zips, logs, servers.

Finds the files that a word means (a path, a folder, a glob, a zip), chooses the reader by content,
and joins files without a launch of their own into one. Unreadable files are noted and skipped; it
is an error only when nothing is left.
"""

import glob
import os
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, Final, cast

import msgspec

from interlock.system.errors import SourceError
from interlock.system.test_output.counts import read_lines
from interlock_rca.records import Failure, Launch
from interlock_rca.sources import entry
from interlock_rca.sources.console_log import is_log_name
from interlock_rca.sources.entry import SourceEntry
from interlock_rca.sources.envelope import FailureNamer, read_envelope, read_failures
from interlock_rca.sources.launch import LaunchBuilder
from interlock_rca.sources.reportportal.client import (
    LaunchReference,
    PortalAddress,
    find_address,
    parse_launch_word,
)
from interlock_rca.sources.reportportal.launch import read_launch
from interlock_rca.sources.reportportal.project import ReportPortal

_MOST_FILES: Final = 50_000
_PASSED_OVER: Final = ("node_modules", "__pycache__", "__MACOSX")


def find_entries(word: str) -> tuple[list[SourceEntry], list[str]]:
    """Return the contents that the word names, in a stable order, and notes. Raise SourceError if
    there are none."""
    search = _EntrySearch()
    if os.path.isdir(word):  # noqa: PTH112  never raises, however odd the word
        return search.find_in_folder(Path(word))
    if not os.path.exists(word) and glob.has_magic(word):  # noqa: PTH110
        return search.find_matching(word)
    return search.find_file(Path(word))


class _EntrySearch:
    """One search, which lists each folder's logs once."""

    def __init__(self) -> None:
        self._logs: dict[Path, Mapping[str, SourceEntry]] = {}

    def find_matching(self, word: str) -> tuple[list[SourceEntry], list[str]]:
        found = _drop_duplicates(glob.glob(word, recursive=True))  # noqa: PTH207  may be absolute
        entries: list[SourceEntry] = []
        notes: list[str] = []
        for path in map(Path, found):
            added, added_notes = (
                self.find_in_folder(path) if path.is_dir() else self.find_file(path)
            )
            entries += added
            notes += added_notes
        if not found:
            raise SourceError(f"{word} matches no file: check the pattern, and quote it.")
        return entries, notes

    def find_file(self, path: Path) -> tuple[list[SourceEntry], list[str]]:
        try:
            mode = path.stat().st_mode
        except (OSError, ValueError) as error:
            reason = "does not exist" if isinstance(error, FileNotFoundError) else "cannot be read"
            raise SourceError(
                f"{str(path)[:300]} {reason}: "
                "give a file, a folder, a glob, a zip, or rp:LAUNCH_ID."
            ) from None
        if not stat.S_ISREG(mode):
            raise SourceError(f"{path} is not a regular file: save its content and give that file.")
        source = self._make_entry(path, is_given=True)
        with source.open() as stream:
            is_zip = stream.read(4) in (b"PK\x03\x04", b"PK\x05\x06")
        return entry.list_members(path, str(path)) if is_zip else ([source], [])

    def find_in_folder(self, folder: Path) -> tuple[list[SourceEntry], list[str]]:
        entries: list[SourceEntry] = []
        notes: list[str] = []
        for path in _walk_folder(folder):
            if len(entries) >= _MOST_FILES:
                return entries, [f"{folder}: only its first {_MOST_FILES:,} files were looked at"]
            if path.suffix.lower() == ".zip":
                added, added_notes = _find_reports(path)
                entries += added
                notes += added_notes
            else:
                entries.append(self._make_entry(path, is_given=False))
        return entries, notes

    def _make_entry(self, path: Path, *, is_given: bool) -> SourceEntry:
        return SourceEntry(
            label=str(path),
            folder=str(path.parent),
            name=path.name,
            open=lambda: _open_file(path),
            neighbours=lambda: self._find_logs(path.parent),
            is_given=is_given,
        )

    def _find_logs(self, folder: Path) -> Mapping[str, SourceEntry]:
        if folder not in self._logs:
            try:
                found = sorted(path for path in folder.iterdir() if is_log_name(path.name))
            except OSError:
                found = []
            self._logs[folder] = {
                path.name: self._make_entry(path, is_given=False)
                for path in found
                if path.is_file()
            }
        return self._logs[folder]


def _find_reports(path: Path) -> tuple[list[SourceEntry], list[str]]:
    """Return the reports of a zip that nobody named: traces and packages are zips too."""
    try:
        entries, notes = entry.list_members(path, str(path))
    except SourceError as error:
        return [], [str(error)]
    has_reports = any(member.name.lower().endswith(".xml") for member in entries)
    return (entries, notes) if has_reports else ([], [])


def _drop_duplicates(paths: list[str]) -> list[str]:
    """Drop duplicate names made by links; keep the shortest."""
    by_length = sorted(paths, key=lambda path: (-len(path), path))
    return sorted({os.path.realpath(path): path for path in by_length}.values())


def _walk_folder(folder: Path) -> Iterator[Path]:
    for at, folders, names in os.walk(folder):
        folders[:] = sorted(
            name for name in folders if not name.startswith(".") and name not in _PASSED_OVER
        )
        for name in sorted(names):
            path = Path(at, name)
            fits = path.suffix.lower() in (".xml", ".zip") or is_log_name(name)
            if fits and not name.startswith(".") and path.is_file():
                yield path


def _open_file(path: Path) -> BinaryIO:
    try:
        return cast("BinaryIO", path.open("rb"))
    except OSError as error:
        raise SourceError(f"{path} cannot be read: {error.strerror}.") from None


class SourceLaunch(msgspec.Struct, frozen=True):
    """One launch with its failures, and notes about the reading."""

    launch: Launch
    failures: list[Failure]
    notes: list[str]


def read_sources(
    words: Sequence[str],
    *,
    name: str = "",
    job_exit: int | None = None,
    environ: Mapping[str, str] | None = None,
    key_file: Path | None = None,
    portal: Callable[[PortalAddress], ReportPortal] = ReportPortal,
) -> list[SourceLaunch]:
    """Return the launches that the words name. Files without a launch of their own form one launch
    called `name`; `job_exit` is its job's exit code. Raise SourceError if there is nothing to read,
    or if nothing failed but parts were unreadable."""
    reading = _SourceReader(name, job_exit)
    for word in words:
        place = parse_launch_word(word)
        if place is None:
            reading.read_word(word)
        else:
            where = find_address(
                environ or {}, url=place.url, project=place.project, key_file=key_file
            )
            reading.read_portal(portal(where), place)
    return reading.finish()


class _SourceReader:
    def __init__(self, name: str, job_exit: int | None) -> None:
        self._launches: list[SourceLaunch] = []
        self._builder = LaunchBuilder(name, job_exit)
        self._notes: list[str] = []
        self._passed_over: list[str] = []
        """The contents that the search left out: members of archives, files beyond the bound."""
        self._problems: list[str] = []
        self._seen: set[str] = set()

    def read_portal(self, portal: ReportPortal, place: LaunchReference) -> None:
        with portal:
            self._add_launch(read_launch(portal, place.launch))

    def read_word(self, word: str) -> None:
        entries, notes = find_entries(word)
        self._notes += notes
        self._passed_over += notes
        foreign = 0
        for source in entries:
            if source.label in self._seen:
                continue
            self._seen.add(source.label)
            try:
                foreign += not self._read_entry(source)
            except SourceError as error:
                self._problems.append(str(error))
        if foreign:
            self._notes.append(f"{word}: {foreign} XML files are not JUnit reports: skipped")

    def finish(self) -> list[SourceLaunch]:
        gathered = self._builder.build()
        if gathered:
            launch, failures, notes = gathered
            self._launches.append(SourceLaunch(launch, failures, notes))
        self._check_complete([*self._problems, *self._passed_over, *self._builder.lost])
        all_notes = [*self._notes, *(f"skipped: {item}" for item in self._problems)]
        first, *others = self._launches
        first = msgspec.structs.replace(first, notes=[*all_notes, *first.notes])
        return [
            msgspec.structs.replace(item, notes=_limit_notes(item.notes))
            for item in (first, *others)
        ]

    def _check_complete(self, lost: list[str]) -> None:
        """Raise SourceError unless everything was read: only then can nothing have failed."""
        if any(intake.failures for intake in self._launches):
            return
        if not self._launches:
            raise SourceError([*lost, *self._notes, _NOTHING][0])
        failed = sum(intake.launch.tally.failed for intake in self._launches)
        if failed:
            has_project = any(intake.launch.project for intake in self._launches)
            advice = (
                "check what the token may see" if has_project else "give a report that names them"
            )
            raise SourceError(f"{failed} tests failed, but nothing says which: {advice}.")
        if lost:
            raise SourceError(f"No failure was found, but not everything could be read: {lost[0]}")
        if self._builder.undecided:
            raise SourceError(self._builder.undecided[0])
        for launch in (intake.launch for intake in self._launches):
            if launch.status not in _HARMLESS_STATUSES:
                raise SourceError(
                    f"No failed test was found, but launch {launch.launch_id} is {launch.status}: "
                    "look at it where it ran, or read it again when it has finished."
                )

    def _read_entry(self, source: SourceEntry) -> bool:
        """Read a content; return False if it is none of ours."""
        kind = source.detect_kind()
        if kind == "junit":
            self._builder.add_report(source)
        elif kind == "log":
            self._builder.add_log(source)
        elif kind == "envelope" and source.is_given:
            with source.open() as stream:
                self._add_launch(read_envelope(stream.read(1 << 27), source.label))
        elif kind == "failures":
            self._read_lines(source)
        elif kind == "xml" and not source.is_given:
            return False
        elif kind == "zip" and not source.is_given:
            self._notes.append(f"{source.label}: an archive in an archive is not opened; unpack it")
        elif source.is_given:
            raise SourceError(f"{source.label} {_ODD[kind]}.")
        return True

    def _read_lines(self, source: SourceEntry) -> None:
        with source.open() as stream:
            failures, notes = read_failures(read_lines(stream, 1 << 26), source.label)
        self._notes += notes
        loose = [failure for failure in failures if not failure.launch]
        if loose:
            self._builder.add_failures(source, loose)
        for launch_id in dict.fromkeys(failure.launch for failure in failures if failure.launch):
            ids = FailureNamer()
            own = [ids.keep_id(failure) for failure in failures if failure.launch == launch_id]
            launch = Launch(launch_id=launch_id, name=launch_id, status="FAILED")
            self._add_launch((launch, own, []))

    def _add_launch(self, read: tuple[Launch, list[Failure], list[str]]) -> None:
        launch, failures, notes = read
        if not failures:
            notes = [*notes, f"launch {launch.launch_id}: it has no failures"]
        if any(known.launch.launch_id == launch.launch_id for known in self._launches):
            self._notes.append(f"launch {launch.launch_id} was named twice: read once")
            return
        self._launches.append(SourceLaunch(launch, failures, notes))


def _limit_notes(notes: list[str]) -> list[str]:
    left = len(notes) - _MOST_NOTES
    return [*notes[:_MOST_NOTES], f"and {left} more such notes"] if left > 0 else notes


_MOST_NOTES: Final = 100
_HARMLESS_STATUSES: Final = ("", "PASSED", "SKIPPED")
_NOTHING: Final = (
    "No report and no log was found: "
    "give JUnit XML or a log, a folder or a zip of them, an envelope, or rp:LAUNCH_ID."
)
_ODD: dict[str, Any] = {
    "empty": "is empty",
    "binary": "is neither a report nor text: give JUnit XML or a log",
    "xml": "is XML, but not a JUnit report: it has neither <testsuite> nor <testcase>",
    "zip": "is an archive in an archive: unpack it first",
    "packed": "is compressed: unpack it first, or give a zip",
    "envelope": "is JSON of an unknown form",
}
