"""Findings: what is known about a suite when somebody asks, ready to be shown.

Read back from the store; a report is made from this and from nothing else.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from interlock.rca.launch import Launch, Repo


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
    dispatches: int = 0
    tokens: int = 0
    money: float = 0.0
