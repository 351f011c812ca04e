"""The checks of a proof: each reports what it finds.

Guards: every signal and every value has a rule, and every rule its turn. Names: everything a
circuit mentions exists, and is present when it is read. Routes: reach, ends, loops, and gates
before outside writes.
"""

from collections.abc import Iterable, Iterator
from itertools import combinations
from typing import Any

from interlock.engine.circuit import BACK, ROOTS, Rule
from interlock.engine.verify.cells import (
    BREAKS,
    FAILS,
    MAX_COMBINATIONS,
    SILENT,
    SPENT,
    SPILLS,
    Cell,
    CellOutcome,
    Region,
    build_example_scope,
    find_keys,
    list_expressions,
)
from interlock.engine.verify.domains import Key
from interlock.engine.verify.finding import Finding, Hop
from interlock.engine.verify.names import Meaning, suggest_name
from interlock.engine.verify.proof import Proof, dump_path, format_path
from interlock.engine.verify.routes import find_cycles, find_sources, resolve_target, trace_path
from interlock.system.errors import ExpressionError


def find_unhandled_signals(proof: Proof) -> Iterator[Finding]:
    for name in proof.circuit.steps:
        for signal in proof.circuit.list_legal_signals(name):
            if not proof.circuit.find_rules(name, signal) and not proof.circuit.otherwise:
                yield proof.make_finding(
                    "unhandled-signal",
                    "error",
                    f"at {name} no rule takes {signal!r}: the case would be stuck",
                    f"add a rule {{at: {name}, on: {signal}, to: ...}}, or an otherwise",
                    subject=name,
                    place=("steps", name),
                    counter_example={"step": name, "signal": signal},
                )


def find_gaps(proof: Proof) -> Iterator[Finding]:
    caught = proof.circuit.otherwise is not None
    found: dict[tuple[str, str], tuple[Cell, Region]] = {}
    for cell, region, outcome in proof.outcomes:
        if cell.rules and outcome.open_ended and not _list_looping_rules(cell, region, outcome):
            found.setdefault((cell.step, cell.signal), (cell, region))
    for cell, region in found.values():
        end = "otherwise takes them" if caught else "the case would be stuck"
        yield proof.make_finding(
            "gap",
            "note" if caught else "error",
            f"at {cell.step} on {cell.signal!r} no rule holds for "
            f"{_format_values(region.example)}: {end}",
            "add a last rule without when, or widen a guard",
            subject=cell.step,
            place=proof.locate_cell(cell),
            counter_example=region.example,
        )


def find_overlaps(proof: Proof) -> Iterator[Finding]:
    seen: set[tuple[str, str]] = set()
    for cell, region, _ in proof.outcomes:
        holding = [
            rule
            for rule, verdict in zip(cell.rules, region.verdicts, strict=True)
            if verdict not in (*SILENT, BREAKS) and rule.to is not None and _is_guarded(rule)
        ]
        for first, second in combinations(holding, 2):
            apart = resolve_target(first, cell.step, BACK) != resolve_target(
                second, cell.step, BACK
            )
            if apart and (first.id, second.id) not in seen:
                seen.add((first.id, second.id))
                values = region.pick_example(_list_read_keys(proof, cell, first, second))
                yield proof.make_finding(
                    "overlap",
                    "note",
                    f"at {cell.step} {first.id!r} and {second.id!r} both hold for "
                    f"{_format_values(values)}; {first.id!r} goes first",
                    "nothing, if that order is meant; else narrow one guard",
                    subject=second.id,
                    place=proof.locate_rule(second, "when"),
                    counter_example={"values": values, "rules": [first.id, second.id]},
                )


def find_loops_without_exit(proof: Proof) -> Iterator[Finding]:
    yield from _find_loops_without_turn(proof)
    found: dict[str, tuple[Cell, Region, Rule]] = {}
    for cell, region, outcome in proof.outcomes:
        looping = _list_looping_rules(cell, region, outcome)
        if outcome.open_ended and looping and not proof.circuit.otherwise:
            found.setdefault(looping[-1].id, (cell, region, looping[-1]))
    for cell, region, rule in found.values():
        yield proof.make_finding(
            "loop-without-exit",
            "error",
            f"at {cell.step} on {cell.signal!r}, once the loop {rule.loop!r} is spent, no rule "
            f"takes {_format_values(region.example)}: the case would be stuck",
            f"add a rule after {rule.id!r} that takes the same signal elsewhere, or an otherwise",
            subject=rule.id,
            place=proof.locate_rule(rule, "loop"),
            counter_example=region.example,
        )


def _list_looping_rules(cell: Cell, region: Region, outcome: CellOutcome) -> list[Rule]:
    """Return the rules that take these values while their loops last."""
    taking = {rule.id for rule in outcome.moves}
    rows = zip(cell.rules, region.verdicts, strict=True)
    return [rule for rule, verdict in rows if rule.id in taking or (verdict == SPENT and rule.to)]


def _find_loops_without_turn(proof: Proof) -> Iterator[Finding]:
    for rule in proof.circuit.rules:
        loop = proof.circuit.loops.get(rule.loop or "")
        if loop is not None and loop.max == 0:
            yield proof.make_finding(
                "loop-without-exit",
                "warning",
                f"loop {loop.name!r} allows 0 turns, so rule {rule.id!r} never fires",
                "give the loop at least 1, or remove the rule",
                subject=rule.id,
                place=("loops", loop.name),
            )


def find_unreachable_rules(proof: Proof) -> Iterator[Finding]:
    fired = {rule.id for _, _, outcome in proof.outcomes for rule, _ in outcome.turns}
    for rule in proof.circuit.rules:
        loop = proof.circuit.loops.get(rule.loop or "")
        if rule.id in fired or (loop is not None and loop.max == 0) or _is_unknown(proof, rule):
            continue
        cells = [cell for cell in proof.table.cells.values() if rule in cell.rules]
        if all(cell.complete for cell in cells):
            yield proof.make_finding(
                "unreachable",
                "warning"
                if any(_is_switched_off(proof, cell, rule) for cell in cells)
                else "error",
                f"rule {rule.id!r} can never fire: {_explain_never(cells, rule)}",
                "change the guard or the order of the rules, or remove the rule",
                subject=rule.id,
                place=proof.locate_rule(rule),
            )


def _is_unknown(proof: Proof, rule: Rule) -> bool:
    """Return True if the rule names something unknown, which another check reports."""
    known = proof.known_names
    return not (known["at"].issuperset(rule.at) and known["on"].issuperset(rule.on))


def _is_switched_off(proof: Proof, cell: Cell, rule: Rule) -> bool:
    """Return True if a boolean threshold turns the rule off, perhaps on purpose."""
    before = cell.rules[: cell.rules.index(rule) + 1]
    reads = {path for each in before if each.guard for path in each.guard.reads}
    return any(isinstance(proof.circuit.thresholds.get(path), bool) for path in reads)


def _explain_never(cells: list[Cell], rule: Rule) -> str:
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


def find_unproven_cells(proof: Proof) -> Iterator[Finding]:
    for cell in proof.table.cells.values():
        if not cell.complete:
            yield proof.make_finding(
                "unproven",
                "note",
                f"at {cell.step} on {cell.signal!r} the guards tell {cell.combinations:,} "
                f"combinations of values apart, more than {MAX_COMBINATIONS:,}: gaps, overlaps and "
                "rules that never fire were looked for in a sample only",
                "split the step, or let its guards read fewer values",
                subject=cell.step,
                place=proof.locate_cell(cell),
            )


def _is_guarded(rule: Rule) -> bool:
    return rule.guard is not None and bool(rule.guard.reads or rule.guard.asks)


def _list_read_keys(proof: Proof, cell: Cell, *rules: Rule) -> set[Key]:
    names = proof.table.names
    return {key for rule in rules for key in find_keys(names, cell.step, cell.signal, rule)}


def _format_values(values: dict[str, Any]) -> str:
    return ", ".join(f"{name} = {value!r}" for name, value in values.items()) or "any answer"


def find_unknown_names(proof: Proof) -> Iterator[Finding]:
    circuit = proof.circuit
    if circuit.start not in circuit.steps:
        yield _report_unknown(
            proof, "start", circuit.start, circuit.steps, ("start",), circuit.name
        )
    for name, step in circuit.steps.items():
        for judged in step.judges:
            if judged not in circuit.steps:
                place = ("steps", name, "judges")
                yield _report_unknown(proof, "judges", judged, circuit.steps, place, name)
        if step.role not in circuit.roles:
            yield _report_unknown(
                proof, "role", step.role, circuit.roles, ("steps", name, "role"), name
            )
    for name in circuit.thresholds:
        if name in ROOTS:
            yield proof.make_finding(
                "unknown-name",
                "error",
                f"threshold {name!r} hides the {name!r} that every expression can read",
                "rename the threshold",
                subject=name,
                place=("thresholds", name),
            )
    for rule in proof.list_rules():
        yield from _check_rule_names(proof, rule)


def _check_rule_names(proof: Proof, rule: Rule) -> Iterator[Finding]:
    for field, given in (
        ("at", rule.at),
        ("on", rule.on),
        ("to", (rule.to,)),
        ("loop", (rule.loop,)),
        ("release", (rule.release,)),
    ):
        known = proof.known_names[field]
        for name in given:
            if name and name not in known:
                yield _report_unknown(
                    proof, field, name, known, proof.locate_rule(rule, field), rule.id
                )


def _report_unknown(
    proof: Proof,
    field: str,
    name: str,
    known: Iterable[str],
    place: tuple[str | int, ...],
    subject: str,
) -> Finding:
    return proof.make_finding(
        "unknown-name",
        "error",
        f"{field}: {name!r} does not exist",
        suggest_name(name, known),
        subject=subject,
        place=place,
    )


def find_unknown_reads(proof: Proof) -> Iterator[Finding]:
    """Report unknown names in guards and in what rules add."""
    seen: set[tuple[str, str]] = set()
    for rule, path, meaning in _list_name_problems(proof):
        if (rule.id, path) not in seen:
            seen.add((rule.id, path))
            yield proof.make_finding(
                "unknown-name",
                "error",
                f"rule {rule.id!r}: {meaning.problem}",
                meaning.hint,
                subject=rule.id,
                place=proof.locate_rule(rule, "when" if rule.guard else "adds"),
            )


def _list_name_problems(proof: Proof) -> Iterator[tuple[Rule, str, Meaning]]:
    for cell in proof.table.cells.values():
        for rule in {
            rule.id: rule for rule in (*cell.rules, *_list_last_resort(proof, cell))
        }.values():
            for expression in list_expressions(rule):
                for path in (*expression.reads, *expression.asks):
                    meaning = proof.table.names.find_meaning(cell.step, cell.signal, path)
                    if meaning.problem:
                        yield rule, path, meaning


def _list_last_resort(proof: Proof, cell: Cell) -> list[Rule]:
    otherwise = proof.circuit.otherwise
    taken = proof.table.find_taken(cell.step, cell.signal)
    return [otherwise] if otherwise and any(rule.id == otherwise.id for rule in taken) else []


def find_unguarded_names(proof: Proof) -> Iterator[Finding]:
    """Report guards and additions that fail for some answers, which would leave a case stuck."""
    unknown = {rule.id for rule, _, _ in _list_name_problems(proof)}
    seen: set[tuple[str, str]] = set()
    for cell, region, outcome in proof.outcomes:
        for rule, verdict in outcome.turns:
            if verdict not in (BREAKS, SPILLS) or rule.id in unknown:
                continue
            problem = _find_error(proof, cell, region, rule)
            if (rule.id, problem) not in seen:
                seen.add((rule.id, problem))
                yield proof.make_finding(
                    "unguarded-name",
                    "warning",
                    f"at {cell.step} rule {rule.id!r} can leave a case stuck: {problem}",
                    "ask first (has(name) and ..., name != null and ...), "
                    "or make the field required and of one kind in the answer's shape",
                    subject=rule.id,
                    place=proof.locate_rule(rule, "when" if verdict == BREAKS else "adds"),
                    counter_example=region.example,
                )


def _find_error(proof: Proof, cell: Cell, region: Region, rule: Rule) -> str:
    scope = build_example_scope(proof.circuit, cell.step, cell.signal, region.values)
    try:
        for expression in list_expressions(rule):
            expression.evaluate(scope)
    except ExpressionError as error:
        return error.problem
    return ""


def find_unreachable_places(proof: Proof) -> Iterator[Finding]:
    circuit = proof.circuit
    if circuit.start not in circuit.steps:
        return
    reached = {place.step for place in proof.reached}
    for section, names in (("step", circuit.steps), ("end", circuit.ends)):
        for name in names:
            if name not in reached:
                yield proof.make_finding(
                    "unreachable",
                    "error",
                    f"no way from {circuit.start!r} leads to the {section} {name!r}",
                    f"add a rule with to: {name}, or remove it",
                    subject=name,
                    place=(f"{section}s", name),
                )


def find_dead_ends(proof: Proof) -> Iterator[Finding]:
    circuit = proof.circuit
    targets = {way[1] for leaving in proof.ways.values() for way in leaving}
    ends = [place for place in targets if place.step in circuit.ends]
    living = {place.step for place in find_sources(proof.ways, ends)}
    for name in circuit.steps:
        if name not in living:
            yield proof.make_finding(
                "dead-end",
                "error",
                f"from {name!r} no end can be reached",
                f"add a rule at {name} that leads to an end, in the last resort through otherwise",
                subject=name,
                place=("steps", name),
            )


def find_back_to_nowhere(proof: Proof) -> Iterator[Finding]:
    """Report BACK where no detour is open: the case would be stuck there."""
    detoured = {place.step for place in proof.reached if place.top}
    for place in proof.reached:
        if place.top or place.step not in proof.circuit.steps:
            continue
        for rule in _list_back_rules(proof, place.step):
            yield proof.make_finding(
                "dead-end",
                "warning" if place.step in detoured else "error",
                f"rule {rule!r} goes BACK, but {place.step!r} can be reached without a detour",
                "write detour: true on the rules that lead here, or name the step to go to",
                subject=rule,
                place=("rules", proof.numbers[rule], "to") if rule in proof.numbers else (),
                counter_example=dump_path(trace_path(proof.reached, place)),
            )


def _list_back_rules(proof: Proof, step: str) -> list[str]:
    taken = [
        rule.id
        for cell in proof.table.find_cells(step)
        for rule in proof.table.find_taken(step, cell.signal)
        if rule.to == BACK
    ]
    return list(dict.fromkeys(taken))


def find_unbounded_loops(proof: Proof) -> Iterator[Finding]:
    free = {
        place: [way for way in leaving if not _is_bounded(proof, way[0])]
        for place, leaving in proof.ways.items()
    }
    seen: set[frozenset[Hop]] = set()
    for cycle in find_cycles(free):
        if frozenset(cycle) in seen:
            continue
        seen.add(frozenset(cycle))
        last = cycle[-1]
        place = (
            ("rules", proof.numbers[last.rule]) if last.rule in proof.numbers else ("otherwise",)
        )
        yield proof.make_finding(
            "unbounded-loop",
            "error",
            f"nothing limits how often a case goes round {format_path(cycle)}",
            "declare a loop (loops: {again: 3}) and write loop: again on one of these rules; "
            "a loop counted per step only limits AGAIN",
            subject=last.rule,
            place=place,
            counter_example=dump_path(cycle),
        )


def _is_bounded(proof: Proof, hop: Hop) -> bool:
    """Return True if the hop is counted per case, or per step without leaving it."""
    if hop.rule not in proof.numbers:
        return False
    name = proof.circuit.rules[proof.numbers[hop.rule]].loop
    loop = proof.circuit.loops.get(name or "")
    return bool(name) and (loop is None or not loop.per_step or hop.to == hop.step)


def find_self_reviews(proof: Proof) -> Iterator[Finding]:
    steps = proof.circuit.steps
    for name, step in steps.items():
        for judged in step.judges:
            if judged in steps and steps[judged].role == step.role:
                yield proof.make_finding(
                    "self-review",
                    "error",
                    f"{name!r} judges {judged!r}, and both are answered by {step.role!r}",
                    f"give {name} a role of its own",
                    subject=name,
                    place=("steps", name, "judges"),
                )


def find_missing_timeouts(proof: Proof) -> Iterator[Finding]:
    for name, step in proof.circuit.steps.items():
        if step.timeout is None:
            yield proof.make_finding(
                "no-timeout",
                "warning",
                f"{name!r} has no timeout: a case can wait there forever",
                "write for example timeout: 10m, and a rule on: timeout",
                subject=name,
                place=("steps", name),
            )
