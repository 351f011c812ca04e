"""Legal answers made by chance, for walks through a circuit."""

from collections.abc import Mapping
from random import Random
from typing import Any

from interlock.engine.case import Signal
from interlock.engine.circuit import FAILURES, Circuit
from interlock.engine.verify.cells import Cell, OutcomeTable
from interlock.engine.verify.domains import find_sample, place_values
from interlock.engine.verify.routes import list_step_signals

FAILURE_RATE = 0.08


class AnswerSampler:
    """Answers every dispatch with something that its step may say."""

    def __init__(self, circuit: Circuit, chance: Random) -> None:
        self.circuit = circuit
        self.chance = chance
        self.table = OutcomeTable(circuit)

    def make_answer(self, step: str) -> Signal:
        signals = list_step_signals(self.circuit, step)
        failures = [name for name in signals if name in FAILURES]
        spoken = [name for name in signals if name not in FAILURES]
        failed = bool(failures) and (not spoken or self.chance.random() < FAILURE_RATE)
        name = self.chance.choice(failures if failed else spoken)
        return Signal(name, self._make_data(self.table.cells[step, name]))

    def _make_data(self, cell: Cell) -> dict[str, Any]:
        """Return a value for each field the guards read, around what the shape demands."""
        values = {each.key: self.chance.choice(each.values) for each in cell.variables}
        if cell.regions and self.chance.random() < 0.5:
            values.update(self.chance.choice(cell.regions).values)
        plain = find_sample(self.table.names.find_answer_shape(cell.step, cell.signal))
        return _merge(
            plain if isinstance(plain, dict) else {}, place_values(values).get("answer", {})
        )


def _merge(under: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    both = {**under, **over}
    for name in under.keys() & over.keys():
        if isinstance(under[name], dict) and isinstance(over[name], dict):
            both[name] = _merge(under[name], over[name])
    return both
