"""The steps of the circuit `delivery`, by name, and what they have in common."""

from collections.abc import Mapping
from typing import Any, Final

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

PROGRAMS: Final = ("worktrees", "checks", "merge", "workshop")
"""The roles that our own code plays; the last is what older runs call the first."""
WRITERS: Final = ("developer", "remediation", "expert-maker")
"""The roles that change files; all others only read."""
GATES: Final = (CLARIFY, INFRA_GATE)
REPAIR: Final = (REMEDIATE, HEALTH_CHECK, HEALTH_AUDIT, MERGE_FIX)
"""Steps that work in the tree of a repair, not in that of the task."""
COMPLETE: Final = "COMPLETE"
SKIPPED: Final = "SKIPPED"
HALTED: Final = "HALTED"

CLAIMED: Final = {
    CHECK: (IMPLEMENT, "READY_FOR_REVIEW"),
    PROVE: (AUDIT, "AUDIT_PASSED"),
    HEALTH_CHECK: (REMEDIATE, "REMEDIATION_COMPLETE"),
    MERGE_FIX: (HEALTH_AUDIT, "HEALTH_AUDIT: HEALTHY"),
}
"""Whose claims a step of ours compares with what it sees: the step and signal of the claim."""
INSPECTED_FOR: Final = {
    "critic": (CHECK, PROVE),
    "auditor": (CHECK, PROVE),
    "health-auditor": (HEALTH_CHECK,),
}
"""Whose findings a judge is shown: our own steps that inspected the work before."""


def read_diff_findings(inspection: Mapping[str, Any]) -> tuple[str, ...]:
    """What was noticed in a change, by the answer of a step that inspected it. Answers of older
    runs have it under another name."""
    return tuple(map(str, inspection.get("diff_findings", inspection.get("tells", ()))))
