"""Checks of guards: every signal and every value has a rule, and every rule its turn."""

from collections.abc import Iterator
from itertools import combinations
from typing import Any

from interlock.engine.circuit import ANY, BACK, FAILURES, Rule
from interlock.engine.verify.cells import (
    BREAKS,
    FAILS,
    MAX_COMBINATIONS,
    SPENT,
    Cell,
    Region,
    keys_of,
)
from interlock.engine.verify.finding import Finding
from interlock.engine.verify.guards import Key
from interlock.engine.verify.outcome import SILENT, CellOutcome
from interlock.engine.verify.proof import Proof
from interlock.engine.verify.routes import target_of


def unhandled_signals(proof: Proof) -> Iterator[Finding]:
    for name in proof.circuit.steps:
        for signal in proof.circuit.legal_signals(name):
            if not proof.circuit.rows(name, signal) and not proof.circuit.otherwise:
                yield proof.finding(
                    "unhandled-signal",
                    "error",
                    f"at {name} no rule takes {signal!r}: the case would be stuck",
                    f"add a rule {{at: {name}, on: {signal}, to: ...}}, or an otherwise",
                    subject=name,
                    place=("steps", name),
                    counter_example={"step": name, "signal": signal},
                )


def gaps(proof: Proof) -> Iterator[Finding]:
    caught = proof.circuit.otherwise is not None
    found: dict[tuple[str, str], tuple[Cell, Region]] = {}
    for cell, region, outcome in proof.outcomes:
        if cell.rules and outcome.open_ended and not _looping(cell, region, outcome):
            found.setdefault((cell.step, cell.signal), (cell, region))
    for cell, region in found.values():
        end = "otherwise takes them" if caught else "the case would be stuck"
        yield proof.finding(
            "gap",
            "note" if caught else "error",
            f"at {cell.step} on {cell.signal!r} no rule holds for {_values(region)}: {end}",
            "add a last rule without when, or widen a guard",
            subject=cell.step,
            place=proof.at_cell(cell),
            counter_example=region.example,
        )


def overlaps(proof: Proof) -> Iterator[Finding]:
    seen: set[tuple[str, str]] = set()
    for cell, region, _ in proof.outcomes:
        holding = [
            rule
            for rule, verdict in zip(cell.rules, region.verdicts, strict=True)
            if verdict not in (*SILENT, BREAKS) and rule.to is not None and _is_guarded(rule)
        ]
        for first, second in combinations(holding, 2):
            apart = target_of(first, cell.step, BACK) != target_of(second, cell.step, BACK)
            if apart and (first.id, second.id) not in seen:
                seen.add((first.id, second.id))
                values = region.example_of(_read_by(proof, cell, first, second))
                yield proof.finding(
                    "overlap",
                    "note",
                    f"at {cell.step} {first.id!r} and {second.id!r} both hold for "
                    f"{_said(values)}; {first.id!r} goes first",
                    "nothing, if that order is meant; else narrow one guard",
                    subject=second.id,
                    place=proof.at_rule(second, "when"),
                    counter_example={"values": values, "rules": [first.id, second.id]},
                )


def loops_without_exit(proof: Proof) -> Iterator[Finding]:
    yield from _loops_without_turn(proof)
    found: dict[str, tuple[Cell, Region, Rule]] = {}
    for cell, region, outcome in proof.outcomes:
        looping = _looping(cell, region, outcome)
        if outcome.open_ended and looping and not proof.circuit.otherwise:
            found.setdefault(looping[-1].id, (cell, region, looping[-1]))
    for cell, region, rule in found.values():
        yield proof.finding(
            "loop-without-exit",
            "error",
            f"at {cell.step} on {cell.signal!r}, once the loop {rule.loop!r} is spent, no rule "
            f"takes {_values(region)}: the case would be stuck",
            f"add a rule after {rule.id!r} that takes the same signal elsewhere, or an otherwise",
            subject=rule.id,
            place=proof.at_rule(rule, "loop"),
            counter_example=region.example,
        )


def _looping(cell: Cell, region: Region, outcome: CellOutcome) -> list[Rule]:
    """The rules that take these values as long as their loops last."""
    taking = {rule.id for rule in outcome.moves}
    rows = zip(cell.rules, region.verdicts, strict=True)
    return [rule for rule, verdict in rows if rule.id in taking or (verdict == SPENT and rule.to)]


def _loops_without_turn(proof: Proof) -> Iterator[Finding]:
    for rule in proof.circuit.rules:
        loop = proof.circuit.loops.get(rule.loop or "")
        if loop is not None and loop.max == 0:
            yield proof.finding(
                "loop-without-exit",
                "warning",
                f"loop {loop.name!r} allows 0 turns, so rule {rule.id!r} never fires",
                "give the loop at least 1, or remove the rule",
                subject=rule.id,
                place=("loops", loop.name),
            )


def unreachable_rules(proof: Proof) -> Iterator[Finding]:
    fired = {rule.id for _, _, outcome in proof.outcomes for rule, _ in outcome.turns}
    for rule in proof.circuit.rules:
        loop = proof.circuit.loops.get(rule.loop or "")
        if rule.id in fired or (loop is not None and loop.max == 0) or _is_unknown(proof, rule):
            continue
        cells = [cell for cell in proof.table.cells.values() if rule in cell.rules]
        if all(cell.complete for cell in cells):
            yield proof.finding(
                "unreachable",
                "warning" if any(_switched(proof, cell, rule) for cell in cells) else "error",
                f"rule {rule.id!r} can never fire: {_why_never(cells, rule)}",
                "change the guard or the order of the rules, or remove the rule",
                subject=rule.id,
                place=proof.at_rule(rule),
            )


def _is_unknown(proof: Proof, rule: Rule) -> bool:
    """Names that do not exist are reported as such."""
    steps = proof.circuit.steps
    spoken = {name for step in steps.values() for name in step.signals} | set(FAILURES)
    return not (set(rule.at) <= {*steps, ANY} and set(rule.on) <= spoken)


def _switched(proof: Proof, cell: Cell, rule: Rule) -> bool:
    """A threshold that is true or false turns it off: a switch, perhaps meant so."""
    before = cell.rules[: cell.rules.index(rule) + 1]
    reads = {path for each in before if each.guard for path in each.guard.reads}
    return any(isinstance(proof.circuit.thresholds.get(path), bool) for path in reads)


def _why_never(cells: list[Cell], rule: Rule) -> str:
    if not cells:
        return f"no step in {', '.join(rule.at)} gives the signal {' or '.join(rule.on)}"
    for cell in cells:
        place = cell.rules.index(rule)
        for region in cell.regions:
            if region.verdicts[place] != FAILS:
                earlier = zip(cell.rules[:place], region.verdicts, strict=False)
                first = next(each.id for each, verdict in earlier if verdict != FAILS)
                return f"where it holds, {first!r} goes first"
    return "its guard holds for no values that can come"


def unproven_cells(proof: Proof) -> Iterator[Finding]:
    for cell in proof.table.cells.values():
        if not cell.complete:
            yield proof.finding(
                "unproven",
                "note",
                f"at {cell.step} on {cell.signal!r} the guards tell {cell.combinations:,} "
                f"combinations of values apart, more than {MAX_COMBINATIONS:,}: gaps, overlaps and "
                "rules that never fire were looked for in a sample only",
                "split the step, or let its guards read fewer values",
                subject=cell.step,
                place=proof.at_cell(cell),
            )


def _is_guarded(rule: Rule) -> bool:
    return rule.guard is not None and bool(rule.guard.reads or rule.guard.asks)


def _read_by(proof: Proof, cell: Cell, *rules: Rule) -> set[Key]:
    names = proof.table.names
    return {key for rule in rules for key in keys_of(names, cell.step, cell.signal, rule)}


def _values(region: Region) -> str:
    return _said(region.example)


def _said(values: dict[str, Any]) -> str:
    return ", ".join(f"{name} = {value!r}" for name, value in values.items()) or "any answer"
