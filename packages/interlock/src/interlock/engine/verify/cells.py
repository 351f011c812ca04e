"""Try out one cell of the table, a step and a signal: which rules hold for which values.

The real evaluator finds every region of values that the guards of a cell tell apart, with one
example each, and the possible outcomes in the engine's order: first match wins, a spent loop is
passed over, `otherwise` is last. The checks judge what is sound.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from math import gcd, prod
from typing import Any, Final, Literal, TypeVar

import msgspec

from interlock.engine.advance import build_scope
from interlock.engine.case import Case, Signal
from interlock.engine.circuit import Circuit, Rule
from interlock.engine.expression import Expression, Scope
from interlock.engine.verify.domains import ABSENT, Key, ValueUses, Variable, place_values
from interlock.engine.verify.names import Names
from interlock.engine.verify.routes import allow_any_rule, list_step_signals
from interlock.system.errors import ExpressionError

MAX_COMBINATIONS = 100_000
MAX_SAMPLE = 10_000
Item = TypeVar("Item")

Verdict = Literal["holds", "fresh", "fails", "spent", "breaks", "spills"]
HOLDS: Final = "holds"
FRESH: Final = "fresh"
"""Holds, and the values show that its loop is not spent."""
FAILS: Final = "fails"
SPENT: Final = "spent"
"""Holds, but the values show that its loop is spent."""
BREAKS: Final = "breaks"
"""The guard cannot be evaluated: the case would be stuck."""
SPILLS: Final = "spills"
"""The guard holds, but what the rule adds cannot be evaluated."""


class Region(msgspec.Struct, frozen=True):
    """Values that the guards cannot tell apart: each rule's verdict, and one example."""

    verdicts: tuple[Verdict, ...]
    values: Mapping[Key, Any]

    @property
    def example(self) -> dict[str, Any]:
        """The example in a reader's words: the answer's own fields by their bare names."""
        return self.pick_example(self.values)

    def pick_example(self, keys: Iterable[Key]) -> dict[str, Any]:
        """Return the part of the example at these keys."""
        wanted = set(keys)
        return {
            ".".join(key[1:] if key[0] == "answer" else key): value
            for key, value in self.values.items()
            if key in wanted and value is not ABSENT
        }


class Cell(msgspec.Struct, frozen=True):
    """A step and a signal, its rules in order, and all regions of values they tell apart."""

    step: str
    signal: str
    rules: tuple[Rule, ...]
    regions: tuple[Region, ...]
    variables: tuple[Variable, ...]
    combinations: int
    complete: bool


def build_cell(
    names: Names, step: str, signal: str, fixed: Mapping[Key, Any] | None = None
) -> Cell:
    """Try every combination of representative values on the rules of a step and a signal.

    A `fixed` value is the only one tried.
    """
    rules = names.circuit.find_rules(step, signal)
    uses = ValueUses(names, step, signal)
    for rule in rules:
        for expression in list_expressions(rule):
            uses.add(expression)
    variables = tuple(
        Variable(each.key, (fixed[each.key],)) if fixed and each.key in fixed else each
        for each in uses.list_variables()
    )
    clusters = [
        _Cluster(names, step, signal, group, variables)
        for group in _group_rules(names, uses, rules)
    ]
    parts = [cluster.find_regions() for cluster in clusters]
    number = prod(len(part) for part in parts)
    regions = _join_regions(rules, [cluster.rules for cluster in clusters], parts)
    return Cell(
        step=step,
        signal=signal,
        rules=rules,
        regions=tuple(regions),
        variables=variables,
        combinations=max([number, *(cluster.combinations for cluster in clusters)]),
        complete=number <= MAX_COMBINATIONS and all(cluster.complete for cluster in clusters),
    )


def list_expressions(rule: Rule) -> Iterator[Expression]:
    if rule.guard is not None:
        yield rule.guard
    yield from (value for value in rule.adds.values() if isinstance(value, Expression))


def sample_combinations(choices: Sequence[Sequence[Item]]) -> Iterator[tuple[Item, ...]]:
    """Yield all combinations; of too many, a fixed and evenly spread sample."""
    total = prod(len(each) for each in choices)
    if total <= MAX_COMBINATIONS:
        yield from product(*choices)
        return
    stride = total // MAX_SAMPLE + 1
    while gcd(stride, total) != 1:
        stride += 1
    for number in range(MAX_SAMPLE):
        yield _pick_combination(choices, number * stride % total)


def _pick_combination(choices: Sequence[Sequence[Item]], index: int) -> tuple[Item, ...]:
    chosen: list[Item] = []
    for each in choices:
        index, place = divmod(index, len(each))
        chosen.append(each[place])
    return tuple(chosen)


def find_keys(names: Names, step: str, signal: str, rule: Rule) -> set[Key]:
    """Return the keys of the values that a rule reads or asks for."""
    paths = [path for each in list_expressions(rule) for path in (*each.reads, *each.asks)]
    return {names.find_meaning(step, signal, path).key for path in paths}


def _find_varying_keys(names: Names, uses: ValueUses, rule: Rule) -> set[Key]:
    keys = find_keys(names, uses.step, uses.signal, rule)
    counter = ("loops", rule.loop or "")
    if counter in uses.meanings:
        keys.add(counter)
    return keys & set(uses.meanings)


def _group_rules(
    names: Names, uses: ValueUses, rules: tuple[Rule, ...]
) -> list[tuple[list[Rule], set[Key]]]:
    """Group rules that share a value: they must be tried together, others need not."""
    groups: list[tuple[list[Rule], set[Key]]] = []
    for rule in rules:
        keys = _find_varying_keys(names, uses, rule)
        touching = [
            group for group in groups if any(_is_related(a, b) for a in keys for b in group[1])
        ]
        groups = [group for group in groups if group not in touching]
        merged = [each for group in touching for each in group[0]]
        groups.append(([*merged, rule], keys.union(*(group[1] for group in touching))))
    return groups


def _is_related(one: Key, other: Key) -> bool:
    size = min(len(one), len(other))
    return one[:size] == other[:size]


class _Cluster:
    """Rules of a cell that share values."""

    def __init__(
        self,
        names: Names,
        step: str,
        signal: str,
        group: tuple[list[Rule], set[Key]],
        variables: Sequence[Variable],
    ) -> None:
        self.circuit = names.circuit
        self.step = step
        self.signal = signal
        self.rules = group[0]
        self.variables = [each for each in variables if each.key in group[1]]
        self.combinations = prod(len(each.values) for each in self.variables)
        self.complete = self.combinations <= MAX_COMBINATIONS

    def find_regions(self) -> list[Region]:
        keys = [variable.key for variable in self.variables]
        found: dict[tuple[Verdict, ...], Region] = {}
        for chosen in sample_combinations([variable.values for variable in self.variables]):
            values = dict(zip(keys, chosen, strict=True))
            scope = build_example_scope(self.circuit, self.step, self.signal, values)
            verdicts = tuple(self._judge(rule, scope, values) for rule in self.rules)
            if verdicts not in found:
                found[verdicts] = Region(verdicts, values)
        return list(found.values())

    def _judge(self, rule: Rule, scope: Scope, values: Mapping[Key, Any]) -> Verdict:
        try:
            if rule.guard is not None and not rule.guard.holds(scope):
                return FAILS
        except ExpressionError:
            return BREAKS
        loop = self.circuit.loops.get(rule.loop or "")
        count = values.get(("loops", rule.loop or ""))
        if loop and count is not None and count >= loop.max:
            return SPENT
        if not self._may_add(rule, scope):
            return SPILLS
        return HOLDS if count is None else FRESH

    def _may_add(self, rule: Rule, scope: Scope) -> bool:
        try:
            for value in rule.adds.values():
                if isinstance(value, Expression):
                    value.evaluate(scope)
        except ExpressionError:
            return False
        return True


def build_example_scope(
    circuit: Circuit, step: str, signal: str, values: Mapping[Key, Any]
) -> Scope:
    """Return the scope the engine would build for a case with these values."""
    roots = place_values(values)
    case = Case(
        case_id="",
        step=step,
        loops=roots.get("loops", {}),
        visits={step: roots.get("attempt", 1)},
        context=roots.get("context", {}),
        answers=roots.get("answers", {}),
        input=roots.get("case", {}),
    )
    return build_scope(circuit, case, Signal(signal, roots.get("answer", {})))


def _join_regions(
    rules: tuple[Rule, ...], groups: list[list[Rule]], parts: list[list[Region]]
) -> Iterator[Region]:
    """Yield the regions of the whole cell from those of its independent clusters."""
    order = {rule.id: index for index, rule in enumerate(rules)}
    places = [order[rule.id] for group in groups for rule in group]
    for chosen in sample_combinations(parts):
        verdicts: list[Verdict] = [FAILS] * len(rules)
        for place, verdict in zip(
            places, (v for part in chosen for v in part.verdicts), strict=True
        ):
            verdicts[place] = verdict
        values = {key: value for part in chosen for key, value in part.values.items()}
        yield Region(tuple(verdicts), values)


SILENT = (FAILS, SPENT)


class CellOutcome(msgspec.Struct, frozen=True):
    """The rules that can have their turn, each when the loops of those before it are spent."""

    turns: tuple[tuple[Rule, Verdict], ...]
    open_ended: bool
    """No rule is left when all loops are spent."""

    @property
    def moves(self) -> tuple[Rule, ...]:
        """The rules that lead somewhere."""
        return tuple(
            rule for rule, verdict in self.turns if rule.to is not None and verdict != BREAKS
        )


class OutcomeTable:
    """Every cell of a circuit, tried out once."""

    def __init__(self, circuit: Circuit) -> None:
        self.circuit = circuit
        self.names = Names(circuit)
        self.cells = {
            (step, signal): build_cell(self.names, step, signal)
            for step in circuit.steps
            for signal in list_step_signals(circuit, step)
        }
        self._taken = {place: tuple(self._list_taken(cell)) for place, cell in self.cells.items()}
        self._by_step: dict[str, list[Cell]] = {step: [] for step in circuit.steps}
        for cell in self.cells.values():
            self._by_step[cell.step].append(cell)

    def find_cells(self, step: str) -> list[Cell]:
        return self._by_step[step]

    def find_taken(self, step: str, signal: str) -> tuple[Rule, ...]:
        """Return the rules that can be taken there for some values and loop counts."""
        return self._taken.get((step, signal), ())

    def choose_rule(self, cell: Cell, region: Region, spent: Iterable[str]) -> Rule | None:
        """Return the rule the engine takes for these values when these loops are spent."""
        gone = set(spent)
        for rule, verdict in zip(cell.rules, region.verdicts, strict=True):
            if verdict == BREAKS or (verdict == SPILLS and rule.loop not in gone):
                return None
            if verdict not in SILENT and rule.loop not in gone and rule.to is not None:
                return rule
        return self.circuit.otherwise

    def find_outcome(self, cell: Cell, region: Region) -> CellOutcome:
        turns: list[tuple[Rule, Verdict]] = []
        for rule, verdict in zip(cell.rules, region.verdicts, strict=True):
            if verdict in SILENT or (self._is_never(rule) and verdict != BREAKS):
                continue
            turns.append((rule, verdict))
            spendable = rule.loop is not None and verdict not in (FRESH, BREAKS)
            only_adds = rule.to is None and verdict not in (SPILLS, BREAKS)
            if not spendable and not only_adds:
                return CellOutcome(tuple(turns), open_ended=False)
        return CellOutcome(tuple(turns), open_ended=True)

    def _is_never(self, rule: Rule) -> bool:
        loop = self.circuit.loops.get(rule.loop or "")
        return loop is not None and loop.max == 0

    def _list_taken(self, cell: Cell) -> Iterator[Rule]:
        if not cell.complete:
            yield from allow_any_rule(self.circuit)(cell.step, cell.signal)
            return
        found: dict[str, Rule] = {}
        for region in cell.regions:
            outcome = self.find_outcome(cell, region)
            found.update({rule.id: rule for rule in outcome.moves})
            if self.circuit.otherwise and outcome.open_ended:
                found[self.circuit.otherwise.id] = self.circuit.otherwise
        yield from found.values()
