"""Files that form one launch: what they tell, put together and told once.

Knows repeated reports and repeated tests, logs beside reports, and how a launch is named when
nobody names it. Refuses to know where files come from.
"""

import hashlib
import os
from collections import Counter
from collections.abc import Iterable
from io import BufferedReader
from pathlib import PurePath
from typing import BinaryIO, cast

import msgspec

from interlock.rca.failure import Failure
from interlock.rca.launch import Job, Launch, TestCounts
from interlock.rca.sources.beside import LogParts, log_beside
from interlock.rca.sources.broken_run import find_break
from interlock.rca.sources.build_facts import harmless_facts, with_build_facts
from interlock.rca.sources.failure_ids import FailureIds
from interlock.rca.sources.junit import read_junit
from interlock.rca.sources.leaf import Hashing, SourceEntry
from interlock.system.errors import SourceError
from interlock.system.test_output.ci_lines import lines_of
from interlock.system.test_output.ci_log import read_log

_Same = tuple[str, ...]


class LaunchBuilder:
    """Takes contents one by one; `done` makes the launch of them."""

    def __init__(self, name: str) -> None:
        self.lost: list[str] = []
        """What could not be read, or was not understood: failures may have been in there."""
        self._name = name
        self._title = ""
        self._failures: list[Failure] = []
        self._notes: list[str] = []
        self._jobs: dict[str, Job] = {}
        self._properties: dict[str, str] = {}
        self._digests: dict[str, str] = {}
        self._places: list[SourceEntry] = []
        self._logs: list[SourceEntry] = []
        self._reports = 0
        self._beside: dict[str, int] = {}
        """Of each log that lay beside a report, how many failures it is the log of."""
        self._ids = FailureIds()
        self._known: set[_Same] = set()

    def report(self, leaf: SourceEntry) -> None:
        with leaf.open() as opened:
            stream = Hashing(opened)
            report = read_junit(cast("BinaryIO", stream), leaf.name)
            failures = list(report)
            digest = stream.digest()
        if not self._is_new(leaf, digest):
            return
        self._reports += 1
        self._notes += report.notes
        self.lost += report.damage
        self._title = self._title or report.title
        for name, value in report.properties.items():
            self._properties.setdefault(name, value)
        flaky = report.passed_later
        failures = [_marked(each) if each.id in flaky else each for each in failures]
        if flaky:
            self._notes.append(f"{leaf.label}: {len(flaky)} failed tests passed when run again")
        repeated = self._add(self._with_log(leaf, failures))
        if repeated:
            number = repeated.total()
            self._notes.append(f"{leaf.label}: {number} failures stand in an earlier report too")
        self._add_jobs(report.jobs, repeated)

    def log(self, leaf: SourceEntry) -> None:
        """Read only if there are no reports: beside one, a log is a help and not a source."""
        self._logs.append(leaf)

    def failures(self, leaf: SourceEntry, failures: Iterable[Failure]) -> None:
        with leaf.open() as opened:
            if not self._is_new(leaf, Hashing(opened).digest()):
                return
        found = list(failures)
        self._failures += [self._ids.keep(each) for each in found]
        tally = TestCounts(tests=len(found), failed=len(found))
        self._add_jobs([Job(name=leaf.stem, status="FAILED", tally=tally)])

    def done(self) -> tuple[Launch, list[Failure], list[str]] | None:
        """The launch, its failures and notes; None if nothing was there to read."""
        if self._reports:
            self._take_given_logs()
        if not self._reports or not (self._failures or self._tests):
            for leaf in self._logs:
                self._read_log(leaf)
        if not self._digests:
            return None
        content = hashlib.sha256("\n".join(sorted(self._digests)).encode()).hexdigest()[:16]
        launch = self._launch(content)
        if not (self._reports or self._failures or launch.tally.tests or launch.tally.failed):
            self.lost.append(_not_understood(self._places))
            return None
        failures = [msgspec.structs.replace(each, launch=content) for each in self._failures]
        notes = [*self._notes, *self._logs_taken()]
        if not failures:
            what = "failures" if launch.tally.tests else "tests"
            notes.append(f"there are no {what} in there")
        return launch, failures, notes

    def _logs_taken(self) -> list[str]:
        if not self._beside:
            return []
        which = next(iter(self._beside)) if len(self._beside) == 1 else f"{len(self._beside)} logs"
        return [f"{which}: taken as the log of {sum(self._beside.values())} failures"]

    def _launch(self, launch_id: str) -> Launch:
        jobs = tuple(self._jobs.values())
        launch = Launch(
            launch_id=launch_id,
            name=self._name or self._title or self._own_name(),
            status="FAILED" if self._failures else "PASSED",
            started_at=min((job.started_at for job in jobs if job.started_at), default=""),
            ended_at=max((job.ended_at for job in jobs if job.ended_at), default=""),
            attributes=harmless_facts(self._properties),
            tally=_sum(job.tally for job in jobs),
            jobs=jobs,
        )
        return with_build_facts(launch, self._properties)

    def _own_name(self) -> str:
        """The file's name if there is one file, else the name of the folder."""
        if len(self._places) == 1:
            return self._places[0].stem
        folders = {leaf.folder.partition("!")[0] for leaf in self._places}
        return PurePath(os.path.commonpath(map(os.path.abspath, folders))).stem or "launch"

    def _is_new(self, leaf: SourceEntry, digest: str) -> bool:
        if digest in self._digests:
            self._notes.append(f"{leaf.label}: the same as {self._digests[digest]}: read once")
            return False
        self._digests[digest] = leaf.label
        self._places.append(leaf)
        return True

    def _add(self, failures: Iterable[Failure]) -> Counter[str]:
        """Keep the failures that no earlier file told; the numbers of the others, by job."""
        fresh: list[_Same] = []
        repeated: Counter[str] = Counter()
        for failure in failures:
            same = _same(failure)
            if same in self._known:
                repeated[failure.job] += 1
                continue
            fresh.append(same)
            self._failures.append(self._ids.name(failure))
        self._known.update(fresh)
        return repeated

    def _add_jobs(self, jobs: Iterable[Job], repeated: Counter[str] | None = None) -> None:
        for job in jobs:
            old, again = self._jobs.get(job.name), repeated[job.name] if repeated else 0
            if old and again and old.tally == job.tally:
                continue  # the same job in another report
            added = TestCounts(
                tests=job.tally.tests - again,
                failed=job.tally.failed - again,
                skipped=job.tally.skipped,
            )
            tally = _sum((old.tally if old else TestCounts(), added))
            status = "FAILED" if tally.failed else job.status
            self._jobs[job.name] = msgspec.structs.replace(old or job, tally=tally, status=status)

    def _with_log(self, leaf: SourceEntry, failures: list[Failure]) -> list[Failure]:
        """The failures; those without a log get their part of the one that lies beside."""
        if all(each.log for each in failures):
            return failures
        log = log_beside(leaf)
        return failures if log is None else self._from_log(log, failures)

    def _from_log(self, log: SourceEntry, failures: list[Failure]) -> list[Failure]:
        bare = [each for each in failures if not each.log]
        try:
            if not bare or log.kind() != "log":
                return failures
            with log.open() as stream:
                parts = LogParts(stream, bare)
        except SourceError as error:
            self._notes.append(f"skipped: {error}")
            return failures
        self._beside[log.label] = self._beside.get(log.label, 0) + len(bare)
        return [each if each.log else _with_part(each, parts) for each in failures]

    def _take_given_logs(self) -> None:
        """A log that the user named together with reports belongs to all of them."""
        for leaf in self._logs:
            if leaf.is_given:
                self._failures = self._from_log(leaf, self._failures)

    @property
    def _tests(self) -> int:
        return sum(job.tally.tests for job in self._jobs.values())

    def _read_log(self, leaf: SourceEntry) -> None:
        with leaf.open() as opened:
            stream = Hashing(opened)
            found = read_log(lines_of(cast("BinaryIO", BufferedReader(stream, 1 << 16))))
            digest = stream.digest()
        if not self._is_new(leaf, digest):
            return
        failures = found.failures
        if not failures and (found.tally.failed or not found.tally.tests):
            failures = self._broken(leaf, found.tally)
        elif found.tally.failed > len(failures):
            counts = f"counts {found.tally.failed} failed tests and names {len(failures)} of them"
            self._notes.append(f"{leaf.label}: {counts}")
        self._failures += [
            self._ids.name(msgspec.structs.replace(each, job=each.job or leaf.stem))
            for each in failures
        ]
        status = "FAILED" if found.tally.failed or failures else "PASSED"
        self._add_jobs([Job(name=leaf.stem, status=status, tally=found.tally)])

    def _broken(self, leaf: SourceEntry, tally: TestCounts) -> list[Failure]:
        """The run itself as one failure, where its log names no test but says that it broke."""
        with leaf.open() as opened:
            found = find_break(lines_of(opened))
        counted = (
            f"{tally.failed} tests failed, but none by name" if tally.failed else "no test ran"
        )
        if found is None:
            self._notes += [f"{leaf.label}: {counted}"] if tally.failed else []
            return []
        self._notes.append(f"{leaf.label}: {counted}; the run itself is taken as one failure")
        log = "\n".join(found.lines)
        return [
            Failure(id="", test_name=leaf.stem, type=found.type, message=found.message, log=log)
        ]


def _not_understood(logs: list[SourceEntry]) -> str:
    what = logs[0].label if len(logs) == 1 else f"each of the {len(logs)} logs"
    return (
        f"In {what} there is no test result that is understood: "
        "give JUnit XML, or the console output of a test run."
    )


def _marked(failure: Failure) -> Failure:
    return msgspec.structs.replace(failure, attributes={**failure.attributes, "flaky": "true"})


def _with_part(failure: Failure, parts: LogParts) -> Failure:
    text, is_part = parts.part(failure)
    truncated = failure.log_truncated or is_part
    return msgspec.structs.replace(failure, log=text, log_truncated=truncated)


def _same(failure: Failure) -> _Same:
    told = failure.message, failure.stack
    mark = hashlib.sha256("\0".join(told).encode("utf-8", "replace")).hexdigest()
    return failure.job, failure.class_name, failure.test_name, failure.at, mark


def _sum(tallies: Iterable[TestCounts]) -> TestCounts:
    found = list(tallies)
    return TestCounts(
        tests=sum(each.tests for each in found),
        failed=sum(each.failed for each in found),
        skipped=sum(each.skipped for each in found),
    )
