"""A failure of an invented product, told in full and barely, and how prompts are made of it."""

from pathlib import Path
from typing import Any

import interlock_rca as rca
from interlock.engine.case import Case
from interlock.runtime import prompts
from interlock.runtime.fence import PromptFence
from interlock.system.test_output import TestCounts
from interlock_rca.prompt_data.parameters import build_parameters
from interlock_rca.prompt_data.subject import PARAMETER_NAMES, PromptLimits, PromptSubject
from interlock_rca.records import (
    Checkout,
    Failure,
    Job,
    Launch,
    PriorCause,
    PriorKnowledge,
    Sibling,
    SymptomInfo,
    Ticket,
)
from interlock_rca.steps import FAMILIES, StepFamily
from interlock_rca.taxonomy import TAXONOMY
from tests.world.hostile import FENCE

PROMPTS = Path(str(rca.__file__)).parent / "prompts"
SHORTS = [family.short for family in FAMILIES]

FAILURE = Failure(
    id="f-1",
    test_name="harbour.tests.test_ledger.TestLedger.test_totals",
    class_name="harbour.tests.test_ledger.TestLedger",
    type="AssertionError",
    message="AssertionError: expected 40 berths, got 39",
    stack='File "tests/test_ledger.py", line 31, in test_totals\n'
    'File "harbour/ledger.py", line 88, in totals',
    log="10:00:01 INFO opening ledger\n10:00:02 WARN row 7 skipped: no mooring\n10:00:02 INFO done",
    launch="L-9",
    at="2024-05-03T10:00:00Z",
    ended_at="2024-05-03T10:00:03Z",
    attributes={"polarion_id": "HARB-12", "node": "worker-2"},
    job="ledger",
    path="nightly/ledger",
    file="tests/test_ledger.py",
    line=31,
    item_id=4711,
    url="https://portal.example/ui/#harbour/launches/all/9/4711",
    code_ref="tests/test_ledger.py::TestLedger::test_totals",
    issue_type="ti001",
    issue_comment="looked at by the night shift",
    tickets=(Ticket("HARB-77", "https://tracker.example/HARB-77"),),
)
LAUNCH = Launch(
    launch_id="L-9",
    name="nightly",
    number=9,
    status="FAILED",
    started_at="2024-05-03T09:58:00Z",
    ended_at="2024-05-03T10:28:00Z",
    ci_started_at="2024-05-03T09:57:00Z",
    ci_ended_at="2024-05-03T10:30:00Z",
    attributes={"ocp_version": "4.1", "os": "linux"},
    version="2.4",
    branch="release-2.4",
    commit="4f2a9c1",
    remote="https://git.example/harbour.git",
    url="https://portal.example/ui/#harbour/launches/all/9",
    ci_url="https://ci.example/job/9",
    tally=TestCounts(tests=50, failed=3, skipped=2),
    jobs=(
        Job(
            name="ledger",
            tally=TestCounts(tests=20, failed=2, skipped=1),
            started_at="2024-05-03T09:58:00Z",
            ended_at="2024-05-03T10:20:00Z",
            clock="testing",
        ),
    ),
)
REPOS = (
    Checkout(
        name="harbour",
        path="/src/harbour",
        commit="9c1d" * 10,
        last_green="07aa" * 10,
        purpose="the product",
        branch="release-2.4",
        url="https://git.example/harbour",
    ),
    Checkout(name="harbour-ci", path="/src/harbour-ci", purpose="CI configuration"),
)
SIBLINGS = (
    Sibling(
        id="f-2",
        name="test_moorings",
        parent_name="ledger",
        status="failed",
        error="AssertionError: row 7",
        issue_type="ti001",
        rca_id=7,
    ),
    Sibling(id="f-3", name="test_tides", parent_name="sea", status="failed"),
)
RCA = PriorCause(
    rca_id=7,
    title="Rows without mooring are dropped",
    description="totals() skips rows whose mooring is null.",
    defect_type="pb001",
    component="harbour/ledger",
    status="resolved",
    jira_link="https://tracker.example/HARB-70",
    affected_versions=("2.3",),
    resolved_at="2024-04-01T00:00:00Z",
    cases=2,
)
HISTORY = PriorKnowledge(
    symptoms=(
        SymptomInfo(
            symptom_id=12,
            name="totals differ",
            status="active",
            occurrence_count=4,
            first_seen="2024-03-01T00:00:00Z",
            last_seen="2024-04-20T00:00:00Z",
            error_pattern="expected <num> berths, got <num>",
            component="harbour/ledger",
            affected_versions=("2.3", "2.4"),
            environment={"os": "linux"},
            rca_ids=(7,),
            similarity=0.91,
        ),
    ),
    prior_rcas=(RCA,),
    failure_count=4,
    last_seen="2024-04-20T00:00:00Z",
    digest=(RCA,),
)
TRIAGE: dict[str, Any] = {
    "symptom_category": "product",
    "severity": "high",
    "defect_type_hypothesis": "pb001",
    "candidate_repos": ["harbour"],
    "skip_investigation": False,
    "clock_skew_suspected": False,
    "cascade_suspected": False,
    "data_quality_notes": "",
}
RESOLVE: dict[str, Any] = {
    "selected_repos": [
        {
            "name": "harbour",
            "focus_paths": ["harbour/ledger.py"],
            "reason": "the stack ends there",
        }
    ],
    "cross_ref_strategy": "",
}
INVESTIGATE: dict[str, Any] = {
    "rca_message": "totals() in harbour/ledger.py skips rows without mooring since 4f2a9c1.",
    "defect_type": "pb001",
    "component": "harbour/ledger",
    "convergence_score": 0.85,
    "evidence_refs": ["harbour:harbour/ledger.py:88"],
    "evidence": [
        {"ref": "harbour:harbour/ledger.py:88", "verdict": "found", "why": "line 88 exists"}
    ],
}
ANSWERS: dict[str, Any] = {
    "F0_RECALL": {"match": False, "confidence": 0.2, "reasoning": "another row"},
    "F1_TRIAGE": TRIAGE,
    "F2_RESOLVE": RESOLVE,
    "F3_INVESTIGATE": INVESTIGATE,
    "F4_CORRELATE": {"is_duplicate": False, "confidence": 0.3, "reasoning": "other code"},
    "F5_REVIEW": {"decision": "approve"},
}
RICH: dict[str, Any] = {
    "failure": FAILURE,
    "launch": LAUNCH,
    "repos": REPOS,
    "siblings": SIBLINGS,
    "siblings_total": 2,
    "history": HISTORY,
    "fence": FENCE,
}
BARE: dict[str, Any] = {
    "failure": Failure(id="f-1"),
    "launch": None,
    "repos": (),
    "siblings": (),
    "siblings_total": 0,
    "history": PriorKnowledge(),
    "fence": FENCE,
}
THRESHOLDS = {"max_reassess": 3}
"""What the circuit adds to the parameters, as far as templates read it."""


def family(short: str) -> StepFamily:
    return next(each for each in FAMILIES if each.short == short)


def case_at(short: str, *, all_answers: bool = False, **more: Any) -> Case:
    """A case on its first way to a step, with the answers of the steps before it."""
    at = SHORTS.index(short)
    known = ANSWERS if all_answers else {step: ANSWERS[step] for step in list(ANSWERS)[:at]}
    step = family(short).step
    return Case(**{"case_id": "17", "step": step, "visits": {step: 1}, "answers": known} | more)


def made(short: str, facts: dict[str, Any], case: Case | None = None) -> dict[str, Any]:
    known = {"taxonomy": TAXONOMY, "limits": PromptLimits(), **facts}
    wanted = known.pop("wanted", PARAMETER_NAMES)
    known["family"] = family(short)
    known["case"] = case or facts.get("case") or Case(case_id="17", step=family(short).step)
    known["fence"] = PromptFence(known["fence"], known["limits"].value)
    return build_parameters(PromptSubject(**known), wanted)


def template(short: str) -> str:
    return (PROMPTS / family(short).template).read_text(encoding="utf-8")


def rendered(short: str, facts: dict[str, Any], case: Case | None = None) -> str:
    """The whole prompt, through the machinery that fills prompts in a run."""
    loops = case.loops if case else {}
    known = {"loops": loops, "thresholds": THRESHOLDS, **made(short, facts, case)}
    return prompts._render_with_jinja(template(short), known, family(short).step)
