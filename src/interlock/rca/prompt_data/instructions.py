"""What a prompt asks for and warns of: the fields of each family's artifact, and guards G1 to G34.

The circuit holds the shape that answers are checked against; `ARTIFACTS` is the same in words, with
an example. A guard is a sentence against what agents get wrong in such work; its condition is a key
of `CONDITIONS`, and whoever fills prompts says which hold.
"""

from collections.abc import Collection, Sequence
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


def format_example(fields: Sequence[ArtifactField]) -> str:
    """An artifact as it might be, in JSON."""
    shown = {field.name: field.example for field in fields if field.example is not None}
    content = msgspec.json.encode(shown)
    return msgspec.json.format(content, indent=2).decode()


def format_schema(fields: Sequence[ArtifactField]) -> str:
    """The fields as a table, then an example."""
    lines = (
        f"| `{field.name}` | {field.kind} | {'yes' if field.required else 'no'} | {field.meaning} |"
        for field in fields
    )
    table = ("| field | value | required | meaning |", "|---|---|---|---|", *lines)
    return "\n".join((*table, "", "```json", format_example(fields), "```"))


CONDITIONS: Final = {
    "": "always",
    "cut": "a text was cut, by the source or to fit the prompt",
    "no_log": "there is no log",
    "noise": "terminal codes or unseen characters were removed",
    "missing": "a fact is not known",
    "candidates": "there are earlier symptoms or root causes to compare with",
    "siblings": "other tests of the launch failed too",
    "timeout_words": "the texts speak of a time-out",
    "many_skipped": "more tests were skipped than is usual",
    "no_git": "neither branch nor commit is known",
}


class PromptGuard(msgspec.Struct, frozen=True):
    """One guard. Number 0 is the clock-skew guard, which has never had one."""

    number: int
    name: str
    families: tuple[str, ...]
    condition: str
    sentence: str

    @property
    def mark(self) -> str:
        return f"G{self.number}" if self.number else self.name


_ALL: Final = ("F0", "F1", "F2", "F3", "F4", "F5", "F6")
_BOTH: Final = ("F1", "F3")
GUARDS: Final = (
    PromptGuard(
        0,
        "clock-skew",
        ("F1",),
        "",
        "If a single test seems to have run for hours, suspect two clocks that disagree before you "
        "suspect a time-out, and set clock_skew_suspected.",
    ),
    PromptGuard(
        1,
        "truncated-log",
        _BOTH,
        "cut",
        "A text is cut: what you look for may be in the part you do not see. Say that it is "
        "incomplete, and be less sure.",
    ),
    PromptGuard(
        2,
        "missing-logs",
        _BOTH,
        "no_log",
        "There is no log. Do not invent one: name what is missing, and say unknown where the rest "
        "does not decide.",
    ),
    PromptGuard(
        3,
        "ansi-noise",
        _BOTH,
        "noise",
        "Terminal codes were removed from the texts; what is left of them, or of HTML, means "
        "nothing.",
    ),
    PromptGuard(
        4,
        "empty-envelope-fields",
        _ALL,
        "missing",
        "A value (missing) is not known. Do not assume it; where it matters, say so.",
    ),
    PromptGuard(
        5,
        "stale-recall-match",
        ("F0",),
        "candidates",
        "The same test may fail for another reason in another version or environment: compare "
        "both, and be less sure where they differ or are missing.",
    ),
    PromptGuard(
        6,
        "beforesuite-cascade",
        ("F1", "F4"),
        "siblings",
        "Many tests that fail on one set-up have one cause, that of the set-up: one root cause for "
        "all, and cascade_suspected.",
    ),
    PromptGuard(
        7,
        "eventually-vs-timeout",
        ("F1",),
        "timeout_words",
        "A polling assertion (Eventually, Consistently, wait until) that timed out is a condition "
        "that never became true: a failed assertion, not an infrastructure time-out.",
    ),
    PromptGuard(
        8,
        "ordered-spec-poison",
        _BOTH,
        "siblings",
        "In an ordered group the first failure poisons those after it: find the first, and explain "
        "that one.",
    ),
    PromptGuard(
        9,
        "skip-count-signal",
        ("F1",),
        "many_skipped",
        "An unusual share of the tests was skipped. That is a sign of a failed set-up or a missing "
        "precondition; account for it.",
    ),
    PromptGuard(
        10,
        "parallel-interference",
        ("F3",),
        "siblings",
        "Another test may have changed shared state at the same time: look at what ran beside it.",
    ),
    PromptGuard(
        11,
        "cascade-error-blindness",
        _BOTH,
        "",
        "The loudest or last error is often a consequence. Read in the order of time and explain "
        "the first anomaly.",
    ),
    PromptGuard(
        12,
        "recency-bias",
        ("F3",),
        "",
        "The newest commit is not guilty for being new: it must lie on the path of execution, runs "
        "after it must fail too, and the environment must not have changed as well.",
    ),
    PromptGuard(
        13,
        "name-based-guessing",
        _BOTH,
        "",
        "Do not infer the cause from the test's name; go by message, stack, log and code.",
    ),
    PromptGuard(
        14,
        "confirmation-bias",
        ("F3", "F5"),
        "",
        "Look for what speaks against the conclusion, and list it.",
    ),
    PromptGuard(
        15,
        "single-cause-assumption",
        ("F3",),
        "",
        "It may take several conditions together; name each of them.",
    ),
    PromptGuard(
        16,
        "phantom-code-blame",
        ("F3",),
        "",
        "Code that did not change since it last passed is seldom the cause: suspect environment, "
        "data or dependencies.",
    ),
    PromptGuard(
        17,
        "confidence-anchoring",
        ("F3",),
        "",
        "convergence_score: 0.9 and more only with the exact line or commit and the whole chain; "
        "0.7 to 0.9 a strong hypothesis; 0.5 to 0.7 plausible, key evidence missing; below 0.5 "
        "speculation. Without message and log at most 0.5.",
    ),
    PromptGuard(
        18,
        "env-only-failure",
        ("F2", "F3"),
        "",
        "The code may be right and the environment wrong: take the repository with CI and "
        "environment configuration into account.",
    ),
    PromptGuard(
        19,
        "backport-lag",
        ("F3",),
        "",
        "A fix that is on the main branch and not on the tested one is a valid cause.",
    ),
    PromptGuard(
        20,
        "node-specific-hardware",
        _BOTH,
        "",
        "Behaviour may depend on one node's CPU, BIOS, network card or other hardware: check where "
        "it ran before you blame code.",
    ),
    PromptGuard(
        21,
        "cluster-state-leftover",
        ("F3",),
        "",
        "State left over from an earlier run can break a correct test.",
    ),
    PromptGuard(
        22,
        "operator-version-tunnel-vision",
        ("F3",),
        "",
        "A version that differs is only a cause if the changed part is on the path of the failure.",
    ),
    PromptGuard(
        23,
        "false-dedup",
        ("F4",),
        "",
        "Similar names are no proof: error, code path and environment must all agree.",
    ),
    PromptGuard(
        24,
        "version-crossing-false-equiv",
        ("F4",),
        "",
        "The same test in several versions may fail from several bugs; compare the errors in each.",
    ),
    PromptGuard(
        25,
        "shared-setup-misattribution",
        ("F4",),
        "",
        "Identical set-up errors share one root cause, that of the set-up, whatever the tests are.",
    ),
    PromptGuard(
        26,
        "partial-step-conflation",
        _BOTH,
        "",
        "A test may be a sum of steps: analyse the step that failed, not the sum.",
    ),
    PromptGuard(
        27,
        "git-blame-wrong-file",
        ("F3",),
        "",
        "A file counts only if it is on the failure's path: in the stack, or called from there.",
    ),
    PromptGuard(
        28,
        "config-vs-code",
        ("F2", "F3"),
        "",
        "If it looks like configuration or infrastructure, look at configuration before code.",
    ),
    PromptGuard(
        29,
        "hallucinated-evidence",
        ("F3", "F6"),
        "",
        "Every reference must exist and have been looked at; each is checked by machine. No "
        "reference is better than a made-up one.",
    ),
    PromptGuard(
        30,
        "red-herring-refactor",
        ("F3",),
        "",
        "A rename, a move or a new format changes no behaviour; tell it from a change that does.",
    ),
    PromptGuard(
        31,
        "missing-git-context",
        ("F3",),
        "no_git",
        "Neither branch nor commit is known: say which code you looked at, that it may not be what "
        "was tested, and be less sure.",
    ),
    PromptGuard(
        32,
        "vague-rca-message",
        ("F3", "F5"),
        "",
        "A root cause names component, function or setting, the mechanism, concrete values and "
        "what would mend it.",
    ),
    PromptGuard(
        33,
        "wrong-defect-type-code",
        _BOTH,
        "",
        "Use only the defect codes listed here; if none fits, ti001.",
    ),
    PromptGuard(
        34,
        "evidence-without-reasoning",
        ("F3",),
        "",
        "For each reference say in one sentence how it leads to the conclusion.",
    ),
)


def select_guards(family: str, holding: Collection[str]) -> tuple[PromptGuard, ...]:
    """The guards of a family (`F3`) that are worth saying while these conditions hold."""
    return tuple(
        guard
        for guard in GUARDS
        if family in guard.families and (not guard.condition or guard.condition in holding)
    )


def render_guard_page() -> str:
    """The table as a page of the documentation."""
    lines = (
        f"| {guard.mark} | {guard.name} | {' '.join(guard.families)} "
        f"| {CONDITIONS[guard.condition]} | {guard.sentence} |"
        for guard in GUARDS
    )
    return (
        "# The guards of root cause analysis\n\n"
        "Made by `make docs` from `rca/prompt_data/instructions.py`. A guard stands in the\n"
        "prompts of its families, marked with its number, whenever its condition holds.\n\n"
        "| guard | name | families | when | sentence |\n|---|---|---|---|---|\n"
        + "\n".join(lines)
        + "\n"
    )
