"""Tests in Python that are left out, or that cannot fail: found in the syntax tree.

Knows how pytest and unittest skip and assert. A test that hands over to a function of its file is
followed there; one that hands over to the tests' own helpers is believed. Pure.
"""

import ast
import re
from collections.abc import Iterator
from typing import Final

from interlock.delivery.diff_findings.tell import DiffFinding

_Function = ast.FunctionDef | ast.AsyncFunctionDef
_SAYS_SO: Final = re.compile(
    r"(?i)assert|expect|verif|check|should|raises|warns|fail|ensure|must|match|snapshot|compare"
    r"|validate|approve"
)
_OF_TESTS: Final = re.compile(
    r"(?i)(?:^|[._])(?:tests?|testing|conftest|helpers?|fixtures?|world)\b"
)
_LEFT_OUT: Final = re.compile(r"(?:^|\.)(?:skip|xfail|expectedFailure|skipTest)$")
_OTHERWISE: Final = re.compile(r"skip|fixture|\bgiven\b")
"""It is told already, it is no test, or not to raise for any example is what it claims."""
_SAME: Final = frozenset(("assertEqual", "assertIs", "assertEquals"))


def assertion_tells(path: str, tree: ast.Module) -> Iterator[DiffFinding]:
    claims = _Claims(tree)
    for node in ast.walk(tree):
        if isinstance(node, _Function | ast.ClassDef):
            yield from _skips(path, node)
        if isinstance(node, _Function) and node.name.startswith("test"):
            yield from _empty(path, node, claims)
        yield from _hollow(path, node)


def _skips(path: str, node: _Function | ast.ClassDef) -> Iterator[DiffFinding]:
    for each in node.decorator_list:
        name = ast.unparse(each.func if isinstance(each, ast.Call) else each)
        if _LEFT_OUT.search(name):
            yield DiffFinding(
                path, each.lineno, "skipped_test", f"{node.name} is not run, or may fail"
            )
    if not isinstance(node, ast.ClassDef):
        for statement in node.body:
            call = statement.value if isinstance(statement, ast.Expr) else None
            if isinstance(call, ast.Call) and _LEFT_OUT.search(ast.unparse(call.func)):
                yield DiffFinding(
                    path, call.lineno, "skipped_test", f"{node.name} leaves itself out"
                )


def _empty(path: str, node: _Function, claims: "_Claims") -> Iterator[DiffFinding]:
    marks = " ".join(ast.unparse(each) for each in node.decorator_list)
    if _OTHERWISE.search(marks) or claims.has(node):
        return
    yield DiffFinding(
        path, node.lineno, "empty_test", f"{node.name} asserts nothing: only an error can fail it"
    )


def _hollow(path: str, node: ast.AST) -> Iterator[DiffFinding]:
    """Assertions that hold whatever the code does."""
    hollow = False
    if isinstance(node, ast.Assert):
        hollow = _always(node.test)
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        name, given = node.func.attr, node.args
        if name == "assertTrue" and given:
            hollow = _always(given[0])
        elif name in _SAME and len(given) >= 2:
            hollow = _is_plain(given[0]) and ast.dump(given[0]) == ast.dump(given[1])
    if hollow and isinstance(node, ast.Assert | ast.Call):
        yield DiffFinding(path, node.lineno, "meaningless_assert", "an assertion that cannot fail")


def _always(test: ast.expr) -> bool:
    if isinstance(test, ast.Constant):
        return bool(test.value)
    if isinstance(test, ast.Tuple):
        return bool(test.elts)
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.Or):
        return any(_always(each) for each in test.values)
    if isinstance(test, ast.Compare) and isinstance(
        test.ops[0], ast.Eq | ast.Is | ast.LtE | ast.GtE
    ):
        left, right = test.left, test.comparators[0]
        return _is_plain(left) and ast.dump(left) == ast.dump(right)
    return False


def _is_plain(node: ast.expr) -> bool:
    """Calling twice may give two values; reading twice does not."""
    return isinstance(node, ast.Constant | ast.Name)


class _Claims:
    """Which functions of a file claim anything, themselves or through others of it."""

    def __init__(self, tree: ast.Module) -> None:
        functions = [node for node in ast.walk(tree) if isinstance(node, _Function)]
        self._trusted = _trusted(tree)
        own = {node.name: node for node in functions}
        self._claiming = {name for name, node in own.items() if self._claims(node)}
        calls = {name: _called(node) for name, node in own.items()}
        grew = True
        while grew:
            found = {name for name, called in calls.items() if called & self._claiming}
            grew = not found <= self._claiming
            self._claiming |= found

    def has(self, node: _Function) -> bool:
        return self._claims(node) or bool(_called(node) & self._claiming)

    def _claims(self, node: _Function) -> bool:
        given = {each.arg for each in (*node.args.args, *node.args.kwonlyargs)}
        return any(self._is_claim(each, given) for each in ast.walk(node))

    def _is_claim(self, node: ast.AST, given: set[str]) -> bool:
        if isinstance(node, ast.Assert | ast.Raise):
            return True
        if not isinstance(node, ast.Call):
            return False
        name = _last(node.func)
        believed = name in self._trusted or (isinstance(node.func, ast.Name) and name in given)
        checked = any(each.arg == "check" for each in node.keywords)
        return believed or checked or bool(_SAYS_SO.search(name))


def _called(node: _Function) -> set[str]:
    names = {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
    return names | {each.attr for each in ast.walk(node) if isinstance(each, ast.Attribute)}


def _last(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def _trusted(tree: ast.Module) -> set[str]:
    """Names that come from the tests' own helpers."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.level or _OF_TESTS.search(node.module or "")):
            found |= {each.asname or each.name for each in node.names}
    return found
