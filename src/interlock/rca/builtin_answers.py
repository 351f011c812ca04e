"""What Interlock answers by itself: as the built-in analyst, and before any agent is asked.

Looks up what the analyst needs (history, siblings, repositories) and hands it over; what the
analyst makes of it goes through the same checks and rules as any agent's answer. Also says how sure
a finding under review is, so that a rule may approve it, and recognises failures in a set-up.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any

from sqlalchemy import Connection

from interlock.agents.carrier import Ask, Reply
from interlock.agents.function import answer
from interlock.engine.case import Case
from interlock.rca.analyst import answers
from interlock.rca.analyst.answers import Prior
from interlock.rca.analyst.repo_choice import by_lead
from interlock.rca.analyst.similarity import likeness, restored
from interlock.rca.check_answer import selected_repos
from interlock.rca.clues import Clues
from interlock.rca.findings import suspects_in
from interlock.rca.hooks import RcaHooks
from interlock.rca.intake import failure_of
from interlock.rca.knowledge.causes import Rca, rca, rcas_of_suite
from interlock.rca.knowledge.suites import CasePosition, agreed, place_of, shared_by
from interlock.rca.known_causes import KnownCauses, PriorMatch, recall_answer
from interlock.rca.prompt_data.groups import find_skew
from interlock.rca.prompt_data.subject import ClockLimits
from interlock.rca.records import Failure
from interlock.rca.steps import F0, F1, F2, F3, F4, F5, F6, LINKED

_TO_INVESTIGATE = "unknown"
_SHARED = {
    "linked": "linked_rca_id",
    "duplicate": "linked_rca_id",
    "recalled": "prior_rca_id",
}
"""What a rule adds when a case shares a root cause, and where that names it."""


def sureness(connection: Connection, case_no: int, case: Case) -> float | None:
    """From 0 to 1; None if only a human can say. A shared cause that nobody has agreed with yet is
    not surer than it is itself."""
    place = place_of(connection, case_no)
    cause = rca(connection, place.rca_id) if place and place.rca_id else None
    if cause is None:
        return _number(case.answers.get(F1, {}).get("confidence"))
    if cause.category == _TO_INVESTIGATE:
        return None
    if cause.case_no == case_no:
        return cause.convergence_score
    alike = _likeness(case, cause)
    if alike is None or agreed(connection, cause.rca_id):
        return alike
    return min(alike, cause.convergence_score or 0.0)


def _likeness(case: Case, cause: Rca) -> float | None:
    """How sure it was that the case has that cause."""
    for name, place in _SHARED.items():
        link = case.context.get(name, {})
        if link.get(place) == cause.rca_id:
            return _number(link.get("confidence"))
    return None


def _number(value: Any) -> float | None:
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


def fails_in_set_up(failure: Failure) -> bool:
    """Whether the failure speaks of the set-up before the test."""
    texts = (failure.test_name, failure.message[:_LOOKED_AT], failure.stack[:_LOOKED_AT])
    return any(_SET_UP.search(text) for text in texts)


_CASCADE = 3
"""From so many siblings on, a broken set-up is a cascade."""


class BuiltinAnalyst:
    """Answers asks of one run."""

    def __init__(self, casework: RcaHooks, thresholds: Mapping[str, Any]) -> None:
        self._work = casework
        self._sure = float(thresholds["convergence_sufficient"])
        self._clues = Clues(casework, self._sure)
        self._lore = KnownCauses(casework.connection)
        self._steps: dict[str, Callable[[Ask, Case, Failure], dict[str, Any]]] = {
            F0: self._recall,
            F1: self._triage,
            F2: self._resolve,
            F3: self._investigate,
            F4: self._correlate,
            F6: self._draft,
        }

    def basic(self, ask: Ask) -> Reply | None:
        """The built-in analyst's answer."""
        linked = self._linked(ask)
        if linked is not None or ask.case is None or ask.step not in self._steps:
            return linked
        failure = failure_of(ask.case.case_id, ask.case.input)
        return answer(ask, self._steps[ask.step](ask, ask.case, failure))

    def first(self, ask: Ask) -> Reply | None:
        """What needs no agent, whoever the agents are: a family's other members, also their review
        and report once the one that stands for them was approved, and failures near which no root
        cause is known."""
        if ask.step == F0 and self._work.terms.recall_first and ask.case is not None:
            place = place_of(self._work.connection, ask.case_no)
            near = self._lore.memories(place) if place else []
            asked = any(memory.rcas for memory in near)
            return None if asked else answer(ask, recall_answer(self._memories(ask)))
        if ask.step in (F5, F6) and ask.case is not None:
            return self._with_its_family(ask, ask.case)
        return self._linked(ask)

    def _with_its_family(self, ask: Ask, case: Case) -> Reply | None:
        """The review and the report of a member whose cause is that of the case that stands for it,
        and approved."""
        other = case.context.get(LINKED, {}).get("representative", "")
        own = self._work.place(ask.case_no)
        cause = rca(self._work.connection, own.rca_id) if own and own.rca_id else None
        if cause is None or cause.case_no != self._work.number_of.get(other):
            return None
        if ask.step == F6:
            return answer(ask, self._draft(ask, case, failure_of(case.case_id, case.input)))
        again = case.visits.get(F5, 0) > 1 or self._work.terms.review != "dispatch"
        if again or not agreed(self._work.connection, cause.rca_id):
            return None
        return answer(ask, {"decision": "approve", "comment": f"reviewed with {other}"})

    def review(self, ask: Ask) -> Reply | None:
        """An approval by rule, for findings sure enough; None leaves it to a human."""
        if ask.case is None or ask.step != F5:
            return None
        score = sureness(self._work.connection, ask.case_no, ask.case)
        least = self._work.terms.review_above
        if score is None or score < least:
            return None
        data = {
            "decision": "approve",
            "comment": f"approved by rule: {score:.2f} is at least {least:.2f}",
        }
        return answer(ask, data, by=f"rule: score {score:.2f} >= {least:.2f}")

    def _linked(self, ask: Ask) -> Reply | None:
        """A member takes over what was found for another of its family, once."""
        found = self._work.takes_over(ask.case_no, ask.case) if ask.case else None
        return answer(ask, {"signal": LINKED, "data": found}) if found else None

    def _recall(self, ask: Ask, case: Case, failure: Failure) -> dict[str, Any]:
        return recall_answer(self._memories(ask))

    def _memories(self, ask: Ask) -> list[PriorMatch]:
        place = place_of(self._work.connection, ask.case_no)
        launch = self._work.launch(ask.case_no)
        version = launch.version if launch else ""
        found: list[PriorMatch] = []
        for memory in self._lore.memories(place) if place else ():
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
                    seen=memory.symptom.occurrence_count,
                    rca_id=cause.rca_id if cause else 0,
                    title=cause.title if cause else "",
                    is_other_version=bool(version and versions and version not in versions),
                )
            )
        return found

    def _triage(self, ask: Ask, case: Case, failure: Failure) -> dict[str, Any]:
        kind = self._clues.kind(ask, failure)
        kin = self._work.kin_of(case.case_id)
        cascade = kin - 1 if kin >= _CASCADE and fails_in_set_up(failure) else 0
        launch = self._work.launch(ask.case_no)
        signs = find_skew(failure, launch, ClockLimits()).warning
        where = self._clues.candidates(ask, failure, kind.category)
        return answers.triage_answer(kind, where, cascade=cascade, skew=signs, failure=failure)

    def _resolve(self, ask: Ask, case: Case, failure: Failure) -> dict[str, Any]:
        category = case.answers.get(F1, {}).get("symptom_category", "unknown")
        tried = (
            {each["name"] for each in selected_repos(case.context)} if F3 in case.answers else set()
        )
        known = list(self._work.workspace.repositories)
        return answers.resolve_answer(self._clues.where(ask, failure, category), known, tried)

    def _investigate(self, ask: Ask, case: Case, failure: Failure) -> dict[str, Any]:
        repos = selected_repos(case.context)
        done = len(case.context.get("findings", ()))
        name = repos[min(done, len(repos) - 1)]["name"] if repos else ""
        repository = self._work.workspace.repositories.get(name)
        found = self._clues.leads(ask, failure, name)
        count = (
            len(self._work.workspace.commits(repository, self._work.launch(ask.case_no)))
            if repository
            else 0
        )
        commits = [lead.commit for lead in found[:5]] if repository else []
        urls = {each.hash: repository.commit_url(each.hash) for each in commits if repository}
        sizes = {
            each.hash: size
            for each in commits
            if repository and (size := repository.lines_changed(each))
        }
        kind = by_lead(self._clues.kind(ask, failure), next(iter(found), None))
        return answers.investigate_answer(
            failure,
            name,
            found,
            self._clues.spots(ask, failure, name),
            kind,
            looked_at=count,
            urls=urls,
            sizes=sizes,
        )

    def _correlate(self, ask: Ask, case: Case, failure: Failure) -> dict[str, Any]:
        own = place_of(self._work.connection, ask.case_no)
        mine = case.answers.get(F3, {})
        commits = [each.commit for each in suspects_in(mine)]
        others = [self._prior(each, own) for each in self._earlier(own)] if own else []
        score = mine.get("convergence_score", 0.0)
        return answers.correlate_answer(commits, score, others, self._sure)

    def _earlier(self, own: CasePosition) -> list[Rca]:
        """Causes of the suite that are older than the case's own: so no two take over each
        other's."""
        found = rcas_of_suite(self._work.connection, own.suite_id)
        return [
            each
            for each in found
            if each.status != "archived" and own.rca_id and each.rca_id < own.rca_id
        ]

    def _prior(self, cause: Rca, own: CasePosition) -> Prior:
        other = place_of(self._work.connection, cause.case_no)
        alike = likeness(restored(own.features), restored(other.features)).score if other else 0.0
        return Prior(
            rca_id=cause.rca_id,
            title=cause.title,
            likeness=alike,
            commits=tuple(self._clues.suspected(cause)),
            score=cause.convergence_score or 0.0,
            versions=cause.affected_versions,
        )

    def _draft(self, ask: Ask, case: Case, failure: Failure) -> dict[str, Any]:
        own = place_of(self._work.connection, ask.case_no)
        cause = rca(self._work.connection, own.rca_id) if own and own.rca_id else None
        triage = case.answers.get(F1, {})
        members = shared_by(self._work.connection, cause.rca_id) if cause else 1
        return answers.draft_answer(
            failure,
            message=cause.description if cause else failure.message,
            defect_type=cause.defect_type if cause else "ti001",
            severity=triage.get("severity", ""),
            component=cause.component if cause else "",
            evidence=[each["ref"] for each in cause.evidence] if cause else (),
            versions=[label for label in cause.affected_versions if label] if cause else (),
            members=members,
        )
