"""Checks of names: everything a circuit mentions exists, and is there when it is read."""

from collections.abc import Iterable, Iterator

from interlock.engine.circuit import AGAIN, ANY, BACK, FAILURES, ROOTS, Rule
from interlock.engine.verify.cells import BREAKS, SPILLS, Cell, Region, expressions_of, scope_for
from interlock.engine.verify.finding import Finding
from interlock.engine.verify.names import Meaning, near
from interlock.engine.verify.proof import Proof
from interlock.system.errors import ExpressionError


def unknown_names(proof: Proof) -> Iterator[Finding]:
    circuit = proof.circuit
    if circuit.start not in circuit.steps:
        yield _unknown(proof, "start", circuit.start, circuit.steps, ("start",), circuit.name)
    for name, step in circuit.steps.items():
        for judged in step.judges:
            if judged not in circuit.steps:
                place = ("steps", name, "judges")
                yield _unknown(proof, "judges", judged, circuit.steps, place, name)
        if step.role not in circuit.roles:
            yield _unknown(proof, "role", step.role, circuit.roles, ("steps", name, "role"), name)
    for name in circuit.thresholds:
        if name in ROOTS:
            yield proof.finding(
                "unknown-name",
                "error",
                f"threshold {name!r} hides the {name!r} that every expression can read",
                "rename the threshold",
                subject=name,
                place=("thresholds", name),
            )
    for rule in proof.rules():
        yield from _rule_names(proof, rule)


def _rule_names(proof: Proof, rule: Rule) -> Iterator[Finding]:
    circuit = proof.circuit
    places = [*circuit.steps, *circuit.ends, AGAIN, BACK]
    spoken = [*dict.fromkeys(name for step in circuit.steps.values() for name in step.signals)]
    held = {each.hold for each in circuit.rules if each.hold}
    mentioned: list[tuple[str, Iterable[str], Iterable[str]]] = [
        ("at", rule.at, [*circuit.steps, ANY]),
        ("on", rule.on, [*spoken, *FAILURES]),
        ("to", [rule.to] if rule.to else [], places),
        ("loop", [rule.loop] if rule.loop else [], circuit.loops),
        ("release", [rule.release] if rule.release else [], held),
    ]
    for field, given, known in mentioned:
        for name in given:
            if name not in known:
                yield _unknown(proof, field, name, known, proof.at_rule(rule, field), rule.id)


def _unknown(
    proof: Proof,
    field: str,
    name: str,
    known: Iterable[str],
    place: tuple[str | int, ...],
    subject: str,
) -> Finding:
    return proof.finding(
        "unknown-name",
        "error",
        f"{field}: {name!r} does not exist",
        near(name, known),
        subject=subject,
        place=place,
    )


def unknown_reads(proof: Proof) -> Iterator[Finding]:
    """Names in guards and in what rules add."""
    seen: set[tuple[str, str]] = set()
    for rule, path, meaning in _problems(proof):
        if (rule.id, path) not in seen:
            seen.add((rule.id, path))
            yield proof.finding(
                "unknown-name",
                "error",
                f"rule {rule.id!r}: {meaning.problem}",
                meaning.hint,
                subject=rule.id,
                place=proof.at_rule(rule, "when" if rule.guard else "adds"),
            )


def _problems(proof: Proof) -> Iterator[tuple[Rule, str, Meaning]]:
    for cell in proof.table.cells.values():
        for rule in {rule.id: rule for rule in (*cell.rules, *_last(proof, cell))}.values():
            for expression in expressions_of(rule):
                for path in (*expression.reads, *expression.asks):
                    meaning = proof.table.names.meaning(cell.step, cell.signal, path)
                    if meaning.problem:
                        yield rule, path, meaning


def _last(proof: Proof, cell: Cell) -> list[Rule]:
    otherwise = proof.circuit.otherwise
    taken = proof.table.taken(cell.step, cell.signal)
    return [otherwise] if otherwise and any(rule.id == otherwise.id for rule in taken) else []


def unguarded_names(proof: Proof) -> Iterator[Finding]:
    """Guards and additions that cannot be evaluated for some answers: the case would be stuck."""
    unknown = {rule.id for rule, _, _ in _problems(proof)}
    seen: set[tuple[str, str]] = set()
    for cell, region, outcome in proof.outcomes:
        for rule, verdict in outcome.turns:
            if verdict not in (BREAKS, SPILLS) or rule.id in unknown:
                continue
            problem = _complaint(proof, cell, region, rule)
            if (rule.id, problem) not in seen:
                seen.add((rule.id, problem))
                yield proof.finding(
                    "unguarded-name",
                    "warning",
                    f"at {cell.step} rule {rule.id!r} can leave a case stuck: {problem}",
                    "ask first (has(name) and ..., name != null and ...), "
                    "or make the field required and of one kind in the answer's shape",
                    subject=rule.id,
                    place=proof.at_rule(rule, "when" if verdict == BREAKS else "adds"),
                    counter_example=region.example,
                )


def _complaint(proof: Proof, cell: Cell, region: Region, rule: Rule) -> str:
    scope = scope_for(proof.circuit, cell.step, cell.signal, region.values)
    try:
        for expression in expressions_of(rule):
            expression.value(scope)
    except ExpressionError as error:
        return error.problem
    return ""
