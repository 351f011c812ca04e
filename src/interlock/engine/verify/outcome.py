"""What can come of a cell: the rules that can be taken, and whether none may be.

Knows the engine's order: first match wins, a spent loop is passed over, `otherwise` is last.
Refuses to know values; a region's verdicts are enough.
"""

from collections.abc import Iterable, Iterator

import msgspec

from interlock.engine.circuit import Circuit, Rule
from interlock.engine.verify.cells import (
    BREAKS,
    FAILS,
    FRESH,
    SPENT,
    SPILLS,
    Cell,
    Region,
    Verdict,
    cell_of,
)
from interlock.engine.verify.names import Names
from interlock.engine.verify.routes import any_rule, signals_at

SILENT = (FAILS, SPENT)


class CellOutcome(msgspec.Struct, frozen=True):
    """The rules that can have their turn, each when the loops of those before it are spent."""

    turns: tuple[tuple[Rule, Verdict], ...]
    open_ended: bool
    """When all loops are spent, no rule is left."""

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
            (step, signal): cell_of(self.names, step, signal)
            for step in circuit.steps
            for signal in signals_at(circuit, step)
        }
        self._taken = {place: tuple(self._all_taken(cell)) for place, cell in self.cells.items()}

    def taken(self, step: str, signal: str) -> tuple[Rule, ...]:
        """The rules that can be taken there for some values and some state of the loops."""
        return self._taken.get((step, signal), ())

    def chosen(self, cell: Cell, region: Region, spent: Iterable[str]) -> Rule | None:
        """The rule the engine takes for these values when these loops are spent."""
        gone = set(spent)
        for rule, verdict in zip(cell.rules, region.verdicts, strict=True):
            if verdict == BREAKS or (verdict == SPILLS and rule.loop not in gone):
                return None
            if verdict not in SILENT and rule.loop not in gone and rule.to is not None:
                return rule
        return self.circuit.otherwise

    def outcome(self, cell: Cell, region: Region) -> CellOutcome:
        turns: list[tuple[Rule, Verdict]] = []
        for rule, verdict in zip(cell.rules, region.verdicts, strict=True):
            if verdict in SILENT or (self._never(rule) and verdict != BREAKS):
                continue
            turns.append((rule, verdict))
            spendable = rule.loop is not None and verdict not in (FRESH, BREAKS)
            only_adds = rule.to is None and verdict not in (SPILLS, BREAKS)
            if not spendable and not only_adds:
                return CellOutcome(tuple(turns), open_ended=False)
        return CellOutcome(tuple(turns), open_ended=True)

    def _never(self, rule: Rule) -> bool:
        loop = self.circuit.loops.get(rule.loop or "")
        return loop is not None and loop.max == 0

    def _all_taken(self, cell: Cell) -> Iterator[Rule]:
        if not cell.complete:
            yield from any_rule(self.circuit)(cell.step, cell.signal)
            return
        found: dict[str, Rule] = {}
        for region in cell.regions:
            outcome = self.outcome(cell, region)
            found.update({rule.id: rule for rule in outcome.moves})
            if self.circuit.otherwise and outcome.open_ended:
                found[self.circuit.otherwise.id] = self.circuit.otherwise
        yield from found.values()
