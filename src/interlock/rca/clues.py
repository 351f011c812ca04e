"""Clues: what a failure's words, its stack and the history of the repositories tell about it.

Fetches what the analyst's rules go by, for one run, and keeps what is expensive to find. What kind
a failure is, its family decides by majority.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cached_property

from interlock.agents.carrier import Ask
from interlock.journal.runs import journal_of
from interlock.rca.analyst.answers import FaultKind, Where
from interlock.rca.analyst.culprits import CulpritLead, leads
from interlock.rca.analyst.repo_choice import (
    best_of,
    by_changes,
    by_missing,
    by_new_line,
    by_place,
    by_stack,
    by_use,
    missing_files,
)
from interlock.rca.analyst.stack import StackLocation, spots
from interlock.rca.analyst.triage import TriageResult, triage
from interlock.rca.findings import suspects_in
from interlock.rca.hooks import RcaHooks
from interlock.rca.intake import failure_of
from interlock.rca.knowledge.causes import Rca, rcas_of_suite
from interlock.rca.knowledge.suites import CaseView, place_of
from interlock.rca.records import Failure, Repo
from interlock.rca.steps import F3


class MajorityVote:
    """What kind each failure is by its words, and what its family says: an odd one out among
    failures with one cause is taken for what most of them are."""

    def __init__(self, looks: Iterable[CaseView]) -> None:
        self._kinds: dict[int, TriageResult] = {}
        self._family_of: dict[int, str] = {}
        self._votes: dict[str, Counter[str]] = {}
        for look in looks:
            kind = triage(failure_of(look.case_id, look.input))
            family = str(look.input.get("family") or look.case_id)
            self._kinds[look.case_no] = kind
            self._family_of[look.case_no] = family
            self._votes.setdefault(family, Counter())[kind.category] += round(100 * kind.confidence)

    def kind_of(self, case_no: int) -> TriageResult | None:
        own = self._kinds.get(case_no)
        if own is None:
            return None
        votes = self._votes[self._family_of[case_no]]
        category, most = min(votes.items(), key=lambda vote: (-vote[1], vote[0]))
        if category == own.category or 2 * most < votes.total():
            return own
        share = most / votes.total()
        return TriageResult(category, round(share, 4), (f"most of its family are {category}",))


_UNSURE = "ti001"


class Clues:
    """Of the failures of one run. A cause is `sure` from that score on."""

    def __init__(self, casework: RcaHooks, sure: float) -> None:
        self._work = casework
        self._sure = sure
        self._leads: dict[tuple[int, str, bool], list[CulpritLead]] = {}

    def kind(self, ask: Ask, failure: Failure) -> FaultKind:
        """The kind by the words of the failure; where it breaks may tell more than they do."""
        found = self._ballot.kind_of(ask.case_no) or triage(failure)
        kind = FaultKind(
            category=found.category,
            code=self._work.taxonomy.code_of(found.category) or _UNSURE,
            confidence=found.confidence,
            why="; ".join(found.reasons[:3]) or "nothing speaks for any kind",
        )
        innermost = self._innermost(ask, failure)
        kind = self._if_new(ask, by_place(kind, failure, innermost), innermost)
        return self._if_missing(ask, failure) or kind

    def _if_missing(self, ask: Ask, failure: Failure) -> FaultKind | None:
        """A file that the tested revision has was lost where the tests ran."""
        launch = self._work.launch(ask.case_no)
        for missing in missing_files(failure):
            path = missing.replace("\\", "/")
            for name, repository in self._work.workspace.repositories.items():
                tested = self._work.workspace.tested(name, launch)
                for match in repository.files_named(path, tested)[:1]:
                    if "/" in match.path and path.endswith(f"/{match.path}"):
                        return by_missing(match.path)
        return None

    def _if_new(
        self, ask: Ask, kind: FaultKind, innermost: tuple[Repo, StackLocation] | None
    ) -> FaultKind:
        """The environment is not to blame for a line that was not there when it last passed."""
        if innermost is None or kind.category != "infra":
            return kind
        repo, spot = innermost
        launch = self._work.launch(ask.case_no)
        commit = self._work.workspace.new_by(repo.name, launch, spot.path, spot.line)
        return by_new_line(kind, spot, commit)

    @cached_property
    def _ballot(self) -> MajorityVote:
        return MajorityVote(self._work.looks())

    def _innermost(self, ask: Ask, failure: Failure) -> tuple[Repo, StackLocation] | None:
        """The repository in which the stack is deepest, and where."""
        found = [
            (spot.depth, name, spot)
            for name in self._work.workspace.repositories
            for spot in self.spots(ask, failure, name)
        ]
        if not found:
            return None
        _, name, spot = min(found, key=lambda each: (each[0], -each[2].shared, each[1]))
        return self._work.workspace.repositories[name].repo, spot

    def candidates(self, ask: Ask, failure: Failure, category: str) -> list[Where]:
        """Repositories worth a look. A stack that never leaves the tests says nothing about where
        a fault of the product is: then those for that use are candidates, too."""
        repositories = self._work.workspace.repositories
        found = {name: self.spots(ask, failure, name) for name in repositories}
        by_frames = [
            by_stack(one.repo, found[name], category) for name, one in repositories.items()
        ]
        inside = any(not spot.is_test for spots in found.values() for spot in spots)
        if inside or category == "automation":
            return best_of(by_frames)
        fitting = [by_use(one.repo, category) for one in repositories.values()]
        return best_of(fitting if any(fitting) else by_frames)

    def where(self, ask: Ask, failure: Failure, category: str) -> list[Where]:
        places: list[Where | None] = []
        for name, one in self._work.workspace.repositories.items():
            places.append(by_stack(one.repo, self.spots(ask, failure, name), category))
            places.append(by_changes(one.repo, self.leads(ask, failure, name), category))
        return best_of(places)

    def spots(self, ask: Ask, failure: Failure, name: str) -> list[StackLocation]:
        repository = self._work.workspace.repositories.get(name)
        tested = self._work.workspace.tested(name, self._work.launch(ask.case_no))
        return spots(failure, repository, tested) if repository else []

    def leads(self, ask: Ask, failure: Failure, name: str) -> Sequence[CulpritLead]:
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

    def _accused(self, ask: Ask) -> dict[str, int]:
        """How many other sure causes of the suite suspect a commit first; only asked when a first
        look was not enough."""
        own = place_of(self._work.connection, ask.case_no)
        found: Counter[str] = Counter()
        for cause in rcas_of_suite(self._work.connection, own.suite_id) if own else ():
            is_other = own is not None and cause.rca_id != own.rca_id
            if (
                is_other
                and cause.status != "archived"
                and (cause.convergence_score or 0) >= self._sure
            ):
                found.update(self.suspected(cause)[:1])
        return dict(found)

    def suspected(self, cause: Rca) -> list[str]:
        """The commits that a cause's own investigation suspects."""
        answers = [
            found
            for decision, found in journal_of(self._work.connection, cause.case_no)
            if decision.step == F3 and "rca_message" in found
        ]
        return [each.commit for each in suspects_in(answers[-1])] if answers else []
