"""Read a CI console log of any test framework as failures and a tally.

Takes one pass, in memory that does not grow with the log. `names` knows how frameworks name failed
tests.
"""

import hashlib
import re
from collections import deque
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import ClassVar

import msgspec

from interlock.system.test_output import FailedTest, TestCounts
from interlock.system.test_output.counts import (
    MOST_SHAPES,
    CountReader,
    compute_shape,
    may_count,
    strip_console,
)
from interlock.system.test_output.names import (
    HEADING,
    ROWS,
    WENT_WRONG,
    NamedTest,
    NamePattern,
    may_name,
    read_name,
    split_path,
)

_GRADLE = next(row for row in ROWS if row.tool == "gradle")
_PASSED_AGAIN = re.compile(
    r"(?:Gradle Test Run \S+ > )?(?:Gradle Test Executor \d+ > )?"
    r"(?P<path>\w[^>]*(?: > .+?)+) PASSED(?: \([\d.]+m?s\))?$"
)
_FLAKE = re.compile(r"(?P<cls>[\w.$]+)\.(?P<name>\w+)$|(?P<test>\w+)\((?P<in>[\w.$]+)\)$")
_MOST_FAILURES = 10_000
_HEAD_LINES, _TAIL_LINES = 40, 60
_BLOCK_LINES = 20_000
"""Lines after which a block no longer explains a failure."""
_LINE_CHARS = 500

_TYPE = re.compile(
    r"\s*(?:E\s+|Caused by: |panicked at )?(?P<type>(?:[a-zA-Z_$][\w$]{0,80}[.\\:]{1,2}){0,20}"
    r"[A-Za-z_$][\w$]{0,80}(?:Error|Exception|Failure|Failed|Exit|Interrupt|Panic|Warning))"
    r"(?: \[\w+\])?(?:: ?(?P<message>.*)|(?: at .*)?$)"
)
_LABELLED = re.compile(
    r"\s*(?:E\s+|Error:\s+|Message: |Failure/Error: |panic: |thrown: |\S+_test\.go:\d+: )"
    r"(?P<message>\S.*)"
)
_END = re.compile(
    r"> Task |BUILD |\[=+\]|={20,}$|-{60,}$|\u23af{5}|(?:Testsuite|Testcase|Running)\b|Test run "
)
_FRAME = re.compile(
    r"\s*(?:# )?(?:at |File \"|[\w./\\-]+:\d+(?::|$|:in )|thread '.*' .*panicked at |Stack Trace:"
    r"|Error Message:|stacktrace:|Traceback|\.\.\. |---$|\[gw\d|[\u2713\u2714])"
)
_WORDS = re.compile(r"[^\W\d_]{2}")
_RULE = re.compile(r"[-=]{60,}$")
_SUITE = re.compile(r"(?:Testsuite: |Running )(?P<cls>[\w.$]+)$|(?P<spec>[A-Z]\w*):$")
RUN_EVENT = re.compile(
    r"=== (?:RUN|CONT|NAME|PAUSE) +(?P<running>\S+)$| *--- (?:PASS|SKIP): (?P<ended>\S+) \("
    r"|\[ RUN +\] (?P<begun>\S+)|\[ +(?:OK|SKIPPED) +\] (?P<done>\S+)"
    r"|(?:FAIL|ok  |\?   )\t\S|(?:FAIL|PASS)$"
)
"""A line that says which test prints what follows, for tools that name a test before it runs."""
_GROUP = re.compile(r" *\u25b6 (?P<name>\S.*)$")
_LAST_WORD = frozenset({"pytest", "unittest"})
"""Tools that print the decisive exception last."""
_EXPECTED = re.compile(r"(?i)\W*(?:expected|left)\b")
_ACTUAL = re.compile(r"(?i)\W*(?:actual|got|but|right|received)\b")


class TestLog(msgspec.Struct, frozen=True):
    """The failures and counts of a console log."""

    __test__: ClassVar = False  # pytest must not collect it

    failures: list[FailedTest]
    tally: TestCounts
    parents: int = 0
    """The number of failed tests left out because a part of each is among the failures."""


class _OpenFailure(msgspec.Struct):
    """A failure that the log named, and the lines below that explain it."""

    named: NamedTest
    tool: str
    sure: bool
    head: list[str]
    tail: deque[str]
    weak: bool = False
    whole: bool = False
    stacked: bool = False
    explained: bool = False
    """Some line that introduces an explanation has named it."""
    size: int = 0

    def add(self, line: str) -> None:
        """Add a line; of a long explanation the beginning and the end are kept."""
        self.size += 1
        (self.head if len(self.head) < _HEAD_LINES else self.tail).append(line[:_LINE_CHARS])

    def extend_name(self, line: str) -> None:
        """Add one more line of a name; what came before becomes its class."""
        part, named = line.strip(), self.named
        if part:
            self.stacked = not part.endswith(":")
            cls = f"{named.cls} {named.name}".strip()
            self.named = msgspec.structs.replace(named, cls=cls, name=part.rstrip(":"))

    def lines(self) -> list[str]:
        left_out = self.size - len(self.head) - len(self.tail)
        return [*self.head, *([f"... {left_out} lines ..."] if left_out else []), *self.tail]


def read_log(lines: Iterable[str]) -> TestLog:
    """Return the failures in the order they are first named, and the tally of all summary lines."""
    reader = TestLogReader()
    for line in lines:
        reader.add_line(line)
    return reader.finish()


def _is_idle(line: str) -> bool:
    """Return True if a line names, counts and begins nothing."""
    if " PASSED" in line and "FAIL" not in line and "ERROR" not in line:
        return True  # one more test that passed
    return not (
        not line.strip()
        or line.startswith("{")
        or "}" in line
        or may_name(line)
        or may_count(line)
        or any(pattern.match(line) for pattern in (RUN_EVENT, HEADING, _SUITE, _GROUP))
    )


@lru_cache(maxsize=64)
def _lists_names(section: str) -> bool:
    """Return True if lines below that heading may name tests in forms that are unsafe elsewhere."""
    return section.startswith("Flakes") or any(
        row.section.search(section) for row in ROWS if row.section
    )


class _GoEvent(msgspec.Struct, rename="pascal"):
    action: str
    test: str = ""
    output: str = ""


class TestLogReader:
    """Collect failures and counts line by line, in memory that does not grow with the log."""

    __test__: ClassVar = False  # pytest must not collect it

    def __init__(self) -> None:
        self.counting = CountReader()
        self.failures: list[_OpenFailure] = []
        self.known: dict[tuple[str, str], list[_OpenFailure]] = {}
        """Failures of the current run of tests, which later lines may name again."""
        self.open: _OpenFailure | None = None
        self.suite = ""
        self.section = ""
        self.before = ""
        self.depth = 0
        self.groups: set[str] = set()
        """Groups that have begun; one that fails does so because a part of it did."""
        self.idle_shapes: set[bytes] = set()
        """Shapes of lines that mean nothing while no failure is being read."""
        self.running = ""
        self.outputs: dict[str, list[str]] = {}
        """Output of running tests, for tools that name them."""

    @property
    def is_listening(self) -> bool:
        """Return True if a line that names and counts nothing may still mean something."""
        return self.open is not None or bool(self.outputs) or _lists_names(self.section)

    def skip_lines(self) -> None:
        """Note that irrelevant lines were skipped."""
        self.before = ""

    def knows_idle(self, shape: bytes) -> bool:
        """Return True if lines of that shape mean nothing while no failure is being read."""
        return shape in self.idle_shapes

    def add_line(self, raw: str) -> None:
        if self.open is None and not self.outputs and not self.section.startswith("Flakes"):
            shape = compute_shape(raw)
            if shape in self.idle_shapes and not (self.failures and " PASSED" in raw):
                self.before = ""
                return
            line = strip_console(raw)
            if _is_idle(line) and not (self.failures and " PASSED" in line):
                if len(self.idle_shapes) >= MOST_SHAPES:
                    self.idle_shapes.clear()
                self.idle_shapes.add(shape)
                self.before = line
                return
        else:
            line = strip_console(raw)
        if line.startswith("{") and '"Action":"' in line:
            self._add_event(line)
        else:
            self._add_text(line)

    def _add_event(self, line: str) -> None:
        """Read one event of `go test -json`: a test's output, and its name."""
        try:
            event = msgspec.json.decode(line, type=_GoEvent)
        except (msgspec.DecodeError, msgspec.ValidationError):
            return
        if event.test and event.test in self.outputs:
            self.running = event.test
        if event.output:
            self._add_text(event.output.rstrip("\n"))

    def _add_text(self, line: str) -> None:
        if event := RUN_EVENT.match(line):
            self._follow_run(event)
            if self.running or event["ended"]:
                self.counting.add_line(line)
                self.before = line
                return
        if self.counting.add_line(line):
            self._end_run(line)
        elif not (self._read_retry(line) or self._read_name(line)):
            self._add_reason(line)
        if line.strip():
            self.before = line

    def finish(self) -> TestLog:
        tally = self.counting.compute_total()
        failures = _drop_doubtful(
            [failure for failure in self.failures if failure.sure], tally.failed
        )
        uncounted = sum(
            not (failure.weak or self.counting.has_counts(failure.tool)) for failure in failures
        )
        tally = msgspec.structs.replace(
            tally, tests=tally.tests + uncounted, failed=tally.failed + uncounted
        )
        parts = _drop_parents(failures)
        return TestLog(_list_failures(parts), tally, len(failures) - len(parts))

    def _follow_run(self, event: re.Match[str]) -> None:
        """Follow which test runs: some tools print its output before the line that fails it."""
        if self.open and self.open.tool in ("go", "gtest"):
            self.open = None
        self.running = event["running"] or event["begun"] or ""
        if self.running:
            if len(self.outputs) < _MOST_FAILURES:
                self.outputs.setdefault(self.running, [])
        elif ended := event["ended"] or event["done"]:
            self.outputs.pop(ended, None)
        else:
            self.outputs.clear()

    def _end_run(self, line: str) -> None:
        if self.open and self.open.weak and not self.open.size:
            self.failures.remove(self.open)  # a line with its own count is a suite
        self.known, self.open = {}, None
        self.section = line if HEADING.match(line) else ""

    def _read_name(self, line: str) -> bool:
        found = read_name(line, self.before, self.section)
        if not found:
            return False
        row, named = found
        if not named.cls and row.tool in ("surefire", "sbt"):
            named = msgspec.structs.replace(named, cls=self.suite)
        deeper, self.depth = self.depth, named.depth
        if named.depth < deeper or (row.weak and named.name in self.groups):
            return True  # a part of it failed just before
        failure = self._find_known(row, named)
        if not failure and len(self.failures) < _MOST_FAILURES:
            failure = _OpenFailure(
                named=named,
                tool=row.tool,
                sure=not row.pending,
                head=[],
                tail=deque(maxlen=_TAIL_LINES),
                weak=row.weak,
                whole=row.whole,
                stacked=row.stacked,
            )
            self.failures.append(failure)
            keys = {named.key, named.loose_key, named.class_key}
            for key in keys if named.cls.islower() else keys - {named.class_key}:
                self.known.setdefault(key, []).append(failure)
        if failure and row.tool in ("go", "gtest"):
            for output in self.outputs.pop(named.path, ()):
                failure.add(output)
        # A summary whose message begins with an empty line continues below.
        is_explained = row.block or (row.loose and not named.message)
        if failure and row.block:
            failure.explained = True
        self.open = failure if is_explained else None
        return True

    def _read_retry(self, line: str) -> bool:
        """Drop a failure that passed when it was tried again; return True if the line says so."""
        pattern = _FLAKE if self.section.startswith("Flakes") else _PASSED_AGAIN
        if not self.failures or not (found := pattern.match(line)):
            return False
        if pattern is _FLAKE:
            cls, name = found["cls"] or found["in"], found["name"] or found["test"]
        else:
            cls, name = split_path(found["path"], _GRADLE)
        passed = [one for one in self.known.get(NamedTest(name, cls).key, ()) if not one.whole]
        for failure in passed:
            self.known[failure.named.key].remove(failure)
            self.failures = [one for one in self.failures if one is not failure]
        return bool(passed)

    def _find_known(self, row: NamePattern, named: NamedTest) -> _OpenFailure | None:
        """Return the failure that is named once more, and add its file or message if either was
        missing."""
        known = self.known.get(named.loose_key if row.loose else named.key, [])
        if row.loose and not known:
            known = self.known.get(named.class_key, [])
        for failure in known:
            if not row.loose and failure.named.name != named.name:
                continue
            if failure.weak != row.weak or (not row.repeats and failure.explained):
                continue
            if not failure.named.file or failure.named.file == named.file or not named.file:
                message = failure.named.message or named.message
                file = failure.named.file or named.file
                failure.named = msgspec.structs.replace(failure.named, file=file, message=message)
                return failure
        return None

    def _add_reason(self, line: str) -> None:
        self._update_place(line)
        failure = self.open
        output = self.outputs.get(self.running)
        if output is not None and len(output) < _HEAD_LINES and not RUN_EVENT.match(line):
            output.append(line)
        if not failure or (failure.size < 3 and _RULE.match(line)):
            return
        if failure.stacked:
            failure.extend_name(line)
        elif not failure.sure:
            if not line.strip():
                return
            failure.sure = bool(WENT_WRONG.match(line))
            self.open = failure if failure.sure else None
        elif _END.match(line) or failure.size == _BLOCK_LINES:
            self.open = None
        else:
            failure.add(line)

    def _update_place(self, line: str) -> None:
        """Note the heading, suite or group that the lines below belong to."""
        if heading := HEADING.match(line):
            if heading["title"] or self.section not in ("FAILURES", "ERRORS"):
                self.section = heading["title"] or heading["line"]
                self.open = None
        elif suite := _SUITE.match(line):
            self.suite = suite["cls"] or suite["spec"]
        elif group := _GROUP.match(line):
            self.groups.add(group["name"])
        elif line.strip() == "}":
            self.depth = 0


_LABEL = re.compile(r"\s*[^\W\d_][\w -]{0,30}:$")
"""A line that only labels the lines below it."""
_MOST_LABELS = 3


def _join_labels(lines: Sequence[str]) -> str:
    """Join labels with the first line of each block; empty unless the lines begin with two or more
    labels."""
    said = [line for line in lines if line.strip() and not _FRAME.match(line)]
    labels = [at for at, line in enumerate(said) if _LABEL.match(line)]
    if len(labels) < 2 or labels[0] != 0:
        return ""
    blocks = zip(labels, [*labels[1:], len(said)], strict=True)
    parts = [
        f"{said[first].strip()} {said[first + 1].strip() if first + 1 < end else '(empty)'}"
        for first, end in blocks
    ]
    return ", ".join(parts[:_MOST_LABELS])


_NO_NAME = re.compile(
    r"(?i)(?:[a-z]{1,3}|done|errors?|fail(?:ed|ing|ures?)?|skipped|summary|tests?|total|results?)$"
)
"""Names too generic to be those of tests."""


def _drop_doubtful(failures: list[_OpenFailure], failed: int) -> list[_OpenFailure]:
    """Drop what merely looks like a failing test, unless the counts leave room for it."""
    sure = {failure.named.name: failure for failure in failures if not failure.weak}
    failures = [one for one in failures if not (one.weak and _NO_NAME.match(one.named.name))]
    room = failed - sum(not (failure.weak or failure.whole) for failure in failures)
    weak: dict[str, dict[tuple[str, str], _OpenFailure]] = {}
    for failure in failures:
        other = sure.get(failure.named.name)
        if failure.weak and not other:
            weak.setdefault(failure.tool, {}).setdefault(failure.named.key, failure)
        elif failure.weak and other and not other.size:
            other.head, other.tail, other.size = failure.head, failure.tail, failure.size
    kept: set[int] = set()
    for group in weak.values():
        if len(group) <= room:
            room -= len(group)
            kept.update(map(id, group.values()))
    return [failure for failure in failures if not failure.weak or id(failure) in kept]


def _drop_parents(failures: list[_OpenFailure]) -> list[_OpenFailure]:
    """Drop failures that were only caused by a failed part."""
    go_names = [failure.named.name for failure in failures if failure.tool == "go"]
    parents = {name.rsplit("/", at)[0] for name in go_names for at in (1, 2, 3) if "/" in name}
    return [one for one in failures if one.tool != "go" or one.named.name not in parents]


def _list_failures(failures: list[_OpenFailure]) -> list[FailedTest]:
    """Return the failures as records."""
    seen: dict[tuple[str, str, str], int] = {}
    made = []
    for failure in failures:
        key = (failure.named.file, failure.named.cls, failure.named.name)
        seen[key] = seen.get(key, 0) + 1
        made.append(_build_failure(failure, seen[key]))
    return made


def _build_failure(failure: _OpenFailure, occurrence: int) -> FailedTest:
    named = failure.named
    module = re.sub(r"\.py$", "", named.file).replace("/", ".") if failure.tool == "pytest" else ""
    cls = ".".join(part for part in (module, named.cls.replace("::", ".")) if part)
    kind, message = _find_reason(failure)
    words = "\0".join((named.file, named.cls, named.name, str(occurrence)))
    digest = hashlib.blake2b(words.encode("utf-8", "surrogatepass"), digest_size=8)
    return FailedTest(
        id=digest.hexdigest(),
        test_name=named.name,
        class_name=cls if cls != named.name else "",
        type=kind,
        message=message,
        stack="\n".join(failure.lines()).strip("\n"),
        file=named.file,
    )


def _find_reason(failure: _OpenFailure) -> tuple[str, str]:
    """Return the type and message of the exception in the lines, else a message on one line."""
    lines = [failure.named.message, *failure.lines()]
    found = [(at, match) for at, line in enumerate(lines) if (match := _TYPE.match(line))]
    if found:
        at, best = found[-1 if failure.tool in _LAST_WORD else 0]
        # Some libraries begin a message with an empty line.
        below = _find_telling(lines[at + 1 : at + 5]) if not (best["message"] or "").strip() else []
        is_open = best["message"] is not None
        message = (
            best["message"] or failure.named.message or (below[0] if below and is_open else "")
        )
        return best["type"], "" if _FRAME.match(message) else message.strip()
    messages = [match["message"] for line in lines if (match := _LABELLED.match(line))]
    messages = messages or [failure.named.message]
    if not messages[0]:
        messages = _find_telling(lines)
    return "", messages[0].strip() if messages else ""


def _find_telling(lines: Sequence[str]) -> list[str]:
    """Return the meaningful lines, an expected value joined with the actual one."""
    telling = [line for line in lines if _WORDS.search(line) and not _FRAME.match(line)]
    if labels := _join_labels(lines):
        return [labels, *telling]
    if len(telling) > 1 and _EXPECTED.match(telling[0]) and _ACTUAL.match(telling[1]):
        telling[0] = f"{telling[0].strip()}, {telling[1].strip()}"
    return telling
