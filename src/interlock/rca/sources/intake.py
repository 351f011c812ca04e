"""Everything a user names becomes launches with failures: reports, folders, zips, logs, servers.

Knows which reader a content needs, and that files without a launch of their own form one together.
What cannot be read is said and passed over; only when nothing is left is it an error.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from interlock.rca.failure import Failure
from interlock.rca.launch import Launch
from interlock.rca.sources.envelope import read_envelope
from interlock.rca.sources.failure_ids import FailureIds
from interlock.rca.sources.failure_lines import read_failures
from interlock.rca.sources.gathering import LaunchBuilder
from interlock.rca.sources.leaf import SourceEntry
from interlock.rca.sources.reportportal.project import ReportPortal
from interlock.rca.sources.reportportal.rp_address import (
    LaunchWord,
    PortalAddress,
    address,
    launch_word,
)
from interlock.rca.sources.reportportal.rp_launch import read_launch
from interlock.rca.sources.searching import leaves_of
from interlock.system.errors import SourceError
from interlock.system.test_output.ci_lines import lines_of


class SourceLaunch(msgspec.Struct, frozen=True):
    """One launch with its failures, and what there is to say about the reading."""

    launch: Launch
    failures: list[Failure]
    notes: list[str]


def read_sources(
    words: Sequence[str],
    *,
    name: str = "",
    environ: Mapping[str, str] | None = None,
    key_file: Path | None = None,
    portal: Callable[[PortalAddress], ReportPortal] = ReportPortal,
) -> list[SourceLaunch]:
    """The launches that the words name. Files without a launch of their own are one launch, which
    is called `name`. SourceError if there is nothing to read."""
    reading = _Reading(name)
    for word in words:
        place = launch_word(word)
        if place is None:
            reading.take(word)
        else:
            where = address(environ or {}, url=place.url, project=place.project, key_file=key_file)
            reading.ask(portal(where), place)
    return reading.done()


class _Reading:
    def __init__(self, name: str) -> None:
        self._intakes: list[SourceLaunch] = []
        self._gathering = LaunchBuilder(name)
        self._notes: list[str] = []
        self._passed_over: list[str] = []
        """What the search itself left out: members of archives, files beyond the bound."""
        self._problems: list[str] = []
        self._seen: set[str] = set()

    def ask(self, portal: ReportPortal, place: LaunchWord) -> None:
        with portal:
            self._keep(read_launch(portal, place.launch))

    def take(self, word: str) -> None:
        leaves, notes = leaves_of(word)
        self._notes += notes
        self._passed_over += notes
        foreign = 0
        for leaf in leaves:
            if leaf.label in self._seen:
                continue
            self._seen.add(leaf.label)
            try:
                foreign += not self._read(leaf)
            except SourceError as error:
                self._problems.append(str(error))
        if foreign:
            self._notes.append(f"{word}: {foreign} XML files are no JUnit reports: skipped")

    def done(self) -> list[SourceLaunch]:
        gathered = self._gathering.done()
        if gathered:
            launch, failures, notes = gathered
            self._intakes.append(SourceLaunch(launch, failures, notes))
        self._refuse_doubt([*self._problems, *self._passed_over, *self._gathering.lost])
        said = [*self._notes, *(f"skipped: {each}" for each in self._problems)]
        first, *others = self._intakes
        first = msgspec.structs.replace(first, notes=[*said, *first.notes])
        return [
            msgspec.structs.replace(each, notes=_bounded_notes(each.notes))
            for each in (first, *others)
        ]

    def _refuse_doubt(self, lost: list[str]) -> None:
        """That nothing failed is only said where everything was read."""
        if any(intake.failures for intake in self._intakes):
            return
        if not self._intakes:
            raise SourceError([*lost, *self._notes, _NOTHING][0])
        failed = sum(intake.launch.tally.failed for intake in self._intakes)
        if failed:
            is_told = any(intake.launch.project for intake in self._intakes)
            advice = "check what the token may see" if is_told else "give a report that names them"
            raise SourceError(f"{failed} failed there, but nothing tells which tests: {advice}.")
        if lost:
            raise SourceError(f"No failure was found, but not all could be read: {lost[0]}")

    def _read(self, leaf: SourceEntry) -> bool:
        """Whether it was something of ours."""
        kind = leaf.kind()
        if kind == "junit":
            self._gathering.report(leaf)
        elif kind == "log":
            self._gathering.log(leaf)
        elif kind == "envelope" and leaf.is_given:
            with leaf.open() as stream:
                self._keep(read_envelope(stream.read(1 << 27), leaf.label))
        elif kind == "failures":
            self._lines(leaf)
        elif kind == "xml" and not leaf.is_given:
            return False
        elif kind == "zip" and not leaf.is_given:
            self._notes.append(f"{leaf.label}: an archive in an archive is not opened; unpack it")
        elif leaf.is_given:
            raise SourceError(f"{leaf.label} {_ODD[kind]}.")
        return True

    def _lines(self, leaf: SourceEntry) -> None:
        with leaf.open() as stream:
            failures, notes = read_failures(lines_of(stream, 1 << 26), leaf.label)
        self._notes += notes
        loose = [each for each in failures if not each.launch]
        if loose:
            self._gathering.failures(leaf, loose)
        for launch_id in dict.fromkeys(each.launch for each in failures if each.launch):
            ids = FailureIds()
            own = [ids.keep(each) for each in failures if each.launch == launch_id]
            launch = Launch(launch_id=launch_id, name=launch_id, status="FAILED")
            self._keep((launch, own, []))

    def _keep(self, read: tuple[Launch, list[Failure], list[str]]) -> None:
        launch, failures, notes = read
        if not failures:
            notes = [*notes, f"launch {launch.launch_id}: it has no failures"]
        if any(each.launch.launch_id == launch.launch_id for each in self._intakes):
            self._notes.append(f"launch {launch.launch_id} was named twice: read once")
            return
        self._intakes.append(SourceLaunch(launch, failures, notes))


def _bounded_notes(notes: list[str]) -> list[str]:
    left = len(notes) - _MOST_NOTES
    return [*notes[:_MOST_NOTES], f"and {left} more such notes"] if left > 0 else notes


_MOST_NOTES: Final = 100
_NOTHING: Final = (
    "There is no report and no log in there: "
    "give JUnit XML or a log, a folder or a zip of them, an envelope, or rp:LAUNCH_ID."
)
_ODD: dict[str, Any] = {
    "empty": "is empty",
    "binary": "is neither a report nor a text: give JUnit XML or a log",
    "xml": "is XML, but no JUnit report: it has neither <testsuite> nor <testcase>",
    "zip": "is an archive in an archive: unpack it first",
    "packed": "is packed: unpack it first, or give a zip",
    "envelope": "is JSON of an unknown form",
}
