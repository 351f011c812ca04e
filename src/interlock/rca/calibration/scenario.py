"""A scenario: failures whose causes are known, and what a perfect agent would answer about them.

Knows the form of the labels. Refuses to know files, agents and scores. Field names are those of
the seeds' JSON form and are never renamed; what is ours beside them is said where it stands.
"""

import hashlib
from functools import cached_property
from typing import Literal

import msgspec

Split = Literal["", "train", "test"]
Number = int | str
"""An id that some files write as a number and some as a word."""


class RootCause(msgspec.Struct, frozen=True, kw_only=True):
    """What explains failures. `culprit` is ours: repo@id of the planted commit that brought it."""

    id: str
    title: str = ""
    description: str = ""
    defect_type: str = ""
    category: str = ""
    component: str = ""
    affected_versions: tuple[str, ...] = ()
    jira_id: str = ""
    required_keywords: tuple[str, ...] = ()
    keyword_threshold: int = 0
    relevant_repos: tuple[str, ...] = ()
    fix_prs: tuple[str, ...] = ()
    verified: bool = False
    smoking_gun: str = ""
    culprit: str = ""


class ScenarioSymptom(msgspec.Struct, frozen=True, kw_only=True):
    """A story that failures tell again and again."""

    id: str
    name: str = ""
    error_pattern: str = ""
    component: str = ""
    maps_to_rca: str = ""


class ExpectedRecall(msgspec.Struct, frozen=True, kw_only=True):
    match: bool = False
    prior_rca_id: Number = 0
    symptom_id: Number = 0
    confidence: float = 0.0


class ExpectedTriage(msgspec.Struct, frozen=True, kw_only=True):
    symptom_category: str = ""
    severity: str = ""
    defect_type_hypothesis: str = ""
    candidate_repos: tuple[str, ...] = ()
    skip_investigation: bool = False
    cascade_suspected: bool = False


class SelectedRepo(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    reason: str = ""


class ExpectedResolve(msgspec.Struct, frozen=True, kw_only=True):
    selected_repos: tuple[SelectedRepo, ...] = ()


class ExpectedInvest(msgspec.Struct, frozen=True, kw_only=True):
    rca_message: str = ""
    defect_type: str = ""
    component: str = ""
    convergence_score: float = 0.0
    evidence_refs: tuple[str, ...] = ()


class ExpectedCorrelate(msgspec.Struct, frozen=True, kw_only=True):
    is_duplicate: bool = False
    linked_rca_id: Number = 0
    confidence: float = 0.0
    cross_version_match: bool = False


class ExpectedReview(msgspec.Struct, frozen=True, kw_only=True):
    """`loop_target` is ours: where a case goes that is sent back."""

    decision: str = ""
    loop_target: str = ""


class LabelledCase(msgspec.Struct, frozen=True, kw_only=True):
    """One failed test and the truth about it. All after `rp_item_id` is ours."""

    id: str
    version: str = ""
    job: str = ""
    test_name: str = ""
    test_id: Number = ""
    error_message: str = ""
    log_snippet: str = ""
    symptom_id: str = ""
    rca_id: str = ""
    expected_path: tuple[str, ...] = ()
    expected_recall: ExpectedRecall | None = None
    expected_triage: ExpectedTriage | None = None
    expected_resolve: ExpectedResolve | None = None
    expected_invest: ExpectedInvest | None = None
    expected_correlate: ExpectedCorrelate | None = None
    expected_review: ExpectedReview | None = None
    expect_recall_hit: bool = False
    expect_skip: bool = False
    expect_cascade: bool = False
    expected_loops: int = 0
    rp_launch_id: Number = 0
    rp_item_id: Number = 0
    family: str = ""
    """Cases with one cause; if empty, those that share `rca_id`."""
    split: Split = ""
    verified: bool = False
    follows: str = ""
    """An earlier case that this one repeats, duplicates, or comes from."""
    first_invests: tuple[ExpectedInvest, ...] = ()
    """What a perfect agent says at earlier visits of F3; `expected_invest` is for the last."""
    first_reviews: tuple[ExpectedReview, ...] = ()
    """The same for F5."""


class ScenarioRepo(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    path: str = ""
    purpose: str = ""
    branch: str = ""
    relevant_to_rcas: tuple[str, ...] = ()
    is_red_herring: bool = False


class ScenarioRepos(msgspec.Struct, frozen=True, kw_only=True):
    repos: tuple[ScenarioRepo, ...] = ()


class PlantedCommit(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One commit of a planted repository. `id` is our own name for it and is not told to git."""

    author: str
    date: str
    message: str
    id: str = ""
    files: dict[str, str] = {}
    """Path -> the whole text from now on."""
    remove: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()


class Scenario(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """`cases` are scored, `candidates` are only kept in sight."""

    name: str
    description: str = ""
    rcas: tuple[RootCause, ...] = ()
    symptoms: tuple[ScenarioSymptom, ...] = ()
    cases: tuple[LabelledCase, ...] = ()
    candidates: tuple[LabelledCase, ...] = ()
    workspace: ScenarioRepos = ScenarioRepos()
    dry_capped_metrics: tuple[str, ...] = ()
    worlds: dict[str, tuple[PlantedCommit, ...]] = {}
    """Repository -> its history, oldest first."""

    @cached_property
    def causes(self) -> dict[str, RootCause]:
        return {cause.id: cause for cause in self.rcas}

    @cached_property
    def red_herrings(self) -> frozenset[str]:
        return frozenset(repo.name for repo in self.workspace.repos if repo.is_red_herring)

    @property
    def digest(self) -> str:
        """One word for all of it: results of other labels are not comparable."""
        return hashlib.sha256(msgspec.json.encode(self, order="sorted")).hexdigest()[:16]

    def cause_of(self, case: LabelledCase) -> RootCause | None:
        return self.causes.get(case.rca_id)

    def family_of(self, case: LabelledCase) -> str:
        """Cases without a cause are families of one."""
        return case.family or case.rca_id or f"alone:{case.id}"

    def of_split(self, split: Split) -> "Scenario":
        """The same scenario with the cases of one split alone."""
        kept = tuple(case for case in self.cases if case.split == split)
        return msgspec.structs.replace(self, cases=kept)
