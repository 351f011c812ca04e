"""The records of root-cause analysis: failures, launches, findings, and earlier knowledge.

A `Failure` is a failed test as its source reports it, a `Launch` one execution of tests, `Findings`
everything known about a suite at a moment (reports need nothing else), `PriorKnowledge` what the
store knew before. Unknown parts are empty. Texts are the source's, cut to a bound at intake and
never cleaned: masking is for comparison only.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import msgspec

from interlock.system.test_output import FailedTest, TestCounts


class Ticket(msgspec.Struct, frozen=True):
    """An issue that somebody linked to a failure."""

    ticket_id: str
    url: str = ""


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """One test that failed in one launch."""

    id: str
    test_name: str = ""
    class_name: str = ""
    type: str = ""
    """The exception's or the assertion's type."""
    message: str = ""
    stack: str = ""
    log: str = ""
    log_truncated: bool = False
    launch: str = ""
    at: str = ""
    """The start of the test: RFC 3339."""
    ended_at: str = ""
    attributes: dict[str, str] = {}
    job: str = ""
    """The test suite or CI job it ran in."""
    path: str = ""
    """The names of its containers, outermost first, joined by the source."""
    file: str = ""
    line: int = 0
    item_id: int = 0
    """Its id in ReportPortal; 0 if none."""
    url: str = ""
    code_ref: str = ""
    issue_type: str = ""
    """A defect code from an earlier classification."""
    issue_comment: str = ""
    auto_analyzed: bool = False
    tickets: tuple[Ticket, ...] = ()


def build_failure(failed: FailedTest) -> Failure:
    """Return a failure from a console log, without launch and log."""
    return Failure(**msgspec.structs.asdict(failed))


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """One test suite or CI job of a launch."""

    name: str
    item_id: int = 0
    status: str = ""
    tally: TestCounts = TestCounts()
    started_at: str = ""
    ended_at: str = ""
    clock: str = ""
    """The clock of its times: executor, testing or sut; empty if unknown."""


class Launch(msgspec.Struct, frozen=True, kw_only=True):
    """One execution. `launch_id` is the source's own, or a hash of the content."""

    launch_id: str
    name: str = ""
    uuid: str = ""
    number: int = 0
    status: str = ""
    started_at: str = ""
    ended_at: str = ""
    ci_started_at: str = ""
    ci_ended_at: str = ""
    attributes: dict[str, str] = {}
    version: str = ""
    """The tested release or build; empty if unknown."""
    branch: str = ""
    commit: str = ""
    remote: str = ""
    url: str = ""
    ci_url: str = ""
    project: str = ""
    tally: TestCounts = TestCounts()
    jobs: tuple[Job, ...] = ()


class Repo(msgspec.Struct, frozen=True, kw_only=True):
    """A git repository that may hold the cause. Its purpose describes it to people and agents."""

    name: str
    path: str = ""
    purpose: str = ""
    role: str = ""
    """product, tests, infrastructure or mixed; guessed from its files unless declared."""
    branch: str = ""
    url: str = ""
    """The web address for links to commits."""
    remote: str = ""
    """The git remote from which workers on other hosts fetch it."""


class Checkout(Repo, frozen=True, kw_only=True):
    """A repository as seen for one launch."""

    commit: str = ""
    """The tested revision if known, else the newest."""
    last_green: str = ""
    """The commit that last passed."""


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """An agent's reference, and whether it exists."""

    ref: str
    verdict: str = "unchecked"
    """found, missing, or unchecked where there is no repository to look in."""
    why: str = ""
    url: str = ""


class Suspect(msgspec.Struct, frozen=True, kw_only=True):
    """A commit that may have brought the failure, with the reasons."""

    repo: str
    commit: str
    subject: str = ""
    author: str = ""
    at: str = ""
    files: tuple[str, ...] = ()
    added: int = 0
    removed: int = 0
    """Lines put in and taken away; both 0 if that is not known."""
    score: float = 0.0
    why: str = ""
    url: str = ""
    proof: str = ""
    """The result of running the test: `proven`, `cleared`, or empty."""
    touched: int = 0
    """The number of touched files; `files` holds the first of them."""
    near: bool = False
    """True if the failure itself points at something that it touched."""
    then: bool = False
    """True if it was suspected when the cause was seen before, and is not now."""


class PrintedFailure(msgspec.Struct, frozen=True):
    """A failure that a test runner printed."""

    name: str
    type: str = ""


class CommandRun(msgspec.Struct, frozen=True, kw_only=True):
    """One run of a command at one commit."""

    commit: str
    command: str
    at: float
    """Seconds since the epoch."""
    seconds: float = 0.0
    exit_code: int | None = None
    """Negative for a signal; None if it never ran, or was stopped."""
    stopped: str = ""
    """Why it was stopped, or could not be run; empty if it ended by itself."""
    timed_out: bool = False
    tests: int | None = None
    """How many tests its runner counted, if it printed that."""
    failed: tuple[PrintedFailure, ...] = ()
    tail: str = ""
    """Its last lines."""
    outcome: str = ""
    """pass, fail or skip, as the search took it."""
    why: str = ""
    """Why it was skipped."""


class Reproduction(msgspec.Struct, frozen=True, kw_only=True):
    """What running a test at single commits told about a family."""

    verdict: str
    """proven, flaky, not-reproduced, older, untestable, narrowed, spent or unknown-good."""
    sentence: str
    """The same in words, with the commits."""
    repo: str = ""
    case_id: str = ""
    """The case whose test was run for all of its family."""
    command: str = ""
    culprit: Suspect | None = None
    parent: str = ""
    candidates: tuple[str, ...] = ()
    """The commits that may be it, where the search could not decide."""
    runs: tuple[CommandRun, ...] = ()
    """Every run, in their order; those that decided have their last lines."""


class FindingStep(msgspec.Struct, frozen=True, kw_only=True):
    """One decision on a case's way."""

    step: str
    attempt: int
    at: str
    rule: str
    to: str
    why: str = ""
    read: Mapping[str, Any] = {}
    by: str = ""


class CaseFinding(msgspec.Struct, frozen=True, kw_only=True):
    """What is known about one case."""

    case_id: str
    case_no: int
    test_name: str
    class_name: str = ""
    job: str = ""
    launch_id: str = ""
    version: str = ""
    at: str = ""
    ended_at: str = ""
    url: str = ""
    error: str = ""
    stack: str = ""
    excerpt: str = ""
    """The lines of its log that say most."""
    status: str = "open"
    """open, triaged, investigated, reviewed or closed."""
    step: str = ""
    question_id: int = 0
    """The open question of a reviewer: `interlock answer 12 approve`."""
    stuck: str = ""
    """Why it stopped before its end, if it did."""
    category: str = ""
    triaged: str = ""
    """The category from triage, if a later look was unsure."""
    severity: str = ""
    defect_type: str = ""
    component: str = ""
    message: str = ""
    score: float | None = None
    evidence: tuple[Evidence, ...] = ()
    suspects: tuple[Suspect, ...] = ()
    reproduction: Reproduction | None = None
    """The result of running its test, or that of another in its family."""
    rca_id: int = 0
    symptom_id: int = 0
    seen: int = 1
    """The number of times its symptom was seen, this one included."""
    first_seen: str = ""
    last_seen: str = ""
    """The latest earlier sighting of its symptom."""
    resolved_at: str = ""
    """The time when its root cause was resolved, if it came back later."""
    recalled: bool = False
    inherited: bool = False
    """True if an earlier suite found its root cause, suspects and evidence."""
    regression: bool = False
    cascade: bool = False
    clock_skew: bool = False
    decision: str = ""
    """approve or overturn, once somebody has reviewed it."""
    reviewed_by: str = ""
    notes: tuple[str, ...] = ()
    draft: Mapping[str, Any] = {}
    """The Jira draft of F6."""
    trail: tuple[FindingStep, ...] = ()


class FindingFamily(msgspec.Struct, frozen=True, kw_only=True):
    """Cases with one cause. The first member represents the others."""

    family_id: str
    title: str
    members: tuple[str, ...]


class Findings(msgspec.Struct, frozen=True, kw_only=True):
    """The current state of a suite."""

    suite_id: int
    name: str
    made_at: str
    agent: str = ""
    launches: tuple[Launch, ...] = ()
    repos: tuple[Repo, ...] = ()
    thresholds: Mapping[str, float] = {}
    families: tuple[FindingFamily, ...] = ()
    cases: tuple[CaseFinding, ...] = ()
    brief_cases: int = 0
    """With over 20,000 cases: the number told without stack, log and decisions, because many of
    their family are told in full."""
    dispatches: int = 0
    tokens: int = 0
    money: float = 0.0


class SymptomInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A known symptom that may match a failure."""

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
    """Attributes of the launch in which it was last seen, for comparison."""
    rca_ids: tuple[int, ...] = ()
    similarity: float | None = None
    """Its likeness to this failure, 0 to 1, as computed."""
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
    """The store's knowledge about a failure. The likeliest symptom and root cause come first.
    `digest` holds this suite's root causes, the newest last."""

    symptoms: tuple[SymptomInfo, ...] = ()
    prior_rcas: tuple[PriorCause, ...] = ()
    failure_count: int = 0
    """How often this test failed before, with any symptom."""
    last_seen: str = ""
    digest: tuple[PriorCause, ...] = ()
    reproduction: str = ""
    """The result of running the test at single commits; empty if it was not run."""


class Sibling(msgspec.Struct, frozen=True, kw_only=True):
    """Another failure of the same launch."""

    id: str
    name: str = ""
    parent_name: str = ""
    status: str = ""
    at: str = ""
    error: str = ""
    """The first line of its message is enough."""
    issue_type: str = ""
    rca_id: int = 0


RangeKind = Literal[
    "last-pass",
    "other-variant",
    "born-red",
    "green-source",
    "merge-base",
    "previous",
    "unsteady",
    "none",
]
Confidence = Literal["high", "medium", "low", ""]


class TestRange(msgspec.Struct, frozen=True, kw_only=True):
    """The commits between which a test broke: `good`..`bad`."""

    __test__ = False

    kind: RangeKind
    reason: str
    """A sentence for people."""
    good: str = ""
    bad: str = ""
    good_at: int = -1
    """The number of first-parent commits from `good` to the tested one; -1 if it lies elsewhere."""
    bad_at: int = 0
    confidence: Confidence = ""

    @property
    def is_accusing(self) -> bool:
        """Return True if a commit of the range may be accused."""
        return bool(self.good)


def unite_ranges(ranges: Sequence[TestRange]) -> TestRange | None:
    """Return the tightest range that all agree on, from the newest pass to the oldest failure; None
    if they disagree. Unsteady tests are ignored; weak answers count only without better ones."""
    steady = [each for each in ranges if each.is_accusing and each.good_at >= 0]
    if not steady:
        return None
    rank = {"high": 0, "medium": 0, "low": 1, "": 2}
    best = min(rank[each.confidence] for each in steady)
    chosen = [each for each in steady if rank[each.confidence] == best]
    good = min(chosen, key=lambda each: each.good_at)
    bad = max(chosen, key=lambda each: each.bad_at)
    if good.good_at <= bad.bad_at:
        return None
    reason = good.reason
    if len(chosen) > 1 and (bad.bad, bad.bad_at) != (good.bad, good.bad_at):
        reason = (
            f"of {len(chosen)} tests with one cause, one still passed on {good.good[:12]} and one "
            f"failed on {bad.bad[:12]} already"
        )
    return msgspec.structs.replace(good, bad=bad.bad, bad_at=bad.bad_at, reason=reason)
