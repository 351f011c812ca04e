"""A circuit: the table that decides where a case goes next.

Steps, rules, loops and thresholds as data, and the rules that apply at a step on a signal. How a
circuit is written is in circuit_file, how a case moves in advance, whether it is sound in verify.
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
"""How an answer is written: as one JSON object, or as a message with a text signal in it."""

MAX_LIMIT = 100_000
"""The largest limit of a loop or of steps."""

ROOTS = ("answer", "answers", "attempt", "case", "context", "loops", "signal")
"""Names every expression and prompt can read beside the answer's fields and the thresholds."""


class Role(msgspec.Struct, frozen=True):
    """Who answers: how many dispatches at once, and who goes first when places are few."""

    name: str
    slots: int | None = None
    priority: int = 0


class Loop(msgspec.Struct, frozen=True):
    """How often the rules that name it may be taken; `per` step, the count ends with the visit.
    A `threshold`, if named, holds the number."""

    name: str
    max: int
    per_step: bool = False
    threshold: str = ""


class Step(msgspec.Struct, frozen=True):
    """A place in the circuit: which role answers, which prompt, what shape of answer."""

    name: str
    role: str
    shape: Shape
    prompt: str = ""
    timeout: float | None = None
    writes: bool = False
    signals: tuple[str, ...] = (ARTIFACT,)
    judges: tuple[str, ...] = ()
    family: bool = False
    """At a gate: an answer is for all cases of the family, unless whoever gives it says not."""
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
    """Columns of an application's own: the engine keeps them and never reads them."""
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
    """The unhealthy ends that stop the whole run: a human said so."""

    @cached_property
    def _rules_by_place(self) -> dict[tuple[str, str], tuple[Rule, ...]]:
        found: dict[tuple[str, str], list[Rule]] = {}
        for rule in self.rules:
            places = self.steps if ANY in rule.at else dict.fromkeys(rule.at)
            for place in [(step, signal) for step in places for signal in dict.fromkeys(rule.on)]:
                found.setdefault(place, []).append(rule)
        return {place: tuple(rules) for place, rules in found.items()}

    def find_rules(self, step: str, signal: str) -> tuple[Rule, ...]:
        """The rules that apply at a step on a signal, in their order."""
        return self._rules_by_place.get((step, signal), ())

    def find_rule(self, rule_id: str) -> Rule | None:
        return next((rule for rule in self.rules if rule.id == rule_id), None)

    def list_legal_signals(self, step: str) -> tuple[str, ...]:
        """What can come back at a step: what its role may say, and how asking can fail."""
        place = self.steps[step]
        late = (TIMEOUT,) if place.timeout is not None else ()
        broken = () if place.gate else (CRASH, UNREADABLE)
        return place.signals + late + broken

    def with_thresholds(self, changes: Mapping[str, Any]) -> "Circuit":
        """The same circuit with other thresholds, and with the loops whose limits they hold."""
        thresholds = {**self.thresholds, **changes}
        loops = {
            name: msgspec.structs.replace(loop, max=read_loop_limit(loop.threshold, thresholds))
            if loop.threshold
            else loop
            for name, loop in self.loops.items()
        }
        return msgspec.structs.replace(self, thresholds=thresholds, loops=loops)


def read_loop_limit(threshold: str, thresholds: Mapping[str, Any]) -> int:
    """The number a threshold gives to a loop."""
    value = thresholds.get(threshold)
    if type(value) is not int or not 0 <= value <= MAX_LIMIT:
        raise CircuitError(
            f"threshold {threshold!r} limits a loop: it must be a whole number from 0 to "
            f"{MAX_LIMIT:,}, "
            f"not {value!r}"
        )
    return value
