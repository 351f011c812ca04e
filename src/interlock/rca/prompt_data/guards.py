"""Guards G1 to G34: what agents get wrong in such work, and the sentence that keeps them from it.

A table: number, name, families, the condition under which the sentence is worth its room, and the
sentence. The condition is a key of `CONDITIONS`; whoever fills prompts says which hold.
"""

from collections.abc import Collection
from typing import Final

import msgspec

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


def guards_for(family: str, holding: Collection[str]) -> tuple[PromptGuard, ...]:
    """The guards of a family (`F3`) that are worth saying while these conditions hold."""
    return tuple(
        guard
        for guard in GUARDS
        if family in guard.families and (not guard.condition or guard.condition in holding)
    )


def guard_page() -> str:
    """The table as a page of the documentation."""
    lines = (
        f"| {guard.mark} | {guard.name} | {' '.join(guard.families)} "
        f"| {CONDITIONS[guard.condition]} | {guard.sentence} |"
        for guard in GUARDS
    )
    return (
        "# The guards of root cause analysis\n\n"
        "Made by `make docs` from `apps/rca/guards.py`. A guard stands in the prompts of its\n"
        "families, marked with its number, whenever its condition holds.\n\n"
        "| guard | name | families | when | sentence |\n|---|---|---|---|---|\n"
        + "\n".join(lines)
        + "\n"
    )
