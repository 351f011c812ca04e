"""Answer as the built-in analyst, and answer what needs no agent before one is asked.

Looks up history, siblings and repositories for the analyst, whose answers pass the same checks and
rules as any agent's. Also scores findings under review, so that a rule may approve them, and
recognizes set-up failures.
"""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from interlock.carriers.contract import Ask, Reply
from interlock.carriers.function import build_answer
from interlock.engine.case import Case
from interlock.journal.connection import Connection
from interlock_rca.analyst import answers
from interlock_rca.analyst.answers import CLEAR_SUSPECT, SuiteCause
from interlock_rca.analyst.chances import CulpritLead
from interlock_rca.analyst.similarity import Traits, decode_traits, score_similarity
from interlock_rca.check_answer import list_selected_repos
from interlock_rca.findings import limit_confidence, read_investigated_suspects, read_suspects
from interlock_rca.hooks import RcaHooks
from interlock_rca.intake import decode_failure
from interlock_rca.knowledge.causes import Rca, find_rca, list_suite_rcas
from interlock_rca.knowledge.reproductions import find_reproduction
from interlock_rca.knowledge.suites import (
    CasePosition,
    count_cases_of_rca,
    find_position,
    has_agreed_cause,
)
from interlock_rca.known_causes import KnownCauses, PriorMatch, build_recall_answer
from interlock_rca.lookups import FailureLookups
from interlock_rca.prompt_data.groups import find_skew
from interlock_rca.prompt_data.subject import ClockLimits
from interlock_rca.records import Failure, Reproduction
from interlock_rca.steps import F0, F1, F2, F3, F4, F5, F6, LINKED

_TO_INVESTIGATE = "unknown"
_SHARED = {
    "linked": "linked_rca_id",
    "duplicate": "linked_rca_id",
    "recalled": "prior_rca_id",
}
"""The context key that a rule adds when a case shares a root cause, and the field that names it."""


def compute_review_confidence(connection: Connection, case_no: int, case: Case) -> float | None:
    """Return the confidence in a finding from 0 to 1; None if only a human can judge. An unreviewed
    shared cause is no surer than its own confidence."""
    place = find_position(connection, case_no)
    cause = find_rca(connection, place.rca_id) if place and place.rca_id else None
    if cause is None:
        return _read_number(case.answers.get(F1, {}).get("confidence"))
    if cause.category == _TO_INVESTIGATE:
        return None
    sure = limit_confidence(
        cause.convergence_score, read_investigated_suspects(connection, cause.case_no)
    )
    if cause.case_no == case_no:
        return sure
    alike = _find_confidence(case, cause)
    if alike is None or has_agreed_cause(connection, cause.rca_id):
        return alike
    return min(alike, sure or 0.0)


def _find_confidence(case: Case, cause: Rca) -> float | None:
    """Return the confidence of the link between case and cause."""
    for name, place in _SHARED.items():
        link = case.context.get(name, {})
        if link.get(place) == cause.rca_id:
            return _read_number(link.get("confidence"))
    return None


def _read_number(value: Any) -> float | None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number else None


_SET_UP = re.compile(
    r"\b(?:setUp(?:Class|Module|TestData|Suite)?|setup_(?:class|module|method|function|session)"
    r"|before(?:All|Each|Suite|Class|Test|Method)|Before(?:All|Each|Suite|Class)|OneTimeSetUp"
    r"|SetUpSuite|SetupSuite|SetupTest|globalSetup|TestMain|ClassInitialize|AssemblyInitialize"
    r"|class_setup|suite setup|initializationError|fixture)\b",
    re.IGNORECASE,
)
_LOOKED_AT = 20_000


def is_setup_failure(failure: Failure) -> bool:
    """Return True if the failure happened in the set-up before the test."""
    texts = (failure.test_name, failure.message[:_LOOKED_AT], failure.stack[:_LOOKED_AT])
    return any(_SET_UP.search(text) for text in texts)


def _review_by_run(ask: Ask, ran: Reproduction) -> Reply | None:
    """Approve a finding that a run has proven; leave it to a human if a run contradicts it."""
    if ran.verdict != "proven":
        return None
    data = {"decision": "approve", "comment": ran.sentence}
    return build_answer(ask, data, by="rule: proven by running")


def _is_same_kind(one: Traits, other: Traits) -> bool:
    """Return True if two failures share an error type and test class, or a place."""
    same_place = bool(one.innermost) and one.innermost == other.innermost
    told = one.type and one.class_name
    return same_place or bool(
        told and one.type == other.type and one.class_name == other.class_name
    )


def _has_clear_lead(leads: Sequence[CulpritLead], looked_into: Collection[str]) -> bool:
    """Return True if a commit outside these repositories stands out."""
    first = next(iter(leads), None)
    return first is not None and first.score >= CLEAR_SUSPECT and first.repo not in looked_into


_LOOKS = 3
"""The most times an investigation looks: at the first place, another, and the first again."""
_CASCADE = 3
"""The number of siblings at which a broken set-up is a cascade."""


class BuiltinAnalyst:
    """Answers the asks of one run."""

    def __init__(self, hooks: RcaHooks, thresholds: Mapping[str, Any]) -> None:
        self._hooks = hooks
        self._sure = float(thresholds["convergence_sufficient"])
        self._lookups = FailureLookups(hooks)
        self._known_causes = KnownCauses(hooks.connection)
        self._traits: dict[int, Traits | None] = {}
        self._steps: dict[str, Callable[[Ask, Case, Failure], dict[str, Any]]] = {
            F0: self._answer_recall,
            F1: self._answer_triage,
            F2: self._answer_resolve,
            F3: self._answer_investigate,
            F4: self._answer_correlate,
            F6: self._answer_report,
        }

    def answer_as_analyst(self, ask: Ask) -> Reply | None:
        """Return the built-in analyst's answer."""
        linked = self._answer_linked(ask)
        if linked is not None or ask.case is None or ask.step not in self._steps:
            return linked
        failure = decode_failure(ask.case.case_id, ask.case.input)
        return build_answer(ask, self._steps[ask.step](ask, ask.case, failure))

    def answer_without_agent(self, ask: Ask) -> Reply | None:
        """Return an answer that needs no agent, or None: for members of a family whose
        representative was approved, and for failures unlike any known cause."""
        if ask.step == F0 and self._hooks.config.recall_first and ask.case is not None:
            place = find_position(self._hooks.connection, ask.case_no)
            near = self._known_causes.find_matches(place) if place else []
            asked = any(memory.rcas for memory in near)
            return (
                None if asked else build_answer(ask, build_recall_answer(self._find_matches(ask)))
            )
        if ask.step in (F5, F6) and ask.case is not None:
            return self._answer_with_family(ask, ask.case)
        return self._answer_linked(ask)

    def _answer_with_family(self, ask: Ask, case: Case) -> Reply | None:
        """Return the review or report of a member that shares its representative's approved
        cause."""
        other = case.context.get(LINKED, {}).get("representative", "")
        own = self._hooks.find_position(ask.case_no)
        cause = find_rca(self._hooks.connection, own.rca_id) if own and own.rca_id else None
        if cause is None or cause.case_no != self._hooks.number_of.get(other):
            return None
        if ask.step == F6:
            return build_answer(
                ask, self._answer_report(ask, case, decode_failure(case.case_id, case.input))
            )
        again = case.visits.get(F5, 0) > 1 or self._hooks.config.review != "dispatch"
        if again or not has_agreed_cause(self._hooks.connection, cause.rca_id):
            return None
        return build_answer(ask, {"decision": "approve", "comment": f"reviewed with {other}"})

    def approve_by_rule(self, ask: Ask) -> Reply | None:
        """Approve findings that are sure enough; return None to leave the case to a human."""
        if ask.case is None or ask.step != F5:
            return None
        ran = self._find_reproduction(ask.case_no)
        if ran is not None:
            return _review_by_run(ask, ran)
        score = compute_review_confidence(self._hooks.connection, ask.case_no, ask.case)
        least = self._hooks.config.review_above
        if score is None or score < least:
            return None
        data = {
            "decision": "approve",
            "comment": f"approved by rule: {score:.2f} is at least {least:.2f}",
        }
        return build_answer(ask, data, by=f"rule: score {score:.2f} >= {least:.2f}")

    def _find_reproduction(self, case_no: int) -> Reproduction | None:
        own = self._hooks.find_position(case_no)
        connection = self._hooks.connection
        return find_reproduction(connection, own.suite_id, own.rca_id) if own else None

    def _answer_linked(self, ask: Ask) -> Reply | None:
        """Return the signal by which a member takes over the finding of its family, once."""
        found = self._hooks.find_takeover(ask.case_no, ask.case) if ask.case else None
        return build_answer(ask, {"signal": LINKED, "data": found}) if found else None

    def _answer_recall(self, ask: Ask, case: Case, failure: Failure) -> dict[str, Any]:
        return build_recall_answer(self._find_matches(ask))

    def _find_matches(self, ask: Ask) -> list[PriorMatch]:
        place = find_position(self._hooks.connection, ask.case_no)
        launch = self._hooks.find_launch(ask.case_no)
        version = launch.version if launch else ""
        found: list[PriorMatch] = []
        for memory in self._known_causes.find_matches(place) if place else ():
            cause = memory.rcas[0] if memory.agreed else None
            versions = cause.affected_versions if cause else ()
            found.append(
                PriorMatch(
                    symptom_id=memory.symptom.symptom_id,
                    name=memory.symptom.name,
                    likeness=memory.likeness,
                    why=memory.why,
                    is_exact=memory.exact,
                    is_dormant=memory.symptom.status == "dormant",
                    is_resolved=memory.symptom.status == "resolved"
                    or bool(cause and cause.status in ("resolved", "verified")),
                    passed_since=cause is not None and self._has_passed_since(ask, cause),
                    seen=memory.symptom.occurrence_count,
                    rca_id=cause.rca_id if cause else 0,
                    title=cause.title if cause else "",
                    is_other_version=bool(version and versions and version not in versions),
                )
            )
        return found

    def _has_passed_since(self, ask: Ask, cause: Rca) -> bool:
        """Return True if the tests passed with this cause's commit: something has brought it back
        since."""
        first = next(iter(self._lookups.list_suspects(cause)), None)
        if first is None or first.score < CLEAR_SUSPECT or self._lookups.is_unsteady(ask):
            return False
        found = self._lookups.find_range(ask, first.repo)
        return self._hooks.workspace.has_passed_with(first.repo, first.commit, found)

    def _answer_triage(self, ask: Ask, case: Case, failure: Failure) -> dict[str, Any]:
        kind = self._lookups.find_kind(ask, failure)
        if kind.confidence < answers.SURE_KIND_SCORE and self._lookups.is_first_of_family(ask):
            kind = self._lookups.find_kind_by_leads(ask, failure)
        size = self._hooks.count_family(case.case_id)
        cascade = size - 1 if size >= _CASCADE and is_setup_failure(failure) else 0
        launch = self._hooks.find_launch(ask.case_no)
        signs = find_skew(failure, launch, ClockLimits()).warning
        where = self._lookups.find_candidate_repos(ask, failure, kind.category, kind.confidence)
        return answers.build_triage_answer(
            kind, where, cascade=cascade, skew=signs, failure=failure
        )

    def _answer_resolve(self, ask: Ask, case: Case, failure: Failure) -> dict[str, Any]:
        triage = case.answers.get(F1, {})
        category = triage.get("symptom_category", "unknown")
        sureness = _read_number(triage.get("confidence")) or 0.0
        tried = (
            {each["name"] for each in list_selected_repos(case.context)}
            if F3 in case.answers
            else set()
        )
        known = list(self._hooks.workspace.repositories)
        return answers.build_resolve_answer(
            self._lookups.find_repos(ask, failure, category, sureness), known, tried
        )

    def _answer_investigate(self, ask: Ask, case: Case, failure: Failure) -> dict[str, Any]:
        repos = list_selected_repos(case.context)
        done = len(case.context.get("findings", ()))
        name = repos[min(done, len(repos) - 1)]["name"] if repos else ""
        looked_into = {each["name"] for each in repos}
        repository = self._hooks.workspace.repositories.get(name)
        leads = self._lookups.find_leads(ask, failure)
        found = [lead for lead in leads if lead.repo == name]
        count = len(self._lookups.list_commits(ask, name))
        span = self._lookups.find_range(ask, name)
        commits = [lead.commit for lead in found[:5]] if repository else []
        urls = {each.hash: repository.build_commit_url(each.hash) for each in commits if repository}
        sizes = {
            each.hash: size
            for each in commits
            if repository and (size := repository.count_changed_lines(each))
        }
        kind = self._lookups.find_kind_by_leads(ask, failure)
        search = answers.RepositorySearch(
            repo=name,
            leads=found,
            spots=self._lookups.locate_frames(ask, failure, name),
            looked_at=count,
            urls=urls,
            sizes=sizes,
            history=span.reason if span else "",
            is_bounded=not repository or self._hooks.workspace.is_bounded(repository, span),
            is_exhausted=ask.attempt >= _LOOKS or not _has_clear_lead(leads, looked_into),
        )
        return answers.build_investigate_answer(failure, search, kind)

    def _answer_correlate(self, ask: Ask, case: Case, failure: Failure) -> dict[str, Any]:
        own = find_position(self._hooks.connection, ask.case_no)
        mine = case.answers.get(F3, {})
        others = (
            [self._build_suite_cause(each, own) for each in self._list_earlier_causes(own)]
            if own and not self._lookups.is_unsteady(ask)  # it would be blamed on their commits
            else []
        )
        score = mine.get("convergence_score", 0.0)
        return answers.build_correlate_answer(read_suspects(mine), score, others, self._sure)

    def _list_earlier_causes(self, own: CasePosition) -> list[Rca]:
        """Return the causes of the suite that are older than the case's own, so that no two take
        over each other's."""
        found = list_suite_rcas(self._hooks.connection, own.suite_id)
        return [
            each
            for each in found
            if each.status != "archived" and own.rca_id and each.rca_id < own.rca_id
        ]

    def _read_traits(self, case_no: int) -> Traits | None:
        """Return the traits of a case that stands for a cause, for comparison with all others."""
        if case_no not in self._traits:
            place = find_position(self._hooks.connection, case_no)
            self._traits[case_no] = decode_traits(place.features) if place else None
        return self._traits[case_no]

    def _build_suite_cause(self, cause: Rca, own: CasePosition) -> SuiteCause:
        mine, theirs = self._read_traits(own.case_no), self._read_traits(cause.case_no)
        alike = score_similarity(mine, theirs) if mine and theirs else 0.0
        return SuiteCause(
            rca_id=cause.rca_id,
            title=cause.title,
            likeness=alike,
            suspects=self._lookups.list_suspects(cause),
            score=cause.convergence_score or 0.0,
            versions=cause.affected_versions,
            is_same_kind=bool(mine and theirs and _is_same_kind(mine, theirs)),
        )

    def _answer_report(self, ask: Ask, case: Case, failure: Failure) -> dict[str, Any]:
        own = find_position(self._hooks.connection, ask.case_no)
        cause = find_rca(self._hooks.connection, own.rca_id) if own and own.rca_id else None
        triage = case.answers.get(F1, {})
        members = count_cases_of_rca(self._hooks.connection, cause.rca_id) if cause else 1
        ran = self._find_reproduction(ask.case_no)
        words = (cause.description if cause else failure.message, ran and ran.sentence)
        finding = answers.ReportedFinding(
            message=" ".join(each for each in words if each),
            defect_type=cause.defect_type if cause else "ti001",
            component=cause.component if cause else "",
            evidence=[each["ref"] for each in cause.evidence] if cause else (),
            versions=[label for label in cause.affected_versions if label] if cause else (),
            tests=members,
        )
        return answers.build_report_answer(failure, finding, triage.get("severity", ""))
