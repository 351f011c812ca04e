"""Checks of the ways through a circuit: reach, ends, loops, and gates before outside writes."""

from collections.abc import Iterator

from interlock.engine.circuit import BACK, FAILURES
from interlock.engine.verify.finding import Finding, Hop
from interlock.engine.verify.graph import cycles, paths_from, reaching
from interlock.engine.verify.proof import Proof, said, shown
from interlock.engine.verify.routes import StepState


def unreachable_places(proof: Proof) -> Iterator[Finding]:
    circuit = proof.circuit
    if circuit.start not in circuit.steps:
        return
    reached = {place.step for place in proof.reached}
    for section, names in (("step", circuit.steps), ("end", circuit.ends)):
        for name in names:
            if name not in reached:
                yield proof.finding(
                    "unreachable",
                    "error",
                    f"no way from {circuit.start!r} leads to the {section} {name!r}",
                    f"add a rule with to: {name}, or remove it",
                    subject=name,
                    place=(f"{section}s", name),
                )


def dead_ends(proof: Proof) -> Iterator[Finding]:
    circuit = proof.circuit
    targets = {way[1] for leaving in proof.ways.values() for way in leaving}
    ends = [place for place in targets if place.step in circuit.ends]
    living = {place.step for place in reaching(proof.ways, *ends)}
    for name in circuit.steps:
        if name not in living:
            yield proof.finding(
                "dead-end",
                "error",
                f"from {name!r} no end can be reached",
                f"add a rule at {name} that leads to an end, in the last resort through otherwise",
                subject=name,
                place=("steps", name),
            )


def back_to_nowhere(proof: Proof) -> Iterator[Finding]:
    """BACK where no detour is open: the case would be stuck there."""
    detoured = {place.step for place in proof.reached if place.top}
    for place, path in proof.reached.items():
        if place.top or place.step not in proof.circuit.steps:
            continue
        for rule in _rules_back(proof, place.step):
            yield proof.finding(
                "dead-end",
                "warning" if place.step in detoured else "error",
                f"rule {rule!r} goes BACK, but {place.step!r} can be reached without a detour",
                "write detour: true on the rules that lead here, or name the step to go to",
                subject=rule,
                place=("rules", proof.numbers[rule], "to") if rule in proof.numbers else (),
                counter_example=shown(path),
            )


def _rules_back(proof: Proof, step: str) -> list[str]:
    taken = [
        rule.id
        for (at, signal) in proof.table.cells
        if at == step
        for rule in proof.table.taken(at, signal)
        if rule.to == BACK
    ]
    return list(dict.fromkeys(taken))


def unbounded_loops(proof: Proof) -> Iterator[Finding]:
    free = {
        place: [way for way in leaving if not _bounded(proof, way[0])]
        for place, leaving in proof.ways.items()
    }
    seen: set[frozenset[Hop]] = set()
    for cycle in cycles(free):
        if frozenset(cycle) in seen:
            continue
        seen.add(frozenset(cycle))
        last = cycle[-1]
        place = (
            ("rules", proof.numbers[last.rule]) if last.rule in proof.numbers else ("otherwise",)
        )
        yield proof.finding(
            "unbounded-loop",
            "error",
            f"nothing limits how often a case goes round {said(cycle)}",
            "declare a loop (loops: {again: 3}) and write loop: again on one of these rules; "
            "a loop counted per step only limits AGAIN",
            subject=last.rule,
            place=place,
            counter_example=shown(cycle),
        )


def _bounded(proof: Proof, hop: Hop) -> bool:
    """Counted over the case, or counted per step and not leaving it."""
    rule = proof.circuit.rule(hop.rule)
    if rule is None or rule.loop is None:
        return False
    loop = proof.circuit.loops.get(rule.loop)
    return loop is None or not loop.per_step or hop.to == hop.step


def ungated_writes(proof: Proof) -> Iterator[Finding]:
    circuit = proof.circuit
    closed = {
        place: [way for way in leaving if not _passes_gate(proof, way[0])]
        for place, leaving in proof.ways.items()
    }
    found: dict[str, tuple[Hop, ...]] = {}
    for place, path in paths_from(StepState(circuit.start), closed).items():
        found.setdefault(place.step, path)
    for name, step in circuit.steps.items():
        if step.writes and not step.gate and name in found:
            yield proof.finding(
                "ungated-write",
                "error",
                f"{name!r} writes to the outside, and this way to it passes no gate: "
                f"{said(found[name]) or name}",
                "lead it through a step with gate: true, on a signal that the human gives",
                subject=name,
                place=("steps", name),
                counter_example=shown(found[name]),
            )


def _passes_gate(proof: Proof, hop: Hop) -> bool:
    """A human answered, and a rule of the table, not the last resort, took the answer."""
    step = proof.circuit.steps[hop.step]
    given = hop.signal in step.signals and hop.signal not in FAILURES
    return step.gate and given and hop.rule in proof.numbers


def self_reviews(proof: Proof) -> Iterator[Finding]:
    steps = proof.circuit.steps
    for name, step in steps.items():
        for judged in step.judges:
            if judged in steps and steps[judged].role == step.role:
                yield proof.finding(
                    "self-review",
                    "error",
                    f"{name!r} judges {judged!r}, and both are answered by {step.role!r}",
                    f"give {name} a role of its own",
                    subject=name,
                    place=("steps", name, "judges"),
                )


def missing_timeouts(proof: Proof) -> Iterator[Finding]:
    for name, step in proof.circuit.steps.items():
        if step.timeout is None:
            yield proof.finding(
                "no-timeout",
                "warning",
                f"{name!r} has no timeout: a case can wait there for ever",
                "write for example timeout: 10m, and a rule on: timeout",
                subject=name,
                place=("steps", name),
            )
