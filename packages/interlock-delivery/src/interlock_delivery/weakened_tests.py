"""Find tests that assert less after a change than before, or are gone. Pure.

An assertion is what the test framework counts as one, and what can fail. Python tests are compared
by name, wherever they were moved, and a call of a function in the same file counts if that function
asserts. In other languages the assertions of each file are counted.
"""

import ast
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Final

import msgspec

from interlock.system.file_kinds import find_language, is_test
from interlock.system.text import plural
from interlock_delivery.assertions import count_assertions, count_skips

_Function = ast.FunctionDef | ast.AsyncFunctionDef
_PYTEST: Final = frozenset(("raises", "warns", "deprecated_call", "fail"))
_SKIPS: Final = frozenset(
    ("skip", "skipif", "skipIf", "skipUnless", "skipTest", "xfail", "expectedFailure")
)
_REFLEXIVE: Final = ast.Eq | ast.Is | ast.LtE | ast.GtE


class WeakenedTest(msgspec.Struct, frozen=True, order=True):
    """A test, or a file of tests, that asserts less than before."""

    path: str
    line: int
    sentence: str


class _Test(msgspec.Struct, frozen=True):
    """A Python test's assertions, and its calls of helpers whose source is unknown."""

    line: int
    assertions: int
    helpers: Counter[str]
    skipped: bool


def find_weakened_tests(
    before: Mapping[str, str], after: Mapping[str, str]
) -> tuple[WeakenedTest, ...]:
    """Return what is weaker in the new texts of test files than in the old ones, by path.

    A deleted file has only an old text, an added one only a new text.
    """
    old = {path: text for path, text in before.items() if path.endswith(".py")}
    new = {path: text for path, text in after.items() if path.endswith(".py")}
    found = [
        *_compare_python(old, new),
        *_compare_counts(
            {path: text for path, text in before.items() if path not in old},
            {path: text for path, text in after.items() if path not in new},
        ),
    ]
    return tuple(sorted(found))


def _compare_python(before: Mapping[str, str], after: Mapping[str, str]) -> Iterator[WeakenedTest]:
    old = {path: tests for path, text in before.items() if (tests := _read_tests(text))}
    new = {path: _read_tests(text) for path, text in after.items()}
    moved = {
        name.rpartition(".")[2]: test
        for path, tests in new.items()
        for name, test in (tests or {}).items()
        if name not in old.get(path, {})
    }
    for path, tests in old.items():
        now = new.get(path, {})
        if now is None:
            yield WeakenedTest(path, 1, "its tests cannot be read any more")
            continue
        for name, test in tests.items():
            other = now.get(name) or moved.get(name.rpartition(".")[2])
            if sentence := _compare_tests(name, test, other):
                yield WeakenedTest(path, other.line if other else 1, sentence)


def _compare_tests(name: str, before: _Test, now: _Test | None) -> str:
    """Return what is weaker about a test; new helper calls make up for nothing."""
    made = before.assertions + before.helpers.total()
    if before.skipped or not made:
        return ""
    if now is None:
        return f"{name} is gone"
    if now.skipped:
        return f"{name} is skipped"
    makes = now.assertions + (now.helpers & before.helpers).total()
    if makes >= made:
        return ""
    if not makes:
        return f"{name} makes no assertion any more; it made {made} before"
    return f"{name} makes {plural(makes, 'assertion', 'assertions')}; it made {made} before"


def _compare_counts(before: Mapping[str, str], after: Mapping[str, str]) -> Iterator[WeakenedTest]:
    """Yield the files with fewer assertions or more skips, unless another file gained them."""
    for what, sign, count in (
        ("assertion", 1, count_assertions),
        ("skipped test", -1, count_skips),
    ):
        old = {path: sign * count(path, text) for path, text in before.items()}
        new = {path: sign * count(path, text) for path, text in after.items()}
        lost = Counter[str]()
        for path in {*old, *new}:
            lost[find_language(path)] += old.get(path, 0) - new.get(path, 0)
        for path, number in old.items():
            now = new.get(path, 0)
            if now < number and lost[find_language(path)] > 0:
                left = plural(abs(now), what, f"{what}s")
                sentence = f"it has {left}; it had {abs(number)} before"
                yield WeakenedTest(path, 1, sentence)


def _read_tests(text: str) -> dict[str, _Test] | None:
    """Return a file's tests by class and name, or None if the file cannot be parsed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            tree = ast.parse(text)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None
    reader = _PythonReader(tree)
    found: dict[str, _Test] = {}
    waiting: list[tuple[ast.Module | ast.ClassDef, str, bool]] = [(tree, "", _skips_all(tree))]
    while waiting:
        node, above, skipped = waiting.pop()
        for inner in node.body:
            if isinstance(inner, ast.ClassDef):
                waiting.append((inner, f"{above}{inner.name}.", skipped or _has_skip_mark(inner)))
            elif isinstance(inner, _Function) and inner.name.startswith("test"):
                found[f"{above}{inner.name}"] = reader.read_test(inner, skipped=skipped)
    return found


class _PythonReader:
    """Counts the assertions of a Python file's tests, including calls of functions that assert."""

    def __init__(self, tree: ast.Module) -> None:
        functions = [node for node in ast.walk(tree) if isinstance(node, _Function)]
        self._own = {node.name: node for node in functions}
        self._pytest: set[str] = set()
        self._helpers: set[str] = set()
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom):
                self._add_imports(node)
        self._asserting: set[str] = set()
        grew = True
        while grew:
            found = {name for name, node in self._own.items() if self._count(node)}
            grew = found != self._asserting
            self._asserting = found

    def _add_imports(self, node: ast.ImportFrom) -> None:
        names = {each.asname or each.name: each.name for each in node.names}
        path = f"{(node.module or '').replace('.', '/')}.py"
        if node.module == "pytest":
            self._pytest |= {name for name, original in names.items() if original in _PYTEST}
        elif node.level or is_test(path):
            self._helpers |= names.keys()

    def read_test(self, node: _Function, *, skipped: bool) -> _Test:
        arguments = {each.arg for each in (*node.args.args, *node.args.kwonlyargs)}
        helpers = (self._helpers | arguments) - self._own.keys() - {"self", "cls"}
        called = [name for each in _walk(node) if (name := _called_name(each)) in helpers]
        left_out = any(_called_name(each).rpartition(".")[2] in _SKIPS for each in node.body)
        return _Test(
            node.lineno,
            self._count(node),
            Counter(name for name in called if not name.startswith("assert")),
            skipped or left_out or _has_skip_mark(node),
        )

    def _count(self, node: _Function) -> int:
        return sum(self._is_assertion(each) for each in _walk(node))

    def _is_assertion(self, node: ast.AST) -> bool:
        if isinstance(node, ast.Assert):
            return _can_fail(node.test)
        if isinstance(node, ast.Raise):
            raised = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
            return isinstance(raised, ast.Name) and raised.id == "AssertionError"
        if not isinstance(node, ast.Call):
            return False
        name, owner = _last_name(node.func), _owner_name(node.func)
        if owner in ("", "self", "cls") and name in self._own:
            return name in self._asserting
        if owner == "pytest" or not owner:
            of_pytest = name in (_PYTEST if owner else self._pytest)
        else:
            of_pytest = owner in ("self", "cls") and name == "fail"
        return of_pytest or (name.startswith("assert") and not _is_hollow_call(node, owner))


def _walk(node: _Function) -> Iterator[ast.AST]:
    """Yield the nodes of a function up to a return that ends it early."""
    for statement in node.body:
        yield from ast.walk(statement)
        if isinstance(statement, ast.Return):
            return


def _skips_all(tree: ast.Module) -> bool:
    return any(
        isinstance(node, ast.Assign)
        and any(isinstance(each, ast.Name) and each.id == "pytestmark" for each in node.targets)
        and any(_last_name(each) in _SKIPS for each in ast.walk(node.value))
        for node in tree.body
    )


def _has_skip_mark(node: _Function | ast.ClassDef) -> bool:
    marks = (each.func if isinstance(each, ast.Call) else each for each in node.decorator_list)
    return any(_last_name(mark) in _SKIPS for mark in marks)


def _can_fail(test: ast.expr) -> bool:
    """Return False for an expression that is always true, or that only compares constants."""
    if isinstance(test, ast.Constant):
        return not test.value
    if isinstance(test, ast.Tuple | ast.List | ast.Set):
        return not test.elts
    if isinstance(test, ast.BoolOp):
        parts = [_can_fail(each) for each in test.values]
        return all(parts) if isinstance(test.op, ast.Or) else any(parts)
    if isinstance(test, ast.Compare) and isinstance(test.ops[0], _REFLEXIVE):
        return not _is_same_name(test.left, test.comparators[0]) and not _is_constant(test)
    return not _is_constant(test)


def _is_hollow_call(call: ast.Call, owner: str) -> bool:
    """Return True if an assertion is only about constants, or about one name twice."""
    given = call.args
    if not given or owner not in ("", "self", "cls"):
        return False
    return all(map(_is_constant, given)) or (len(given) > 1 and _is_same_name(given[0], given[1]))


def _is_same_name(one: ast.expr, other: ast.expr) -> bool:
    return isinstance(one, ast.Name) and isinstance(other, ast.Name) and one.id == other.id


def _is_constant(node: ast.expr) -> bool:
    return not any(isinstance(each, ast.Name | ast.Await | ast.Yield) for each in ast.walk(node))


def _called_name(node: ast.AST) -> str:
    """Return the dotted name that a statement calls and does nothing else with, or ""."""
    value = node.value if isinstance(node, ast.Expr) else None
    call = value.value if isinstance(value, ast.Await) else value
    return ast.unparse(call.func) if isinstance(call, ast.Call) else ""


def _last_name(node: ast.AST) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def _owner_name(node: ast.expr) -> str:
    """Return the name before a called attribute: "" for a bare name, "." for an expression."""
    if not isinstance(node, ast.Attribute):
        return ""
    return node.value.id if isinstance(node.value, ast.Name) else "."
