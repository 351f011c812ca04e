"""The records of root cause analysis: failures, launches, findings, and what was known before.

A `Failure` is a failed test as its source tells it, a `Launch` one execution of tests, `Findings`
what is known about a suite when somebody asks (reports are made from that alone), `PriorKnowledge`
what the store knew already. Unknown parts are empty. Texts are what the source said, cut to a bound
where they come in and never cleaned: masking is for comparing, not keeping.
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
    """When it began: RFC 3339."""
    ended_at: str = ""
    attributes: dict[str, str] = {}
    job: str = ""
    """The test suite or CI job it ran in."""
    path: str = ""
    """The names of what holds it, outermost first, as the source joins them."""
    file: str = ""
    line: int = 0
    item_id: int = 0
    """Its id in ReportPortal; 0 where there is none."""
    url: str = ""
    code_ref: str = ""
    issue_type: str = ""
    """A defect code that somebody, or something, gave it before."""
    issue_comment: str = ""
    auto_analyzed: bool = False
    tickets: tuple[Ticket, ...] = ()


def build_failure(failed: FailedTest) -> Failure:
    """A failure as a console log tells it; of its launch and its log nothing is known yet."""
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
    """Whose clock its times are of: executor, testing or sut; empty if unknown."""


class Launch(msgspec.Struct, frozen=True, kw_only=True):
    """One execution. `launch_id` is the source's own; where it has none, a hash of the content."""

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
    """What was tested: a release, a build. Empty if unknown."""
    branch: str = ""
    commit: str = ""
    remote: str = ""
    url: str = ""
    ci_url: str = ""
    project: str = ""
    tally: TestCounts = TestCounts()
    jobs: tuple[Job, ...] = ()


class Repo(msgspec.Struct, frozen=True, kw_only=True):
    """A git repository that may hold the cause. Its purpose tells people and agents what it is."""

    name: str
    path: str = ""
    purpose: str = ""
    role: str = ""
    """product, tests, infrastructure or mixed; told by its files where nobody says so."""
    branch: str = ""
    url: str = ""
    """Where it can be browsed: commit links are made from it."""
    remote: str = ""
    """The git remote from which workers on other hosts fetch it."""


class Checkout(Repo, frozen=True, kw_only=True):
    """A repository as it is looked at for one launch."""

    commit: str = ""
    """The tested revision where it is known, else the newest."""
    last_green: str = ""
    """The commit that last passed."""


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """A reference an agent gave, and whether it was found where it points."""

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
    """By running the test: `proven`, `cleared`, or empty if that was not tried."""
    touched: int = 0
    """How many files it touched; `files` has the first of them."""
    near: bool = False
    """Whether the failure itself points at something that it touched."""
    then: bool = False
    """Whether it was suspected when the cause was seen before, and not now."""


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
    """One decision of a case's trail."""

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
    """What a reviewer answers, while one is asked: `interlock answer 12 approve`."""
    stuck: str = ""
    """Why it stopped before its end, if it did."""
    category: str = ""
    triaged: str = ""
    """The category of the first look, where a later one was not sure."""
    severity: str = ""
    defect_type: str = ""
    component: str = ""
    message: str = ""
    score: float | None = None
    evidence: tuple[Evidence, ...] = ()
    suspects: tuple[Suspect, ...] = ()
    reproduction: Reproduction | None = None
    """What running its test, or that of another of its family, told."""
    rca_id: int = 0
    symptom_id: int = 0
    seen: int = 1
    """How often its symptom was seen in all, this time included."""
    first_seen: str = ""
    last_seen: str = ""
    """When its symptom was seen before this time, the last of them."""
    resolved_at: str = ""
    """When its root cause was called resolved, if it came back after that."""
    recalled: bool = False
    inherited: bool = False
    """Its root cause, with suspects and evidence, was found in an earlier suite."""
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
    """Cases with one cause. The first member stands for the others."""

    family_id: str
    title: str
    members: tuple[str, ...]


class Findings(msgspec.Struct, frozen=True, kw_only=True):
    """A suite as it stands."""

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
    """Of more than 20,000 cases: how many are told without stack, log and decisions, because many
    of their family are told in full."""
    dispatches: int = 0
    tokens: int = 0
    money: float = 0.0


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
    reproduction: str = ""
    """What running the test at single commits told; empty if it was not run."""


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
    """Where to look for what broke a test: in `good`..`bad`."""

    __test__ = False

    kind: RangeKind
    reason: str
    """A sentence for people."""
    good: str = ""
    bad: str = ""
    good_at: int = -1
    """How many first-parent commits `good` lies before the tested one; -1 if it lies elsewhere."""
    bad_at: int = 0
    confidence: Confidence = ""

    @property
    def is_accusing(self) -> bool:
        """Whether a commit of the range may be accused."""
        return bool(self.good)


def unite_ranges(ranges: Sequence[TestRange]) -> TestRange | None:
    """The tightest range that all of these agree on: from the newest pass to the oldest failure.
    None if they do not agree. Of unsteady tests nothing is taken; weak answers only if there are no
    better ones."""
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
