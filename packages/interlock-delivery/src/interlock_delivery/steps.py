"""Name the steps of the circuit `delivery`, and the tags of its rules.

A tag says what a rule means beyond where the case goes. `verdict` is `objects` or `accepts`, and
`by` names the judge: an objection is shown to the author until its judge accepts the work. `waits`
is `any` or `holder`: the case waits for any other task to end, or for the one that holds the
reported file. `event` names the rule in logs.
"""

from collections.abc import Mapping
from typing import Final

from interlock.engine.circuit import Circuit
from interlock.system.errors import CircuitError

PREPARE: Final = "PREPARE"
EXPAND: Final = "EXPAND"
IMPLEMENT: Final = "IMPLEMENT"
CHECK: Final = "CHECK"
REVIEW: Final = "REVIEW"
AUDIT: Final = "AUDIT"
PROVE: Final = "PROVE"
MERGE: Final = "MERGE"
REMEDIATE: Final = "REMEDIATE"
HEALTH_CHECK: Final = "HEALTH_CHECK"
HEALTH_AUDIT: Final = "HEALTH_AUDIT"
MERGE_FIX: Final = "MERGE_FIX"
CONSULT: Final = "CONSULT"
RECRUIT: Final = "RECRUIT"
CLARIFY: Final = "CLARIFY"
INFRA_GATE: Final = "INFRA_GATE"

PROGRAMS: Final = ("worktrees", "checks", "merge")
"""Roles that our own code plays."""
WRITERS: Final = ("developer", "remediation", "expert-maker")
"""Roles that change files; all others only read."""
GATES: Final = (CLARIFY, INFRA_GATE)
REPAIR: Final = (REMEDIATE, HEALTH_CHECK, HEALTH_AUDIT, MERGE_FIX)
"""Steps that work in the tree of a repair instead of the task's."""
COMPLETE: Final = "COMPLETE"
SKIPPED: Final = "SKIPPED"
HALTED: Final = "HALTED"

CLAIMED: Final = {
    CHECK: (IMPLEMENT, "READY_FOR_REVIEW"),
    PROVE: (AUDIT, "AUDIT_PASSED"),
    HEALTH_CHECK: (REMEDIATE, "REMEDIATION_COMPLETE"),
    MERGE_FIX: (HEALTH_AUDIT, "HEALTH_AUDIT: HEALTHY"),
}
"""The step and signal whose claims each of our own steps compares."""
INSPECTED_FOR: Final = {
    "critic": (CHECK, PROVE),
    "auditor": (CHECK, PROVE),
    "health-auditor": (HEALTH_CHECK,),
}
"""Our own steps whose findings each judge is shown."""


VERDICT, BY, WAITS, EVENT = "verdict", "by", "waits", "event"
OBJECTS, ACCEPTS = "objects", "accepts"
ANY, HOLDER = "any", "holder"
_VALUES: Final = {VERDICT: (OBJECTS, ACCEPTS), WAITS: (ANY, HOLDER)}


def read_rule_tags(circuit: Circuit) -> Mapping[str, Mapping[str, str]]:
    """Return the tags of every rule by its id; raise CircuitError if a value is not known."""
    tags = {rule.id: rule.tags for rule in circuit.rules}
    for rule_id, each in tags.items():
        for name, values in _VALUES.items():
            if name in each and each[name] not in values:
                raise CircuitError(
                    f"rule {rule_id!r} has the tag {name}: {each[name]}; "
                    f"use one of {', '.join(values)}"
                )
        if VERDICT in each and not each.get(BY):
            raise CircuitError(f"rule {rule_id!r} has a verdict; say whose it is with by: …")
    return tags
