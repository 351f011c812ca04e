"""Guards of rules: a small, analysable subset of Python's expressions.

It has names, attributes, constants, `and or not`, comparisons, `in`, `len()` and `has()`, and
nothing that could run code, loop or grow. An expression is parsed and checked once, then evaluated
against a Scope, which records every value that is read.
"""

import ast
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from interlock.system.errors import ExpressionError
from interlock.system.text import shorten_counted

MAX_LENGTH = 1_000
MAX_DEPTH = 25
_SMALL_TYPES = (bool, int, float, type(None))
_LITERALS = {"true": True, "false": False, "null": None}
_COMPARISONS = (ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.In, ast.NotIn)
_USAGE = (
    "use names, constants, and/or/not, comparisons, in, len(name) and has(name); "
    "for example: match and confidence >= recall_hit"
)

Values = Mapping[str, Any]


class Scope:
    """The values readable at one moment, and a record of those that were read.

    `parts` are searched in order, so that no field of an answer overrides a threshold.
    """

    __slots__ = ("parts", "seen")

    def __init__(self, *parts: Values) -> None:
        self.parts = parts
        self.seen: dict[str, Any] = {}

    def read(self, path: str) -> Any:
        found, value = self._find(path)
        if not found:
            raise ExpressionError(f"{path!r} is not there to be read; ask has({path}) first")
        self.seen[path] = shorten_value(value)
        return value

    def has(self, path: str) -> bool:
        found, _ = self._find(path)
        self.seen[f"has({path})"] = found
        return found

    def size(self, path: str) -> int:
        found, value = self._find(path)
        if not found:
            raise ExpressionError(f"{path!r} is not there to be counted; ask has({path}) first")
        if not isinstance(value, str | list | tuple | dict):
            raise ExpressionError(f"len({path}) needs a text, a list or an object, not {value!r}")
        self.seen[f"len({path})"] = len(value)
        return len(value)

    def _find(self, path: str) -> tuple[bool, Any]:
        head, dot, rest = path.partition(".")
        for part in self.parts:
            if head in part:
                return _walk_path(part[head], rest) if dot else (True, part[head])
        return False, None


class Expression(msgspec.Struct, frozen=True):
    """A parsed guard: `reads` lists the names it needs, `asks` those it only passes to has()."""

    text: str
    reads: tuple[str, ...]
    asks: tuple[str, ...]
    tree: ast.expr
    _run: Callable[..., Any]

    def evaluate(self, scope: Scope) -> Any:
        try:
            return self._run(scope.read, scope.has, scope.size)
        except TypeError as error:
            raise ExpressionError(f"{self.text!r} compares unlike things: {error}") from None

    def holds(self, scope: Scope) -> bool:
        return bool(self.evaluate(scope))


def parse_expression(text: str) -> Expression:
    """Return the expression in `text`; raise ExpressionError that says what to write instead."""
    if not isinstance(text, str) or not text.strip():
        raise ExpressionError(f"an expression must not be empty; {_USAGE}")
    if len(text) > MAX_LENGTH:
        raise ExpressionError(f"an expression has at most {MAX_LENGTH} characters, not {len(text)}")
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        detail = getattr(error, "msg", None) or str(error)
        raise ExpressionError(
            f"{shorten_value(text)!r} is not an expression ({detail}); {_USAGE}"
        ) from None
    checker = _Checker(text)
    checked = checker.check(tree)
    return Expression(
        text.strip(), tuple(checker.reads), tuple(checker.asks), tree, _compile(checked)
    )


def shorten_value(value: Any) -> Any:
    """Return a value as the journal keeps it: small ones whole, large ones by their size."""
    if type(value) in _SMALL_TYPES:
        return value
    if isinstance(value, str):
        return shorten_counted(value, 200)
    if isinstance(value, list | tuple):
        plain = len(value) <= 8 and not any(isinstance(item, list | dict) for item in value)
        return [shorten_value(item) for item in value] if plain else f"list of {len(value)}"
    if isinstance(value, dict):
        return f"object with {', '.join(sorted(map(str, value))[:8])}"
    return value


def find_path(node: ast.expr) -> str | None:
    """Return `a.b.c` for a chain of names, None for anything else."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return None
    return ".".join([node.id, *reversed(parts)])


def read_literal(node: ast.expr) -> tuple[bool, Any]:
    """Return (True, value) for a constant, also -1, [1, 2] and true/false/null; else (False,
    None)."""
    match node:
        case ast.Constant(value=value) if value is None or isinstance(value, str | int | float):
            return True, value
        case ast.Name(id=name) if name in _LITERALS:
            return True, _LITERALS[name]
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=value)):
            if isinstance(value, int | float) and not isinstance(value, bool):
                return True, -value
        case ast.List(elts=items) | ast.Tuple(elts=items):
            found = [read_literal(item) for item in items]
            if all(ok for ok, _ in found):
                return True, [value for _, value in found]
    return False, None


def _walk_path(value: Any, rest: str) -> tuple[bool, Any]:
    for name in rest.split("."):
        if not isinstance(value, Mapping) or name not in value:
            return False, None
        value = value[name]
    return True, value


def _compile(body: ast.expr) -> Callable[..., Any]:
    arguments = ast.arguments(
        posonlyargs=[],
        args=[ast.arg("read"), ast.arg("has"), ast.arg("size")],
        kwonlyargs=[],
        kw_defaults=[],
        defaults=[],
    )
    module = ast.fix_missing_locations(ast.Expression(ast.Lambda(arguments, body)))
    # Only nodes that _Checker built reach this point, and there are no builtins to call.
    code = compile(module, "<expression>", "eval")
    run: Callable[..., Any] = eval(code, {"__builtins__": {}})  # noqa: S307
    return run


class _Checker:
    """Walk a tree once: refuse what is not in the subset, and turn names into recorded reads."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.reads: dict[str, None] = {}
        self.asks: dict[str, None] = {}

    def check(self, node: ast.expr, depth: int = 0) -> ast.expr:
        if depth > MAX_DEPTH:
            raise ExpressionError(f"the expression is nested deeper than {MAX_DEPTH} levels")
        is_literal, value = read_literal(node)
        if is_literal:
            return _build_constant(value)
        match node:
            case ast.Name() | ast.Attribute():
                return self._check_read(node)
            case ast.BoolOp(op=op, values=values):
                return ast.BoolOp(op, [self.check(each, depth + 1) for each in values])
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return ast.UnaryOp(ast.Not(), self.check(operand, depth + 1))
            case ast.Compare(left=left, ops=ops, comparators=others):
                return self._check_comparison(left, ops, others, depth)
            case ast.Call(func=ast.Name(id="has" | "len" as name), args=[argument], keywords=[]):
                return self._check_call(name, argument)
        raise ExpressionError(
            f"{self._quote_node(node)} is not allowed in {self._quote_all()}; {_USAGE}"
        )

    def _check_comparison(
        self, left: ast.expr, ops: list[ast.cmpop], others: list[ast.expr], depth: int
    ) -> ast.expr:
        if not all(isinstance(op, _COMPARISONS) for op in ops):
            raise ExpressionError(f"write == or != instead of 'is' in {self._quote_all()}")
        checked = [self.check(each, depth + 1) for each in (left, *others)]
        return ast.Compare(checked[0], ops, checked[1:])

    def _check_read(self, node: ast.expr) -> ast.expr:
        path = self._read_path(node)
        self.reads[path] = None
        return _build_call("read", path)

    def _check_call(self, name: str, argument: ast.expr) -> ast.expr:
        path = self._read_path(argument)
        (self.asks if name == "has" else self.reads)[path] = None
        return _build_call("has" if name == "has" else "size", path)

    def _read_path(self, node: ast.expr) -> str:
        path = find_path(node)
        if path is None:
            raise ExpressionError(f"{self._quote_node(node)} is not a name, in {self._quote_all()}")
        if any(part.startswith("_") for part in path.split(".")):
            raise ExpressionError(f"{path!r}: names do not start with an underscore")
        return path

    def _quote_node(self, node: ast.expr) -> str:
        return repr(
            shorten_value(ast.get_source_segment(self.text.strip(), node) or type(node).__name__)
        )

    def _quote_all(self) -> str:
        return repr(shorten_value(self.text.strip()))


def _build_call(function: str, path: str) -> ast.expr:
    return ast.Call(ast.Name(function, ast.Load()), [ast.Constant(path)], [])


def _build_constant(value: Any) -> ast.expr:
    if isinstance(value, list):
        return ast.List([_build_constant(item) for item in value], ast.Load())
    return ast.Constant(value)
