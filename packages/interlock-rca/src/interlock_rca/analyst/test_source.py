"""Where a failing test is written: its file and its lines, by its stack, its file or its name.

Runners differ in what they tell: a line of the stack, the test's file, its class, or no more than a
title. The title is looked for in the files of the tests; what a test does between its heading and
the line that failed is what it is about.
"""

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence

import msgspec

from interlock_rca.analyst.definitions import find_definitions, list_identifiers
from interlock_rca.analyst.names import detect_language, strip_qualifiers
from interlock_rca.analyst.stack import StackLocation, is_test_name
from interlock_rca.records import Failure
from interlock_rca.sources.git.content import TextHit
from interlock_rca.sources.git.repository import Repository

_TEST_PLACES = ("test", "spec")
_MOST_TITLES = 12
_SHORTEST_TITLE = 4
_BLOCK_HEAD = re.compile(
    r"^\s*(?:(?:it|test|describe|context|specify|scenario|suite|t\.test|t\.Run|tap\.test|QUnit\.test)"
    r"(?:\.\w+)*\s*\(|(?:it|describe|context|specify|test|scenario)\s+['\"]|TEST(?:_[FP])?\()"
)
_LONGEST_BODY = 250
_NEAR_ROW = 6
"""Lines around a row of a table of cases that belong to it."""
_NEAR_TOLD = 2
_LONG_TEXT = 8
_LITERAL = re.compile(r"\"([^\"\n]+)\"|'([^'\n]+)'|`([^`\n]+)`")
_LONGEST_LINE = 500
_MOST_TOLD = 4_000
_UNHEARD = 0.7
_MOST_ALIKE = 2


class TestSource(msgspec.Struct, frozen=True):
    """The test's own lines. `focus` are those that say most: the row of the case, the line that
    failed."""

    __test__ = False

    path: str
    first: int = 0
    last: int = 0
    body: str = ""
    focus: str = ""
    rows: tuple[int, int] = (0, 0)
    """The first and last line of the case in a table of cases; zeros if it is in none."""

    @property
    def names(self) -> frozenset[str]:
        return list_identifiers(self.body)


def find_test_source(
    failure: Failure, repository: Repository, rev: str, spots: Sequence[StackLocation]
) -> TestSource | None:
    """The source of a failing test, as far as it can be told."""
    if not repository.is_readable:
        return None
    tests = [spot for spot in spots if spot.is_test and spot.line]
    outermost = max(tests, key=lambda spot: spot.depth, default=None)
    hit = None
    if outermost is None:
        path = _find_file(failure, repository, rev)
        hit = _find_by_title(failure, repository, rev, path)
        path = hit.path if hit else path
        line = failure.line if failure.line and path == failure.file else 0
    else:
        path, line = outermost.path, outermost.line
    if not path:
        return None
    content = repository.read_files([path], rev).get(path)
    lines = (content or b"").decode("utf-8", "replace").split("\n")
    heading = hit.line if hit else 0
    if line and (called := _find_called(lines, line, failure.test_name)):
        line, heading = 0, called  # it failed in a helper; the test itself says more
    return _cut_source(path, lines, line, heading, failure)


def _find_called(lines: Sequence[str], line: int, name: str) -> int:
    """Where the function begins that is called like the test, if the line is not in it."""
    root = strip_qualifiers(name.partition("/")[0])
    named = [each for each in find_definitions("\n".join(lines)) if each.name == root]
    if not named or any(each.first <= line <= each.last for each in named):
        return 0
    return named[0].first


def _find_file(failure: Failure, repository: Repository, rev: str) -> str:
    """The file that the report names, or the one that is called like the test's class."""
    named = failure.test_name if "/" in failure.test_name else ""
    for word in (failure.file, failure.code_ref.partition(":")[0], failure.class_name, named):
        if not word or " " in word:
            continue
        found = [match.path for match in repository.find_files(word, rev)]
        tests = [path for path in found if is_test_name(path) and detect_language(path)]
        if tests:
            return tests[0]
    return ""


def _find_by_title(failure: Failure, repository: Repository, rev: str, path: str) -> TextHit | None:
    """Where the name of the test stands in the files of the tests: its longest part that does."""
    titles = list(_list_titles(failure))
    hits = [
        hit
        for hit in repository.search_text(titles, (path,) if path else _TEST_PLACES, rev)
        if detect_language(hit.path)
    ]
    for title in titles:
        found = [hit for hit in hits if title in hit.text]
        if path:
            found = [hit for hit in found if hit.path == path] or found
        package = _find_package(failure.class_name)
        if package and not path:
            found = [
                hit for hit in found if f"/{hit.path}".rpartition("/")[0].endswith(package)
            ] or found
        if found:
            heads = [hit for hit in found if _is_heading(hit.text, title)]
            return (heads or found)[0]
    return None


def _find_package(class_name: str) -> str:
    """The last folder of a class name that is a package's path, as Go's is."""
    return f"/{class_name.rpartition('/')[2]}" if "/" in class_name else ""


def _is_heading(text: str, title: str) -> bool:
    return bool(
        _BLOCK_HEAD.match(text)
        or re.search(rf"\b(?:def|func|fn|void|fun)\b.*{re.escape(title)}", text)
    )


def _list_titles(failure: Failure) -> Iterator[str]:
    """Parts of the test's name that may stand in its source, the longest first."""
    name = failure.test_name.strip()
    plain = re.split(r"\[|\(", name)[0].strip() if not name.startswith(("[", "(")) else name
    found = [name, plain, strip_qualifiers(name)]
    if "/" in name and " " not in name:  # Go's subtests
        found += [name.partition("/")[0]]
    words = name.split(" ")
    found += [" ".join(words[start:]) for start in range(1, min(len(words), _MOST_TITLES))]
    seen = [each for each in dict.fromkeys(found) if len(each) >= _SHORTEST_TITLE]
    yield from sorted(seen, key=lambda each: -len(each))


def _cut_source(
    path: str, lines: Sequence[str], line: int, heading: int, failure: Failure
) -> TestSource:
    """The test's lines: from its heading to the line that failed, or to its end."""
    if not 0 < line <= len(lines):
        line = 0
    at = line or heading
    if not at:
        return TestSource(path)
    first, last = _find_block(lines, at)
    last = min(last, first + _LONGEST_BODY)
    reached = min(last, line + 3) if line else last
    body = "\n".join(row[:500] for row in lines[first - 1 : reached])
    focus = "\n".join(row[:500] for row in lines[line - 1 : line + 2]) if line else ""
    rows = _find_rows(lines, *_find_table(lines, first, last), failure)
    case = "\n".join(row[:500] for row in lines[rows[0] - 1 : rows[1]]) if rows[0] else ""
    return TestSource(path, first, reached, body, f"{focus}\n{case}", rows)


def _find_block(lines: Sequence[str], at: int) -> tuple[int, int]:
    """The test that a line is in: by its definition, or by the indentation of a block that is
    called like one."""
    indent = _measure_indent(lines[at - 1])
    for number in range(at, max(0, at - _LONGEST_BODY), -1):
        row = lines[number - 1]
        is_outer = row.strip() and (_measure_indent(row) < indent or number == at)
        if is_outer and _BLOCK_HEAD.match(row):
            return number, _find_end(lines, number)
    around = [
        each
        for each in find_definitions("\n".join(lines))
        if each.first <= at <= each.last and not each.is_type
    ]
    if around:
        outer = around[0]
        return outer.first, outer.last
    return max(1, at - 20), min(len(lines), at + 20)


def _find_table(lines: Sequence[str], first: int, last: int) -> tuple[int, int]:
    """Where a table of cases may stand that a test goes through: in the whole function it is in."""
    around = [
        each
        for each in find_definitions("\n".join(lines))
        if each.first <= first and last <= each.last and not each.is_type
    ]
    return (around[0].first, min(around[0].last, last + _LONGEST_BODY)) if around else (first, last)


def _find_end(lines: Sequence[str], first: int) -> int:
    indent = _measure_indent(lines[first - 1])
    for number in range(first + 1, min(len(lines), first + _LONGEST_BODY) + 1):
        row = lines[number - 1]
        if row.strip() and _measure_indent(row) <= indent:
            return number
    return min(len(lines), first + _LONGEST_BODY)


def _find_rows(lines: Sequence[str], first: int, last: int, failure: Failure) -> tuple[int, int]:
    """The rows of a table of cases that the name of a subtest, its values, or the texts that the
    failure tells point at."""
    _, _, sub = failure.test_name.partition("/")
    values = re.search(r"\[(.+)\]$", failure.test_name, re.DOTALL)
    wanted = [sub, sub.replace("_", " ")] if sub else []
    wanted += [part for part in values[1].split("-") if len(part) > 2] if values else []
    for word in wanted:
        if len(word) < _SHORTEST_TITLE:
            continue
        for number in range(first, last + 1):
            if word in lines[number - 1]:
                return number, min(last, number + _NEAR_ROW - 1)
    found = _find_told_row(lines[first - 1 : last], f"{failure.message}\n{failure.stack}")
    return (first + found, min(last, first + found + _NEAR_TOLD)) if found >= 0 else (0, 0)


def _find_told_row(lines: Sequence[str], told: str) -> int:
    """The line whose texts the failure repeats most, rare ones before common ones; -1 if no line
    stands out."""
    texts = [
        {
            *(next(filter(None, found)) for found in _LITERAL.findall(line[:_LONGEST_LINE])),
            *([line.strip()] if len(line.strip()) >= _LONG_TEXT and line.strip() in told else []),
        }
        for line in lines
    ]
    said = told[:_MOST_TOLD]
    known = Counter(text for each in texts for text in each)
    heard = {text for text in known if _is_repeated(text, said)}
    if not heard:
        return -1
    scores = [
        sum(math.log(1 + len(lines) / known[text]) for text in each & heard)
        - _UNHEARD * len(each - heard)
        for each in texts
    ]
    best = max(scores)
    return scores.index(best) if best > 0 and scores.count(best) <= _MOST_ALIKE else -1


def _is_repeated(text: str, said: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(text)}(?!\w)", said) is not None


def _measure_indent(line: str) -> int:
    return len(line) - len(line.lstrip())
