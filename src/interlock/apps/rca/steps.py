"""The seven steps by name, and the names of the files that belong to each.

Two folders have two customs: `calibrate/` names prompts by family, `investigations/` by number.
"""

F0, F1, F2, F3 = "F0_RECALL", "F1_TRIAGE", "F2_RESOLVE", "F3_INVESTIGATE"
F4, F5, F6 = "F4_CORRELATE", "F5_REVIEW", "F6_REPORT"
STEPS = (F0, F1, F2, F3, F4, F5, F6)
TRIAGE = (F0, F1)
"""The steps of the triage phase; all others are the investigation."""

FAMILIES = dict(
    zip(
        STEPS,
        ("recall", "triage", "resolve", "investigate", "correlate", "review", "report"),
        strict=True,
    )
)
ARTIFACTS = {
    F0: "recall-result.json",
    F1: "triage-result.json",
    F2: "resolve-result.json",
    F3: "artifact.json",
    F4: "correlate-result.json",
    F5: "review-decision.json",
    F6: "jira-draft.json",
}
LINKED = "linked"
"""The signal by which a case takes over what was found for another of its family."""


def numbered_prompt(step: str, attempt: int) -> str:
    """`prompt-f3.md`; the second pass is `prompt-f3-loop-2.md`."""
    again = f"-loop-{attempt}" if attempt > 1 else ""
    return f"prompt-{step[:2].lower()}{again}.md"


def named_prompt(step: str, attempt: int) -> str:
    """`prompt-investigate.md`; the first repetition is `prompt-investigate-loop-1.md`."""
    again = f"-loop-{attempt - 1}" if attempt > 1 else ""
    return f"prompt-{FAMILIES[step]}{again}.md"
