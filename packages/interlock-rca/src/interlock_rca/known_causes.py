"""Find known causes of a failure in the store, and compute their worth for F0.

Exact matches are found by fingerprint, others by shared bands and then similarity. An equal
fingerprint is the surest match; a long dormant symptom counts half. A resolved cause, or one whose
suspected commit has passed since, always needs another look, because it would be a regression.
"""

from collections.abc import Sequence
from typing import Any

import msgspec

from interlock.journal.connection import Connection
from interlock_rca.analyst.similarity import compare_failures, decode_traits
from interlock_rca.knowledge.causes import (
    Rca,
    Symptom,
    find_symptom_by_fingerprint,
    list_rcas,
    list_symptoms_by_bands,
)
from interlock_rca.knowledge.suites import CasePosition, has_agreed_cause

UNSURE_THRESHOLD = 0.35
"""The likeness below which a failure is new."""
MAX_MATCHES = 5
_COMPARED = 40


class StoredMatch(msgspec.Struct, frozen=True):
    """A symptom that may match a failure, with its root causes, agreed ones first."""

    symptom: Symptom
    likeness: float
    why: str
    exact: bool
    rcas: tuple[Rca, ...]
    agreed: int
    """The number of reviewed root causes."""


class KnownCauses:
    """The store's memories, while a connection is open."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def find_matches(
        self, place: CasePosition, most: int = MAX_MATCHES, *, near: bool = True
    ) -> list[StoredMatch]:
        """Return symptoms that may match a case's failure: its own, and those in `near`."""
        found = find_symptom_by_fingerprint(self._connection, place.fingerprint)
        exact = [self._build_match(found, 1.0, "the same fingerprint", exact=True)] if found else []
        others = [
            self._build_match(symptom, score, why)
            for symptom, score, why in (self._find_near(place) if near else ())
            if found is None or symptom.symptom_id != found.symptom_id
        ]
        return (exact + others)[:most]

    def _find_near(self, place: CasePosition) -> list[tuple[Symptom, float, str]]:
        asked = decode_traits(place.features)
        scored: list[tuple[Symptom, float, str]] = []
        for candidate in list_symptoms_by_bands(self._connection, place.bands, _COMPARED):
            if candidate.symptom.features:
                found = compare_failures(asked, decode_traits(candidate.symptom.features))
                scored.append((candidate.symptom, found.score, found.why))
        scored.sort(key=lambda each: (-each[1], -each[0].symptom_id))
        return scored[:MAX_MATCHES]

    def _build_match(
        self, symptom: Symptom, score: float, why: str, *, exact: bool = False
    ) -> StoredMatch:
        rcas = list_rcas(self._connection, symptom.symptom_id)
        reviewed = [rca for rca in rcas if has_agreed_cause(self._connection, rca.rca_id)]
        others = [rca for rca in rcas if rca not in reviewed]
        return StoredMatch(symptom, score, why, exact, (*reviewed, *others), len(reviewed))


EXACT_CONFIDENCE = 0.95
OTHER_VERSION_FACTOR = 0.9
MAX_REGRESSION_CONFIDENCE = 0.6
"""The highest confidence of a cause that was gone: a candidate, never a hit."""


class PriorMatch(msgspec.Struct, frozen=True, kw_only=True):
    """A known symptom near a failure, and its reviewed root cause, if any."""

    symptom_id: int
    name: str
    likeness: float
    why: str
    is_exact: bool
    is_dormant: bool
    is_resolved: bool
    """True if the symptom or its root cause is resolved."""
    passed_since: bool = False
    """True if the suspected commit was present when the tests last passed."""
    seen: int
    rca_id: int = 0
    title: str = ""
    is_other_version: bool = False


def build_recall_answer(memories: Sequence[PriorMatch]) -> dict[str, Any]:
    """Return the answer to F0."""
    known = [memory for memory in memories if memory.rca_id]
    scored = [
        (_compute_confidence(memory), memory)
        for memory in known
        if memory.likeness >= UNSURE_THRESHOLD
    ]
    if not scored:
        return {"match": False, "confidence": 0.0, "reasoning": _explain_no_match(memories)}
    confidence, best = max(scored, key=lambda pair: pair[0])
    return {
        "match": True,
        "prior_rca_id": best.rca_id,
        "symptom_id": best.symptom_id,
        "confidence": round(confidence, 3),
        "reasoning": _explain_match(best),
        "is_regression": best.is_dormant or best.is_resolved or best.passed_since,
    }


def _compute_confidence(memory: PriorMatch) -> float:
    found = EXACT_CONFIDENCE if memory.is_exact else min(memory.likeness, EXACT_CONFIDENCE)
    if memory.is_other_version:
        found *= OTHER_VERSION_FACTOR
    if memory.is_dormant:
        found /= 2
    was_gone = memory.is_resolved or memory.passed_since
    return min(found, MAX_REGRESSION_CONFIDENCE) if was_gone else found


def _explain_match(memory: PriorMatch) -> str:
    reasons = [f"root cause {memory.rca_id} ({memory.title}) explained symptom {memory.symptom_id}"]
    reasons.append("its fingerprint is the same" if memory.is_exact else f"alike in {memory.why}")
    if memory.is_other_version:
        reasons.append("it was seen in another version")
    if memory.is_dormant:
        reasons.append("it had not been seen for long: worth half")
    if memory.is_resolved:
        reasons.append("it was resolved, so this may be a regression and needs a look")
    elif memory.passed_since:
        reasons.append(
            "the tests passed since with the commit that was suspected, so something has brought "
            "it back"
        )
    return "; ".join(reasons)


def _explain_no_match(memories: Sequence[PriorMatch]) -> str:
    near = [memory for memory in memories if memory.likeness >= UNSURE_THRESHOLD]
    if not near:
        return "nothing like it is known"
    return f"seen {near[0].seen} times before, but nobody has agreed on a cause"
