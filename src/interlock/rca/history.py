"""What was known before: symptoms, root causes and the other failures of a launch, as records.

Filled from the store by whoever may read it. Unknown parts are empty. Texts are as they were said.
"""

import msgspec


class SymptomInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A symptom that was seen before and may be this failure's."""

    symptom_id: int
    name: str = ""
    status: str = ""
    """active, dormant or resolved."""
    occurrence_count: int = 0
    first_seen: str = ""
    last_seen: str = ""
    error_pattern: str = ""
    component: str = ""
    affected_versions: tuple[str, ...] = ()
    environment: dict[str, str] = {}
    """Attributes of the launch it was last seen in, to compare with this one."""
    rca_ids: tuple[int, ...] = ()
    similarity: float | None = None
    """How near it is to this failure, 0 to 1, as far as a machine can tell."""
    is_dormant_reactivation: bool = False


class PriorCause(msgspec.Struct, frozen=True, kw_only=True):
    """A root cause found before. `days_since_resolved` is computed where it is not given."""

    rca_id: int
    title: str = ""
    description: str = ""
    defect_type: str = ""
    component: str = ""
    status: str = ""
    """open, resolved, verified or archived."""
    jira_link: str = ""
    affected_versions: tuple[str, ...] = ()
    created_at: str = ""
    resolved_at: str = ""
    verified_at: str = ""
    days_since_resolved: int | None = None
    cases: int = 0
    """How many cases have it."""


class PriorKnowledge(msgspec.Struct, frozen=True, kw_only=True):
    """What the store knows about a failure. The likeliest symptom is first; so is the likeliest
    root cause. `digest` holds the root causes known in this suite, the newest last."""

    symptoms: tuple[SymptomInfo, ...] = ()
    prior_rcas: tuple[PriorCause, ...] = ()
    failure_count: int = 0
    """How often this test failed before, whatever the symptom."""
    last_seen: str = ""
    digest: tuple[PriorCause, ...] = ()


class Sibling(msgspec.Struct, frozen=True, kw_only=True):
    """Another failure of the same launch."""

    id: str
    name: str = ""
    parent_name: str = ""
    polarion_id: str = ""
    status: str = ""
    at: str = ""
    error: str = ""
    """The first line of its message is enough."""
    issue_type: str = ""
    rca_id: int = 0
