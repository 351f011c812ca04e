"""What each family answers with: the fields of its artifact, as prompts tell them.

The circuit holds the shape that answers are checked against; this is the same in words, with an
example. Names are those of the files that outside agents have always written.
"""

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from interlock.rca.steps import F1, F2, F3

EVIDENCE_FORMS: Final = "`repo:path:line`, `repo:path:name` or `repo@commit`"
DECISIONS: Final = ("approve", "reassess", "overturn")
LOOP_TARGETS: Final = (F1, F2, F3)


class ArtifactField(msgspec.Struct, frozen=True):
    """One field: what may stand in it, whether it must be there, and an example; None
    leaves it out of the example."""

    name: str
    kind: str
    required: bool
    meaning: str
    example: Any


_RECALL = (
    ArtifactField(
        "match", "boolean", True, "an earlier root cause probably explains this failure", True
    ),
    ArtifactField("prior_rca_id", "integer", False, "the rca_id of that root cause, as shown", 7),
    ArtifactField(
        "symptom_id", "integer", False, "the symptom_id of the matching symptom, as shown", 12
    ),
    ArtifactField(
        "confidence", "number 0 to 1", True, "0.8 and more is sure, below 0.4 no match", 0.85
    ),
    ArtifactField(
        "reasoning", "string", True, "what agrees and what differs", "same error, same version"
    ),
    ArtifactField(
        "is_regression", "boolean", False, "it was resolved or dormant and is back", False
    ),
)
_TRIAGE = (
    ArtifactField(
        "symptom_category", "category", True, "where the fault most likely lives", "product"
    ),
    ArtifactField("severity", "critical, high, medium or low", False, "how much it breaks", "high"),
    ArtifactField("defect_type_hypothesis", "defect code", True, "the likeliest code", "pb001"),
    ArtifactField(
        "candidate_repos", "list of strings", True, "repos by name, likeliest first", ["server"]
    ),
    ArtifactField("skip_investigation", "boolean", True, "looking at code cannot help", False),
    ArtifactField("clock_skew_suspected", "boolean", False, "times of two clocks disagree", False),
    ArtifactField(
        "cascade_suspected", "boolean", False, "a shared set-up failed for several tests", False
    ),
    ArtifactField(
        "data_quality_notes", "string", False, "what is missing, cut or doubtful", "log is cut"
    ),
)
_RESOLVE = (
    ArtifactField(
        "selected_repos",
        "list of objects",
        True,
        "where to look, best first: name and reason (both required), path, focus_paths, branch",
        [
            {
                "name": "server",
                "path": "/src/server",
                "focus_paths": ["server/session.py"],
                "branch": "main",
                "reason": "the stack ends in its session code",
            }
        ],
    ),
    ArtifactField(
        "cross_ref_strategy", "string", False, "with several: how they are compared", None
    ),
)
_INVESTIGATE = (
    ArtifactField("launch_id", "string", False, "launch_id as shown, if any", None),
    ArtifactField("case_ids", "list of integers", False, "item_id as shown, if any", None),
    ArtifactField(
        "rca_message",
        "string",
        True,
        "what broke, how, where, and what would mend it; one sentence for each reference",
        "Session.renew() in server/session.py compares the expiry in seconds with a clock in "
        "milliseconds since commit 4f2a9c1, so every renewal is refused; convert the expiry.",
    ),
    ArtifactField("defect_type", "defect code", True, "a code of the list", "pb001"),
    ArtifactField("component", "string", False, "the part that is to be mended", "server/session"),
    ArtifactField("convergence_score", "number 0 to 1", True, "how sure, by the scale above", 0.85),
    ArtifactField(
        "evidence_refs",
        "list of strings",
        True,
        f"what you looked at yourself, as {EVIDENCE_FORMS}; empty if nothing",
        ["server:server/session.py:118", "server@4f2a9c1"],
    ),
    ArtifactField(
        "contradicting_evidence",
        "list of strings",
        False,
        "what speaks against it, as observations or references",
        ["the renewal of a fresh session passes"],
    ),
    ArtifactField(
        "gap_brief",
        "object",
        False,
        "if not sure: verdict (confident, low-confidence, inconclusive) and gap_items, a list of "
        "what would help",
        {"verdict": "confident", "gap_items": []},
    ),
)
_CORRELATE = (
    ArtifactField("is_duplicate", "boolean", True, "another case has the same cause", True),
    ArtifactField("linked_rca_id", "integer", False, "the rca_id of that cause, as shown", 7),
    ArtifactField("confidence", "number 0 to 1", True, "0.8 and more links the cases", 0.9),
    ArtifactField(
        "reasoning", "string", True, "which errors, code and environment agree", "same frame"
    ),
    ArtifactField("cross_version_match", "boolean", False, "it is in more than one version", False),
    ArtifactField(
        "affected_versions", "list of strings", False, "those versions, as shown", ["2.4"]
    ),
)
_REVIEW = (
    ArtifactField("decision", "approve, reassess or overturn", True, "see above", "overturn"),
    ArtifactField(
        "loop_target",
        f"{F1}, {F2} or {F3}",
        False,
        f"with reassess: where to begin again; {F2} if left out",
        None,
    ),
    ArtifactField(
        "human_override",
        "object",
        False,
        "with overturn: your defect_type and rca_message",
        {"defect_type": "ab001", "rca_message": "the test reads the old field name"},
    ),
    ArtifactField(
        "comment", "string", False, "with reassess: what the next look should heed", None
    ),
)
_REPORT = (
    ArtifactField("case_id", "string", True, "case_id as shown", "17"),
    ArtifactField("test_name", "string", True, "the failed test", "test_renewal"),
    ArtifactField(
        "summary", "string", True, "one line for the issue's title", "Renewals are refused"
    ),
    ArtifactField(
        "description", "string", True, "cause, mechanism, how to see it, what mends it", "..."
    ),
    ArtifactField("defect_type", "defect code", True, "the code that was reviewed", "pb001"),
    ArtifactField(
        "priority", "critical, high, medium or low", True, "from severity and reach", "high"
    ),
    ArtifactField("component", "string", True, "the part that is to be mended", "server/session"),
    ArtifactField(
        "components", "list of strings", False, "all parts concerned", ["server/session"]
    ),
    ArtifactField("evidence_refs", "list of strings", True, "only those shown", ["server@4f2a9c1"]),
    ArtifactField("affected_versions", "list of strings", False, "as shown", ["2.4"]),
    ArtifactField(
        "jira_id", "string", False, "a ticket that is already shown for this cause", None
    ),
    ArtifactField(
        "regression_table",
        "list of objects",
        True,
        "one row for each failure of this cause: test_name, version, first_seen, last_seen, "
        "rca_id, status (new, known or regression)",
        [
            {
                "test_name": "test_renewal",
                "version": "2.4",
                "first_seen": "2024-05-01",
                "last_seen": "2024-05-03",
                "rca_id": 7,
                "status": "regression",
            }
        ],
    ),
)
ARTIFACTS: Final = {
    "recall": _RECALL,
    "triage": _TRIAGE,
    "resolve": _RESOLVE,
    "investigate": _INVESTIGATE,
    "correlate": _CORRELATE,
    "review": _REVIEW,
    "report": _REPORT,
}
"""The fields of each family's artifact."""


def example_of(fields: Sequence[ArtifactField]) -> str:
    """An artifact as it might be, in JSON."""
    shown = {field.name: field.example for field in fields if field.example is not None}
    content = msgspec.json.encode(shown)
    return msgspec.json.format(content, indent=2).decode()


def schema_text(fields: Sequence[ArtifactField]) -> str:
    """The fields as a table, then an example."""
    lines = (
        f"| `{field.name}` | {field.kind} | {'yes' if field.required else 'no'} | {field.meaning} |"
        for field in fields
    )
    table = ("| field | value | required | meaning |", "|---|---|---|---|", *lines)
    return "\n".join((*table, "", "```json", example_of(fields), "```"))
