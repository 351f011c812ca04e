"""Known causes: what the store knows that may be about a failure, and what that is worth to F0.

Exact matches are found by fingerprint, others by shared bands and then by similarity. The same
fingerprint is as sure as it gets; a symptom that slept for long is worth half; what was resolved is
never taken for the same without a look, because then it is a regression.
"""

from collections.abc import Sequence
from typing import Any

import msgspec
from sqlalchemy import Connection

from interlock.rca.analyst.cluster import UNSURE
from interlock.rca.analyst.similarity import likeness, restored
from interlock.rca.knowledge.causes import (
    Rca,
    Symptom,
    rcas_of,
    symptom_by_fingerprint,
    symptoms_by_bands,
)
from interlock.rca.knowledge.suites import CasePosition, agreed

NEAREST = 5
_COMPARED = 40


class StoredMatch(msgspec.Struct, frozen=True):
    """A symptom that may be a failure's, and its root causes; those agreed on come first."""

    symptom: Symptom
    likeness: float
    why: str
    exact: bool
    rcas: tuple[Rca, ...]
    agreed: int
    """How many of the root causes somebody has reviewed."""


class KnownCauses:
    """The store's memories, while a connection is open."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def memories(
        self, place: CasePosition, most: int = NEAREST, *, near: bool = True
    ) -> list[StoredMatch]:
        """What may be about the failure of that case: its own symptom, and those `near` it."""
        found = symptom_by_fingerprint(self._connection, place.fingerprint)
        exact = [self._memory(found, 1.0, "the same fingerprint", exact=True)] if found else []
        others = [
            self._memory(symptom, score, why)
            for symptom, score, why in (self._near(place) if near else ())
            if found is None or symptom.symptom_id != found.symptom_id
        ]
        return (exact + others)[:most]

    def _near(self, place: CasePosition) -> list[tuple[Symptom, float, str]]:
        asked = restored(place.features)
        scored: list[tuple[Symptom, float, str]] = []
        for candidate in symptoms_by_bands(self._connection, place.bands, _COMPARED):
            if candidate.symptom.features:
                found = likeness(asked, restored(candidate.symptom.features))
                scored.append((candidate.symptom, found.score, found.why))
        scored.sort(key=lambda each: (-each[1], -each[0].symptom_id))
        return scored[:NEAREST]

    def _memory(
        self, symptom: Symptom, score: float, why: str, *, exact: bool = False
    ) -> StoredMatch:
        rcas = rcas_of(self._connection, symptom.symptom_id)
        reviewed = [rca for rca in rcas if agreed(self._connection, rca.rca_id)]
        others = [rca for rca in rcas if rca not in reviewed]
        return StoredMatch(symptom, score, why, exact, (*reviewed, *others), len(reviewed))


EXACT = 0.95
OTHER_VERSION = 0.9
NOT_SURE_ENOUGH = 0.6
"""The most that a resolved cause is worth: a candidate, never a hit."""


class PriorMatch(msgspec.Struct, frozen=True, kw_only=True):
    """A known symptom near a failure, and its root cause that somebody agreed with, if any."""

    symptom_id: int
    name: str
    likeness: float
    why: str
    is_exact: bool
    is_dormant: bool
    is_resolved: bool
    """The symptom, or its root cause, is said to be resolved."""
    seen: int
    rca_id: int = 0
    title: str = ""
    is_other_version: bool = False


def recall_answer(memories: Sequence[PriorMatch]) -> dict[str, Any]:
    """The answer to F0."""
    known = [memory for memory in memories if memory.rca_id]
    scored = [(_confidence(memory), memory) for memory in known if memory.likeness >= UNSURE]
    if not scored:
        return {"match": False, "confidence": 0.0, "reasoning": _nothing(memories)}
    confidence, best = max(scored, key=lambda pair: pair[0])
    return {
        "match": True,
        "prior_rca_id": best.rca_id,
        "symptom_id": best.symptom_id,
        "confidence": round(confidence, 3),
        "reasoning": _reasoning(best),
        "is_regression": best.is_dormant or best.is_resolved,
    }


def _confidence(memory: PriorMatch) -> float:
    found = EXACT if memory.is_exact else min(memory.likeness, EXACT)
    if memory.is_other_version:
        found *= OTHER_VERSION
    if memory.is_dormant:
        found /= 2
    return min(found, NOT_SURE_ENOUGH) if memory.is_resolved else found


def _reasoning(memory: PriorMatch) -> str:
    reasons = [f"root cause {memory.rca_id} ({memory.title}) explained symptom {memory.symptom_id}"]
    reasons.append("its fingerprint is the same" if memory.is_exact else f"alike in {memory.why}")
    if memory.is_other_version:
        reasons.append("it was seen in another version")
    if memory.is_dormant:
        reasons.append("it had not been seen for long: worth half")
    if memory.is_resolved:
        reasons.append("it was resolved, so this may be a regression and needs a look")
    return "; ".join(reasons)


def _nothing(memories: Sequence[PriorMatch]) -> str:
    near = [memory for memory in memories if memory.likeness >= UNSURE]
    if not near:
        return "nothing like it is known"
    return f"seen {near[0].seen} times before, but nobody has agreed on a cause"
