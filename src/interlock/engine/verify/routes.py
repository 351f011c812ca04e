"""The ways through a circuit: which moves its rules allow, with detours and the way back.

Knows which signals can come at a step and where each rule leads. Refuses to know which guards can
hold: that is handed in, as the rules that can be taken for a step and a signal.
"""

from collections.abc import Callable, Iterable, Iterator

import msgspec

from interlock.engine.circuit import AGAIN, BACK, FAILURES, RATE_LIMIT, WRONG_ROLE, Circuit, Rule
from interlock.engine.verify.finding import Hop

Taken = Callable[[str, str], Iterable[Rule]]
"""The rules that can be taken at a step on a signal, the circuit's `otherwise` among them."""


class StepState(msgspec.Struct, frozen=True, order=True):
    """A step, and the step that the latest open detour goes back to ("" outside detours)."""

    step: str
    top: str = ""


Ways = dict[StepState, list[tuple[Hop, StepState]]]


def signals_at(circuit: Circuit, step: str) -> tuple[str, ...]:
    """Every signal that can come at a step: the legal ones, and rarer failures that have a row.

    A human neither crashes nor is rate-limited: rows for all steps do not mean gates there.
    """
    rare = [
        name
        for name in FAILURES
        for rule in circuit.rows(step, name)
        if step in rule.at or not circuit.steps[step].gate
    ]
    if circuit.otherwise and not circuit.steps[step].gate:
        rare += [RATE_LIMIT, WRONG_ROLE]
    return tuple(dict.fromkeys((*circuit.legal_signals(step), *rare)))


def any_rule(circuit: Circuit) -> Taken:
    """Every rule may be taken, whatever its guard says: the widest view of a circuit."""

    def taken(step: str, signal: str) -> Iterator[Rule]:
        yield from (rule for rule in circuit.rows(step, signal) if rule.to is not None)
        if circuit.otherwise:
            yield circuit.otherwise

    return taken


def ways_through(circuit: Circuit, taken: Taken) -> Ways:
    """All moves from every place that can be reached; steps without a way in come last."""
    found: Ways = {}
    for step in (circuit.start, *circuit.steps):
        if step in circuit.steps and not any(place.step == step for place in found):
            _explore(circuit, taken, StepState(step), found)
    for place in found:
        found[place] += list(_ways_back(circuit, taken, place, found))
    return found


def target_of(rule: Rule, step: str, top: str) -> str:
    """Where a rule leads from a step; "" for BACK where no detour is open."""
    if rule.to == AGAIN:
        return step
    return top if rule.to == BACK else str(rule.to)


def _explore(circuit: Circuit, taken: Taken, start: StepState, found: Ways) -> None:
    waiting = [start]
    while waiting:
        place = waiting.pop()
        if place in found:
            continue
        found[place] = []
        for hop, rule in _hops(circuit, taken, place):
            if rule.to != BACK:
                target = StepState(hop.to, place.step if rule.detour else place.top)
                found[place].append((hop, target))
                if hop.to in circuit.steps:
                    waiting.append(target)


def _ways_back(
    circuit: Circuit, taken: Taken, place: StepState, found: Ways
) -> Iterator[tuple[Hop, StepState]]:
    """A detour goes back to a place that was looked at when it was left, so none is new."""
    for hop, rule in _hops(circuit, taken, place):
        if rule.to == BACK:
            yield from ((hop, origin) for origin in found if origin.step == place.top)


def _hops(circuit: Circuit, taken: Taken, place: StepState) -> Iterator[tuple[Hop, Rule]]:
    for signal in signals_at(circuit, place.step):
        for rule in taken(place.step, signal):
            target = target_of(rule, place.step, place.top)
            if target in circuit.steps or target in circuit.ends:
                yield Hop(place.step, signal, rule.id, target), rule
