"""Walks through a circuit with made-up answers: where cases end, how, and at what cost.

Answers are legal ones, made from shapes and from the values that guards look at; now and then there
is none. Chance is an argument: the same chance gives the same walks.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

import msgspec

from interlock.engine.advance import advance, apply, open_case
from interlock.engine.case import ENDED, OPEN, Case, Signal
from interlock.engine.circuit import FAILURES, Circuit
from interlock.engine.verify.cells import Cell, OutcomeTable
from interlock.engine.verify.domains import Key, find_sample, place_values
from interlock.engine.verify.routes import list_step_signals

FAILURE_RATE = 0.08
Item = TypeVar("Item")


class RandomSource(Protocol):
    """What a walk needs of a source of chance; random.Random is one."""

    def random(self) -> float: ...

    def choice(self, seq: Sequence[Item], /) -> Item: ...


class WalkedPath(msgspec.Struct, frozen=True):
    """One way through the circuit, and how many cases went it."""

    steps: tuple[str, ...]
    end: str
    cases: int


class Spread(msgspec.Struct, frozen=True):
    """How a number is spread over the cases."""

    least: int = 0
    median: int = 0
    p95: int = 0
    most: int = 0
    mean: float = 0.0


class Simulation(msgspec.Struct, frozen=True):
    """What came of all walks; the commonest first."""

    cases: int
    ends: Mapping[str, int]
    stuck: Mapping[str, int]
    paths: tuple[WalkedPath, ...]
    dispatches: Spread
    rules: Mapping[str, int]
    never: tuple[str, ...]


def simulate(circuit: Circuit, cases: int, chance: RandomSource) -> Simulation:
    """Walk that many cases from the start until each has ended or is stuck."""
    player = AnswerSampler(circuit, chance)
    walks = [player.walk(f"case-{number}") for number in range(1, cases + 1)]
    hits = Counter(rule for _, rules, _ in walks for rule in rules)
    paths = Counter((steps, case.end) for steps, _, case in walks)
    known = [rule.id for rule in circuit.rules]
    return Simulation(
        cases=cases,
        ends=_count(case.end for _, _, case in walks if case.status == ENDED),
        stuck=_count(case.reason for _, _, case in walks if case.status != ENDED),
        paths=tuple(WalkedPath(steps, end, count) for (steps, end), count in paths.most_common()),
        dispatches=compute_spread([case.moves for _, _, case in walks]),
        rules=dict(hits.most_common()),
        never=tuple(rule for rule in known if rule not in hits),
    )


class AnswerSampler:
    """Plays the agents: answers every dispatch with something legal."""

    def __init__(self, circuit: Circuit, chance: RandomSource) -> None:
        self.circuit = circuit
        self.chance = chance
        self.table = OutcomeTable(circuit)

    def walk(self, case_id: str) -> tuple[tuple[str, ...], list[str], Case]:
        """The steps, the rules taken or noted, and the case when it is over."""
        case = open_case(self.circuit, case_id, self.make_input())
        steps, rules = [case.step], []
        while case.status == OPEN:
            signal = self.make_answer(case.step)
            decision = advance(self.circuit, case, signal)
            case = apply(self.circuit, case, decision, signal.data)
            rules += [*decision.noted, *([decision.rule] if decision.rule else [])]
            if case.status == OPEN:
                steps.append(case.step)
        return tuple(steps), rules, case

    def make_input(self) -> dict[str, Any]:
        """Values for everything that guards read from the case itself."""
        values: dict[Key, Any] = {}
        for cell in self.table.cells.values():
            for variable in cell.variables:
                if variable.key[0] == "case" and variable.key not in values:
                    values[variable.key] = self.chance.choice(variable.values)
        found: dict[str, Any] = place_values(values).get("case", {})
        return found

    def make_answer(self, step: str) -> Signal:
        signals = list_step_signals(self.circuit, step)
        failures = [name for name in signals if name in FAILURES]
        spoken = [name for name in signals if name not in FAILURES]
        failed = bool(failures) and (not spoken or self.chance.random() < FAILURE_RATE)
        name = self.chance.choice(failures if failed else spoken)
        return Signal(name, self._make_data(self.table.cells[step, name]))

    def _make_data(self, cell: Cell) -> dict[str, Any]:
        """A value for each field the guards read, around what the shape asks for anyway."""
        values = {each.key: self.chance.choice(each.values) for each in cell.variables}
        if cell.regions and self.chance.random() < 0.5:
            values.update(self.chance.choice(cell.regions).values)
        plain = find_sample(self.table.names.find_answer_shape(cell.step, cell.signal))
        return _merge(
            plain if isinstance(plain, dict) else {}, place_values(values).get("answer", {})
        )


def compute_spread(numbers: Sequence[int]) -> Spread:
    """Nearest-rank figures; all zero for no numbers."""
    if not numbers:
        return Spread()
    ordered = sorted(numbers)

    def rank(percent: int) -> int:
        return ordered[max(0, -(-len(ordered) * percent // 100) - 1)]

    mean = round(sum(ordered) / len(ordered), 2)
    return Spread(ordered[0], rank(50), rank(95), ordered[-1], mean)


def _count(words: Iterable[str]) -> dict[str, int]:
    return dict(Counter(words).most_common())


def _merge(under: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    both = {**under, **over}
    for name in under.keys() & over.keys():
        if isinstance(under[name], dict) and isinstance(over[name], dict):
            both[name] = _merge(under[name], over[name])
    return both
