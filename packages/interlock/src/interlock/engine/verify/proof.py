"""Examine a circuit: its text, its tried-out table, the ways through it, and the worst case.

The worst case is the most dispatches one case can cost. The search goes over situations and counts
loops and stacks detours as the engine does; values are free: each visit of a step may meet any
region of values.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from itertools import compress
from math import prod
from operator import ge
from typing import Any, NamedTuple

import msgspec

from interlock.engine.advance import MAX_DETOURS
from interlock.engine.circuit import AGAIN, ANY, BACK, FAILURES, Circuit, Rule
from interlock.engine.circuit_file import CircuitSource
from interlock.engine.verify.cells import Cell, CellOutcome, OutcomeTable, Region
from interlock.engine.verify.finding import Finding, Hop, Level, WorstCase
from interlock.engine.verify.routes import (
    SearchTree,
    StepState,
    Ways,
    find_longest_path,
    find_routes,
    resolve_target,
    search,
)


class Proof:
    """The data that all checks read."""

    def __init__(self, written: CircuitSource) -> None:
        self.written = written
        self.circuit = written.circuit
        self.table = OutcomeTable(written.circuit)

    @cached_property
    def ways(self) -> Ways:
        return find_routes(self.circuit, self.table.find_taken)

    @cached_property
    def reached(self) -> SearchTree[StepState, Hop]:
        """Every reachable place, with a shortest path to it."""
        return search([StepState(self.circuit.start)], self.ways)

    @cached_property
    def numbers(self) -> dict[str, int]:
        return {rule.id: index for index, rule in enumerate(self.circuit.rules)}

    @cached_property
    def known_names(self) -> dict[str, set[str]]:
        """The valid names for each field of a rule."""
        circuit = self.circuit
        spoken = {name for step in circuit.steps.values() for name in step.signals}
        return {
            "at": {*circuit.steps, ANY},
            "on": {*spoken, *FAILURES},
            "to": {*circuit.steps, *circuit.ends, AGAIN, BACK},
            "loop": set(circuit.loops),
            "release": {rule.hold for rule in circuit.rules if rule.hold},
        }

    @cached_property
    def outcomes(self) -> list[tuple[Cell, Region, CellOutcome]]:
        """Each region of each cell, with its outcome."""
        return [
            (cell, region, self.table.find_outcome(cell, region))
            for cell in self.table.cells.values()
            for region in cell.regions
        ]

    def list_rules(self) -> Iterator[Rule]:
        yield from self.circuit.rules
        if self.circuit.otherwise:
            yield self.circuit.otherwise

    def locate_rule(self, rule: Rule, *inside: str) -> tuple[str | int, ...]:
        """Return the place of a rule, or of a part of it, in the text."""
        if rule.id not in self.numbers:
            return ("otherwise", *inside)
        return ("rules", self.numbers[rule.id], *inside)

    def locate_cell(self, cell: Cell) -> tuple[str | int, ...]:
        return self.locate_rule(cell.rules[0]) if cell.rules else ("steps", cell.step)

    def make_finding(
        self,
        kind: str,
        level: Level,
        message: str,
        fix: str,
        *,
        subject: str,
        place: tuple[str | int, ...],
        counter_example: Any = None,
    ) -> Finding:
        return Finding(
            id=f"circuit.{kind}",
            level=level,
            message=message,
            fix=fix,
            file=self.written.file,
            line=self.written.find_line(*place),
            subject=subject,
            counter_example=counter_example,
        )


Check = Callable[[Proof], Iterable[Finding]]


def dump_path(path: Iterable[Hop]) -> list[dict[str, str]]:
    """Return a path as plain data, for a counter-example."""
    return [msgspec.to_builtins(hop) for hop in path]


def format_path(path: Iterable[Hop]) -> str:
    """Return a path in words: step -[rule]-> step."""
    text = ""
    for hop in path:
        text = text or hop.step
        text += f" -[{hop.rule}]-> {hop.to}"
    return text


MAX_SITUATIONS = 100_000
MAX_COUNTS = 1_000_000
"""Above this number of ways to count loops, situations are not searched."""


class Situation(NamedTuple):
    """Everything about a case that decides how far it can still go."""

    step: str
    counts: tuple[int, ...]
    stack: tuple[str, ...] = ()


def find_worst_case(table: OutcomeTable) -> WorstCase:
    """Return the longest search result; if there are too many situations, max_steps."""
    circuit = table.circuit
    if circuit.start not in circuit.steps:
        return WorstCase(0, exact=False, reason="the circuit has no start")
    if prod(loop.max + 1 for loop in circuit.loops.values()) > MAX_COUNTS:
        reason = "its loops can be counted in too many ways: only max_steps is a limit"
        return WorstCase(circuit.max_steps, exact=False, reason=reason)
    walker = _Walker(table)
    start = Situation(circuit.start, (0,) * len(circuit.loops))
    found = find_longest_path(start, walker.list_moves, MAX_SITUATIONS)
    if found.problem:
        reason = f"{found.problem}: only max_steps is a limit"
        return WorstCase(circuit.max_steps, exact=False, reason=reason)
    dispatches = len(found.path) + 1
    if not all(cell.complete for cell in table.cells.values()):
        reason = "some guards read too many values to try them all"
        return WorstCase(min(dispatches, circuit.max_steps), exact=False, reason=reason)
    if dispatches <= circuit.max_steps:
        return WorstCase(dispatches, exact=True, path=found.path)
    reason = f"max_steps cuts a way of {dispatches} dispatches"
    path = found.path[: circuit.max_steps - 1]
    return WorstCase(circuit.max_steps, exact=True, path=path, reason=reason)


class _Move(NamedTuple):
    """A rule that can be taken at a step; the target of BACK depends on the situation."""

    hop: Hop
    rule: Rule
    loop: int | None


class _Walker:
    def __init__(self, table: OutcomeTable) -> None:
        self.table = table
        self.circuit: Circuit = table.circuit
        self.loops = tuple(self.circuit.loops.values())
        self.limits = tuple(loop.max for loop in self.loops)
        self.index = {loop.name: at for at, loop in enumerate(self.loops)}
        self.per_step = [at for at, loop in enumerate(self.loops) if loop.per_step]
        self._known: dict[tuple[str, tuple[bool, ...]], list[_Move]] = {}

    def list_moves(self, now: Situation) -> Iterator[tuple[Hop, Situation]]:
        is_spent = tuple(map(ge, now.counts, self.limits))
        moves = self._known.get((now.step, is_spent))
        if moves is None:
            moves = self._known[now.step, is_spent] = self._find_moves(now.step, is_spent)
        seen: set[Situation] = set()
        for move in moves:
            hop, rule, _ = move
            if rule.to == BACK:
                if not now.stack:
                    continue
                hop = msgspec.structs.replace(hop, to=now.stack[-1])
            if rule.detour and len(now.stack) >= MAX_DETOURS:
                continue
            after = self._apply(now, move, hop.to)
            if after not in seen:
                seen.add(after)
                yield hop, after

    def _find_moves(self, step: str, is_spent: tuple[bool, ...]) -> list[_Move]:
        """Return the moves possible at a step while these loops are spent, by signal."""
        spent = frozenset(loop.name for loop in compress(self.loops, is_spent))
        found: dict[tuple[str, str], _Move] = {}
        for cell in self.table.find_cells(step):
            chosen = [self.table.choose_rule(cell, region, spent) for region in cell.regions]
            if not cell.complete:
                chosen += [each for each in cell.rules if each.to and each.loop not in spent]
                chosen.append(self.circuit.otherwise)
            for rule in filter(None, chosen):
                target = resolve_target(rule, step, BACK)
                if target == BACK or target in self.circuit.steps:
                    hop = Hop(step, cell.signal, rule.id, target)
                    move = _Move(hop, rule, self.index.get(rule.loop or ""))
                    found.setdefault((cell.signal, rule.id), move)
        return list(found.values())

    def _apply(self, now: Situation, move: _Move, target: str) -> Situation:
        rule, counts = move.rule, now.counts
        if move.loop is not None or (self.per_step and target != now.step):
            changed = list(counts)
            if target != now.step:
                for at in self.per_step:
                    changed[at] = 0
            if move.loop is not None:
                changed[move.loop] += 1
            counts = tuple(changed)
        stack = now.stack[:-1] if rule.to == BACK else now.stack
        return Situation(target, counts, (*stack, now.step) if rule.detour else stack)
