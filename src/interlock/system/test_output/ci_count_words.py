"""The words in which tools count tests, and summary lines of tools that nobody has listed.

Knows no tool. A line is taken for a summary only when it consists of such counts; a log in which a
known tool counts is not read this way. Refuses lines that count suites, files, steps or checks.
"""

import re
from collections.abc import Iterable

from interlock.rca.launch import TestCounts

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


def counts_of(line: str) -> TestCounts:
    """The counts in a line that is known to hold some: `3 failed, 5 passed` or `Failed: 3`."""
    pairs = [(word, number) for number, word in _NUMBER_FIRST.findall(line)]
    if not any(word.lower() in _MEANING for word, _ in pairs):
        pairs = _WORD_FIRST.findall(line)
    sums = {"tests": 0, "ran": 0, "failed": 0, "skipped": 0}
    told = False
    for word, number in pairs:
        meaning = _MEANING.get(word.lower())
        if meaning:
            sums[meaning] += int(number)
            told |= meaning == "tests"
    tests = sums["tests"] if told else sums["ran"] + sums["failed"]
    return TestCounts(tests=tests, failed=sums["failed"], skipped=sums["skipped"])


def sum_of(tallies: Iterable[TestCounts]) -> TestCounts:
    """All of them together."""
    tests = failed = skipped = 0
    for each in tallies:
        tests, failed, skipped = tests + each.tests, failed + each.failed, skipped + each.skipped
    return TestCounts(tests=tests, failed=failed, skipped=skipped)


class Others:
    """Summary lines of unknown tools in, one tally out."""

    def __init__(self) -> None:
        self._sum = TestCounts()

    def take(self, line: str) -> None:
        """Count `line` if it is a summary; one that repeats the sum of all others is a total."""
        if _SUMMARY.match(line) and not _NOT_TESTS.search(line):
            told = counts_of(line)
            if told.tests and told != self._sum:
                self._sum = sum_of((self._sum, told))

    def total(self) -> TestCounts:
        """What they say together."""
        return self._sum
