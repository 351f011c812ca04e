"""F0 by the analyst: what a memory of the store is worth to a failure.

The same fingerprint is as sure as it gets; a symptom that slept for long is worth half; what was
resolved is never taken for the same without a look, because then it is a regression.
"""

from collections.abc import Sequence
from typing import Any

import msgspec

from interlock.rca.analyst.recall import UNSURE

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
    said = [f"root cause {memory.rca_id} ({memory.title}) explained symptom {memory.symptom_id}"]
    said.append("its fingerprint is the same" if memory.is_exact else f"alike in {memory.why}")
    if memory.is_other_version:
        said.append("it was seen in another version")
    if memory.is_dormant:
        said.append("it had not been seen for long: worth half")
    if memory.is_resolved:
        said.append("it was resolved, so this may be a regression and needs a look")
    return "; ".join(said)


def _nothing(memories: Sequence[PriorMatch]) -> str:
    near = [memory for memory in memories if memory.likeness >= UNSURE]
    if not near:
        return "nothing like it is known"
    return f"seen {near[0].seen} times before, but nobody has agreed on a cause"
