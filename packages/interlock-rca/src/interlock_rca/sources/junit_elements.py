"""The elements of a JUnit report, taken in turn: suites, cases, results, logs, properties.

Holds the dialects (what each tool writes where), turns a failed case into a `Failure`, and finds
the line that says most where a tool's message says only that the test failed. Of passed tests
nothing is kept but their number.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import PurePath
from typing import Final

import msgspec

from interlock.system.test_output import TestCounts
from interlock.system.test_output.counts import add_counts
from interlock.system.text import LOG_BOUND, ClippedText, clip_text
from interlock.system.time import add_seconds, format_rfc3339
from interlock_rca.records import Failure, Job
from interlock_rca.sources.build_facts import filter_facts
from interlock_rca.sources.envelope import FailureNamer
from interlock_rca.sources.xml_repair import restore_escapes

_BARE = re.compile(
    r"(?:the )?(?:test |collection )?(?:has )?(?:failed|failure|error)[.!]?", re.IGNORECASE
)
_MARKED_ERROR = re.compile(r"^E {3,}(\w[\w.]*(?:Error|Exception|Warning|Exit)\b.*)", re.MULTILINE)
"""The line of a trace that is the error itself, as pytest marks it; the last is what was raised."""
_NO_NEWS = re.compile(r"^\W*(?:$|(?:RUN|FAIL|PAUSE|CONT)\b|Traceback \()")
_MOST_LINES = 40
_LONGEST = 1000
_PLACE = re.compile(r"\[[\w -]{1,30}\]|\S*[.:/\\#]\S*|[^\w\s]+")
"""What stands beside a test's name where nothing but the test is named: a file, a browser."""


def pick_informative_line(message: str, body: str, test_name: str) -> str:
    """`message`, or where it says nothing, the first line of `body` that does."""
    if message and not _is_bare(message, test_name):
        return message
    if marked := _MARKED_ERROR.findall(body):
        return str(marked[-1]).strip()[:_LONGEST]
    lines = [line.strip() for line in body.split("\n", _MOST_LINES)[:_MOST_LINES]]
    candidates = (
        line for line in lines if not _NO_NEWS.match(line) and not _is_bare(line, test_name)
    )
    return (next(candidates, "") or message or lines[0])[:_LONGEST]


def _is_bare(text: str, test_name: str) -> bool:
    if _BARE.fullmatch(text.strip()):
        return True
    if not test_name or test_name not in text:
        return False
    return all(map(_PLACE.fullmatch, text.replace(test_name, " ", 1).split()))


_MESSAGE_BOUND: Final = 16 * 1024
_ATTACHMENT: Final = re.compile(r"\[\[ATTACHMENT\|([^\]\n]{1,500})\]\]")
_MOST_ATTACHMENTS: Final = 20


class JUnitResult:
    """A `failure` or an `error`."""

    __slots__ = ("kind", "message", "text", "type")

    def __init__(self, kind: str, attributes: Mapping[str, str], text: ClippedText) -> None:
        self.kind = kind
        self.type = attributes.get("type", "")
        self.message = attributes.get("message", "")
        self.text = text


class JUnitCase:
    """A `testcase`."""

    __slots__ = ("attributes", "flaky", "log", "properties", "reruns", "results", "skipped")

    def __init__(self, attributes: Mapping[str, str], log: ClippedText) -> None:
        self.attributes = attributes
        self.results: list[JUnitResult] = []
        self.skipped = False
        self.flaky = False
        self.reruns = 0
        self.log = log
        self.properties: dict[str, str] = {}

    @property
    def test_name(self) -> str:
        return restore_escapes(self.attributes.get("name", "").strip())

    @property
    def class_name(self) -> str:
        named = self.attributes.get("classname") or self.attributes.get("class") or ""
        return restore_escapes(named.strip())


class JUnitSuite:
    """A `testsuite`, or the file itself for cases that stand in none."""

    __slots__ = ("attributes", "failed", "log", "name", "properties", "skipped", "tests", "waiting")

    def __init__(self, attributes: Mapping[str, str], name: str, log: ClippedText) -> None:
        self.attributes = attributes
        self.name = name
        self.tests = 0
        self.failed = 0
        self.skipped = 0
        self.log = log
        self.properties: dict[str, str] = {}
        self.waiting: list[Failure] = []
        """Failures without a log: the suite's own, which may still come, is theirs too."""


def build_failure(case: JUnitCase, suites: Iterable[JUnitSuite], job: str) -> Failure:
    """The case as a failure; its id is still to be given."""
    held_by = list(suites)
    log = restore_escapes(case.log.text()).strip("\n")
    stack, cut = clip_text("\n\n".join(filter(None, (_read_body(part) for part in case.results))))
    at = format_rfc3339(case.attributes.get("timestamp", ""))
    seconds = _parse_seconds(case.attributes.get("time", ""))
    return Failure(
        id="",
        test_name=case.test_name,
        class_name=case.class_name,
        type=restore_escapes(next((part.type for part in case.results if part.type), "")),
        message=_build_message(case.results, case.test_name),
        stack=stack,
        log=log,
        log_truncated=case.log.truncated or cut,
        at=at or format_rfc3339(_find_nearest(case, held_by, "timestamp")),
        ended_at=add_seconds(at, seconds) if at else "",
        attributes=_collect_attributes(case, held_by, log),
        job=job,
        path=" / ".join(part.name for part in held_by if part.name),
        file=restore_escapes(
            _find_nearest(case, held_by, "file") or _find_nearest(case, held_by, "filepath")
        ),
        line=_parse_count(case.attributes, "line"),
    )


def _build_message(results: Iterable[JUnitResult], test_name: str) -> str:
    messages = (
        pick_informative_line(
            restore_escapes(result.message.strip()), _read_body(result), test_name
        )
        for result in results
    )
    return clip_text("\n".join(dict.fromkeys(filter(None, messages))), _MESSAGE_BOUND)[0]


def _read_body(result: JUnitResult) -> str:
    return restore_escapes(result.text.text()).strip()


def _collect_attributes(case: JUnitCase, suites: list[JUnitSuite], log: str) -> dict[str, str]:
    found = filter_facts(case.properties)
    found["result"] = case.results[0].kind
    if took := case.attributes.get("time"):
        found["time"] = restore_escapes(took)[:200]
    if host := _find_nearest(case, suites, "hostname"):
        found["hostname"] = restore_escapes(host)[:200]
    if case.reruns:
        found["reruns"] = str(case.reruns)
    attached = list(dict.fromkeys(_ATTACHMENT.findall(log)))[:_MOST_ATTACHMENTS]
    if attached:
        found["attachments"] = "\n".join(attached)
    return found


def _find_nearest(case: JUnitCase, suites: list[JUnitSuite], name: str) -> str:
    holders = (case.attributes, *(suite.attributes for suite in reversed(suites)))
    return next((holder[name] for holder in holders if holder.get(name)), "")


def _parse_seconds(text: str) -> float:
    try:
        return float(text.replace(",", ""))
    except ValueError:
        return -1.0


_RERUNS: Final = ("rerunFailure", "rerunError")
_FLAKY: Final = ("flakyFailure", "flakyError")
_LOGS: Final = ("system-out", "system-err")
_SUITE_LOG: Final = 64 * 1024
_PROPERTY: Final = 2_000
_MOST_PROPERTIES: Final = 1_000
_MOST_HOLDERS: Final = 20
_MOST_PASSED: Final = 200_000
_MOST_WAITING: Final = 8 * 1024 * 1024
"""Characters of failures that wait for the log of their suite; beyond it they go without."""


OnCase = Callable[[JUnitCase, JUnitSuite, str], None]
"""Hears of every case that ends, passed ones too: the case, its suite, and the job it counts
for."""


class JUnitElements:
    """Takes the elements of one report in turn; `ready` holds the failures that are complete."""

    def __init__(
        self, name: str, log_bound: int = LOG_BOUND, on_case: OnCase | None = None
    ) -> None:
        self._on_case = on_case
        self.ready: list[Failure] = []
        self.notes: list[str] = []
        self.jobs: dict[str, Job] = {}
        self.properties: dict[str, str] = {}
        self.title = ""
        self.flaky: list[str] = []
        self.flipped: set[str] = set()
        """Ids of failures whose test stands again in the report, and passed."""
        self.attempts: dict[str, list[str]] = {}
        """Of a failure's id the ids under which the same test failed again."""
        self.repeats: dict[str, TestCounts] = {}
        """Of each job, how many of its results are further ones of tests that it counts already."""
        self.unshown: list[str] = []
        """What the report says to have failed without showing a test that did."""
        self.seen = 0
        self.cases: list[JUnitCase] = []
        self._bound = log_bound
        self._stem = PurePath(name).stem or name
        self._ids = FailureNamer()
        self._file = JUnitSuite({}, "", ClippedText(_SUITE_LOG))
        self._suites: list[JUnitSuite] = [self._file]
        self._names: list[str] = []
        self._sinks: list[ClippedText | None] = []
        self._property = ""
        self._claimed = 0
        self._failed: dict[tuple[str, str, str], str] = {}
        self._passed: set[int] = set()
        """Tests that passed, as hashes; of very many the first."""
        self._waiting = 0

    @property
    def tally(self) -> TestCounts:
        return add_counts(job.tally for job in self.jobs.values())

    def start_element(self, tag: str, attributes: dict[str, str]) -> None:
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
            self.title = self.title or restore_escapes(attributes.get("name", ""))
            self._file.attributes = attributes
        elif name == "property":
            sink = self._begin_property(attributes)
        elif self.cases:
            sink = self._start_in_case(name, parent, attributes, sink)
        elif name in _LOGS:
            sink = self._suites[-1].log
        elif name in ("failure", "error") and parent == "testsuite":
            self._note_suite_error(name, attributes)
        self._sinks.append(sink)

    def end_element(self, tag: str) -> None:
        name = tag.rpartition(":")[2]
        self._names.pop()
        sink = self._sinks.pop()
        if name == "testcase":
            self.end_case()
        elif name == "testsuite":
            self.end_suite()
        elif name == "property" and sink is not None and sink.total:
            self._keep_property(sink.text().strip())

    def add_text(self, data: str) -> None:
        if self._sinks and (sink := self._sinks[-1]) is not None:
            sink.add(data)

    def end_case(self) -> None:
        case, suite = self.cases.pop(), self._suites[-1]
        suite.tests += 1
        if self._on_case is not None:
            self._on_case(case, suite, suite.name or self._stem)
        key = (suite.name, case.class_name, case.test_name)
        if case.results:
            suite.failed += 1
            self._note_attempt(key, self._add_failure(case, key))
        elif case.skipped:
            suite.skipped += 1
        elif case.flaky:
            self.flaky.append(case.test_name or case.class_name)
        elif key in self._failed:
            self.flipped.add(self._failed[key])
            self._count_repeat(suite.name, TestCounts(tests=1))
        elif len(self._passed) < _MOST_PASSED:
            self._passed.add(hash(key))

    def _note_attempt(self, key: tuple[str, str, str], failure_id: str) -> None:
        """What a test's name stands for is the same test, tried again."""
        if not key[2]:
            return
        first = self._failed.setdefault(key, failure_id)
        if first != failure_id:
            self.attempts.setdefault(first, []).append(failure_id)
            self._count_repeat(key[0], TestCounts(tests=1, failed=1))
        elif hash(key) in self._passed:
            self.flipped.add(failure_id)
            self._count_repeat(key[0], TestCounts(tests=1))

    def _count_repeat(self, suite: str, more: TestCounts) -> None:
        job = suite or self._stem
        self.repeats[job] = add_counts((self.repeats.get(job, TestCounts()), more))

    def end_suite(self) -> None:
        suite = self._suites[-1]
        if suite is not self._file:
            self._suites.pop()
        log = restore_escapes(suite.log.text()).strip("\n")
        for failure in suite.waiting:
            self._waiting -= _estimate_size(failure)
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
            names = ", ".join(self.flaky[:5]) + (", …" if len(self.flaky) > 5 else "")
            self.notes.append(f"passed only when run again: {len(self.flaky)} ({names})")

    def forget_position(self) -> None:
        """The text broke off: what comes next begins outside every case."""
        self._names = ["testsuite"] if len(self._suites) > 1 else []
        self._sinks = [None] * len(self._names)
        self.cases = []

    def open_result(self, kind: str, attributes: dict[str, str]) -> ClippedText:
        result = JUnitResult(kind, attributes, ClippedText(self._bound))
        self.cases[-1].results.append(result)
        return result.text

    def _start_in_case(
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
            return self.open_result(name, attributes)
        if name == "skipped":
            case.skipped = True
        elif name in _FLAKY:
            case.flaky = True
        elif name in _RERUNS:
            case.reruns += 1
        return None

    def _begin_suite(self, attributes: dict[str, str]) -> None:
        self.seen += 1
        name = restore_escapes(attributes.get("name", "").strip())
        if len(self._suites) == 1:
            self._claimed += _parse_count(attributes, "failures") + _parse_count(
                attributes, "errors"
            )
        self._suites.append(JUnitSuite(attributes, name, ClippedText(_SUITE_LOG)))

    def _begin_property(self, attributes: dict[str, str]) -> ClippedText:
        self._property = attributes.get("name", "")
        if "value" in attributes:
            self._keep_property(attributes["value"])
        return ClippedText(_PROPERTY)

    def _keep_property(self, value: str) -> None:
        kept = self.cases[-1].properties if self.cases else self.properties
        if self._property and len(kept) < _MOST_PROPERTIES:
            kept.setdefault(restore_escapes(self._property), restore_escapes(value))
        self._property = ""

    def _note_suite_error(self, name: str, attributes: dict[str, str]) -> None:
        message = restore_escapes(attributes.get("message", "")).strip()[:300]
        note = f"the suite {self._suites[-1].name or self._stem} has an {name}: {message}"
        self.notes.append(note)
        self.unshown.append(note)

    def _add_failure(self, case: JUnitCase, key: tuple[str, str, str]) -> str:
        """Its id."""
        suites = self._suites[1:_MOST_HOLDERS] + self._suites[-1:]
        if len(self._suites) <= _MOST_HOLDERS:
            suites = self._suites[1:] or [self._file]
        job = suites[-1].name or self._stem
        failure = self._ids.assign_id(build_failure(case, suites, job))
        if not key[2]:
            self._failed[*key[:2], failure.id] = failure.id
        if failure.log:
            self.ready.append(failure)
            return failure.id
        self._waiting += _estimate_size(failure)
        self._suites[-1].waiting.append(failure)
        if self._waiting > _MOST_WAITING:
            self._release_waiting()
        return failure.id

    def _release_waiting(self) -> None:
        for suite in self._suites:
            self.ready.extend(suite.waiting)
            suite.waiting = []
        self._waiting = 0

    def _keep_job(self, suite: JUnitSuite) -> None:
        name = suite.name or self._stem
        started = format_rfc3339(suite.attributes.get("timestamp", ""))
        old = self.jobs.get(name) or Job(
            name=name, started_at=started, ended_at=_compute_end(started, suite.attributes)
        )
        own = TestCounts(tests=suite.tests, failed=suite.failed, skipped=suite.skipped)
        tally = add_counts((old.tally, own))
        status = "FAILED" if tally.failed else "PASSED"
        self.jobs[name] = msgspec.structs.replace(old, tally=tally, status=status)


def _estimate_size(failure: Failure) -> int:
    return len(failure.message) + len(failure.stack) + 1_000


def _parse_count(attributes: Mapping[str, str], name: str) -> int:
    text = attributes.get(name, "").strip()
    return int(text) if text.isdecimal() and text.isascii() and len(text) < 10 else 0


def _compute_end(started: str, attributes: Mapping[str, str]) -> str:
    try:
        return add_seconds(started, float(attributes.get("time", "").replace(",", "")))
    except ValueError:
        return ""
