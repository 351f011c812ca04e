"""Join files into one launch, counting repeated results once.

Handles repeated reports and tests, logs beside reports, logs without reports, jobs that failed
although no test did, and unnamed launches.
"""

import hashlib
import os
from collections import Counter
from collections.abc import Iterable
from pathlib import PurePath
from typing import BinaryIO, cast

import msgspec

from interlock.system.errors import SourceError
from interlock.system.test_output import TestCounts
from interlock.system.test_output.counts import add_counts, read_lines
from interlock.system.test_output.failures import TestLog
from interlock.system.text import plural
from interlock_rca.records import Failure, Job, Launch, build_failure
from interlock_rca.sources.build_facts import add_build_facts, filter_facts
from interlock_rca.sources.console_log import (
    KEPT_LINES,
    LogParts,
    find_break,
    find_log_beside,
)
from interlock_rca.sources.entry import HashingStream, SourceEntry
from interlock_rca.sources.envelope import FailureNamer
from interlock_rca.sources.job_log import (
    FAILED,
    SUCCEEDED,
    JobVerdict,
    Statement,
    Weight,
    select_evidence,
)
from interlock_rca.sources.junit import JUnitReport
from interlock_rca.sources.log_scan import scan_log

_Same = tuple[str, ...]


class LaunchBuilder:
    """Takes contents one by one; `build` returns their launch."""

    def __init__(self, name: str, job_exit: int | None = None) -> None:
        self.lost: list[str] = []
        """Contents that could not be read or understood: they may have held failures."""
        self.undecided: list[str] = []
        """Logs without a failed test that do not say how their job ended."""
        self._name = name
        self._job_exit = job_exit
        """The job's exit code, if the user gives it."""
        self._has_succeeded = job_exit == 0
        self._title = ""
        self._failures: list[Failure] = []
        self._notes: list[str] = []
        self._jobs: dict[str, Job] = {}
        self._properties: dict[str, str] = {}
        self._digests: dict[str, str] = {}
        self._places: list[SourceEntry] = []
        self._logs: list[SourceEntry] = []
        self._logs_beside: list[SourceEntry] = []
        self._reports = 0
        self._beside: dict[str, int] = {}
        """For each log beside a report, the number of its failures."""
        self._ids = FailureNamer()
        self._known: set[_Same] = set()

    def add_report(self, entry: SourceEntry) -> None:
        with entry.open() as opened:
            stream = HashingStream(opened)
            report = JUnitReport(cast("BinaryIO", stream), entry.name)
            failures = list(report)
            digest = stream.finish_digest()
        if not self._is_new(entry, digest):
            return
        self._reports += 1
        if log := find_log_beside(entry):
            self._logs_beside.append(log)
        self._notes += report.notes
        self.lost += report.damage
        self._title = self._title or report.title
        for name, value in report.properties.items():
            self._properties.setdefault(name, value)
        failures = _merge_attempts(failures, report)
        if report.flipped:
            flipped = plural(len(report.flipped), "failed test")
            self._notes.append(f"{entry.label}: {flipped} passed when run again")
        repeated = self._add_fresh(self._add_log_beside(entry, failures))
        if repeated:
            number = repeated.total()
            self._notes.append(f"{entry.label}: {number} failures stand in an earlier report too")
        self._add_jobs((_subtract_repeats(job, report) for job in report.jobs), repeated)

    def add_log(self, entry: SourceEntry) -> None:
        """Keep a log. It is read only if there are no reports: beside one, it is a help and not a
        source."""
        self._logs.append(entry)

    def add_failures(self, entry: SourceEntry, failures: Iterable[Failure]) -> None:
        with entry.open() as opened:
            if not self._is_new(entry, HashingStream(opened).finish_digest()):
                return
        found = list(failures)
        self._failures += [self._ids.keep_id(failure) for failure in found]
        tally = TestCounts(tests=len(found), failed=len(found))
        self._add_jobs([Job(name=entry.stem, status="FAILED", tally=tally)])

    def build(self) -> tuple[Launch, list[Failure], list[str]] | None:
        """Return the launch, its failures and notes; None if there was nothing to read."""
        self._use_logs()
        if self._job_exit and not self._failures:
            self._add_unexplained_exit(self._job_exit)
        if not self._digests:
            return None
        content = hashlib.sha256("\n".join(sorted(self._digests)).encode()).hexdigest()[:16]
        launch = self._build_launch(content)
        has_results = self._reports or self._failures or launch.tally.tests or launch.tally.failed
        if not (has_results or self._has_succeeded):
            self.lost.append(_format_not_understood(self._places))
            return None
        failures = [msgspec.structs.replace(failure, launch=content) for failure in self._failures]
        notes = [*self._notes, *self._note_logs()]
        if not failures:
            what = "failures" if launch.tally.tests else "tests"
            notes.append(f"there are no {what} in there")
        return launch, failures, notes

    def _use_logs(self) -> None:
        if self._reports:
            # A log that the user named together with reports belongs to all of them.
            for entry in self._logs:
                if entry.is_given:
                    self._failures = self._add_log_parts(entry, self._failures)
        has_tests = any(job.tally.tests for job in self._jobs.values())
        if not self._reports or not (self._failures or has_tests):
            for entry in self._logs:
                self._read_log(entry)
        elif not self._failures:
            self._judge_logs()

    def _note_logs(self) -> list[str]:
        if not self._beside:
            return []
        which = next(iter(self._beside)) if len(self._beside) == 1 else f"{len(self._beside)} logs"
        return [f"{which}: taken as the log of {plural(sum(self._beside.values()), 'failure')}"]

    def _build_launch(self, launch_id: str) -> Launch:
        jobs = tuple(self._jobs.values())
        launch = Launch(
            launch_id=launch_id,
            name=self._name or self._title or self._choose_name(),
            status="FAILED" if self._failures else "PASSED",
            started_at=min((job.started_at for job in jobs if job.started_at), default=""),
            ended_at=max((job.ended_at for job in jobs if job.ended_at), default=""),
            attributes=filter_facts(self._properties),
            tally=add_counts(job.tally for job in jobs),
            jobs=jobs,
        )
        return add_build_facts(launch, self._properties)

    def _choose_name(self) -> str:
        """Return the name of the only file, else that of the folder."""
        if len(self._places) == 1:
            return self._places[0].stem
        folders = {entry.folder.partition("!")[0] for entry in self._places}
        return PurePath(os.path.commonpath(map(os.path.abspath, folders))).stem or "launch"

    def _is_new(self, entry: SourceEntry, digest: str) -> bool:
        if digest in self._digests:
            self._notes.append(f"{entry.label}: the same as {self._digests[digest]}: read once")
            return False
        self._digests[digest] = entry.label
        self._places.append(entry)
        return True

    def _add_fresh(self, failures: Iterable[Failure]) -> Counter[str]:
        """Keep failures that are new; return the number of repeated ones by job."""
        fresh: list[_Same] = []
        repeated: Counter[str] = Counter()
        for failure in failures:
            same = _make_identity(failure)
            if same in self._known:
                repeated[failure.job] += 1
                continue
            fresh.append(same)
            self._failures.append(self._ids.assign_id(failure))
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
            tally = add_counts((old.tally if old else TestCounts(), added))
            status = "FAILED" if tally.failed else job.status
            self._jobs[job.name] = msgspec.structs.replace(old or job, tally=tally, status=status)

    def _add_log_beside(self, entry: SourceEntry, failures: list[Failure]) -> list[Failure]:
        """Return the failures; those without a log get their part of the log beside the report."""
        if all(failure.log for failure in failures):
            return failures
        log = find_log_beside(entry)
        return failures if log is None else self._add_log_parts(log, failures)

    def _add_log_parts(self, log: SourceEntry, failures: list[Failure]) -> list[Failure]:
        bare = [failure for failure in failures if not failure.log]
        try:
            if not bare or log.detect_kind() != "log":
                return failures
            with log.open() as stream:
                parts = LogParts(stream, bare)
        except SourceError as error:
            self._notes.append(f"skipped: {error}")
            return failures
        self._beside[log.label] = self._beside.get(log.label, 0) + len(bare)
        return [failure if failure.log else _add_log_part(failure, parts) for failure in failures]

    def _read_log(self, entry: SourceEntry) -> None:
        with entry.open() as opened:
            stream = HashingStream(opened)
            scan = scan_log(cast("BinaryIO", stream))
            digest = stream.finish_digest()
        if not self._is_new(entry, digest):
            return
        found = scan.tests
        failures = [build_failure(failure) for failure in found.failures]
        if not failures:
            failures = self._explain_log(entry, found.tally, scan.verdict)
        else:
            self._note_counts(entry, found, len(failures))
        self._failures += [
            self._ids.assign_id(msgspec.structs.replace(failure, job=failure.job or entry.stem))
            for failure in failures
        ]
        status = "FAILED" if found.tally.failed or failures else "PASSED"
        self._add_jobs([Job(name=entry.stem, status=status, tally=found.tally)])

    def _note_counts(self, entry: SourceEntry, found: TestLog, named: int) -> None:
        """Note why there are fewer failures than the log counts."""
        failed = plural(found.tally.failed, "failed test")
        if found.tally.failed > named + found.parents:
            one_by_one = f"names {named + found.parents} of them"
            self._notes.append(f"{entry.label}: counts {failed} and {one_by_one}")
        if found.parents:
            parts = "its parts and is" if found.parents == 1 else "their parts and are"
            only = f"{found.parents} failed only through {parts} left out"
            self._notes.append(f"{entry.label}: of {failed}, {only}")

    def _explain_log(
        self, entry: SourceEntry, tally: TestCounts, verdict: JobVerdict
    ) -> list[Failure]:
        """Return failures for a log that names no failed test: the run itself, or a step beside
        it."""
        if self._job_exit == 0 or verdict.status == SUCCEEDED:
            self._note_success(entry, verdict)
            return self._find_broken_run(entry, tally, verdict) if tally.failed else []
        if tally.failed or not tally.tests:
            return self._find_broken_run(entry, tally, verdict)
        if verdict.status == FAILED:
            return [self._build_job_failure(entry, verdict, "no test failed")]
        if not self._job_exit:
            self.undecided.append(_format_undecided(entry, tally, verdict))
        return []

    def _judge_logs(self) -> None:
        """Judge the logs of green reports: the reports prove only the tests, the log tells the
        rest."""
        logs = {entry.label: entry for entry in (*self._logs, *self._logs_beside)}
        for entry in logs.values() if self._job_exit != 0 else ():
            if entry.detect_kind() != "log":
                continue
            with entry.open() as opened:
                verdict = scan_log(opened).verdict
            if (
                verdict.decisive
                and verdict.status == FAILED
                and verdict.decisive.weight >= Weight.TOOL
            ):
                failure = self._build_job_failure(entry, verdict, "no test failed")
                self._failures.append(self._ids.assign_id(failure))
                self._add_jobs([Job(name=entry.stem, status="FAILED")])

    def _note_success(self, entry: SourceEntry, verdict: JobVerdict) -> None:
        self._has_succeeded = True
        if verdict.overruled:
            first = verdict.overruled[0]
            count = len(verdict.overruled)
            self._notes.append(
                f"{entry.label}: the job succeeded although line {first.line} says "
                f"{first.text[:200]!r}" + (f", and {count - 1} more like it" if count > 1 else "")
            )

    def _build_job_failure(self, entry: SourceEntry, verdict: JobVerdict, counted: str) -> Failure:
        """Return a failed step beside the tests as a failure: compiling, linting, deploying, …"""
        cause = cast("Statement", verdict.cause)
        with entry.open() as opened:
            lines = select_evidence(opened, verdict)
        self._notes.append(
            f"{entry.label}: {counted}, but the job failed ({cause.kind}, line {cause.line})"
        )
        return Failure(
            id="",
            test_name=f"{entry.stem} ({cause.kind})",
            message=cause.text,
            log="\n".join(lines),
            attributes={"kind": cause.kind, "tool": cause.tool},
            job=entry.stem,
        )

    def _add_unexplained_exit(self, code: int) -> None:
        message = f"the job ended with exit code {code}, and nothing that was read says why"
        name = self._name or (self._choose_name() if self._places else "job")
        failure = Failure(
            id="", test_name=f"{name} (job)", message=message, attributes={"kind": "job"}, job=name
        )
        self._failures.append(self._ids.assign_id(failure))
        self._add_jobs([Job(name=name, status="FAILED")])

    def _find_broken_run(
        self, entry: SourceEntry, tally: TestCounts, verdict: JobVerdict
    ) -> list[Failure]:
        """Return the run itself as a failure, if its log names no test but says that it broke."""
        counted = (
            f"{tally.failed} tests failed, but none by name" if tally.failed else "no test ran"
        )
        cause = verdict.cause
        # Early complaints in a long log did not end the job.
        start = max(0, cause.line - KEPT_LINES) if cause else 0
        with entry.open() as opened:
            found = find_break(read_lines(opened, start=start))
        if found is None and cause and not cause.is_count:
            return [self._build_job_failure(entry, verdict, counted)]
        if found is None:
            self._notes += [f"{entry.label}: {counted}"] if tally.failed else []
            return []
        self._notes.append(f"{entry.label}: {counted}; the run itself is taken as one failure")
        failure = Failure(
            id="",
            test_name=entry.stem,
            type=found.type,
            message=found.message,
            log="\n".join(found.lines),
            attributes={"kind": cause.kind, "tool": cause.tool} if cause else {},
        )
        return [failure]


def _format_undecided(entry: SourceEntry, tally: TestCounts, verdict: JobVerdict) -> str:
    one = tally.tests == 1
    tests = "1 test passed" if one else f"{tally.tests} tests ran and none failed"
    doubt = verdict.overruled[0] if verdict.overruled else None
    against = f" Line {doubt.line} says {doubt.text[:200]!r}." if doubt else ""
    return (
        f"Cannot tell whether the job succeeded: in {entry.label} {tests}, but no line says how "
        "the job itself ended. Looked for: the closing lines of CI systems and of build tools, "
        f"errors of compilers, linters and packagers.{against} To settle it, give the job's exit "
        "code with --job-exit CODE, its complete log, or its JUnit files."
    )


def _format_not_understood(logs: list[SourceEntry]) -> str:
    what = logs[0].label if len(logs) == 1 else f"each of the {len(logs)} logs"
    return (
        f"In {what} there is no test result that is understood: "
        "give JUnit XML, or the console output of a test run."
    )


def _merge_attempts(failures: Iterable[Failure], report: JUnitReport) -> list[Failure]:
    """Merge several results of one test into one failure with attempts; it is flaky if one
    passed."""
    again = {later for ids in report.attempts.values() for later in ids}
    merged = []
    for failure in failures:
        if failure.id in again:
            continue
        facts = dict(failure.attributes)
        is_flaky = failure.id in report.flipped
        attempts = 1 + len(report.attempts.get(failure.id, ())) + is_flaky
        facts |= {"attempts": str(attempts)} if attempts > 1 else {}
        facts |= {"flaky": "true"} if is_flaky else {}
        merged.append(msgspec.structs.replace(failure, attributes=facts))
    return merged


def _subtract_repeats(job: Job, report: JUnitReport) -> Job:
    """Return the job's counts with each test once, however often it ran."""
    more = report.repeats.get(job.name, TestCounts())
    tests, failed = job.tally.tests - more.tests, job.tally.failed - more.failed
    tally = msgspec.structs.replace(job.tally, tests=tests, failed=failed)
    return msgspec.structs.replace(job, tally=tally)


def _add_log_part(failure: Failure, parts: LogParts) -> Failure:
    text, is_part = parts.get_part(failure)
    truncated = failure.log_truncated or is_part
    return msgspec.structs.replace(failure, log=text, log_truncated=truncated)


def _make_identity(failure: Failure) -> _Same:
    texts = failure.message, failure.stack
    mark = hashlib.sha256("\0".join(texts).encode("utf-8", "replace")).hexdigest()
    return failure.job, failure.class_name, failure.test_name, failure.at, mark
