"""Strip colours, clocks and levels from lines of a CI console, and read their counts.

The table `ROWS` holds the summary lines of test frameworks; supporting another one is one more row.
A row names its numbers, or leaves that to the words beside them. Where no known tool counts, a line
of nothing but counts counts as a summary. Long lines are cut, so that a log without line ends needs
no more memory than any other.
"""

import re
from collections.abc import Iterable, Iterator
from typing import BinaryIO

import msgspec

from interlock.system.test_output import TestCounts
from interlock.system.text import strip_colours

_MEANING = {
    **dict.fromkeys(("run", "runs", "tests", "test", "total", "count", "completed"), "tests"),
    **dict.fromkeys(("examples", "example", "specs", "spec", "scenarios", "scenario"), "tests"),
    **dict.fromkeys(("passed", "passing", "passes", "succeeded", "successes"), "ran"),
    **dict.fromkeys(("xfailed", "xpassed", "subtests", "flaky"), "ran"),
    **dict.fromkeys(("failed", "failures", "failure", "failing", "fail", "fails"), "failed"),
    **dict.fromkeys(("error", "errors", "unexpected successes"), "failed"),
    **dict.fromkeys(("undefined", "ambiguous"), "failed"),
    **dict.fromkeys(
        ("skipped", "skips", "skip", "ignored", "pending", "todo", "disabled"), "skipped"
    ),
}

_NUMBER_FIRST = re.compile(r"(\d+) (?:tests? (?=passed|failed|skipped|ignored))?([A-Za-z]+)")
_WORD_FIRST = re.compile(r"((?:un)?expected[ _][a-z]+|[A-Za-z]+) ?(?:[:=] *| )(\d+)")

_COUNT = r"\d+ [A-Za-z]+"
_NAMED = r"[A-Za-z]+ ?[:=] *\d+"
_SUMMARY = re.compile(
    r"(?:[^\d:(|]{0,40}[:(|]|\W{0,8}) *"
    rf"(?:\d+ tests? (?:passed|failed|skipped)|{_COUNT}(?:(?:[,;]| [|/]| and|, and) +{_COUNT})+"
    rf"|(?:[Tt]ests? )?{_NAMED}(?:(?:[,;]| [|/]|) +{_NAMED})+)"
    r"[).|\s]*(?:in [\d.:]+.{0,20})?$"
)
_NOT_TESTS = re.compile(
    r"(?i)\b(?:suites?|files?|steps?|assertions?|checks?|hosts?|features?|expects?|modules?"
    r"|groups?|jobs?|warnings?|problems?)\b"
)


def parse_counts(line: str) -> TestCounts:
    """Return the counts in a summary line: `3 failed, 5 passed` or `Failed: 3`."""
    pairs = [(word, number) for number, word in _NUMBER_FIRST.findall(line)]
    if not any(word.lower() in _MEANING for word, _ in pairs):
        pairs = _WORD_FIRST.findall(line)
    sums = {"tests": 0, "ran": 0, "failed": 0, "skipped": 0}
    has_total = False
    for word, number in pairs:
        meaning = _MEANING.get(word.lower())
        if meaning:
            sums[meaning] += int(number)
            has_total |= meaning == "tests"
    tests = sums["tests"] if has_total else sums["ran"] + sums["failed"]
    return TestCounts(tests=tests, failed=sums["failed"], skipped=sums["skipped"])


def add_counts(tallies: Iterable[TestCounts]) -> TestCounts:
    """Return the sum of all counts."""
    tests = failed = skipped = 0
    for tally in tallies:
        tests, failed, skipped = tests + tally.tests, failed + tally.failed, skipped + tally.skipped
    return TestCounts(tests=tests, failed=failed, skipped=skipped)


class CountPattern(msgspec.Struct, frozen=True):
    """One form of summary line. Among the rows of one tool, the highest rank that occurs wins."""

    tool: str
    rank: int
    line: re.Pattern[str]
    running: bool = False
    """The line counts everything so far; other lines are added up."""
    outcome: bool = False
    """The line only says how tests ended; another says how many there were."""
    part: bool = False
    """The line ends a class of tests, not a run."""
    lists: bool = False
    """The failed tests are listed again below the line."""


def _row(tool: str, rank: int, line: str, **flags: bool) -> CountPattern:
    return CountPattern(tool, rank, re.compile(line), **flags)


_NUMBER_WORDS = r"(?:\d+ [a-z]+(?: [a-z]+)?(?:, |$| ))+"

ROWS = (
    _row("pytest", 1, rf"=*[ ]?{_NUMBER_WORDS}in [\d.]+ ?s(?:econds)?\b"),
    _row("unittest", 1, r"Ran \d+ tests? in [\d.]+s(?: using .*)?$"),
    _row("unittest", 1, r"(?:FAILED|OK) \((?:[A-Za-z_ ]+=\d+(?:, )?)+\)$", outcome=True),
    _row("stestr", 1, r"Ran: (?P<tests>\d+) tests in "),
    _row("stestr", 1, r" - Failed: (?P<failed>\d+)$"),
    _row("stestr", 1, r" - Skipped: (?P<skipped>\d+)$"),
    _row("robot", 1, r"\d+ tests?, \d+ passed, \d+ failed(?:, \d+ skipped)?$", running=True),
    _row("surefire", 3, r"Tests run: ?\d+, +Failures: ?\d+(?:, Errors: ?\d+)?(?:, \w+: ?\d+)*$"),
    _row(
        "surefire", 2, r"Tests run: ?\d+, +Failures: ?\d+, +Errors: ?\d+.*Time elapsed", part=True
    ),
    _row("surefire", 1, r"Total tests run: ?\d+, (?:Passes: ?\d+, )?Failures: ?\d+, Skips: ?\d+"),
    _row("gradle", 2, r"\W*Results: \w+ \(\d+ tests?, "),
    _row("gradle", 2, r"(?:FAILURE|SUCCESS): Executed \d+ tests? in "),
    _row("gradle", 1, r"\d+ tests? completed(?:, \d+ failed)?(?:, \d+ skipped)?$"),
    _row("sbt", 3, r"(?:Passed|Failed|Error): Total \d+, Failed \d+, Errors \d+, Passed \d+"),
    _row("sbt", 2, r"Tests: succeeded \d+, failed \d+"),
    _row("sbt", 1, r"Test run finished: \d+ failed, \d+ ignored, \d+ total"),
    _row("junit", 1, r"\[ +(?P<tests>\d+) tests found +\]"),
    _row("junit", 1, r"\[ +(?P<failed>\d+) tests failed +\]"),
    _row("junit", 1, r"\[ +(?P<skipped>\d+) tests skipped +\]"),
    _row("go", 2, r"DONE (?:\d+ runs, )?\d+ tests?(?:, \d+ \w+)*(?: in [\d.]+s)?$"),
    _row("go", 1, r" *--- (?:(?P<PASS>PASS)|(?P<FAIL>FAIL)|(?P<SKIP>SKIP)): \S+ \([\d.]+s\)"),
    _row("jest", 1, r"Tests: +(?:\d+ \w+, )*\d+ total$"),
    _row("vitest", 1, r" *Tests {2,}\d+ \w+(?: \| \d+ \w+)* \(\d+\)$"),
    _row("mocha", 1, r" +\d+ (?:passing \([\d.]+m?s\)|passing \(\d+m\)|failing|pending)$"),
    _row("playwright", 1, r" +\d+ (?:failed|skipped|flaky|passed \([\d.]+m?s?\))$"),
    _row(
        "karma",
        1,
        r".*Executed (?P<tests>\d+) of \d+(?: \((?P<failed>\d+) FAILED\))?",
        running=True,
    ),
    _row("rust", 1, r"test result: \w+\. \d+ passed; \d+ failed; \d+ ignored"),
    _row("rust", 2, r" *Summary \[[^]]*\] +\d+ tests? run: \d+ passed", lists=True),
    _row(
        "dotnet",
        1,
        r"(?:Failed|Passed|Skipped)! +- Failed: +\d+, Passed: +\d+, Skipped: +\d+, Total:",
    ),
    _row("dotnet", 2, r" *Total tests: (?P<tests>\d+)"),
    _row("dotnet", 2, r" +Failed: (?P<failed>\d+)$"),
    _row("dotnet", 2, r" +Skipped: (?P<skipped>\d+)$"),
    _row("examples", 1, r"(?:Finished.*, )?\d+ (?:examples?|tests?|specs?), \d+ failures?\b"),
    _row("minitest", 1, r"\d+ (?:runs|tests), \d+ assertions, \d+ failures, \d+ errors"),
    _row("phpunit", 1, r"Tests: \d+, Assertions: \d+"),
    _row("phpunit", 1, r"OK \(\d+ tests?(?:, \d+ assertions?)?\)$"),
    _row("ctest", 1, r".*tests passed, (?P<failed>\d+) tests? failed out of (?P<tests>\d+)"),
    _row("gtest", 1, r"\[=+\] (?P<tests>\d+) tests? from \d+ test (?:suites?|cases?) ran"),
    _row("gtest", 1, r"\[ +FAILED +\] (?P<failed>\d+) tests?, listed below"),
    _row("gtest", 1, r"\[ +SKIPPED +\] (?P<skipped>\d+) tests?, listed below"),
    _row("tap", 3, r"Files=\d+, Tests=(?P<tests>\d+),"),
    _row("tap", 3, r"\S+ +\(Wstat: .* Tests: \d+ Failed: (?P<failed>\d+)\)"),
    _row("tap", 1, r"(?:#|\u2139) tests? +(?P<tests>\d+)$"),
    _row("tap", 1, r"(?:#|\u2139) fail +(?P<failed>\d+)$"),
    _row("tap", 1, r"(?:#|\u2139) skip(?:ped)? +(?P<skipped>\d+)$"),
    _row(
        "tap",
        0,
        r"(?P<SKIP>ok \d+.* # (?i:skip))|(?P<PASS>ok \d+\b|not ok \d+.* # (?i:todo))"
        r"|(?P<FAIL>not ok \d)",
    ),
    _row("automake", 1, r"# TOTAL: +(?P<tests>\d+)$"),
    _row("automake", 1, r"# (?:FAIL|ERROR): +(?P<failed>\d+)$"),
    _row("automake", 1, r"# SKIP: +(?P<skipped>\d+)$"),
    _row("catch", 1, r"(?:\[doctest\] )?test cases: +(?P<tests>\d+) \|.*?(?P<failed>\d+) failed"),
    _row(
        "xctest",
        1,
        r"\s*Executed (?P<tests>\d+) tests?, with (?:(?P<skipped>\d+) tests? skipped and )?"
        r"(?P<failed>\d+) failures?",
        running=True,
    ),
    _row(
        "bazel",
        1,
        r"Executed \d+ out of (?P<tests>\d+) tests?: (?:.* and )?(?P<failed>\d+) fails?\b",
    ),
    _row("clojure", 1, r"Ran (?P<tests>\d+) tests? containing \d+ assertions?\.$"),
    _row("clojure", 1, r"(?P<failed>\d+) failures?, (?P<error>\d+) errors?\.$"),
    _row(
        "nunit",
        1,
        r" *Test Count: (?P<tests>\d+), Passed: \d+, Failed: (?P<failed>\d+)"
        r"(?:.* Skipped: (?P<skipped>\d+))?",
    ),
    _row("busted", 1, r"\d+ success(?:es)? / \d+ failures? / \d+ errors? / \d+ pending"),
    _row("tasty", 1, r"(?P<failed>\d+) out of (?P<tests>\d+) tests? failed"),
    _row("tasty", 1, r"All (?P<tests>\d+) tests? passed \("),
    _row("scenarios", 1, r"\d+ scenarios? \((?:\d+ \w+(?:, )?)+\)$"),
    _row(
        "scenarios",
        2,
        r"(?P<ran>\d+) scenarios? passed, (?P<failed>\d+) failed,(?: (?P<error>\d+) errors?,)?"
        r" (?P<skipped>\d+) skipped",
    ),
)


def unite_patterns(patterns: Iterable[re.Pattern[str]]) -> re.Pattern[str]:
    """Return one pattern for all, whose last group's number tells which fits first.

    Trying them one by one takes ten times as long.
    """
    plain = (re.sub(r"\(\?P<\w+>", "(?:", each.pattern) for each in patterns)
    return re.compile("|".join(f"(?P<row{at}>{text})" for at, text in enumerate(plain)))


def find_first_row(united: re.Pattern[str], line: str) -> int | None:
    """Return the number of the first pattern that fits; None if none does."""
    found = united.match(line)
    return int(found.lastgroup[3:]) if found and found.lastgroup else None


_ANY_ROW = unite_patterns(row.line for row in ROWS)
_HIGHEST = {row.tool: row.rank for row in sorted(ROWS, key=lambda row: row.rank)}
_STEM_WORDS = """
est ail FAIL ass PASS kip SKIP otal TOTAL run xecuted xample pec cenario pending rror ERROR
Ran: \u2139
"""
_STEMS = (*_STEM_WORDS.split(), "ok ", "OK (", "# ")
_HINT = re.compile(
    r"\d (?:tests?|failed|passed|skipped|errors?|passing|failing|pending|flaky|examples?|specs?"
    r"|runs|total|scenarios?|out of|of)\b|=\d|--- |Tests: |^(?:not )?ok \d"
    r"|^# [A-Z]+: |^Ran: |^ - |test cases:"
    r"|(?:[Tt]ests?|run|Total|[Ff]ailed|Skipped|fail|skip|skipped):? +\d"
)


def may_count(line: str) -> bool:
    """Return True if a line is worth matching against the table."""
    if len(line) > 1_000 or not any(map(line.__contains__, _STEMS)):
        return False
    return _HINT.search(line) is not None


def read_run(line: str) -> tuple[str, TestCounts] | None:
    """Return the tool that ends a run of tests with this line, and its counts; None if none
    does."""
    first = find_first_row(_ANY_ROW, line) if may_count(line) else None
    row = ROWS[first] if first is not None else None
    found = row.line.match(line) if row else None
    if row is None or found is None or row.part or "PASS" in found.groupdict():
        return None
    return row.tool, _parse_tally(found, line)


class CountReader:
    """Add up the counts of summary lines."""

    def __init__(self) -> None:
        self._sums: dict[tuple[str, int], TestCounts] = {}
        self._unlisted = TestCounts()
        """Counts of tools that the table does not list."""

    def add_line(self, line: str) -> bool:
        """Count a bare line; return True if it is a summary that ends a run of tests."""
        if not may_count(line):
            return False
        first = find_first_row(_ANY_ROW, line)
        if first is not None and (found := ROWS[first].line.match(line)):
            row = ROWS[first]
            tally = _parse_tally(found, line)
            self._add(row, msgspec.structs.replace(tally, tests=0) if row.outcome else tally)
            return row.rank == _HIGHEST[row.tool] and not row.lists
        if _SUMMARY.match(line) and not _NOT_TESTS.search(line):
            counts = parse_counts(line)
            # A line that repeats the sum of all others is a total.
            if counts.tests and counts != self._unlisted:
                self._unlisted = add_counts((self._unlisted, counts))
        return False

    def _add(self, row: CountPattern, tally: TestCounts) -> None:
        key = (row.tool, row.rank)
        before = TestCounts() if row.running else self._sums.get(key, TestCounts())
        self._sums[key] = add_counts((before, tally))

    def has_counts(self, tool: str) -> bool:
        """Return True if some line counted the tests of this tool."""
        return any(tool == counted_tool for counted_tool, _ in self._sums)

    def compute_total(self) -> TestCounts:
        """Return the sum over all tools, each by its best kind of line."""
        best: dict[str, TestCounts] = {}
        for (tool, _), tally in sorted(self._sums.items()):
            before = best.get(tool, TestCounts())
            best[tool] = msgspec.structs.replace(tally, tests=tally.tests or before.tests)
        return add_counts(best.values()) if best else self._unlisted


def _parse_tally(found: re.Match[str], line: str) -> TestCounts:
    named = {name: value for name, value in found.groupdict().items() if value}
    if "PASS" in found.groupdict():
        return TestCounts(tests=1, failed="FAIL" in named, skipped="SKIP" in named)
    if not named:
        return parse_counts(line)
    numbers = {name: int(value) for name, value in named.items()}
    failed = numbers.get("failed", 0) + numbers.get("error", 0)
    tests = numbers.get("tests", numbers["ran"] + failed if "ran" in numbers else 0)
    return TestCounts(tests=tests, failed=failed, skipped=numbers.get("skipped", 0))


LINE_LIMIT = 65_536
"""Bytes that are read of a line."""

_CLOCK = re.compile(
    r"\ufeff?(?:[^\t\n]{1,200}\t[^\t\n]{1,200}\t)?\ufeff?\[?\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d:\d\d"
    r"(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?\]?[ ]?|\[?\d\d:\d\d:\d\d(?:\.\d{1,6})?\]?[ ]{1,2}"
)
_SECONDS = re.compile(r"#\d{1,4} \d{1,6}\.\d{1,3} ")
"""A container's build step, and the seconds since it began."""
_MOST_CLOCKS = 2
_LEVELS = re.compile(
    r"(?:[ ]{0,8}\[(?:info|error|warn|warning|debug|junit|testng|exec|java|scalatest)\][ ]?){1,3}",
    re.IGNORECASE,
)


MOST_SHAPES = 50_000
"""Kinds of lines to remember: a log repeats the same few over and over."""


def compute_shape(line: str) -> bytes:
    """Return the line without digits, as bytes, which is eight times as fast as text."""
    return line.encode("utf-8", "surrogatepass").translate(None, b"0123456789")


def strip_clock(line: str) -> str:
    """Return a plain line without the times that a CI server and its tools put before it."""
    for _ in range(_MOST_CLOCKS):
        found = _CLOCK.match(line)
        if not found:
            break
        line = line[found.end() :]
    found = _SECONDS.match(line)
    return line[found.end() :] if found else line


def count_clocks(line: str) -> int:
    """Return the number of times that stand before a plain line."""
    at = 0
    for count in range(_MOST_CLOCKS):
        found = _CLOCK.match(line, at)
        if not found:
            return count
        at = found.end()
    return _MOST_CLOCKS


def strip_console(line: str) -> str:
    """Return what the tool itself wrote: no colours, clock, level or trailing blanks."""
    line = strip_clock(strip_colours(line))
    found = _LEVELS.match(line)
    return (line[found.end() :] if found else line).rstrip()


def read_lines(file: BinaryIO, limit: int = LINE_LIMIT, start: int = 0) -> Iterator[str]:
    """Yield a file's lines after the first `start`, each cut at `limit` bytes."""
    number = 0
    while raw := file.readline(limit):
        number += 1
        if number > start:
            yield raw.decode("utf-8", "replace").rstrip("\r\n")
        while not raw.endswith(b"\n") and (raw := file.readline(limit)):
            pass
