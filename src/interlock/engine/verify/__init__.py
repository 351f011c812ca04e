"""Is this circuit sound? The table of checks, each with stable finding ids.

Everything a check finds is a Finding with a place in the file and what to write instead. Nothing
here changes or runs a circuit.
"""

from interlock.engine.circuit_file import CircuitSource
from interlock.engine.verify.checks import (
    back_to_nowhere,
    dead_ends,
    gaps,
    loops_without_exit,
    missing_timeouts,
    overlaps,
    self_reviews,
    unbounded_loops,
    ungated_writes,
    unguarded_names,
    unhandled_signals,
    unknown_names,
    unknown_reads,
    unproven_cells,
    unreachable_places,
    unreachable_rules,
)
from interlock.engine.verify.finding import Finding, VerifyReport, WorstCase
from interlock.engine.verify.proof import Check, Proof, worst_case

CHECKS: tuple[Check, ...] = (
    unknown_names,
    unknown_reads,
    unguarded_names,
    unreachable_places,
    unreachable_rules,
    dead_ends,
    back_to_nowhere,
    unbounded_loops,
    loops_without_exit,
    unhandled_signals,
    gaps,
    overlaps,
    ungated_writes,
    self_reviews,
    missing_timeouts,
    unproven_cells,
)
_RANK = {"error": 0, "warning": 1, "note": 2}


def verify(written: CircuitSource) -> VerifyReport:
    """All findings about a circuit, errors first, and the most dispatches a case can cost."""
    proof = Proof(written)
    findings = [finding for check in CHECKS for finding in check(proof)]
    findings.sort(key=lambda finding: (_RANK[finding.level], finding.line))
    circuit = written.circuit
    return VerifyReport(circuit.name, circuit.version, tuple(findings), worst_case(proof.table))


__all__ = ["CHECKS", "Finding", "VerifyReport", "WorstCase", "verify"]
