"""Choose a few values to represent a name: one for every region its guards tell apart.

They follow from the shape of the value and from the constants, sizes and other names that
expressions compare it with.
"""

import ast
import math
from collections.abc import Iterable, Iterator, Mapping
from itertools import combinations, pairwise
from typing import Any, Final

import msgspec

from interlock.engine.expression import Expression, find_path, read_literal
from interlock.engine.shape import Shape
from interlock.engine.verify.names import Meaning, Names

UNNAMED_TEXT: Final = "something-else"
"""A text that no guard names."""
MAX_CHOICES = 24
MAX_SUBSETS = 4
MAX_SIZE = 10_000


class Hints(msgspec.Struct, frozen=True):
    """The use of a value in guards: compared `against` constants, holding `members`, of `sizes`.

    `crowd` is the number of names compared with each other: each region must offer as many values.
    """

    against: tuple[Any, ...] = ()
    members: tuple[Any, ...] = ()
    sizes: tuple[int, ...] = ()
    crowd: int = 1
    counted: bool = False


def find_representatives(shape: Shape | None, hints: Hints) -> tuple[Any, ...]:
    """Return values that fit the shape, at least one in every region the hints tell apart."""
    known = shape or Shape()
    found: list[Any] = []
    for value in _list_candidates(known, hints):
        if known.find_problem(value) is None and not any(is_same(value, each) for each in found):
            found.append(value)
    # If nothing fits, as under a strict pattern, a value of the right kind must do.
    return tuple(found) or (next(_list_candidates(known, Hints()), None),)


def find_sample(shape: Shape | None, depth: int = 0) -> Any:
    """Return one small value that fits the shape, as far as that needs no search."""
    known = shape or Shape()
    fitting = (
        value for value in _list_candidates(known, Hints(), depth) if not known.find_problem(value)
    )
    return next(fitting, None)


def is_same(value: Any, other: Any) -> bool:
    return type(value) is type(other) and bool(value == other)


def list_between(points: Iterable[float], count: int) -> Iterator[float]:
    """Yield the points in order, with `count` values between neighbours and outside."""
    ordered = sorted(set(points))
    if not ordered:
        return
    yield from (ordered[0] - number for number in range(count, 0, -1))
    for low, high in pairwise(ordered):
        yield low
        gap = (high - low) / (count + 1)
        yield from (low + gap * number for number in range(1, count + 1))
    yield ordered[-1]
    yield from (ordered[-1] + number for number in range(1, count + 1))


def list_whole_between(points: Iterable[float], count: int) -> Iterator[int]:
    """Yield whole numbers nearest to each point on either side, like list_between."""
    near = {
        number + step
        for point in points
        for number in (math.floor(point), math.ceil(point))
        for step in range(-count, count + 1)
    }
    yield from sorted(near | {round(value) for value in list_between(points, count)})


def _list_candidates(shape: Shape, hints: Hints, depth: int = 0) -> Iterator[Any]:
    if shape.choices is not None:
        yield from _list_choices(shape.choices, hints)
    for kind in () if shape.choices is not None or shape.either else _list_kinds(shape, hints):
        yield from _list_of_kind(kind, shape, hints, depth)
    for each in shape.either:
        yield from _list_candidates(each, hints, depth)


def _list_choices(choices: tuple[Any, ...], hints: Hints) -> Iterator[Any]:
    """Yield all choices; of a long list those that guards name, and some others."""
    if len(choices) <= MAX_CHOICES:
        yield from choices
        return
    yield from (value for value in choices if value in hints.against)
    others = [value for value in choices if value not in hints.against]
    yield from others[: hints.crowd + 1]


def _list_kinds(shape: Shape, hints: Hints) -> tuple[str, ...]:
    """Return the kinds the shape allows, or else those the guards expect."""
    if shape.kinds:
        return shape.kinds
    kinds = {_find_kind(value) for value in hints.against}
    if hints.members or hints.sizes or hints.counted:
        kinds.add("array")
    if hints.crowd > 1 and not kinds - {"null"}:
        kinds.add("number")
    if not kinds:
        return ("boolean",)
    return tuple(sorted(kinds | {"string"} if kinds == {"null"} else kinds))


def _find_kind(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case str():
            return "string"
        case int() | float():
            return "number"
    return "array"


def _list_of_kind(kind: str, shape: Shape, hints: Hints, depth: int) -> Iterator[Any]:
    match kind:
        case "null":
            yield None
        case "boolean":
            yield from (True, False)
        case "integer":
            yield from list_whole_between(_find_points(shape, hints), hints.crowd)
        case "number":
            yield from map(_simplify, list_between(_find_points(shape, hints), hints.crowd))
        case "string":
            yield from _list_texts(shape, hints)
        case "array":
            yield from _list_lists(shape, hints, depth)
        case "object":
            yield from _list_objects(shape, depth)


def _find_points(shape: Shape, hints: Hints) -> set[float]:
    limits = (shape.minimum, shape.maximum, shape.above, shape.below)
    points = {value for value in hints.against if _find_kind(value) == "number"}
    points |= {limit for limit in limits if limit is not None}
    if not points or not hints.against:
        points.add(0)
    return points


def _simplify(value: float) -> float:
    return int(value) if float(value).is_integer() else round(value, 12)


def _list_texts(shape: Shape, hints: Hints) -> Iterator[str]:
    named = [value for value in hints.against if isinstance(value, str)]
    parts = [value for value in hints.members if isinstance(value, str)]
    yield from (" ".join(chosen) for chosen in list_subsets(parts) if chosen)
    yield from named
    yield from (f"{text}~" for text in named)
    yield from (
        UNNAMED_TEXT if number == 0 else f"{UNNAMED_TEXT}-{number}" for number in range(hints.crowd)
    )
    yield ""
    for size in sorted({*_list_sizes(shape, hints), shape.shortest or 0, shape.longest or 1}):
        yield "x" * min(size, MAX_SIZE)


def _list_sizes(shape: Shape, hints: Hints) -> list[int]:
    limits = [limit for limit in (shape.shortest, shape.longest) if limit is not None]
    least = shape.shortest or 0
    most = MAX_SIZE if shape.longest is None else min(shape.longest, MAX_SIZE)
    near = list_whole_between([0, 1, *hints.sizes, *limits], 1)
    return [size for size in near if least <= size <= most]


def _list_lists(shape: Shape, hints: Hints, depth: int) -> Iterator[list[Any]]:
    yield from (value for value in hints.against if isinstance(value, list))
    filler = _find_filler(shape, hints, depth)
    sizes = _list_sizes(shape, hints)
    for chosen in list_subsets(hints.members):
        for size in sizes:
            if len(chosen) <= size:
                yield [*chosen, *([filler] * (size - len(chosen)))]
        if chosen:
            yield [*chosen, *(chosen[-1:] * ((shape.shortest or 0) - len(chosen)))]


def _find_filler(shape: Shape, hints: Hints, depth: int) -> Any:
    """Return an item that no guard asks for, if the items' shape allows one."""
    if depth > 6:
        return None
    items = (
        find_representatives(shape.items, Hints(hints.members)) if shape.items else (UNNAMED_TEXT,)
    )
    free = (item for item in items if not any(is_same(item, member) for member in hints.members))
    return next(free, items[0])


def _list_objects(shape: Shape, depth: int) -> Iterator[dict[str, Any]]:
    if depth <= 6:
        named = {name: find_sample(shape.fields.get(name), depth + 1) for name in shape.required}
        yield named


def list_subsets(members: tuple[Any, ...] | list[Any]) -> Iterator[list[Any]]:
    """Yield every subset of a few members; of many only none, each alone, and all."""
    some = list(members)
    sizes = range(len(some) + 1) if len(some) <= MAX_SUBSETS else (0, 1, len(some))
    for size in sizes:
        yield from map(list, combinations(some, size))


Key = tuple[str, ...]
_SIZE = "len"


class _Absent:
    def __repr__(self) -> str:
        return "ABSENT"


ABSENT: Final = _Absent()
"""Stands for an absent value."""


class Variable(msgspec.Struct, frozen=True):
    """A value the guards read, and its representatives."""

    key: Key
    values: tuple[Any, ...]


class ValueUses:
    """The uses of values in a group of expressions, collected from their trees."""

    def __init__(self, names: Names, step: str, signal: str) -> None:
        self.names = names
        self.step = step
        self.signal = signal
        self.meanings: dict[Key, Meaning] = {}
        self.asked: set[Key] = set()
        self.against: dict[Key, list[Any]] = {}
        self.members: dict[Key, list[Any]] = {}
        self.holders: list[tuple[Key, Key]] = []
        self.joined: dict[Key, Key] = {}

    def add(self, expression: Expression) -> None:
        for path in (*expression.reads, *expression.asks):
            meaning = self.names.find_meaning(self.step, self.signal, path)
            if not meaning.constant:
                self.meanings[meaning.key] = meaning
        self.asked |= {self._find_key(path) for path in expression.asks}
        for node in ast.walk(expression.tree):
            if isinstance(node, ast.Compare):
                terms = [self._read_term(each) for each in (node.left, *node.comparators)]
                for left, op, right in zip(terms, node.ops, terms[1:], strict=False):
                    self._note_comparison(left, op, right)

    def list_variables(self) -> Iterator[Variable]:
        """Yield each value that can vary; values inside another one come after it."""
        for key in sorted(self.meanings, key=len):
            meaning = self.meanings[key]
            if len(key) == 1 and key[0] != "attempt":
                continue
            values = find_representatives(meaning.shape, self._build_hints(key))
            if any(other[: len(key)] == key and other != key for other in self.meanings):
                known = meaning.shape is not None and bool(meaning.shape.kinds)
                others = [each for each in values if not isinstance(each, dict)]
                values = ({}, *(each for each in others if known or each is None))
            yield Variable(key, (*values, ABSENT) if self._may_lack(key, meaning) else values)

    def _may_lack(self, key: Key, meaning: Meaning) -> bool:
        if meaning.asked and key in self.asked:
            return True
        outer = [len(other) for other in self.meanings if len(other) < len(key)]
        inside = [size for size in outer if key[:size] in self.meanings and size > 1]
        return any(meaning.optional[max(inside, default=1) - 1 :])

    def _build_hints(self, key: Key) -> Hints:
        group = self._find_group(key)
        sizes = self._find_group((_SIZE, *key))
        lengths = [
            round(value) for value in self._list_constants(sizes) if _find_kind(value) == "number"
        ]
        members = list(self.members.get(key, ()))
        for item, holder in self.holders:
            if holder == key:
                members += [*self._list_constants(self._find_group(item)), "member"]
        within = [value for item, holder in self.holders if item == key for value in ("member",)]
        return Hints(
            against=tuple(_drop_duplicates([*self._list_constants(group), *within])),
            members=tuple(_drop_duplicates(members)),
            sizes=tuple(_drop_duplicates(lengths)),
            crowd=max(len(group), 1),
            counted=(_SIZE, *key) in self.joined or (_SIZE, *key) in self.against,
        )

    def _list_constants(self, group: Iterable[Key]) -> list[Any]:
        return [value for key in sorted(group) for value in self.against.get(key, ())]

    def _read_term(self, node: ast.expr) -> tuple[str, Any]:
        is_literal, value = read_literal(node)
        if is_literal:
            return "constant", value
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == _SIZE:
            return "key", (_SIZE, *self._find_key(find_path(node.args[0]) or ""))
        path = find_path(node)
        if path is None:
            return "other", None
        key = self._find_key(path)
        if key[0] == "threshold":
            return "constant", self.names.circuit.thresholds.get(key[1])
        return ("constant", self.signal) if key[0] == "signal" else ("key", key)

    def _find_key(self, path: str) -> Key:
        return self.names.find_meaning(self.step, self.signal, path).key

    def _note_comparison(
        self, left: tuple[str, Any], op: ast.cmpop, right: tuple[str, Any]
    ) -> None:
        inside = isinstance(op, ast.In | ast.NotIn)
        match left, right:
            case ("key", item), ("key", holder) if inside:
                self.holders.append((item, holder))
            case ("constant", item), ("key", holder) if inside:
                self.members.setdefault(holder, []).append(item)
            case ("key", key), ("constant", value) if inside:
                values = value if isinstance(value, list) else [value]
                self.against.setdefault(key, []).extend(values)
            case (("key", key), ("constant", value)) | (("constant", value), ("key", key)):
                self.against.setdefault(key, []).append(value)
            case ("key", one), ("key", other):
                self.joined[self._find_root(one)] = self._find_root(other)

    def _find_root(self, key: Key) -> Key:
        self.joined.setdefault(key, key)
        while self.joined[key] != key:
            key = self.joined[key]
        return key

    def _find_group(self, key: Key) -> set[Key]:
        if key not in self.joined:
            return {key}
        root = self._find_root(key)
        return {other for other in list(self.joined) if self._find_root(other) == root}


def place_values(values: Mapping[Key, Any]) -> dict[str, Any]:
    """Return nested values by root; what is inside an absent value is absent too."""
    roots: dict[str, Any] = {}
    for key in sorted(values, key=len):
        value = values[key]
        if value is ABSENT:
            continue
        if len(key) == 1:
            roots[key[0]] = value
            continue
        inner = roots.setdefault(key[0], {})
        if len(key) > 2 and _is_inside_absent(key, values):
            continue
        for name in key[1:-1]:
            inner = inner.setdefault(name, {})
        inner[key[-1]] = dict(value) if isinstance(value, dict) else value
    return roots


def _is_inside_absent(key: Key, values: Mapping[Key, Any]) -> bool:
    outer = (values[key[:size]] for size in range(2, len(key)) if key[:size] in values)
    return any(not isinstance(value, dict) for value in outer)


def _drop_duplicates(values: Iterable[Any]) -> list[Any]:
    found: list[Any] = []
    for value in values:
        if not any(is_same(value, each) for each in found):
            found.append(value)
    return found
