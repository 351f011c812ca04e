"""Queries over the memory: its lanes, and what each test did in them.

Answers are about one project and, by default, its default branch. Results of pull requests and
other branches are kept apart and never change them.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import Final, cast

import msgspec

from interlock.system.errors import UsageError
from interlock_history import verdicts
from interlock_history.index import (
    Column,
    HistoryIndex,
    Lane,
    LaneIndex,
)
from interlock_history.segment import FAIL, FLIP, PASS, SKIP, FailedTest, PackedSegment
from interlock_history.settings import HistorySettings
from interlock_history.store import HistoryStore
from interlock_history.verdicts import DurationTrend, TestSummary, Verdict
from interlock_rca import test_names as names
from interlock_rca.ci_run import CiRun, Scope, name_attempt

UNNAMED: Final = "(no name)"
"""The display name of a project without a name."""
_MOST_COLUMNS: Final = 2_000
"""The number of sources that statistics look at; older ones are kept."""
_HARMLESS: Final = bytes(bits for bits in range(8) if not bits & FAIL)
_NOT_RUN: Final = bytes((0, SKIP))
_FLIPS: Final = tuple(bits for bits in range(8) if bits & FLIP == FLIP)


class TestResult(msgspec.Struct, frozen=True, kw_only=True):
    """One job's report about one test."""

    __test__ = False

    run: str
    job: str
    shard: str
    commit: str
    at: float
    bits: int
    duration: int
    tries: str
    fingerprint: str = ""
    excerpt: str = ""
    is_ignored: bool = False
    """True if nearly everything failed there, so the result says nothing."""


class History:
    """The contents of a store, updated when it is opened."""

    def __init__(self, store: HistoryStore, settings: HistorySettings | None = None) -> None:
        self.store = store
        self.settings = settings or HistorySettings()
        self.index = HistoryIndex(store, self.settings)
        self._rows: dict[Lane, tuple[list[Column], list[str], list[bytes]]] = {}
        self._places: dict[Lane, dict[str, int]] = {}

    @property
    def problems(self) -> list[str]:
        """Return a sentence for everything that could not be read."""
        return self.store.problems

    @cached_property
    def projects(self) -> list[str]:
        return sorted({lane.project for lane in self.index.list_lanes()})

    def choose_project(self, wanted: str) -> str:
        """Return that project, or the only one. Raise UsageError if it is ambiguous."""
        known = ", ".join(name or UNNAMED for name in self.projects) or "none"
        if wanted:
            name = "" if wanted == UNNAMED else wanted
            if name not in self.projects:
                raise UsageError(f"nothing is remembered of the project {wanted}; known: {known}")
            return name
        if len(self.projects) > 1:
            raise UsageError(f"several projects are remembered ({known}): choose with --project")
        return self.projects[0] if self.projects else ""

    def list_lanes(
        self, project: str, scope: Scope = "default", branch: str = "", label: str | None = None
    ) -> list[Lane]:
        return [
            lane
            for lane in self.index.list_lanes()
            if lane.project == project
            and lane.scope == scope
            and (not branch or lane.branch == branch)
            and (label is None or lane.label == label)
        ]

    def find_now(self, lanes: Iterable[Lane]) -> float:
        """Return the newest time in these lanes, which stands for the present."""
        return max(
            (column.at for lane in lanes for column in self.index.list_columns(lane)), default=0.0
        )

    def list_columns(self, lane: Lane) -> list[Column]:
        """Return the sources of a lane that statistics look at, in time order."""
        return self._read_lane(lane)[0]

    def iterate_rows(self, lane: Lane) -> Iterator[tuple[str, bytes]]:
        """Yield every test of a lane that some source has, with its statuses in `list_columns`."""
        _, tests, rows = self._read_lane(lane)
        return ((test, row) for test, row in zip(tests, rows, strict=True) if row.strip(b"\0"))

    def read_row(self, lane: Lane, test: str) -> bytes | None:
        """Return the statuses of a test in `list_columns`; None if no source has it."""
        _, tests, rows = self._read_lane(lane)
        if lane not in self._places:
            self._places[lane] = {name: at for at, name in enumerate(tests)}
        place = self._places[lane].get(self.settings.aliases.get(test, test))
        return None if place is None or not rows[place].strip(b"\0") else rows[place]

    def find_tests(self, lanes: Iterable[Lane], wanted: str) -> list[str]:
        """Return the tests in these lanes that a word matches."""
        known = {test for lane in lanes for test, _ in self.iterate_rows(lane)}
        return names.match_tests(known, self.settings.aliases.get(wanted, wanted))

    def list_verdicts(self, lane: Lane, test: str) -> list[Verdict]:
        row = self.read_row(lane, test)
        return verdicts.list_verdicts(row, self.list_columns(lane)) if row else []

    def summarize_test(self, lane: Lane, test: str, now: float | None = None) -> TestSummary | None:
        """Return a lane's summary of a test; None if the lane does not know it."""
        test = self.settings.aliases.get(test, test)
        found = self.list_verdicts(lane, test)
        if not found:
            return None
        at = self.find_now([lane]) if now is None else now
        return verdicts.summarize(test, lane.label, found, self.settings, at)

    def summarize_lane(
        self, lane: Lane, now: float | None = None, *, only_troubled: bool = True
    ) -> list[TestSummary]:
        """Return the lane's summaries of tests that ever flipped, or failed on one of its two
        newest sources; of all tests unless `only_troubled`."""
        columns, tests, rows = self._read_lane(lane)
        at = self.find_now([lane]) if now is None else now
        # Only one source of a pull request counts, and the newest cannot be determined here.
        is_troubled = _has_failed if lane.scope == "pull-request" else _needs_a_look
        return [
            verdicts.summarize(
                test, lane.label, verdicts.list_verdicts(row, columns), self.settings, at
            )
            for test, row in zip(tests, rows, strict=True)
            if (is_troubled(row) if only_troubled else row.strip(b"\0"))
        ]

    def read_results(self, lane: Lane, test: str, most: int = 100) -> list[TestResult]:
        """Return the reports of the newest jobs that have the test, newest first."""
        renamed = {old for old, new in self.settings.aliases.items() if new == test} | {test}
        found: list[TestResult] = []
        for column in reversed(self.index.list_columns(lane)):
            for each in column.segments:
                packed = self.store.read(each)
                if packed is not None:
                    found += self._find_results(packed, column, renamed)
            if len(found) >= most:
                break
        return sorted(found, key=lambda each: (-each.at, each.run, each.job, each.shard))[:most]

    def compare_durations(self, lane: Lane, test: str) -> DurationTrend | None:
        """Compare a test's current duration with its earlier one."""
        results = self.read_results(lane, test, most=500)
        pairs = ((each.at, each.duration) for each in results if each.bits & PASS)
        return verdicts.compare_durations(pairs, self.settings, self.find_now([lane]))

    def list_failing(self, run: CiRun) -> list[str]:
        """Return the tests that failed or flipped on the source of a run, in any job."""
        found: set[str] = set()
        for lane in self.index.list_lanes():
            for number, column in enumerate(self.list_columns(lane)):
                if lane.project == run.project and column.source == run.source:
                    rows = self.iterate_rows(lane)
                    found.update(test for test, row in rows if row[number] & FAIL)
        return sorted(found)

    def list_columns_with(self, project: str, tests: Iterable[str]) -> list[Column]:
        """Return the sources of the default branch on which all of these tests failed, newest
        first."""
        wanted = list(tests)
        found: list[Column] = []
        for lane in self.list_lanes(project):
            rows = [self.read_row(lane, test) for test in wanted]
            if wanted and all(rows):
                found += [
                    column
                    for number, column in enumerate(self.list_columns(lane))
                    if all(row and row[number] & FAIL for row in rows)
                ]
        return sorted(found, key=lambda column: -column.at)

    def count_statuses(self, lane: Lane, column: Column) -> dict[str, int]:
        """Count the tests that passed, failed, did both or were skipped on one source."""
        index = self.index.load_lane(lane)
        at = next(at for at, each in enumerate(index.columns) if each.source == column.source)
        found = Counter(verdicts.judge(bits) for bits in index.rows[at])
        words = {"passed": "pass", "failed": "fail", "flaky": "flaky", "skipped": "skip"}
        return {word: found[cast("verdicts.Status", status)] for word, status in words.items()}

    def find_unstable_names(self, lane: Lane) -> list[tuple[str, int]]:
        """Return patterns of test names that change in every run, each with its number of names."""
        seen = Counter({test: len(row) - row.count(0) for test, row in self.iterate_rows(lane)})
        return names.find_unstable_names(seen, len(self.list_columns(lane)))

    def _find_results(
        self, packed: PackedSegment, column: Column, wanted: set[str]
    ) -> Iterator[TestResult]:
        known = self.store.read_names(packed.table)
        if known is None:
            return
        failures = {each.test: each for each in packed.failures}
        attempt = name_attempt(packed.run)
        for test in sorted(wanted):
            at = packed.find_test(known, test)
            if at is not None:
                kept = failures.get(test) or FailedTest(test, "P" if packed.bits[at] & 1 else "S")
                yield TestResult(
                    run=attempt,
                    job=packed.run.label,
                    shard=packed.run.shard,
                    commit=packed.run.commit,
                    at=packed.run.at,
                    bits=packed.bits[at],
                    duration=packed.durations[at],
                    tries=kept.tries,
                    fingerprint=kept.fingerprint,
                    excerpt=kept.excerpt,
                    is_ignored=attempt in column.ignored,
                )

    def _read_lane(self, lane: Lane) -> tuple[list[Column], list[str], list[bytes]]:
        if lane not in self._rows:
            index = self.index.load_lane(lane)
            chosen = range(len(index.columns))[-_MOST_COLUMNS:]
            columns = [index.columns[at] for at in chosen]
            tests, rows = self._apply_aliases(index, index.read_rows(chosen))
            self._rows[lane] = (columns, tests, rows)
        return self._rows[lane]

    def _apply_aliases(self, index: LaneIndex, rows: list[bytes]) -> tuple[list[str], list[bytes]]:
        """Return the names and rows with renamed tests under their new names."""
        aliases = self.settings.aliases
        if not aliases:
            return index.tests, rows
        joined: dict[str, bytes] = {}
        for test, row in zip(index.tests, rows, strict=True):
            name = aliases.get(test, test)
            joined[name] = _unite(joined[name], row) if name in joined else row
        return list(joined), list(joined.values())


def _has_failed(row: bytes) -> bool:
    return bool(row.translate(None, _HARMLESS))


def _needs_a_look(row: bytes) -> bool:
    """Return True if the bytes alone show trouble: of tens of thousands of tests, few do."""
    ran = row.translate(None, _NOT_RUN)
    return any(bits in ran for bits in _FLIPS) or _has_failed(ran[-2:])


def _unite(one: bytes, other: bytes) -> bytes:
    united = int.from_bytes(one, "little") | int.from_bytes(other, "little")
    return united.to_bytes(len(one), "little")


def list_scopes(lanes: Sequence[Lane]) -> list[str]:
    """Name the lines of development that lanes belong to."""
    names: dict[str, str] = {"default": "the default branch", "queue": "the merge queue"}
    names["pull-request"] = "pull requests"
    return sorted({names.get(lane.scope) or f"branch {lane.branch}" for lane in lanes})
