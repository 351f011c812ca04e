"""Approval by rule: how sure the finding under review is, if it may be approved without a human.

Looks at what the case's root cause rests on: its own investigation, another case's, or a triage.
Refuses to know how sure is sure enough.
"""

from typing import Any

from sqlalchemy import Connection

from interlock.engine.case import Case
from interlock.rca.knowledge.knowledge import Rca, rca
from interlock.rca.knowledge.looks import agreed, place_of
from interlock.rca.steps import F1

_TO_INVESTIGATE = "unknown"
_SHARED = {
    "linked": "linked_rca_id",
    "duplicate": "linked_rca_id",
    "recalled": "prior_rca_id",
}
"""What a rule adds when a case shares a root cause, and where that names it."""


def sureness(connection: Connection, case_no: int, case: Case) -> float | None:
    """From 0 to 1; None if only a human can say. A shared cause that nobody has agreed with yet is
    not surer than it is itself."""
    place = place_of(connection, case_no)
    cause = rca(connection, place.rca_id) if place and place.rca_id else None
    if cause is None:
        return _number(case.answers.get(F1, {}).get("confidence"))
    if cause.category == _TO_INVESTIGATE:
        return None
    if cause.case_no == case_no:
        return cause.convergence_score
    alike = _likeness(case, cause)
    if alike is None or agreed(connection, cause.rca_id):
        return alike
    return min(alike, cause.convergence_score or 0.0)


def _likeness(case: Case, cause: Rca) -> float | None:
    """How sure it was that the case has that cause."""
    for name, place in _SHARED.items():
        said = case.context.get(name, {})
        if said.get(place) == cause.rca_id:
            return _number(said.get("confidence"))
    return None


def _number(value: Any) -> float | None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number else None
