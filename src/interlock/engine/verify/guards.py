"""How the guards of one step and signal use their values, and the values worth trying on them.

Knows which names the expressions compare, with what, and with each other. Refuses to know what
follows from the answers: cells asks the real evaluator.
"""

import ast
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import msgspec

from interlock.engine.expression import Expression, literal_of, path_of
from interlock.engine.verify.domain import Hints, representatives
from interlock.engine.verify.names import Meaning, Names

Key = tuple[str, ...]
_SIZE = "len"


class _Absent:
    def __repr__(self) -> str:
        return "ABSENT"


ABSENT: Final = _Absent()
"""Stands for a value that is not there."""


class Variable(msgspec.Struct, frozen=True):
    """A value the guards read, and what stands for all it can be."""

    key: Key
    values: tuple[Any, ...]


class Uses:
    """What a group of expressions does with its values, collected from their trees."""

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
            meaning = self.names.meaning(self.step, self.signal, path)
            if not meaning.constant:
                self.meanings[meaning.key] = meaning
        self.asked |= {self._key(path) for path in expression.asks}
        for node in ast.walk(expression.tree):
            if isinstance(node, ast.Compare):
                terms = [self._term(each) for each in (node.left, *node.comparators)]
                for left, op, right in zip(terms, node.ops, terms[1:], strict=False):
                    self._compare(left, op, right)

    def variables(self) -> Iterator[Variable]:
        """Each value that can vary; values inside another one come after it."""
        for key in sorted(self.meanings, key=len):
            meaning = self.meanings[key]
            if len(key) == 1 and key[0] != "attempt":
                continue
            values = representatives(meaning.shape, self._hints(key))
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

    def _hints(self, key: Key) -> Hints:
        group = self._group(key)
        sizes = self._group((_SIZE, *key))
        lengths = [round(value) for value in self._constants(sizes) if _is_number(value)]
        members = list(self.members.get(key, ()))
        for item, holder in self.holders:
            if holder == key:
                members += [*self._constants(self._group(item)), "member"]
        within = [value for item, holder in self.holders if item == key for value in ("member",)]
        return Hints(
            against=tuple(_unique([*self._constants(group), *within])),
            members=tuple(_unique(members)),
            sizes=tuple(_unique(lengths)),
            crowd=max(len(group), 1),
            counted=(_SIZE, *key) in self.joined or (_SIZE, *key) in self.against,
        )

    def _constants(self, group: Iterable[Key]) -> list[Any]:
        return [value for key in sorted(group) for value in self.against.get(key, ())]

    def _term(self, node: ast.expr) -> tuple[str, Any]:
        is_literal, value = literal_of(node)
        if is_literal:
            return "constant", value
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == _SIZE:
            return "key", (_SIZE, *self._key(path_of(node.args[0]) or ""))
        path = path_of(node)
        if path is None:
            return "other", None
        key = self._key(path)
        if key[0] == "threshold":
            return "constant", self.names.circuit.thresholds.get(key[1])
        return ("constant", self.signal) if key[0] == "signal" else ("key", key)

    def _key(self, path: str) -> Key:
        return self.names.meaning(self.step, self.signal, path).key

    def _compare(self, left: tuple[str, Any], op: ast.cmpop, right: tuple[str, Any]) -> None:
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
                self.joined[self._root(one)] = self._root(other)

    def _root(self, key: Key) -> Key:
        self.joined.setdefault(key, key)
        while self.joined[key] != key:
            key = self.joined[key]
        return key

    def _group(self, key: Key) -> set[Key]:
        if key not in self.joined:
            return {key}
        root = self._root(key)
        return {other for other in list(self.joined) if self._root(other) == root}


def placed(values: Mapping[Key, Any]) -> dict[str, Any]:
    """The values where they stand, by root: what is inside something absent is absent too."""
    roots: dict[str, Any] = {}
    for key in sorted(values, key=len):
        value = values[key]
        if value is ABSENT:
            continue
        if len(key) == 1:
            roots[key[0]] = value
            continue
        inner = roots.setdefault(key[0], {})
        if _inside_absent(key, values):
            continue
        for name in key[1:-1]:
            inner = inner.setdefault(name, {})
        inner[key[-1]] = dict(value) if isinstance(value, dict) else value
    return roots


def _inside_absent(key: Key, values: Mapping[Key, Any]) -> bool:
    outer = [values[key[:size]] for size in range(2, len(key)) if key[:size] in values]
    return any(not isinstance(value, dict) for value in outer)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _unique(values: Iterable[Any]) -> list[Any]:
    found: list[Any] = []
    for value in values:
        if not any(type(value) is type(each) and value == each for each in found):
            found.append(value)
    return found
