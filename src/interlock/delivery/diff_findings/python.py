"""Findings in Python, by its syntax tree: empty bodies, swallowed errors, tests without a claim.

Covers how pytest and unittest skip and assert. A test that calls a function of its own file is
followed there; one that calls the tests' helpers is trusted. A file that cannot be parsed has no
findings. The text is never run.
"""

import ast
import re
import warnings
from collections.abc import Iterator
from typing import Final

from interlock.delivery.diff_findings.source import DiffFinding, Severity
from interlock.system.file_kinds import FileKind

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
"""Reported elsewhere, no test, or a property test, which claims that no example raises."""
_SAME: Final = frozenset(("assertEqual", "assertIs", "assertEquals"))


def find_assertion_issues(path: str, tree: ast.Module) -> Iterator[DiffFinding]:
    claims = _AssertionIndex(tree)
    for node in ast.walk(tree):
        if isinstance(node, _Function | ast.ClassDef):
            yield from _find_skips(path, node)
        if isinstance(node, _Function) and node.name.startswith("test"):
            yield from _find_empty_tests(path, node, claims)
        yield from _find_hollow_assertions(path, node)


def count_assertions(tree: ast.Module) -> Iterator[tuple[str, _Function, int]]:
    """Every test of a file, by its name after that of its class, and how many assertions it
    makes. One that cannot fail is none; a call of a function that asserts is one."""
    claims = _AssertionIndex(tree)
    waiting: list[tuple[ast.AST, str]] = [(tree, "")]
    while waiting:
        node, above = waiting.pop()
        for inner in ast.iter_child_nodes(node):
            if isinstance(inner, ast.ClassDef):
                waiting.append((inner, f"{above}{inner.name}."))
            elif isinstance(inner, _Function) and inner.name.startswith("test"):
                yield f"{above}{inner.name}", inner, claims.count(inner)


def _find_skips(path: str, node: _Function | ast.ClassDef) -> Iterator[DiffFinding]:
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


def _find_empty_tests(
    path: str, node: _Function, claims: "_AssertionIndex"
) -> Iterator[DiffFinding]:
    marks = " ".join(ast.unparse(each) for each in node.decorator_list)
    if _OTHERWISE.search(marks) or claims.has_assertion(node):
        return
    yield DiffFinding(
        path, node.lineno, "empty_test", f"{node.name} asserts nothing: only an error can fail it"
    )


def _find_hollow_assertions(path: str, node: ast.AST) -> Iterator[DiffFinding]:
    """Assertions that hold whatever the code does."""
    hollow = False
    if isinstance(node, ast.Assert):
        hollow = _is_always_true(node.test)
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        name, given = node.func.attr, node.args
        if name == "assertTrue" and given:
            hollow = _is_always_true(given[0])
        elif name in _SAME and len(given) >= 2:
            hollow = _is_constant_or_name(given[0]) and ast.dump(given[0]) == ast.dump(given[1])
    if hollow and isinstance(node, ast.Assert | ast.Call):
        yield DiffFinding(path, node.lineno, "meaningless_assert", "an assertion that cannot fail")


def _is_always_true(test: ast.expr) -> bool:
    if isinstance(test, ast.Constant):
        return bool(test.value)
    if isinstance(test, ast.Tuple):
        return bool(test.elts)
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.Or):
        return any(_is_always_true(each) for each in test.values)
    if isinstance(test, ast.Compare) and isinstance(
        test.ops[0], ast.Eq | ast.Is | ast.LtE | ast.GtE
    ):
        left, right = test.left, test.comparators[0]
        return _is_constant_or_name(left) and ast.dump(left) == ast.dump(right)
    return False


def _is_constant_or_name(node: ast.expr) -> bool:
    """Calling twice may give two values; reading twice does not."""
    return isinstance(node, ast.Constant | ast.Name)


class _AssertionIndex:
    """Which functions of a file claim anything, themselves or through others of it."""

    def __init__(self, tree: ast.Module) -> None:
        functions = [node for node in ast.walk(tree) if isinstance(node, _Function)]
        self._trusted = _list_trusted_names(tree)
        own = {node.name: node for node in functions}
        self._claiming = {name for name, node in own.items() if self._asserts_itself(node)}
        calls = {name: _list_called_names(node) for name, node in own.items()}
        grew = True
        while grew:
            found = {name for name, called in calls.items() if called & self._claiming}
            grew = not found <= self._claiming
            self._claiming |= found

    def has_assertion(self, node: _Function) -> bool:
        return self._asserts_itself(node) or bool(_list_called_names(node) & self._claiming)

    def count(self, node: _Function) -> int:
        """How many places of a test can fail it on purpose."""
        given = _list_arguments(node)
        return sum(
            (self._is_assertion(each, given) or self._calls_claiming(each))
            and not any(_find_hollow_assertions("", each))
            for each in ast.walk(node)
        )

    def _calls_claiming(self, node: ast.AST) -> bool:
        return isinstance(node, ast.Call) and _last_name(node.func) in self._claiming

    def _asserts_itself(self, node: _Function) -> bool:
        given = _list_arguments(node)
        return any(self._is_assertion(each, given) for each in ast.walk(node))

    def _is_assertion(self, node: ast.AST, given: set[str]) -> bool:
        if isinstance(node, ast.Assert | ast.Raise):
            return True
        if not isinstance(node, ast.Call):
            return False
        name = _last_name(node.func)
        believed = name in self._trusted or (isinstance(node.func, ast.Name) and name in given)
        checked = any(each.arg == "check" for each in node.keywords)
        return believed or checked or bool(_SAYS_SO.search(name))


def _list_arguments(node: _Function) -> set[str]:
    return {each.arg for each in (*node.args.args, *node.args.kwonlyargs)}


def _list_called_names(node: _Function) -> set[str]:
    names = {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
    return names | {each.attr for each in ast.walk(node) if isinstance(each, ast.Attribute)}


def _last_name(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def _list_trusted_names(tree: ast.Module) -> set[str]:
    """Names that come from the tests' own helpers."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.level or _OF_TESTS.search(node.module or "")):
            found |= {each.asname or each.name for each in node.names}
    return found


_STATEMENTS: Final = (ast.stmt, ast.ExceptHandler, ast.match_case)
_ABSTRACT: Final = re.compile(r"abstract|overload|override|Protocol|ABC|Base|Interface|Mixin")
_DEBUGGERS: Final = frozenset(("pdb", "ipdb", "pudb", "pydevd"))
_STOPS: Final = frozenset(("breakpoint", "pdb.set_trace", "ipdb.set_trace", "pudb.set_trace"))
_PRINTS: Final = ("print", "pprint", "pprint.pprint")
_NO_ACT: Final = re.compile(r"(?i)__|noth|no_?op|ignore|null|dummy|silent")
_WIDE: Final = frozenset(("Exception", "BaseException"))


def parse_python(text: str) -> ast.Module | None:
    """The tree of a text, or None. What the compiler would warn of is not our affair."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return ast.parse(text)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None


def find_python_issues(
    path: str, kind: FileKind, tree: ast.Module, is_script: bool
) -> list[DiffFinding]:
    """All findings in a file; whoever asks keeps those of the lines that are new.

    A tree too deep to be walked is nobody's code.
    """
    try:
        return list(_find_all(path, kind, tree, is_script))
    except RecursionError:
        return []


def _find_all(
    path: str, kind: FileKind, tree: ast.Module, is_script: bool
) -> Iterator[DiffFinding]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ExceptHandler):
            yield from _check_except(path, node)
        elif isinstance(node, ast.Call | ast.Import):
            yield from _find_debug_code(path, node, kind == "source" and not is_script)
    if kind == "source" and not path.endswith(".pyi"):
        yield from _find_placeholders(path, tree)
    if kind == "test":
        yield from find_assertion_issues(path, tree)


def dotted_name(node: ast.expr) -> str:
    """`a.b.c` as text; empty for anything else."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else ""


def _check_except(path: str, node: ast.ExceptHandler) -> Iterator[DiffFinding]:
    raises = any(isinstance(each, ast.Raise) for each in ast.walk(node))
    names = node.type.elts if isinstance(node.type, ast.Tuple) else [node.type]
    wide = any(each is not None and dotted_name(each) in _WIDE for each in names)
    if node.type is None and not raises:
        yield DiffFinding(path, node.lineno, "bare_except", "it catches everything: name the error")
    elif wide and all(_does_nothing(each) for each in node.body):
        sentence = "every error is swallowed: name the one that is meant"
        yield DiffFinding(path, node.lineno, "bare_except", sentence)


def _does_nothing(node: ast.stmt) -> bool:
    ellipsis = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    return isinstance(node, ast.Pass | ast.Continue) or ellipsis


def _find_debug_code(
    path: str, node: ast.Call | ast.Import, prints_count: bool
) -> Iterator[DiffFinding]:
    if isinstance(node, ast.Import):
        if any(each.name.partition(".")[0] in _DEBUGGERS for each in node.names):
            yield DiffFinding(path, node.lineno, "debug", "a debugger is imported: take it out")
        return
    name = dotted_name(node.func)
    if name in _STOPS:
        yield DiffFinding(path, node.lineno, "debug", "a stop for a debugger: take it out")
    elif prints_count and name in _PRINTS and not any(each.arg == "file" for each in node.keywords):
        yield DiffFinding(path, node.lineno, "debug", "output on stdout: a debug print?", "notice")


def _find_placeholders(path: str, tree: ast.Module) -> Iterator[DiffFinding]:
    """Statements are walked with what the class around says of itself: in an abstract one, an
    empty body is right."""
    bases = _list_base_classes(tree)
    waiting: list[tuple[ast.AST, str]] = [(tree, "")]
    while waiting:
        node, above = waiting.pop()
        if isinstance(node, ast.If) and "TYPE_CHECKING" in dotted_name(node.test):
            continue
        if isinstance(node, ast.ClassDef):
            words = [node.name, *map(ast.unparse, node.bases), *map(ast.unparse, node.keywords)]
            above = " ".join([*words, "ABC"] if node.name in bases else words)
        elif isinstance(node, _Function):
            if found := _describe_placeholder(node, above):
                yield DiffFinding(path, node.lineno, "placeholder", *found)
            above = ""
        inside = (each for each in ast.iter_child_nodes(node) if isinstance(each, _STATEMENTS))
        waiting += [(each, above) for each in inside]


def _list_base_classes(tree: ast.Module) -> set[str]:
    """Classes that others of the file are made from."""
    classes = [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    return {dotted_name(base).rpartition(".")[2] for node in classes for base in node.bases}


def _describe_placeholder(node: _Function, above: str) -> tuple[str, Severity] | None:
    marks = " ".join(map(ast.unparse, node.decorator_list))
    if _ABSTRACT.search(f"{marks} {above}"):
        return None
    documented = ast.get_docstring(node) is not None
    body = node.body[1:] if documented else node.body
    if len(body) != 1 or (documented and above):
        return None
    only = body[0]
    # A method may be there for others to override.
    severity: Severity = "notice" if above else "warning"
    if isinstance(only, ast.Raise) and only.exc is not None and _is_not_implemented(only.exc):
        return f"{node.name} is not written yet", severity
    if ast.unparse(only) == "...":
        return f"{node.name} has no body", severity
    meant = " " in above or node.decorator_list or _NO_ACT.search(node.name)
    if isinstance(only, ast.Pass) and not documented and not meant:
        return f"{node.name} does nothing: write it, or say why that is right", "notice"
    return None


def _is_not_implemented(raised: ast.expr) -> bool:
    return (
        dotted_name(raised.func if isinstance(raised, ast.Call) else raised)
        == "NotImplementedError"
    )
