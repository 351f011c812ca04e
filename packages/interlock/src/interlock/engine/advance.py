"""The engine: the only code that moves a case.

advance() looks at the table and decides; apply() carries a decision out on the case. Both are pure:
the same circuit, case and signal give the same decision on any machine on any day. Time, ids and
chance never enter; what they cause arrives as signals.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from interlock.engine.case import ENDED, OPEN, STUCK, Case, Decision, PassedRule, Signal
from interlock.engine.circuit import AGAIN, BACK, FAILURES, UNREADABLE, Circuit, Rule
from interlock.engine.expression import Expression, Scope
from interlock.system.errors import ExpressionError, StateError

MAX_DETOURS = 8


def open_case(circuit: Circuit, case_id: str, data: Mapping[str, Any]) -> Case:
    """Return a case at the circuit's start, about to be dispatched for the first time."""
    return Case(case_id, circuit.start, moves=1, visits={circuit.start: 1}, input=data)


def advance(circuit: Circuit, case: Case, signal: Signal) -> Decision:
    """Return the table's decision on this signal at the step where the case stands."""
    if case.status != OPEN:
        raise StateError(f"case {case.case_id} is {case.status}: no signal moves it any more")
    scope = build_scope(circuit, case, signal)
    passed: list[PassedRule] = []
    noted: list[str] = []
    adds: dict[str, Any] = {}
    found: Rule | None = None
    reason = ""
    try:
        for rule in circuit.find_rules(case.step, signal.name):
            if rule.guard is not None and not rule.guard.holds(scope):
                passed.append(PassedRule(rule.id, "false"))
            elif rule.loop is not None and _is_spent(circuit, case, rule.loop):
                passed.append(PassedRule(rule.id, "spent"))
            else:
                adds.update(_evaluate_adds(rule, scope))
                if rule.to is not None:
                    found = rule
                    break
                noted.append(rule.id)
        else:
            if circuit.otherwise is not None:
                rule = circuit.otherwise
                adds.update(_evaluate_adds(rule, scope))
                found = rule
    except ExpressionError as error:
        reason = f"rule {rule.id}: {error}"
    if found is None and not reason:
        reason = f"no rule at {case.step} takes {signal.name!r}"
    record = Decision(
        step=case.step,
        attempt=case.attempt,
        signal=signal.name,
        status=STUCK,
        rule=found.id if found else "",
        read=scope.seen,
        passed=tuple(passed),
        noted=tuple(noted),
        adds=adds,
        reason=reason,
    )
    return _route(circuit, case, record, found) if found else record


def apply(circuit: Circuit, case: Case, decision: Decision, data: Mapping[str, Any]) -> Case:
    """Return the case after the decision; `data` is the answer it was based on."""
    loops = dict(case.loops)
    if decision.status == OPEN and decision.to != case.step:
        for name in circuit.loops:
            if circuit.loops[name].per_step:
                loops.pop(name, None)
    if decision.loop:
        loops[decision.loop] = loops.get(decision.loop, 0) + 1
    answers = case.answers
    if decision.signal not in FAILURES:
        answers = {**answers, decision.step: data}
    stack = case.stack[:-1] if decision.back else case.stack
    changes: dict[str, Any] = {
        "status": decision.status,
        "reason": decision.reason,
        "complaint": str(data.get("reason", "")) if decision.signal == UNREADABLE else "",
        "loops": loops,
        "stack": (*stack, case.step) if decision.detour else stack,
        "context": {**case.context, **decision.adds} if decision.adds else case.context,
        "answers": answers,
    }
    if decision.status == OPEN:
        changes["step"] = decision.to
        changes["moves"] = case.moves + 1
        changes["visits"] = {**case.visits, decision.to: case.visits.get(decision.to, 0) + 1}
    elif decision.status == ENDED:
        changes["end"] = decision.to
    return msgspec.structs.replace(case, **changes)


def build_scope(circuit: Circuit, case: Case, signal: Signal) -> Scope:
    """Return the values a guard can read: thresholds first, so that no answer can override them."""
    roots = {
        "answer": signal.data,
        "answers": case.answers,
        "attempt": case.attempt,
        "case": case.input,
        "context": case.context,
        "loops": {name: case.loops.get(name, 0) for name in circuit.loops},
        "signal": signal.name,
    }
    return Scope(circuit.thresholds, roots, signal.data)


def _is_spent(circuit: Circuit, case: Case, loop: str) -> bool:
    return case.loops.get(loop, 0) >= circuit.loops[loop].max


def _evaluate_adds(rule: Rule, scope: Scope) -> dict[str, Any]:
    return {
        name: value.evaluate(scope) if isinstance(value, Expression) else value
        for name, value in rule.adds.items()
    }


def _route(circuit: Circuit, case: Case, record: Decision, rule: Rule) -> Decision:
    """Fill in the rule's target, or leave the decision stuck if the target cannot be reached."""
    target, reason = _resolve_target(circuit, case, rule)
    if reason:
        return msgspec.structs.replace(record, reason=reason)
    return msgspec.structs.replace(
        record,
        status=ENDED if target in circuit.ends else OPEN,
        to=target,
        loop=rule.loop or "",
        detour=rule.detour,
        back=rule.to == BACK,
        hold=rule.hold or "",
        release=rule.release or "",
    )


def _resolve_target(circuit: Circuit, case: Case, rule: Rule) -> tuple[str, str]:
    target = str(rule.to)
    if target == AGAIN:
        target = case.step
    elif target == BACK:
        if not case.stack:
            return "", f"rule {rule.id} goes BACK, but no detour led here"
        target = case.stack[-1]
    if target in circuit.ends:
        return target, ""
    if target not in circuit.steps:
        return "", f"rule {rule.id} goes to {target!r}, which is not a step"
    if rule.detour and len(case.stack) >= MAX_DETOURS:
        return "", f"{MAX_DETOURS} detours deep: rule {rule.id} may not go deeper"
    if case.moves >= circuit.max_steps:
        return "", f"max_steps: {circuit.max_steps} dispatches are spent"
    return target, ""
