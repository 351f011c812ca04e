"""Tests that a change weakened: tests that existed before and assert less now, or are gone. Pure.

In Python each test is compared by its name, wherever in the change it was moved to. In languages
with braces the assertions of each file are counted. An assertion that cannot fail counts as none.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from interlock.delivery.diff_findings.braces import count_claims
from interlock.delivery.diff_findings.python import count_assertions, parse_python
from interlock.delivery.diff_findings.source import DiffFinding, split_source
from interlock.system.file_kinds import find_language

KIND = "weakened_test"


class _Test(NamedTuple):
    line: int
    assertions: int


def find_weakened_tests(
    before: Mapping[str, str], after: Mapping[str, str]
) -> tuple[DiffFinding, ...]:
    """From the old and the new texts of files with tests, by path, to what is weaker now. A file
    that was deleted has only an old text, one that was added only a new one."""
    python_before = {path: text for path, text in before.items() if path.endswith(".py")}
    python_after = {path: text for path, text in after.items() if path.endswith(".py")}
    found = [
        *_compare_python(python_before, python_after),
        *_compare_counts(
            {path: text for path, text in before.items() if path not in python_before},
            {path: text for path, text in after.items() if path not in python_after},
        ),
    ]
    return tuple(sorted(found))


def _compare_python(before: Mapping[str, str], after: Mapping[str, str]) -> Iterator[DiffFinding]:
    new = {path: _read_tests(text) for path, text in after.items()}
    moved = {}
    for tests in new.values():
        for name, test in (tests or {}).items():
            moved[name.rpartition(".")[2]] = test
    for path, text in before.items():
        now = new.get(path, {})
        if now is None:
            yield DiffFinding(path, 1, KIND, "its tests cannot be read any more", "error")
            continue
        for name, test in (_read_tests(text) or {}).items():
            other = now.get(name) or moved.get(name.rpartition(".")[2])
            if test.assertions and (other is None or other.assertions < test.assertions):
                line = other.line if other else 1
                yield DiffFinding(path, line, KIND, _describe(name, test, other), "error")


def _describe(name: str, before: _Test, now: _Test | None) -> str:
    if now is None:
        return f"{name} is gone"
    if not now.assertions:
        return f"{name} makes no assertion any more; it made {before.assertions} before"
    made = "1 assertion" if now.assertions == 1 else f"{now.assertions} assertions"
    return f"{name} makes {made}; it made {before.assertions} before"


def _read_tests(text: str) -> dict[str, _Test] | None:
    """The tests of a Python file by their names, with the class before them; None if it cannot be
    parsed."""
    tree = parse_python(text)
    if tree is None:
        return None
    return {name: _Test(node.lineno, number) for name, node, number in count_assertions(tree)}


def _compare_counts(before: Mapping[str, str], after: Mapping[str, str]) -> Iterator[DiffFinding]:
    """By file. What one file lost and another of the change won was moved."""
    old = {path: _count_claims(path, text) for path, text in before.items()}
    new = {path: _count_claims(path, text) for path, text in after.items()}
    lost = Counter[str]()
    for path in {*old, *new}:
        lost[find_language(path)] += old.get(path, 0) - new.get(path, 0)
    for path, number in old.items():
        now = new.get(path, 0)
        if now < number and lost[find_language(path)] > 0:
            sentence = f"its tests make {now} assertions; they made {number} before"
            yield DiffFinding(path, 1, KIND, sentence, "error")


def _count_claims(path: str, text: str) -> int:
    return count_claims(split_source(path, text))
