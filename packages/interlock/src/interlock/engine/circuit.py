"""A circuit: the table that decides where a case goes next.

Holds steps, rules, loops and thresholds as data, and finds the rules for a step and a signal.
`circuit_file` reads circuits, `advance` moves cases, and `verify` proves circuits sound.
"""

from collections.abc import Mapping
from functools import cached_property
from typing import Any, Literal

import msgspec

from interlock.engine.expression import Expression
from interlock.engine.shape import Shape
from interlock.system.errors import CircuitError

HUMAN = "human"
ANY = "ANY"
BACK = "BACK"
AGAIN = "AGAIN"

ARTIFACT = "artifact"
TIMEOUT = "timeout"
CRASH = "crash"
UNREADABLE = "unreadable"
RATE_LIMIT = "rate-limit"
WRONG_ROLE = "wrong-role"
FAILURES = (TIMEOUT, CRASH, UNREADABLE, RATE_LIMIT, WRONG_ROLE)
"""Signals that Interlock raises itself when no usable answer came."""

Language = Literal["json", "text"]
"""The form of an answer: one JSON object, or a message that contains a text signal."""

MAX_LIMIT = 100_000
"""The largest limit of a loop or of steps."""

ROOTS = ("answer", "answers", "attempt", "case", "context", "loops", "signal")
"""Names that every expression and prompt can read beside thresholds and the answer's fields."""


class Role(msgspec.Struct, frozen=True):
    """A kind of agent: how many dispatches it takes at once, and its rank when places are few."""

    name: str
    slots: int | None = None
    priority: int = 0


class Loop(msgspec.Struct, frozen=True):
    """A limit on the rules that name it; with `per_step`, the count ends with the visit.

    A `threshold`, if named, holds the number.
    """

    name: str
    max: int
    per_step: bool = False
    threshold: str = ""


class Step(msgspec.Struct, frozen=True):
    """A place in the circuit: which role answers, with which prompt, in what shape."""

    name: str
    role: str
    shape: Shape
    prompt: str = ""
    timeout: float | None = None
    writes: bool = False
    signals: tuple[str, ...] = (ARTIFACT,)
    judges: tuple[str, ...] = ()
    family: bool = False
    """At a gate: one answer settles all cases of the family, unless the person limits it."""
    language: Language = "json"

    @property
    def gate(self) -> bool:
        return self.role == HUMAN


class Rule(msgspec.Struct, frozen=True):
    """At a step, on a signal, when the guard holds: go there. Without `to` it only adds."""

    id: str
    at: tuple[str, ...]
    on: tuple[str, ...]
    to: str | None
    guard: Expression | None = None
    loop: str | None = None
    detour: bool = False
    adds: Mapping[str, Any] = {}
    hold: str | None = None
    release: str | None = None
    tags: Mapping[str, str] = {}
    """An application's own columns, which the engine keeps and never reads."""
    why: str = ""


class Circuit(msgspec.Struct, frozen=True, dict=True):
    """A named, versioned table. Data, never code."""

    name: str
    version: int
    start: str
    ends: Mapping[str, bool]
    thresholds: Mapping[str, Any]
    loops: Mapping[str, Loop]
    max_steps: int
    roles: Mapping[str, Role]
    steps: Mapping[str, Step]
    rules: tuple[Rule, ...]
    otherwise: Rule | None
    halts: frozenset[str] = frozenset()
    """The unhealthy ends that stop the whole run, because a human said so."""

    @cached_property
    def _rules_by_place(self) -> dict[tuple[str, str], tuple[Rule, ...]]:
        found: dict[tuple[str, str], list[Rule]] = {}
        for rule in self.rules:
            places = self.steps if ANY in rule.at else dict.fromkeys(rule.at)
            for place in [(step, signal) for step in places for signal in dict.fromkeys(rule.on)]:
                found.setdefault(place, []).append(rule)
        return {place: tuple(rules) for place, rules in found.items()}

    def find_rules(self, step: str, signal: str) -> tuple[Rule, ...]:
        """Return the rules that apply at a step on a signal, in their order."""
        return self._rules_by_place.get((step, signal), ())

    def find_rule(self, rule_id: str) -> Rule | None:
        return next((rule for rule in self.rules if rule.id == rule_id), None)

    def list_legal_signals(self, step: str) -> tuple[str, ...]:
        """Return what can come back at a step: the role's signals, and the ways a dispatch can
        fail."""
        place = self.steps[step]
        late = (TIMEOUT,) if place.timeout is not None else ()
        broken = () if place.gate else (CRASH, UNREADABLE)
        return place.signals + late + broken

    def with_thresholds(self, changes: Mapping[str, Any]) -> "Circuit":
        """Return the circuit with other thresholds, and with the loop limits that follow from
        them."""
        thresholds = {**self.thresholds, **changes}
        loops = {
            name: msgspec.structs.replace(loop, max=read_loop_limit(loop.threshold, thresholds))
            if loop.threshold
            else loop
            for name, loop in self.loops.items()
        }
        return msgspec.structs.replace(self, thresholds=thresholds, loops=loops)


def read_loop_limit(threshold: str, thresholds: Mapping[str, Any]) -> int:
    """Return the loop limit that a threshold holds."""
    value = thresholds.get(threshold)
    if type(value) is not int or not 0 <= value <= MAX_LIMIT:
        raise CircuitError(
            f"threshold {threshold!r} limits a loop: it must be a whole number from 0 to "
            f"{MAX_LIMIT:,}, "
            f"not {value!r}"
        )
    return value
