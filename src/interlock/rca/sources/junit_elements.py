"""The elements of a JUnit report, taken in turn: suites, cases, results, logs, properties.

Knows the dialects: what each tool writes where. Of passed tests nothing is kept but their number.
Refuses to know how XML is parsed or repaired.
"""

from collections.abc import Mapping
from pathlib import PurePath
from typing import Final

import msgspec

from interlock.rca.records import Failure, Job
from interlock.rca.sources.envelope import FailureIds
from interlock.rca.sources.junit_case import JUnitCase, JUnitResult, JUnitSuite, failure_of
from interlock.rca.sources.xml_repair import restored
from interlock.system.test_output import TestCounts
from interlock.system.text import LOG_BOUND, ClippedText
from interlock.system.time import after, rfc3339

_RERUNS: Final = ("rerunFailure", "rerunError")
_FLAKY: Final = ("flakyFailure", "flakyError")
_LOGS: Final = ("system-out", "system-err")
_SUITE_LOG: Final = 64 * 1024
_PROPERTY: Final = 2_000
_MOST_PROPERTIES: Final = 1_000
_MOST_HOLDERS: Final = 20
_MOST_WAITING: Final = 8 * 1024 * 1024
"""Characters of failures that wait for the log of their suite; beyond it they go without."""


class JUnitElements:
    """Takes the elements of one report in turn; `ready` holds the failures that are complete."""

    def __init__(self, name: str, log_bound: int = LOG_BOUND) -> None:
        self.ready: list[Failure] = []
        self.notes: list[str] = []
        self.jobs: dict[str, Job] = {}
        self.properties: dict[str, str] = {}
        self.title = ""
        self.flaky: list[str] = []
        self.passed_later: set[str] = set()
        """Ids of failures whose test stands again in the report, and passed."""
        self.unshown: list[str] = []
        """What the report says to have failed without showing a test that did."""
        self.seen = 0
        self.cases: list[JUnitCase] = []
        self._bound = log_bound
        self._stem = PurePath(name).stem or name
        self._ids = FailureIds()
        self._file = JUnitSuite({}, "", ClippedText(_SUITE_LOG))
        self._suites: list[JUnitSuite] = [self._file]
        self._names: list[str] = []
        self._sinks: list[ClippedText | None] = []
        self._property = ""
        self._claimed = 0
        self._failed: dict[tuple[str, str, str], str] = {}
        self._waiting = 0

    @property
    def tally(self) -> TestCounts:
        tallies = [job.tally for job in self.jobs.values()]
        return TestCounts(
            tests=sum(each.tests for each in tallies),
            failed=sum(each.failed for each in tallies),
            skipped=sum(each.skipped for each in tallies),
        )

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        name = tag.rpartition(":")[2]
        parent = self._names[-1] if self._names else ""
        sink = self._sinks[-1] if self._sinks else None
        self._names.append(name)
        if name == "testcase":
            self.seen += 1
            self.cases.append(JUnitCase(attributes, ClippedText(self._bound)))
            sink = None
        elif name == "testsuite":
            self._begin_suite(attributes)
            sink = None
        elif name == "testsuites":
            self.seen += 1
            self.title = self.title or restored(attributes.get("name", ""))
            self._file.attributes = attributes
        elif name == "property":
            sink = self._begin_property(attributes)
        elif self.cases:
            sink = self._in_case(name, parent, attributes, sink)
        elif name in _LOGS:
            sink = self._suites[-1].log
        elif name in ("failure", "error") and parent == "testsuite":
            self._note_suite(name, attributes)
        self._sinks.append(sink)

    def end(self, tag: str) -> None:
        name = tag.rpartition(":")[2]
        self._names.pop()
        sink = self._sinks.pop()
        if name == "testcase":
            self.end_case()
        elif name == "testsuite":
            self.end_suite()
        elif name == "property" and sink is not None and sink.total:
            self._keep_property(sink.text().strip())

    def text(self, data: str) -> None:
        if self._sinks and (sink := self._sinks[-1]) is not None:
            sink.add(data)

    def end_case(self) -> None:
        case, suite = self.cases.pop(), self._suites[-1]
        suite.tests += 1
        key = (suite.name, case.class_name, case.test_name)
        if case.results:
            suite.failed += 1
            self._fail(case, key)
        elif case.skipped:
            suite.skipped += 1
        elif case.flaky:
            self.flaky.append(case.test_name or case.class_name)
        elif key in self._failed:
            suite.tests -= 1
            self.passed_later.add(self._failed[key])

    def end_suite(self) -> None:
        suite = self._suites[-1]
        if suite is not self._file:
            self._suites.pop()
        log = restored(suite.log.text()).strip("\n")
        for failure in suite.waiting:
            self._waiting -= _size(failure)
            self.ready.append(
                msgspec.structs.replace(failure, log=log, log_truncated=suite.log.truncated)
            )
        suite.waiting = []
        if suite.tests:
            self._keep_job(suite)
        suite.tests = suite.failed = suite.skipped = 0

    def end_report(self) -> None:
        """Whatever is still open ends here."""
        while len(self._suites) > 1:
            self.end_suite()
        self.end_suite()
        if self._claimed and not self._failed:
            self.unshown.append(f"it counts {self._claimed} failed tests and shows none of them")
        if self.flaky:
            shown = ", ".join(self.flaky[:5]) + (", …" if len(self.flaky) > 5 else "")
            self.notes.append(f"passed only when run again: {len(self.flaky)} ({shown})")

    def forget_position(self) -> None:
        """The text broke off: what comes next begins outside every case."""
        self._names = ["testsuite"] if len(self._suites) > 1 else []
        self._sinks = [None] * len(self._names)
        self.cases = []

    def result_sink(self, kind: str, attributes: dict[str, str]) -> ClippedText:
        result = JUnitResult(kind, attributes, ClippedText(self._bound))
        self.cases[-1].results.append(result)
        return result.text

    def _in_case(
        self, name: str, parent: str, attributes: dict[str, str], sink: ClippedText | None
    ) -> ClippedText | None:
        case = self.cases[-1]
        if name in _LOGS:
            if parent in _RERUNS or parent in _FLAKY:
                return None
            if case.log.total:
                case.log.add("\n")
            return case.log
        if parent != "testcase":
            return sink
        if name in ("failure", "error"):
            return self.result_sink(name, attributes)
        if name == "skipped":
            case.skipped = True
        elif name in _FLAKY:
            case.flaky = True
        elif name in _RERUNS:
            case.reruns += 1
        return None

    def _begin_suite(self, attributes: dict[str, str]) -> None:
        self.seen += 1
        name = restored(attributes.get("name", "").strip())
        if len(self._suites) == 1:
            self._claimed += _count(attributes, "failures") + _count(attributes, "errors")
        self._suites.append(JUnitSuite(attributes, name, ClippedText(_SUITE_LOG)))

    def _begin_property(self, attributes: dict[str, str]) -> ClippedText:
        self._property = attributes.get("name", "")
        if "value" in attributes:
            self._keep_property(attributes["value"])
        return ClippedText(_PROPERTY)

    def _keep_property(self, value: str) -> None:
        kept = self.cases[-1].properties if self.cases else self.properties
        if self._property and len(kept) < _MOST_PROPERTIES:
            kept.setdefault(restored(self._property), restored(value))
        self._property = ""

    def _note_suite(self, name: str, attributes: dict[str, str]) -> None:
        said = restored(attributes.get("message", "")).strip()[:300]
        told = f"the suite {self._suites[-1].name or self._stem} has an {name}: {said}"
        self.notes.append(told)
        self.unshown.append(told)

    def _fail(self, case: JUnitCase, key: tuple[str, str, str]) -> None:
        suites = self._suites[1:_MOST_HOLDERS] + self._suites[-1:]
        if len(self._suites) <= _MOST_HOLDERS:
            suites = self._suites[1:] or [self._file]
        job = suites[-1].name or self._stem
        failure = self._ids.name(failure_of(case, suites, job))
        self._failed[key] = failure.id
        if failure.log:
            self.ready.append(failure)
            return
        self._waiting += _size(failure)
        self._suites[-1].waiting.append(failure)
        if self._waiting > _MOST_WAITING:
            self._let_go()

    def _let_go(self) -> None:
        for suite in self._suites:
            self.ready.extend(suite.waiting)
            suite.waiting = []
        self._waiting = 0

    def _keep_job(self, suite: JUnitSuite) -> None:
        name = suite.name or self._stem
        started = rfc3339(suite.attributes.get("timestamp", ""))
        old = self.jobs.get(name) or Job(
            name=name, started_at=started, ended_at=_end(started, suite.attributes)
        )
        tally = TestCounts(
            tests=old.tally.tests + suite.tests,
            failed=old.tally.failed + suite.failed,
            skipped=old.tally.skipped + suite.skipped,
        )
        status = "FAILED" if tally.failed else "PASSED"
        self.jobs[name] = msgspec.structs.replace(old, tally=tally, status=status)


def _size(failure: Failure) -> int:
    return len(failure.message) + len(failure.stack) + 1_000


def _count(attributes: Mapping[str, str], name: str) -> int:
    said = attributes.get(name, "").strip()
    return int(said) if said.isdecimal() and said.isascii() and len(said) < 10 else 0


def _end(started: str, attributes: Mapping[str, str]) -> str:
    try:
        return after(started, float(attributes.get("time", "").replace(",", "")))
    except ValueError:
        return ""
