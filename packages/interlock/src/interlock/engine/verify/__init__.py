"""Prove a circuit sound: the table of checks, each with stable finding ids.

A check reports Findings, with a place in the file and what to write instead. Nothing here changes
or runs a circuit.
"""

from interlock.engine.circuit_file import CircuitSource
from interlock.engine.verify.checks import (
    find_back_to_nowhere,
    find_dead_ends,
    find_gaps,
    find_loops_without_exit,
    find_missing_timeouts,
    find_overlaps,
    find_self_reviews,
    find_unbounded_loops,
    find_unguarded_names,
    find_unhandled_signals,
    find_unknown_names,
    find_unknown_reads,
    find_unproven_cells,
    find_unreachable_places,
    find_unreachable_rules,
)
from interlock.engine.verify.finding import Finding, VerifyReport, WorstCase
from interlock.engine.verify.gates import find_ungated_writes
from interlock.engine.verify.proof import Check, Proof, find_worst_case

CHECKS: tuple[Check, ...] = (
    find_unknown_names,
    find_unknown_reads,
    find_unguarded_names,
    find_unreachable_places,
    find_unreachable_rules,
    find_dead_ends,
    find_back_to_nowhere,
    find_unbounded_loops,
    find_loops_without_exit,
    find_unhandled_signals,
    find_gaps,
    find_overlaps,
    find_ungated_writes,
    find_self_reviews,
    find_missing_timeouts,
    find_unproven_cells,
)
_RANK = {"error": 0, "warning": 1, "note": 2}


def verify(written: CircuitSource) -> VerifyReport:
    """Return all findings about a circuit, errors first, and the most dispatches a case can
    cost."""
    proof = Proof(written)
    findings = [finding for check in CHECKS for finding in check(proof)]
    findings.sort(key=lambda finding: (_RANK[finding.level], finding.line))
    circuit = written.circuit
    return VerifyReport(
        circuit.name, circuit.version, tuple(findings), find_worst_case(proof.table)
    )


__all__ = ["CHECKS", "Finding", "VerifyReport", "WorstCase", "verify"]
