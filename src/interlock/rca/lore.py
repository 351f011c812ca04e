"""Lore: what the store knows that may be about a failure, nearest first.

Exact matches are found by fingerprint, others by shared bands and then by likeness. Knows nothing
of steps; what a memory is worth to a case is the analyst's to say, and the circuit's to decide.
"""

import msgspec
from sqlalchemy import Connection

from interlock.rca.analyst.likeness import likeness, restored
from interlock.rca.knowledge.knowledge import (
    Rca,
    Symptom,
    rcas_of,
    symptom_by_fingerprint,
    symptoms_by_bands,
)
from interlock.rca.knowledge.looks import CasePosition, agreed

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
