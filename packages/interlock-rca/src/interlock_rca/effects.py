"""The effects of the analysis's decisions on the store, as records.

Each is committed in the transaction of its decision. The rule decides, not the answer: its tag
`effect` names the effect, so a match that was too unsure to be routed as one links nothing.
`knowledge/writer.py` applies effects to the tables.
"""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from interlock.engine.case import Case, Decision
from interlock.engine.circuit import Circuit
from interlock.system.errors import CircuitError
from interlock.system.text import shorten
from interlock_rca.steps import F1, F2, F3
from interlock_rca.taxonomy import Taxonomy


class Recalled(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The case reports a known symptom and shares its root cause."""

    symptom_id: int
    rca_id: int
    regression: bool


class Triaged(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The kind of a failure. Creates or updates the symptom of the case's fingerprint."""

    category: str
    severity: str
    hypothesis: str
    candidate_repos: tuple[str, ...]
    skip: bool
    clock_skew: bool
    cascade: bool
    notes: str
    came_back: int = 0
    """A resolved symptom: if it is the case's own, the failure is a regression."""


class Investigated(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """A root cause: one per case and attempt, replacing that of an earlier attempt."""

    attempt: int
    title: str
    description: str
    defect_type: str
    category: str
    component: str
    convergence_score: float
    evidence: tuple[dict[str, str], ...]
    """For each reference: ref, verdict, why, url."""


class Correlated(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The case has the cause of another; its own root cause, if any, is archived."""

    rca_id: int
    confidence: float
    affected_versions: tuple[str, ...]


class Reviewed(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The approval of a human or of the chosen rule, or an overturned finding with its new
    words."""

    decision: str
    by: str
    defect_type: str = ""
    category: str = ""
    """The category of the defect type, if one is given."""
    description: str = ""


class SentBack(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The case's status returns to what it was before the step that is repeated."""

    status: str


class Closed(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The case is reported and done. The draft is kept."""

    draft: dict[str, Any] = {}
    """The answer to F6."""


Effect = Recalled | Triaged | Investigated | Correlated | Reviewed | SentBack | Closed


EFFECT_TAG: Final = "effect"
"""The tag that names a rule's effect."""
EFFECTS: Final = ("recall", "triage", "investigate", "link", "review", "report")
_TITLE: Final = 80
_SENDS_BACK: Final = (F1, F2, F3)
"""The steps to which a reviewer may send a case back."""


def check_effects(circuit: Circuit) -> None:
    """Raise CircuitError if a rule has an unknown effect."""
    for rule in circuit.rules:
        if (name := rule.tags.get(EFFECT_TAG, "")) and name not in EFFECTS:
            raise CircuitError(
                f"rule {rule.id!r} has the effect {name!r}; use one of {', '.join(EFFECTS)}"
            )


def find_effect(circuit: Circuit, rule_id: str) -> str:
    """Return the name of a rule's effect, or ""."""
    rule = circuit.find_rule(rule_id)
    return rule.tags.get(EFFECT_TAG, "") if rule else ""


def list_effects(
    circuit: Circuit,
    case: Case,
    decision: Decision,
    data: Mapping[str, Any],
    by: str,
    taxonomy: Taxonomy,
) -> tuple[Effect, ...]:
    """Return the effects of a decision; `case` is as it was when the answer came."""
    match find_effect(circuit, decision.rule):
        case "recall":
            return (_make_recalled(data),)
        case "triage":
            return (_make_triaged(case, data),)
        case "investigate":
            return (_make_investigated(case, decision, data, taxonomy),)
        case "link":
            return (_make_correlated(data),)
        case "review":
            return _make_reviewed(case, decision, data, by, taxonomy)
        case "report":
            return (Closed(draft=dict(data)),)
    return ()


def _make_recalled(data: Mapping[str, Any]) -> Effect:
    return Recalled(
        symptom_id=data.get("symptom_id", 0),
        rca_id=data.get("prior_rca_id", 0),
        regression=data.get("is_regression", False),
    )


def _make_triaged(case: Case, data: Mapping[str, Any]) -> Effect:
    candidate = case.context.get("recall_candidate", {})
    return Triaged(
        category=data["symptom_category"],
        severity=data.get("severity", ""),
        hypothesis=data["defect_type_hypothesis"],
        candidate_repos=tuple(data["candidate_repos"]),
        skip=data["skip_investigation"],
        clock_skew=data.get("clock_skew_suspected", False),
        cascade=data.get("cascade_suspected", False),
        notes=data.get("data_quality_notes", ""),
        came_back=candidate.get("symptom_id", 0) if candidate.get("is_regression") else 0,
    )


def _make_investigated(
    case: Case, decision: Decision, data: Mapping[str, Any], taxonomy: Taxonomy
) -> Effect:
    defect_type = str(decision.adds.get("defect_type", data["defect_type"]))
    triage = case.answers.get(F1, {})
    category = taxonomy.find_category_of_code(defect_type) or triage.get(
        "symptom_category", "unknown"
    )
    return Investigated(
        attempt=decision.attempt,
        title=make_title(data["rca_message"]),
        description=data["rca_message"],
        defect_type=defect_type,
        category=category,
        component=data.get("component", ""),
        convergence_score=data["convergence_score"],
        evidence=tuple(data.get("evidence", ())),
    )


def make_title(message: str) -> str:
    """Return the first sentence of a message, on one line."""
    line = " ".join(message.split()).partition(". ")[0].rstrip(".")
    return shorten(line, _TITLE)


def _make_correlated(data: Mapping[str, Any]) -> Effect:
    return Correlated(
        rca_id=data.get("linked_rca_id", 0),
        confidence=data.get("confidence", 0.0),
        affected_versions=tuple(data.get("affected_versions", ())),
    )


def _make_reviewed(
    case: Case, decision: Decision, data: Mapping[str, Any], by: str, taxonomy: Taxonomy
) -> tuple[Effect, ...]:
    match data["decision"]:
        case "approve":
            return (Reviewed(decision="approve", by=by),)
        case "overturn":
            override = data.get("human_override", {})
            code = override.get("defect_type", "")
            return (
                Reviewed(
                    decision="overturn",
                    by=by,
                    defect_type=code,
                    category=taxonomy.find_category_of_code(code) or "",
                    description=override.get("rca_message", ""),
                ),
            )
    if decision.to not in _SENDS_BACK:
        return ()
    # A recalled case came to its review without a triage.
    triaged = F1 in case.answers and decision.to != F1
    return (SentBack(status="triaged" if triaged else "open"),)
