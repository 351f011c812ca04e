"""A circuit under examination: its text, its table tried out, and the ways through it.

Knows what every check needs and where things stand in the file. Refuses to know the checks.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from typing import Any

import msgspec

from interlock.engine.circuit import Rule
from interlock.engine.notation import CircuitSource
from interlock.engine.verify.cells import Cell, Region
from interlock.engine.verify.finding import Finding, Hop, Level
from interlock.engine.verify.graph import paths_from
from interlock.engine.verify.outcome import CellOutcome, OutcomeTable
from interlock.engine.verify.routes import StepState, Ways, ways_through


class Proof:
    """What the checks look at."""

    def __init__(self, written: CircuitSource) -> None:
        self.written = written
        self.circuit = written.circuit
        self.table = OutcomeTable(written.circuit)

    @cached_property
    def ways(self) -> Ways:
        return ways_through(self.circuit, self.table.taken)

    @cached_property
    def reached(self) -> dict[StepState, tuple[Hop, ...]]:
        """Every place that can be reached from the start, with a shortest way to it."""
        return paths_from(StepState(self.circuit.start), self.ways)

    @cached_property
    def numbers(self) -> dict[str, int]:
        return {rule.id: index for index, rule in enumerate(self.circuit.rules)}

    @cached_property
    def outcomes(self) -> list[tuple[Cell, Region, CellOutcome]]:
        """Everything that can happen anywhere: each region of each cell, and what comes of it."""
        return [
            (cell, region, self.table.outcome(cell, region))
            for cell in self.table.cells.values()
            for region in cell.regions
        ]

    def rules(self) -> Iterator[Rule]:
        yield from self.circuit.rules
        if self.circuit.otherwise:
            yield self.circuit.otherwise

    def at_rule(self, rule: Rule, *inside: str) -> tuple[str | int, ...]:
        """Where a rule, or a part of it, stands in the text."""
        if rule.id not in self.numbers:
            return ("otherwise", *inside)
        return ("rules", self.numbers[rule.id], *inside)

    def at_cell(self, cell: Cell) -> tuple[str | int, ...]:
        return self.at_rule(cell.rules[0]) if cell.rules else ("steps", cell.step)

    def finding(
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
            line=self.written.line(*place),
            subject=subject,
            counter_example=counter_example,
        )


Check = Callable[[Proof], Iterable[Finding]]


def shown(path: Iterable[Hop]) -> list[dict[str, str]]:
    """A path as plain data, for a counter-example."""
    return [msgspec.to_builtins(hop) for hop in path]


def said(path: Iterable[Hop]) -> str:
    """A path in words: step -[rule]-> step."""
    text = ""
    for hop in path:
        text = text or hop.step
        text += f" -[{hop.rule}]-> {hop.to}"
    return text
