"""Analysis: what Interlock answers by itself, for the built-in analyst and before any agent is
asked.

Looks up what the analyst needs (history, siblings, repositories) and hands it over. What the
analyst makes of it goes through the same guards and rules as any agent's word.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

from interlock.analyst import answers
from interlock.analyst.answers import Kind, Prior, Where
from interlock.analyst.culprit import Lead, Spot, leads, spots
from interlock.analyst.likeness import likeness, restored
from interlock.analyst.memory import Memory, recall_answer
from interlock.analyst.places import (
    best_of,
    by_changes,
    by_lead,
    by_new_line,
    by_place,
    by_stack,
    by_use,
)
from interlock.analyst.setup_failure import fails_in_set_up
from interlock.analyst.triage import triage
from interlock.apps.rca.clocks import ClockLimits, find_skew
from interlock.apps.rca.examine import selected_repos
from interlock.apps.rca.failure import Failure
from interlock.apps.rca.launch import Repo
from interlock.apps.rca.steps import F0, F1, F2, F3, F4, F5, F6, LINKED
from interlock.casework.application import Casework
from interlock.casework.approval import sureness
from interlock.casework.ballot import Ballot
from interlock.casework.findings import suspects_in
from interlock.casework.lore import Lore
from interlock.core.case import Case
from interlock.dispatch.carrier import Ask, Reply
from interlock.dispatch.program import answer
from interlock.store.knowledge import Rca, rca, rcas_of_suite
from interlock.store.looks import Place, agreed, place_of
from interlock.store.runs import journal_of
from interlock.store.suites import cases_by_rca

UNSURE = "ti001"
_CASCADE = 3
"""From so many siblings on, a broken set-up is a cascade."""


class Analysis:
    """Answers asks of one run."""

    def __init__(self, casework: Casework, thresholds: Mapping[str, Any]) -> None:
        self._work = casework
        self._thresholds = thresholds
        self._lore = Lore(casework.connection)
        self._leads: dict[tuple[int, str, bool], list[Lead]] = {}
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
        failure = self._work.failure(ask.case_no, ask.case)
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
            return answer(ask, self._draft(ask, case, self._work.failure(ask.case_no, case)))
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

    def _memories(self, ask: Ask) -> list[Memory]:
        place = place_of(self._work.connection, ask.case_no)
        launch = self._work.launch(ask.case_no)
        version = launch.version if launch else ""
        found: list[Memory] = []
        for memory in self._lore.memories(place) if place else ():
            cause = memory.rcas[0] if memory.agreed else None
            versions = cause.affected_versions if cause else ()
            found.append(
                Memory(
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
        kind = self._kind(ask, failure)
        kin = self._work.kin_of(case.case_id)
        cascade = kin - 1 if kin >= _CASCADE and fails_in_set_up(failure) else 0
        launch = self._work.launch(ask.case_no)
        signs = find_skew(failure, launch, ClockLimits()).warning
        where = self._candidates(ask, failure, kind.category)
        return answers.triage_answer(kind, where, cascade=cascade, skew=signs, failure=failure)

    def _candidates(self, ask: Ask, failure: Failure, category: str) -> list[Where]:
        """Repositories worth a look. A stack that never leaves the tests says nothing about where
        a fault of the product is: then those for that use are candidates, too."""
        repositories = self._work.workspace.repositories
        found = {name: self._spots(ask, failure, name) for name in repositories}
        told = [by_stack(one.repo, found[name], category) for name, one in repositories.items()]
        inside = any(not spot.is_test for spots in found.values() for spot in spots)
        if inside or category == "automation":
            return best_of(told)
        fitting = [by_use(one.repo, category) for one in repositories.values()]
        return best_of(fitting if any(fitting) else told)

    def _kind(self, ask: Ask, failure: Failure) -> Kind:
        """The kind by the words of the failure; where it breaks may tell more than they do."""
        found = self._ballot.kind_of(ask.case_no) or triage(failure)
        kind = Kind(
            category=found.category,
            code=self._work.taxonomy.code_of(found.category) or UNSURE,
            confidence=found.confidence,
            why="; ".join(found.reasons[:3]) or "nothing speaks for any kind",
        )
        innermost = self._innermost(ask, failure)
        return self._if_new(ask, by_place(kind, failure, innermost), innermost)

    def _if_new(self, ask: Ask, kind: Kind, innermost: tuple[Repo, Spot] | None) -> Kind:
        """The environment is not to blame for a line that was not there when it last passed."""
        if innermost is None or kind.category != "infra":
            return kind
        repo, spot = innermost
        launch = self._work.launch(ask.case_no)
        commit = self._work.workspace.new_by(repo.name, launch, spot.path, spot.line)
        return by_new_line(kind, spot, commit)

    @cached_property
    def _ballot(self) -> Ballot:
        return Ballot(self._work.looks())

    def _innermost(self, ask: Ask, failure: Failure) -> tuple[Repo, Spot] | None:
        """The repository in which the stack is deepest, and where."""
        found = [
            (spot.depth, name, spot)
            for name in self._work.workspace.repositories
            for spot in self._spots(ask, failure, name)
        ]
        if not found:
            return None
        _, name, spot = min(found, key=lambda each: (each[0], -each[2].shared, each[1]))
        return self._work.workspace.repositories[name].repo, spot

    def _where(self, ask: Ask, failure: Failure, category: str) -> list[Where]:
        places: list[Where | None] = []
        for name, one in self._work.workspace.repositories.items():
            places.append(by_stack(one.repo, self._spots(ask, failure, name), category))
            places.append(by_changes(one.repo, self._leads_of(ask, failure, name), category))
        return best_of(places)

    def _resolve(self, ask: Ask, case: Case, failure: Failure) -> dict[str, Any]:
        category = case.answers.get(F1, {}).get("symptom_category", "unknown")
        tried = (
            {each["name"] for each in selected_repos(case.context)} if F3 in case.answers else set()
        )
        known = list(self._work.workspace.repositories)
        return answers.resolve_answer(self._where(ask, failure, category), known, tried)

    def _investigate(self, ask: Ask, case: Case, failure: Failure) -> dict[str, Any]:
        repos = selected_repos(case.context)
        done = len(case.context.get("findings", ()))
        name = repos[min(done, len(repos) - 1)]["name"] if repos else ""
        repository = self._work.workspace.repositories.get(name)
        found = self._leads_of(ask, failure, name)
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
        kind = by_lead(self._kind(ask, failure), next(iter(found), None))
        return answers.investigate_answer(
            *(failure, name, found, self._spots(ask, failure, name), kind),
            looked_at=count,
            urls=urls,
            sizes=sizes,
        )

    def _correlate(self, ask: Ask, case: Case, failure: Failure) -> dict[str, Any]:
        own = place_of(self._work.connection, ask.case_no)
        mine = case.answers.get(F3, {})
        commits = [each.commit for each in suspects_in(mine)]
        others = [self._prior(each, own) for each in self._earlier(own)] if own else []
        sure = float(self._thresholds["convergence_sufficient"])
        return answers.correlate_answer(commits, mine.get("convergence_score", 0.0), others, sure)

    def _earlier(self, own: Place) -> list[Rca]:
        """Causes of the suite that are older than the case's own: so no two take over each
        other's."""
        found = rcas_of_suite(self._work.connection, own.suite_id)
        return [
            each
            for each in found
            if each.status != "archived" and own.rca_id and each.rca_id < own.rca_id
        ]

    def _prior(self, cause: Rca, own: Place) -> Prior:
        other = place_of(self._work.connection, cause.case_no)
        alike = likeness(restored(own.features), restored(other.features)).score if other else 0.0
        return Prior(
            rca_id=cause.rca_id,
            title=cause.title,
            likeness=alike,
            commits=tuple(self._suspected(cause)),
            score=cause.convergence_score or 0.0,
            versions=cause.affected_versions,
        )

    def _draft(self, ask: Ask, case: Case, failure: Failure) -> dict[str, Any]:
        own = place_of(self._work.connection, ask.case_no)
        cause = rca(self._work.connection, own.rca_id) if own and own.rca_id else None
        triage = case.answers.get(F1, {})
        members = len(cases_by_rca(self._work.connection, cause.rca_id)) if cause else 1
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

    def _spots(self, ask: Ask, failure: Failure, name: str) -> list[Spot]:
        repository = self._work.workspace.repositories.get(name)
        tested = self._work.workspace.tested(name, self._work.launch(ask.case_no))
        return spots(failure, repository, tested) if repository else []

    def _accused(self, ask: Ask) -> dict[str, int]:
        """How many other sure causes of the suite suspect a commit first; only asked when a first
        look was not enough."""
        own = place_of(self._work.connection, ask.case_no)
        sure = float(self._thresholds["convergence_sufficient"])
        found: Counter[str] = Counter()
        for cause in rcas_of_suite(self._work.connection, own.suite_id) if own else ():
            is_other = own is not None and cause.rca_id != own.rca_id
            if is_other and cause.status != "archived" and (cause.convergence_score or 0) >= sure:
                found.update(self._suspected(cause)[:1])
        return dict(found)

    def _suspected(self, cause: Rca) -> list[str]:
        """The commits that a cause's own investigation suspects."""
        said = [
            found
            for decision, found in journal_of(self._work.connection, cause.case_no)
            if decision.step == F3 and "rca_message" in found
        ]
        return [each.commit for each in suspects_in(said[-1])] if said else []

    def _leads_of(self, ask: Ask, failure: Failure, name: str) -> Sequence[Lead]:
        key = (ask.case_no, name, ask.attempt > 1)
        if key not in self._leads:
            repository = self._work.workspace.repositories.get(name)
            launch = self._work.launch(ask.case_no)
            commits = self._work.workspace.commits(repository, launch) if repository else []
            tested = self._work.workspace.tested(name, launch)
            accused = self._accused(ask) if ask.attempt > 1 else {}
            self._leads[key] = (
                leads(failure, repository, commits, tested, accused) if repository else []
            )
        return self._leads[key]
