"""Read the results of a job, passed tests included, into the memory.

A test that appears several times in the reports, or is marked as rerun, is one test with several
tries. A failure keeps only its fingerprint and a short excerpt without secrets, because anybody who
may open a pull request may read a CI cache.
"""

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import BinaryIO, Final, cast

import msgspec

from interlock.system.errors import SourceError
from interlock.system.secrets import mask_secrets, mask_tokens
from interlock.system.text import clean_text, plural
from interlock.system.time import parse_timestamp
from interlock_history import segment
from interlock_history.segment import FAIL, FLIP, PASS, SKIP, FailedTest, Segment
from interlock_history.store import HistoryStore
from interlock_rca import test_names as names
from interlock_rca.analyst.masking import compute_fingerprint
from interlock_rca.ci_run import CiRun
from interlock_rca.records import Failure
from interlock_rca.sources.entry import HashingStream
from interlock_rca.sources.junit import JUnitReport
from interlock_rca.sources.junit_elements import JUnitCase, JUnitSuite
from interlock_rca.sources.read import find_entries

MOST_EXCERPTS: Final = 2_000
"""The most failures of one job that keep an excerpt and a fingerprint: a job that fails in
thousands of tests has one cause, and the memory must not grow with it."""
_LONGEST_EXCERPT: Final = 400
_MOST_TRIES: Final = 20
_MOST_TESTS: Final = 2_000_000
_OLDEST: Final = 2 * 365 * 86_400
_OLDEST_IN_CI: Final = 3 * 86_400
"""The oldest start time believed in a CI job. A job reports what it has just run; a clock that is
further off would move it into the past."""
_AHEAD: Final = 3_600
_LEAST_STRANGE: Final = 10
_WELL_KNOWN: Final = 0.5
_BITS: Final = {"P": PASS, "F": FAIL, "S": SKIP}
TRIES_WORDS: Final = {"P": "passed", "F": "failed", "S": "skipped"}


class Results(msgspec.Struct, frozen=True):
    """The contents of some reports, each test once."""

    statuses: dict[str, tuple[int, int]]
    """The statuses and duration code of each test."""
    failures: list[FailedTest]
    started_at: float | None
    """The earliest time in the reports."""
    files: int
    notes: tuple[str, ...]
    reports: dict[str, list[str]] = {}
    """The tests of each report."""


class Ingested(msgspec.Struct, frozen=True):
    """The outcome of an ingest."""

    segment: Segment
    is_new: bool
    files: int
    notes: tuple[str, ...]


def ingest_results(
    words: Sequence[str], run: CiRun, store: HistoryStore, now: float = 0.0
) -> Ingested:
    """Read the reports that the words name and store them as results of that run."""
    now = now or time.time()
    results = read_results(words)
    notes = list(results.notes)
    started = results.started_at
    oldest = _OLDEST if run.provider == "local" else _OLDEST_IN_CI
    if started is not None and not now - oldest < started < now + _AHEAD:
        notes.append("the reports name a time far from now: the time of this run is taken")
        started = None
    if not run.run and run.provider != "local":
        notes.append("the CI system names no run: these results are known by their content only")
    placed = msgspec.structs.replace(run, at=float(run.at or started or now))
    notes += _find_strangers(results.reports, store)
    made = segment.make_segment(placed, results.statuses, results.failures, notes)
    return Ingested(made, store.add(made), results.files, tuple(notes))


def _find_strangers(reports: Mapping[str, Sequence[str]], store: HistoryStore) -> Iterator[str]:
    """Yield a note for each report whose tests are all unknown although others are known: it may
    belong to another project. Nothing is left out, as it may be a new part of this one."""
    large = {label: tests for label, tests in reports.items() if len(tests) >= _LEAST_STRANGE}
    if len(large) < 2:
        return
    known = store.find_known_names({test for tests in large.values() for test in tests})
    shares = {label: len(known.intersection(tests)) / len(tests) for label, tests in large.items()}
    if max(shares.values()) > _WELL_KNOWN:
        for label in (label for label, share in shares.items() if not share):
            yield (
                f"{label}: none of its {len(large[label]):,} tests was seen here before, unlike "
                "those of the other reports; results of another project belong under its own "
                "--project"
            )


def read_results(words: Sequence[str]) -> Results:
    """Return all results that the words name. Raise SourceError if there are none."""
    reading = _ResultReader()
    for word in words:
        reading.read_word(word)
    return reading.finish()


class _ResultReader:
    def __init__(self) -> None:
        self._tries: dict[str, str] = {}
        self._report: dict[str, str] = {}
        """The tries in the report that is being read."""
        self._reports: dict[str, list[str]] = {}
        self._durations: dict[str, int] = {}
        self._ids: dict[tuple[str, str, str], str] = {}
        self._failures: dict[str, Failure] = {}
        self._digests: set[str] = set()
        self._started: list[float] = []
        self._notes: list[str] = []
        self._problems: list[str] = []
        self._files = 0

    def read_word(self, word: str) -> None:
        entries, notes = find_entries(word)
        self._notes += notes
        for entry in entries:
            try:
                if entry.detect_kind() == "junit":
                    with entry.open() as opened:
                        self._read_report(opened, entry.label)
                elif entry.is_given:
                    self._problems.append(f"{entry.label} is not JUnit XML")
            except SourceError as error:
                self._problems.append(str(error))

    def _read_report(self, opened: BinaryIO, label: str) -> None:
        stream = HashingStream(opened)
        self._report = {}
        report = JUnitReport(cast("BinaryIO", stream), label, on_case=self._add_case)
        failures = list(report)
        digest = stream.finish_digest()
        if digest in self._digests:  # the same file under two names adds no tries
            self._notes.append(f"{label}: the same file as another one: read once")
            return
        self._digests.add(digest)
        self._files += 1
        self._reports[label] = list(self._report)
        for test, tries in self._report.items():
            self._tries[test] = (self._tries.get(test, "") + tries)[:_MOST_TRIES]
        if len(self._tries) > _MOST_TESTS:
            raise SourceError(f"there are more than {_MOST_TESTS:,} tests in these reports")
        self._notes += report.notes
        starts = (parse_timestamp(job.started_at) for job in report.jobs if job.started_at)
        self._started += [at for at in starts if at is not None]
        for failure in failures:
            key = (failure.job, failure.class_name, failure.test_name)
            named = self._ids.get(key)
            if named and len(self._failures) < MOST_EXCERPTS:
                self._failures.setdefault(named, failure)

    def _add_case(self, case: JUnitCase, suite: JUnitSuite, job: str) -> None:
        class_name, test_name = case.class_name, case.test_name
        test = names.join_names(suite.name, class_name, test_name)
        ended = _list_tries(case)
        self._report[test] = (self._report.get(test, "") + ended)[:_MOST_TRIES]
        if "F" in ended:
            self._ids[job, class_name, test_name] = test
        try:
            code = segment.encode_duration(float(case.attributes.get("time", -1)))
        except ValueError:
            code = 0
        if code > self._durations.get(test, 0):
            self._durations[test] = code

    def finish(self) -> Results:
        if not self._tries:
            raise SourceError(
                next(iter(self._problems), "there is no JUnit XML with test results in there")
            )
        kept: dict[str, tuple[int, int]] = {}
        failed: dict[str, FailedTest] = {}
        for test, tries in self._tries.items():
            name = names.mask_parameters(test)
            bits, code = _unite_tries(tries), self._durations.get(test, 0)
            if name in kept:
                bits, code = _join_cases(kept[name][0], bits), max(code, kept[name][1])
            kept[name] = (bits, code)
            if "F" in tries and name not in failed:
                failed[name] = self._describe_failure(test, name, tries)
        joined = len(self._tries) - len(kept)
        if joined:
            self._notes.append(
                f"{plural(joined, 'test')} counted with another, whose name differs only in a "
                "time, an id, an address or a temporary path"
            )
        if len(failed) > MOST_EXCERPTS:
            self._notes.append(f"only the first {MOST_EXCERPTS:,} failures keep an excerpt")
        notes = [*self._notes, *(f"skipped: {each}" for each in self._problems)]
        started = min(self._started, default=None)
        failures = list(failed.values())
        return Results(kept, failures, started, self._files, tuple(notes[:100]), self._reports)

    def _describe_failure(self, test: str, name: str, tries: str) -> FailedTest:
        failure = self._failures.get(test)
        if failure is None:
            return FailedTest(name, tries)
        failure = mask_failure(failure)
        return FailedTest(name, tries, compute_fingerprint(failure), make_short_excerpt(failure))


def mask_failure(failure: Failure) -> Failure:
    """Return the failure without secrets, fit to be kept and shown."""
    return msgspec.structs.replace(
        failure,
        test_name=mask_tokens(failure.test_name),
        class_name=mask_tokens(failure.class_name),
        message=mask_secrets(failure.message),
        stack=mask_secrets(failure.stack),
        log=mask_secrets(failure.log),
    )


def make_short_excerpt(failure: Failure) -> str:
    """Return a short excerpt of a failure."""
    text = failure.message or failure.stack
    kind = f"{failure.type}: " if failure.type and failure.type not in text else ""
    return clean_text(kind + text[: 4 * _LONGEST_EXCERPT])[:_LONGEST_EXCERPT]


def _list_tries(case: JUnitCase) -> str:
    """Return how each try of a case ended, in order."""
    if case.results:
        return "F" * min(1 + case.reruns, _MOST_TRIES)
    if case.flaky:
        return "FP"
    return "S" if case.skipped else "P"


def _unite_tries(tries: str) -> int:
    bits = 0
    for each in set(tries):
        bits |= _BITS[each]
    return bits


def _join_cases(one: int, other: int) -> int:
    """Return the status of cases that only a masked parameter separates. They are different tests,
    not tries: if one failed for good, the result is a failure."""
    if FAIL in (one & FLIP, other & FLIP):
        return FAIL
    return one | other if FLIP in (one & FLIP, other & FLIP) else (one | other) & FLIP or SKIP


def describe_tries(tries: Iterable[str]) -> str:
    """Return a phrase such as `failed, then passed`. A test that passed only when rerun never
    simply passed."""
    words = [TRIES_WORDS[each] for each in tries]
    shown = [word for at, word in enumerate(words) if at == 0 or word != words[at - 1]]
    return ", then ".join(shown)
