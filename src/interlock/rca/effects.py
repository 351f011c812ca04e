"""Effects: what a decision of the analysis changes in the store, as records.

Each commits in the transaction of its decision. Thresholds are honoured here by the rule that was
taken: a match that was not sure enough to be routed as one links nothing.
"""

from typing import Any

import msgspec


class Recalled(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The case reports a known symptom, and shares its root cause."""

    symptom_id: int
    rca_id: int
    regression: bool


class Triaged(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """What kind of failure it is. Makes or meets the symptom of the case's fingerprint."""

    category: str
    severity: str
    hypothesis: str
    candidate_repos: tuple[str, ...]
    skip: bool
    clock_skew: bool
    cascade: bool
    notes: str


class Investigated(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """A root cause: one per case and attempt; it takes the place of an earlier attempt's."""

    attempt: int
    title: str
    description: str
    defect_type: str
    category: str
    component: str
    convergence_score: float
    evidence: tuple[dict[str, str], ...]
    """Of each reference: ref, verdict, why, url."""


class Correlated(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The case has the cause of another: its own root cause, if any, is archived."""

    rca_id: int
    confidence: float
    affected_versions: tuple[str, ...]


class Reviewed(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """A human, or the rule they chose, agreed; with other words if the finding was overturned."""

    decision: str
    by: str
    defect_type: str = ""
    category: str = ""
    """That of the defect type, if one is given."""
    description: str = ""


class SentBack(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Reassess: the case's status goes back to what it was before that step."""

    status: str


class Closed(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Reported: nothing more to do. The draft is kept."""

    draft: dict[str, Any] = {}
    """What F6 answered."""


Effect = Recalled | Triaged | Investigated | Correlated | Reviewed | SentBack | Closed
