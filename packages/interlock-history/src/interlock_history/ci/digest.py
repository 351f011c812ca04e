"""Sort the failures of a CI run: which are new, and which are not the author's.

Each test is compared with its own history on the branch that the run is measured against. A failure
gets exactly one word: new, still failing, flaky, quarantined or infrastructure. A test that failed
and then passed is flaky, never passed.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, Literal

import msgspec

from interlock.system.text import plural
from interlock_history.index import Lane
from interlock_history.memory import History
from interlock_history.segment import FailedTest, Segment
from interlock_history.settings import HistorySettings
from interlock_history.verdicts import (
    Moment,
    Status,
    TestSummary,
    Verdict,
    judge,
    list_verdicts,
    summarize,
)
from interlock_rca.ci_run import CiRun, name_attempt
from interlock_rca.report.outline import Cause, Outline
from interlock_rca.test_names import make_test_id

Word = Literal["new", "still failing", "flaky", "quarantined", "infrastructure"]
WORDS: Final[tuple[Word, ...]] = ("new", "still failing", "infrastructure", "flaky", "quarantined")
"""The order in which people want to read them."""
FailOn = Literal["new", "any", "unquarantined", "none"]


class DigestTest(msgspec.Struct, frozen=True, kw_only=True):
    """A test that did anything but simply pass."""

    test: str
    label: str
    """The job and its variant."""
    word: Word
    why: str
    """The reason for the word, for people."""
    age: int = 0
    """The number of consecutive source trees, before this one, on which the test failed."""
    since: Moment | None = None
    last_pass: Moment | None = None
    excerpt: str = ""
    fingerprint: str = ""


class DigestCause(msgspec.Struct, frozen=True, kw_only=True):
    """A cause with its tests; its word is that of its newest failure."""

    cause: Cause
    word: Word
    tests: tuple[DigestTest, ...]


class Digest(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that any rendering shows."""

    run: CiRun
    tests: int
    passed: int
    skipped: int
    failures: tuple[DigestTest, ...]
    """All tests that failed, flaky ones included."""
    causes: tuple[DigestCause, ...]
    fixed: tuple[str, ...]
    absent: int
    """The number of tests that the branch has and this run did not run."""
    missing_shards: tuple[str, ...]
    baseline: str
    """The branch that the run was compared with."""
    notes: tuple[str, ...] = ()

    def count(self, word: Word) -> int:
        return sum(each.word == word for each in self.failures)

    @property
    def is_green(self) -> bool:
        return not self.failures and not self.missing_shards

    @property
    def verdict(self) -> str:
        """Return the verdict in one word, for the steps that follow."""
        if self.missing_shards:
            return "incomplete"
        return next((word for word in WORDS if self.count(word)), "passed").replace(" ", "-")

    def is_refused(self, fail_on: FailOn) -> bool:
        """Return True if a gate of this kind stops the pipeline."""
        stopping: Mapping[FailOn, Sequence[Word]] = {
            "none": (),
            "new": ("new",),
            "unquarantined": ("new", "still failing", "infrastructure"),
            "any": ("new", "still failing", "infrastructure", "quarantined"),
        }
        if self.missing_shards and fail_on != "none":
            return True
        return any(self.count(word) for word in stopping[fail_on])


class ExpectedJobs(msgspec.Struct, frozen=True, kw_only=True):
    """The jobs of a run that must have reported."""

    shards: int = 0
    variants: tuple[tuple[str, str], ...] = ()
    """Names and values; some job must have each of them."""
    every_known: bool = False
    """Expect each job that took part in earlier runs."""


def build_digest(
    segments: Sequence[Segment],
    history: History,
    settings: HistorySettings,
    *,
    outline: Outline | None = None,
    excuse: Callable[[str, str], str] = lambda test, label: "",
    expected: ExpectedJobs = ExpectedJobs(),  # noqa: B008 - frozen
) -> Digest:
    """Return the digest of one run, given a segment per job and shard. `excuse` returns the reason
    why a test is quarantined in a job, or ""."""
    run = segments[0].run
    reader = _RunReader(run, history, settings, excuse)
    for segment in segments:
        reader.read(segment)
    return Digest(
        run=run,
        tests=reader.counts["tests"],
        passed=reader.counts["pass"],
        skipped=reader.counts["skip"],
        failures=tuple(sorted(reader.failures, key=_sort_key)),
        causes=_group_causes(reader.failures, outline),
        fixed=tuple(sorted(reader.fixed)),
        absent=reader.count_absent(),
        missing_shards=(
            *_find_missing(segments, expected.shards),
            *_find_missing_variants(segments, expected.variants),
            *(_find_absent_jobs(segments, history) if expected.every_known else ()),
        ),
        baseline=reader.baseline,
        notes=tuple(note for segment in segments for note in segment.notes),
    )


def _sort_key(each: DigestTest) -> tuple[int, str, str]:
    return WORDS.index(each.word), each.label, each.test


class _Baseline:
    """The results that the compared branch had before this run."""

    def __init__(self, lane: Lane, history: History, run: CiRun) -> None:
        self._rows = dict(history.iterate_rows(lane))
        mine = name_attempt(run).partition("#")[0]
        columns = history.list_columns(lane)
        self._kept = [
            at
            for at, column in enumerate(columns)
            if column.source != run.source
            and not all(name.partition("#")[0] == mine for name in column.runs)
        ]
        self._columns = [columns[at] for at in self._kept]
        where = f"branch {lane.branch}" if lane.branch else "the default branch"
        self.name = f"{plural(len(self._kept), 'earlier source')} of {where}" if self._kept else ""

    def list_verdicts(self, test: str) -> list[Verdict]:
        row = self._rows.get(test)
        if row is None:
            return []
        return list_verdicts(bytes(row[at] for at in self._kept), self._columns)

    def list_failing(self) -> Iterator[str]:
        """Yield the tests whose newest result, ignoring skips, is a failure."""
        for test, row in self._rows.items():
            statuses = (judge(row[at]) for at in reversed(self._kept))
            if next((each for each in statuses if each not in (None, "skip")), None) == "fail":
                yield test

    def list_newest(self) -> Iterator[str]:
        """Yield the tests that ran on the newest tested source."""
        newest = self._kept[-1:]
        return (test for test, row in self._rows.items() if any(row[at] for at in newest))


class _RunReader:
    """Compares each segment with the history of the compared branch."""

    def __init__(
        self,
        run: CiRun,
        history: History,
        settings: HistorySettings,
        excuse: Callable[[str, str], str],
    ) -> None:
        self._run = run
        self._history = history
        self._settings = settings
        self._excuse = excuse
        self._ran: dict[Lane, set[str]] = {}
        self._baselines: dict[Lane, _Baseline] = {}
        self.failures: list[DigestTest] = []
        self.fixed: set[str] = set()
        self.counts = {"tests": 0, "pass": 0, "skip": 0}

    @property
    def baseline(self) -> str:
        return next(filter(None, (each.name for each in self._baselines.values())), "")

    def count_absent(self) -> int:
        """Count the tests that the branch ran last and this run did not, in the same jobs."""
        return sum(
            test not in self._ran[lane]
            for lane, baseline in self._baselines.items()
            for test in baseline.list_newest()
        )

    def read(self, segment: Segment) -> None:
        lane = self._find_lane(segment.run)
        if lane and lane not in self._baselines:
            self._baselines[lane] = _Baseline(lane, self._history, self._run)
        before = self._baselines[lane] if lane else None
        if lane:
            self._ran.setdefault(lane, set()).update(segment.tests)
        broken = self._measure_breakdown(segment)
        failed = {each.test: each for each in segment.failures}
        passed = set()
        for test, bits in zip(segment.tests, segment.bits, strict=True):
            status = judge(bits)
            self.counts["tests"] += 1
            if status in ("fail", "flaky"):
                verdicts = before.list_verdicts(test) if before else []
                kept = failed.get(test) or FailedTest(test, "")
                self.failures.append(
                    self._describe(segment.run.label, kept, verdicts, status, broken)
                )
            elif status:
                self.counts[status] += 1
                if status == "pass":
                    passed.add(test)
        if before:
            self.fixed.update(test for test in before.list_failing() if test in passed)

    def _measure_breakdown(self, segment: Segment) -> float:
        """Return the share of failing tests if it is large enough to suspect the job itself, else
        0."""
        ran = [status for status in map(judge, segment.bits) if status not in (None, "skip")]
        share = ran.count("fail") / len(ran) if ran else 0.0
        is_broken = share > self._settings.infrastructure_share
        return share if is_broken and len(ran) >= self._settings.infrastructure_least else 0.0

    def _describe(
        self,
        label: str,
        failed: FailedTest,
        before: Sequence[Verdict],
        status: Status,
        broken: float,
    ) -> DigestTest:
        past = (
            summarize(failed.test, label, before, self._settings, self._run.at) if before else None
        )
        word, why = self._choose_word(self._excuse(failed.test, label), past, status, broken)
        since = past.failing_since if past and word == "still failing" else None
        return DigestTest(
            test=failed.test,
            label=label,
            word=word,
            why=why,
            age=since.sources if since else 0,
            since=since,
            last_pass=past.last_pass if past else None,
            excerpt=failed.excerpt,
            fingerprint=failed.fingerprint,
        )

    def _choose_word(
        self, excuse: str, past: TestSummary | None, status: Status, broken: float
    ) -> tuple[Word, str]:
        if excuse:
            return "quarantined", excuse
        if status == "flaky":
            seen = past is not None and past.flips.count
            before = f"; flips before: {past.flips.text}" if past and seen else ""
            return "flaky", f"failed, then passed in this run{before}"
        if broken:
            return "infrastructure", f"{broken:.0%} of this job failed"
        if past is None:
            return "new", "no earlier result is known"
        if past.state == "flaky":
            return "flaky", f"flips on unchanged source: {past.flips.text}"
        if past.failing_since is not None:
            return "still failing", "it failed before this change"
        return "new", "it passed before"

    def _find_lane(self, run: CiRun) -> Lane | None:
        """Return the lane of the same job and variant on the branch that the run is measured
        against. An unknown branch is measured against itself."""
        lanes = self._history.list_lanes(run.project, "default", label=run.label)
        if not lanes and run.scope == "branch":
            lanes = self._history.list_lanes(run.project, "branch", run.branch, run.label)
        return lanes[0] if lanes else None


def _group_causes(
    failures: Sequence[DigestTest], outline: Outline | None
) -> tuple[DigestCause, ...]:
    """Return the analyst's causes, each with the failures of this run that belong to it."""
    if outline is None:
        return ()
    by_test: dict[str, list[DigestTest]] = {}
    for each in failures:
        by_test.setdefault(each.test, []).append(each)
    found = []
    for cause in outline.causes:
        tests: dict[tuple[str, str], DigestTest] = {}
        for case in cause.cases:
            for suite in (case.job, ""):
                name = make_test_id(suite, case.class_name, case.test_name)
                tests |= {(each.label, each.test): each for each in by_test.get(name, ())}
        if tests:
            members = tuple(sorted(tests.values(), key=_sort_key))
            found.append(DigestCause(cause=cause, word=members[0].word, tests=members))
    return tuple(sorted(found, key=lambda each: (WORDS.index(each.word), -len(each.tests))))


def _find_missing_variants(
    segments: Sequence[Segment], expected: Sequence[tuple[str, str]]
) -> Iterator[str]:
    seen = {pair for segment in segments for pair in segment.run.variant}
    return (f"{name}={value}" for name, value in expected if (name, value) not in seen)


def _find_absent_jobs(segments: Sequence[Segment], history: History) -> Iterator[str]:
    """Yield the jobs and variants that reported nothing, though they took part in the last
    comparable runs of the default branch."""
    labels = {segment.run.label for segment in segments}
    lanes = history.list_lanes(segments[0].run.project)
    now = {name_attempt(segment.run).partition("#")[0] for segment in segments}

    def list_runs(lane: Lane) -> list[str]:
        names = (run.partition("#")[0] for c in history.list_columns(lane) for run in c.runs)
        return [name for name in dict.fromkeys(names) if name not in now]

    own = [lane for lane in lanes if lane.label in labels]
    recent = {run for lane in own for run in list_runs(lane)[-_LAST_RUNS:]}
    for lane in lanes:
        shared = recent.intersection(list_runs(lane)[-2 * _LAST_RUNS :])
        if lane.label not in labels and len(shared) >= _LEAST_SHARED:
            yield f"{lane.label or 'another job'}, which took part in the runs before"


_LAST_RUNS: Final = 3
_LEAST_SHARED: Final = 2
"""A job that took part only once may have been an experiment."""


def _find_missing(segments: Sequence[Segment], expected: int) -> tuple[str, ...]:
    """Return the shards that a flag or another shard announced, and that did not report."""
    seen: dict[str, set[int]] = {}
    total: dict[str, int] = {}
    for segment in segments:
        number, _, of = segment.run.shard.partition("/")
        if number.isdecimal():
            label = segment.run.label
            seen.setdefault(label, set()).add(int(number))
            total[label] = max(total.get(label, expected), int(of or 0), expected)
    if expected and not seen:
        jobs = len({segment.run.label for segment in segments})
        return (f"{expected - jobs} of {expected} jobs",) if jobs < expected else ()
    return tuple(
        " ".join(filter(None, [label, f"shard {number} of {total[label]}"]))
        for label, numbers in sorted(seen.items())
        for number in range(1, total[label] + 1)
        if number not in numbers
    )
