"""Check the gates before outside writes: does a human approve every write?

A gate counts only on its approving edges: rules that read the human's answer and are taken for no
refusal. Such a rule stands at the gate, or at a later step and reads `answers.GATE`.
"""

import re
from collections.abc import Callable, Iterator
from typing import Any

from interlock.engine.circuit import FAILURES, Step
from interlock.engine.verify.cells import Cell, build_cell
from interlock.engine.verify.domains import Key, Variable
from interlock.engine.verify.finding import Finding, Hop
from interlock.engine.verify.proof import Proof, dump_path, format_path
from interlock.engine.verify.routes import StepState, search, trace_path

_REFUSAL = re.compile(
    r"(?:abort|block|cancel|decline|defer|denied|deny|disapprove|discuss|drop|halt|hold|no|not"
    r"|pause|postpone|reassess|redo|refuse|reject|revise|rework|skip|stop|veto|wait|withdraw)"
    r"(?:d|ed|led|ped)?(?![a-z])",
    re.IGNORECASE,
)
"""Beginnings of words that hold work back. Any other word may be a circuit's way to approve."""
_APPROVAL = re.compile(
    r"(?:is_?)?(?:accept|agree|allow|approv|confirm|go|ok|pass|proceed|ship|yes)", re.IGNORECASE
)
"""Beginnings of the names of fields whose `true` approves."""


def find_ungated_writes(proof: Proof) -> Iterator[Finding]:
    writes = [name for name, step in proof.circuit.steps.items() if step.writes and not step.gate]
    if not writes:
        return
    approvals = _Approvals(proof)
    unasked = _find_ways_around(proof, writes, lambda hop: is_answered_gate(proof, hop))
    unapproved = _find_ways_around(proof, writes, approvals.is_approving)
    for name in writes:
        if name in unasked:
            yield proof.make_finding(
                "ungated-write",
                "error",
                f"{name!r} writes to the outside, and this way to it passes no gate: "
                f"{format_path(unasked[name]) or name}",
                "lead it through a step with gate: true, on a signal that the human gives",
                subject=name,
                place=("steps", name),
                counter_example=dump_path(unasked[name]),
            )
        elif name in unapproved:
            path = unapproved[name]
            gate = [hop for hop in path if is_answered_gate(proof, hop)][-1]
            yield proof.make_finding(
                "gate-ignored",
                "error",
                f"{name!r} writes to the outside, and rule {gate.rule!r} at the gate "
                f"{gate.step!r} lets a case go there {approvals.explain(gate)}: "
                f"{format_path(path)}",
                f"let only an approval lead on from {gate.step}, for example "
                'when: decision == "approve"',
                subject=name,
                place=proof.locate_rule(proof.circuit.rules[proof.numbers[gate.rule]]),
                counter_example=dump_path(path),
            )


def is_answered_gate(proof: Proof, hop: Hop) -> bool:
    """Return True if a human answered, and a rule of the table other than `otherwise` took it."""
    step = proof.circuit.steps[hop.step]
    given = hop.signal in step.signals and hop.signal not in FAILURES
    return step.gate and given and hop.rule in proof.numbers


def _find_ways_around(
    proof: Proof, writes: list[str], is_closed: Callable[[Hop], bool]
) -> dict[str, tuple[Hop, ...]]:
    """Return a shortest path to each write that avoids all closed moves."""
    open_ways = {
        place: [way for way in leaving if not is_closed(way[0])]
        for place, leaving in proof.ways.items()
    }
    tree = search([StepState(proof.circuit.start)], open_ways)
    places = {place.step: place for place in reversed(tree)}
    return {name: trace_path(tree, places[name]) for name in writes if name in places}


class _Approvals:
    """The moves of a circuit that a human has approved."""

    def __init__(self, proof: Proof) -> None:
        self.proof = proof
        self._takers: dict[tuple[str, str, Key], list[tuple[Any, set[str]]]] = {}

    def is_approving(self, hop: Hop) -> bool:
        """Return True if the move is made for some answers of a gate, and for none that refuses."""
        if hop.rule not in self.proof.numbers:
            return False
        cell = self.proof.table.cells[hop.step, hop.signal]
        if is_answered_gate(self.proof, hop) and self._is_approved_by_word(hop):
            return True
        return any(self._tells_approval(cell, each, hop.rule) for each in self._list_read(cell))

    def explain(self, hop: Hop) -> str:
        """Return the answers for which a gate passes a case that it should hold."""
        cell = self.proof.table.cells[hop.step, hop.signal]
        for variable in self._list_read(cell):
            taken = self._list_values(cell, variable, hop.rule)
            refusals = [value for value in taken if is_refusal(variable.key[-1], value)]
            if refusals and len(taken) < len(variable.values):
                return f"for {'.'.join(variable.key[1:])} = {refusals[0]!r}"
        return "whatever the human answers"

    def _is_approved_by_word(self, hop: Hop) -> bool:
        """Return True if the signals themselves are the answers, and this one does not refuse."""
        gate = self.proof.circuit.steps[hop.step]
        return len(gate.signals) > 1 and not _list_verdicts(gate) and not _REFUSAL.match(hop.signal)

    def _list_read(self, cell: Cell) -> Iterator[Variable]:
        """Yield the gates' answers that the rules of a cell read and that can be a verdict."""
        steps = self.proof.circuit.steps
        for variable in cell.variables:
            root, *path = variable.key
            gate = cell.step if root == "answer" else path.pop(0) if root == "answers" else ""
            if gate in steps and steps[gate].gate and path and cell.signal not in FAILURES:
                verdicts = _list_verdicts(steps[gate])
                if not verdicts or path[0] in verdicts:
                    yield variable

    def _tells_approval(self, cell: Cell, variable: Variable, rule: str) -> bool:
        taken = self._list_values(cell, variable, rule)
        refused = any(is_refusal(variable.key[-1], value) for value in taken)
        return not refused and 0 < len(taken) < len(variable.values)

    def _list_values(self, cell: Cell, variable: Variable, rule: str) -> list[Any]:
        """Return the values for which a rule can be taken in some situation."""
        place = (cell.step, cell.signal, variable.key)
        if place not in self._takers:
            self._takers[place] = [
                (value, self._list_taken(cell, variable.key, value)) for value in variable.values
            ]
        return [value for value, taken in self._takers[place] if rule in taken]

    def _list_taken(self, cell: Cell, key: Key, value: Any) -> set[str]:
        table = self.proof.table
        part = build_cell(table.names, cell.step, cell.signal, {key: value})
        outcomes = [table.find_outcome(part, region) for region in part.regions]
        return {rule.id for outcome in outcomes for rule in outcome.moves}


def _list_verdicts(gate: Step) -> list[str]:
    """Return the fields in which a human says yes or no; empty if the shape does not tell."""
    return [
        name
        for name, shape in gate.shape.fields.items()
        if any(is_refusal("", choice) for choice in shape.choices or ())
        or (shape.kinds == ("boolean",) and (_APPROVAL.match(name) or _REFUSAL.match(name)))
    ]


def is_refusal(field: str, value: Any) -> bool:
    """Return True if this value in this field holds work back; silence does."""
    match value:
        case bool():
            return value == bool(_REFUSAL.match(field))
        case str():
            return bool(_REFUSAL.match(value))
        case int() | float() | list() | dict():
            return False
    return True
