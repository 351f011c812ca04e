"""Resolve names in expressions at a step on a signal.

A name is a threshold, a field of an answer, or one of the roots that every expression can read; its
meaning says whether the value is sure to be present.
"""

import difflib
from collections.abc import Iterable
from functools import cached_property
from typing import Any

import msgspec

from interlock.engine.circuit import FAILURES, ROOTS, Circuit
from interlock.engine.expression import Expression
from interlock.engine.shape import Shape
from interlock.engine.verify.routes import StepState, allow_any_rule, find_routes, search

FAILURE_SHAPE = Shape(
    kinds=("object",),
    fields={"reason": Shape(kinds=("string",))},
    required=("reason",),
    closed=True,
)
"""The shape of the answer when Interlock itself raised the signal."""


class Meaning(msgspec.Struct, frozen=True):
    """The meaning of a name: its place (`key`), its shape, and the optional parts of its path.

    `asked` means that the value counts as optional only if some guard asks for it with has().
    """

    key: tuple[str, ...]
    shape: Shape | None = None
    optional: tuple[bool, ...] = ()
    asked: bool = False
    problem: str = ""
    hint: str = ""

    @property
    def constant(self) -> bool:
        return self.key[0] in ("threshold", "signal")


class Names:
    """The names of one circuit."""

    def __init__(self, circuit: Circuit) -> None:
        self.circuit = circuit
        self._rules = (*circuit.rules, *([circuit.otherwise] if circuit.otherwise else []))

    def find_answer_shape(self, step: str, signal: str) -> Shape:
        return FAILURE_SHAPE if signal in FAILURES else self.circuit.steps[step].shape

    def find_meaning(self, step: str, signal: str, path: str) -> Meaning:
        head, *rest = path.split(".")
        if head in self.circuit.thresholds:
            return self._find_threshold(head, rest, self.find_answer_shape(step, signal))
        if head not in ROOTS:
            return self._find_answer(step, signal, [head, *rest])
        match head:
            case "answer":
                return self._find_answer(step, signal, rest)
            case "answers":
                return self._find_earlier_answer(step, rest)
            case "loops":
                return self._find_loop(rest)
            case "context":
                return self._find_context(step, rest)
            case "case":
                return Meaning(("case", *rest), None, (False,) * len(rest), asked=True)
        problem = f"{head!r} has no fields" if rest else ""
        shape = Shape(kinds=("integer",), minimum=1) if head == "attempt" else None
        return Meaning((head,), shape, problem=problem, hint=f"write {head}")

    def _find_threshold(self, head: str, rest: list[str], answer: Shape) -> Meaning:
        problem = hint = ""
        if head in answer.fields:
            problem = f"{head!r} is both a threshold and a field of the answer"
            hint = "rename the threshold"
        elif rest:
            problem, hint = f"{head!r} is a threshold and has no fields", f"write {head}"
        return Meaning(("threshold", head, *rest), problem=problem, hint=hint)

    def _find_answer(self, step: str, signal: str, names: list[str]) -> Meaning:
        shape, optional, lost = walk_shape(self.find_answer_shape(step, signal), names)
        if lost is None:
            return Meaning(("answer", *names), shape, optional)
        known = self.find_answer_shape(step, signal).fields
        where = "answer" if signal not in FAILURES else f"{signal!r} signal"
        return Meaning(
            ("answer", *names),
            problem=f"{'.'.join(names)!r} is not a field of the {where} at {step}, nor a threshold",
            hint=suggest_name(lost, [*known, *self.circuit.thresholds]),
        )

    def _find_earlier_answer(self, step: str, names: list[str]) -> Meaning:
        steps = self.circuit.steps
        key = ("answers", *names)
        if not names:
            return Meaning(key)
        if names[0] not in steps:
            hint = suggest_name(names[0], steps)
            return Meaning(key, problem=f"answers.{names[0]}: there is no such step", hint=hint)
        shape, optional, lost = walk_shape(steps[names[0]].shape, names[1:])
        if lost is not None:
            hint = suggest_name(lost, steps[names[0]].shape.fields)
            return Meaning(key, problem=f"{names[0]!r} answers with no {lost!r}", hint=hint)
        return Meaning(key, shape, (not self._is_sure(step, "answers", names[0]), *optional))

    def _find_loop(self, names: list[str]) -> Meaning:
        key = ("loops", *names)
        if not names:
            return Meaning(key)
        loop = self.circuit.loops.get(names[0])
        if loop is None or len(names) > 1:
            hint = suggest_name(names[0], self.circuit.loops)
            return Meaning(key, problem=f"{'.'.join(key)!r} is not a loop", hint=hint)
        return Meaning(key, Shape(kinds=("integer",), minimum=0, maximum=loop.max))

    def _find_context(self, step: str, names: list[str]) -> Meaning:
        key = ("context", *names)
        if not names:
            return Meaning(key)
        added = self._added.get(names[0])
        if added is None:
            hint = suggest_name(names[0], self._added)
            return Meaning(key, problem=f"no rule adds {names[0]!r} to the context", hint=hint)
        optional = not self._is_sure(step, "context", names[0])
        if any(isinstance(value, Expression) for value in added) or len(names) > 1:
            return Meaning(key, None, (optional,) + (False,) * (len(names) - 1), asked=not optional)
        return Meaning(key, Shape(choices=tuple(added)), (optional,))

    @cached_property
    def _added(self) -> dict[str, list[Any]]:
        """Values that rules add to the context, by name."""
        found: dict[str, list[Any]] = {}
        for rule in self._rules:
            for name, value in rule.adds.items():
                found.setdefault(name, []).append(value)
        return found

    def _is_sure(self, step: str, root: str, name: str) -> bool:
        """Return True if every path from the start to this step sets the value."""
        return bool(self._sure.get(step, -1) >> self._bits[root, name] & 1)

    @cached_property
    def _bits(self) -> dict[tuple[str, str], int]:
        """A bit for every value that a case can collect on its way."""
        names = [("answers", step) for step in self.circuit.steps]
        names += [("context", name) for name in self._added]
        return {name: bit for bit, name in enumerate(names)}

    @cached_property
    def _sure(self) -> dict[str, int]:
        """The values sure to be present at each reachable step, as bits: those that every path to
        the step brings."""
        brings = {
            rule.id: sum(1 << self._bits["context", name] for name in rule.adds)
            for rule in self._rules
        }
        ways = find_routes(self.circuit, allow_any_rule(self.circuit))
        start = StepState(self.circuit.start)
        sure = dict.fromkeys(search([start], ways), -1)
        sure[start] = 0
        changed = True
        while changed:  # breadth first: most circuits need two or three rounds
            changed = False
            for place in sure:
                for hop, target in ways.get(place, ()):
                    held = sure[place] | brings[hop.rule]
                    if hop.signal not in FAILURES:
                        held |= 1 << self._bits["answers", hop.step]
                    if sure[target] & held != sure[target]:
                        sure[target] &= held
                        changed = True
        found: dict[str, int] = {}
        for place, held in sure.items():
            found[place.step] = found.get(place.step, -1) & held
        return found


def walk_shape(
    shape: Shape | None, names: list[str]
) -> tuple[Shape | None, tuple[bool, ...], str | None]:
    """Return the shape at the end of a path, its optional parts, and the first unknown name."""
    optional: list[bool] = []
    for name in names:
        shapes = [] if shape is None else [shape, *shape.either]
        declared = [each for each in shapes if name in each.fields]
        if declared:
            kinds = {kind for each in shapes for kind in each.kinds}
            if optional and kinds != {"object"}:
                optional[-1] = True
            optional.append(declared[0] is not shape or name not in declared[0].required)
            shape = declared[0].fields[name]
        elif any(each.fields or each.closed for each in shapes) or not _may_hold(shapes):
            return None, (), name
        else:
            optional.append(True)
            shape = None
    return shape, tuple(optional), None


def suggest_name(name: str, known: Iterable[str]) -> str:
    """Return the name that was probably meant, or the names to choose from."""
    names = sorted(known)
    close = difflib.get_close_matches(name, names, 1)
    if close:
        return f"did you mean {close[0]!r}?"
    return f"use {', '.join(names[:12])}" if names else "there is none to choose from"


def _may_hold(shapes: list[Shape]) -> bool:
    kinds = {kind for shape in shapes for kind in shape.kinds}
    return not kinds or "object" in kinds
