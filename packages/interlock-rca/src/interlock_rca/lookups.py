"""Look up facts about a failure: its words, its stack, and the history of the repositories.

Serves the analyst's rules for one run and caches what is expensive. The majority of a family
decides its kind.
"""

import heapq
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import NamedTuple

import msgspec

from interlock.carriers.contract import Ask
from interlock_rca.analyst.answers import SURE_KIND_SCORE, FaultKind, RepoCandidate
from interlock_rca.analyst.chances import CulpritLead, weigh_with_others
from interlock_rca.analyst.culprits import CommitRange, rank_commits
from interlock_rca.analyst.repo_choice import (
    UNSURE,
    choose_by_changes,
    choose_by_name,
    choose_by_purpose,
    choose_by_stack,
    find_missing_files,
    judge_by_leads,
    judge_by_location,
    judge_by_missing_file,
    judge_by_new_line,
    rank_repos,
)
from interlock_rca.analyst.stack import StackLocation, locate_frames
from interlock_rca.analyst.triage import TriageResult, triage_failure
from interlock_rca.findings import read_investigated_suspects
from interlock_rca.hooks import RcaHooks
from interlock_rca.intake import decode_failure
from interlock_rca.knowledge.causes import Rca
from interlock_rca.knowledge.suites import CaseView
from interlock_rca.records import Failure, Repo, Suspect, TestRange
from interlock_rca.sources.git.history import Commit

_ENOUGH = 20
"""The number of members whose words are judged before a family is assumed uniform."""


class MajorityVote:
    """Judges each failure by its words, then by its family: an outlier among failures with one
    cause gets the majority's kind."""

    def __init__(self, views: Iterable[CaseView]) -> None:
        self._kinds: dict[int, TriageResult] = {}
        self._family_of: dict[int, str] = {}
        self._votes: dict[str, Counter[str]] = {}
        self._first: dict[str, int] = {}
        judged: Counter[str] = Counter()
        for view in views:
            family = str(view.input.get("family") or view.case_id)
            self._family_of[view.case_no] = family
            self._first.setdefault(family, view.case_no)
            judged[family] += 1
            if judged[family] > _ENOUGH and self._agree(family):
                continue
            kind = triage_failure(decode_failure(view.case_id, view.input))
            self._kinds[view.case_no] = kind
            self._votes.setdefault(family, Counter())[kind.category] += round(100 * kind.confidence)

    def find_kind(self, case_no: int) -> TriageResult | None:
        own = self._kinds.get(case_no)
        if case_no not in self._family_of:
            return None
        votes = self._votes[self._family_of[case_no]]
        category, most = min(votes.items(), key=lambda vote: (-vote[1], vote[0]))
        if own is not None and (category == own.category or 2 * most < votes.total()):
            return own
        share = most / votes.total()
        return TriageResult(category, round(share, 4), (f"most of its family are {category}",))

    def find_first(self, family: str) -> int | None:
        """Return the first case of a family."""
        return self._first.get(family)

    def _agree(self, family: str) -> bool:
        """Return True if all judged members of a large family agree, so that the others need no
        look."""
        return len(self._votes[family]) == 1


_NOBODYS = ("infra", "flake")
"""Kinds of failures that no commit causes."""
_MOST_ASKED = 12
"""The most families asked about the suspects of one."""


class _Representative(NamedTuple):
    """The case that represents its family."""

    family: str
    case_no: int
    case_id: str
    failure: Failure


class FailureLookups:
    """Looks up facts about the failures of one run."""

    def __init__(self, hooks: RcaHooks) -> None:
        self._hooks = hooks
        self._leads: dict[int, list[CulpritLead]] = {}
        self._alone: dict[int, list[CulpritLead]] = {}
        self._located: tuple[int, dict[str, list[StackLocation]]] = (0, {})
        """The stack locations of the latest case, by repository."""

    def find_kind(self, ask: Ask, failure: Failure) -> FaultKind:
        """Return the kind of a failure by its words and by where it breaks."""
        found = self._majority.find_kind(ask.case_no) or triage_failure(failure)
        kind = FaultKind(
            category=found.category,
            code=self._hooks.taxonomy.find_code_of_category(found.category) or UNSURE,
            confidence=found.confidence,
            why="; ".join(found.reasons[:3]) or "nothing speaks for any kind",
        )
        innermost = self._find_innermost(ask, failure)
        kind = self._judge_new_line(ask, judge_by_location(kind, failure, innermost), innermost)
        return self._judge_missing_file(ask, failure) or kind

    def find_kind_by_leads(self, ask: Ask, failure: Failure) -> FaultKind:
        """Return the kind, refined by the suspects."""
        repositories = self._hooks.workspace.repositories
        return judge_by_leads(
            self.find_kind(ask, failure),
            self.find_leads(ask, failure),
            {name: one.repo.role for name, one in repositories.items()},
            is_searched=any(self.list_commits(ask, name) for name in repositories),
        )

    def is_first_of_family(self, ask: Ask) -> bool:
        """Return True if the case represents its family; the others need no lookups."""
        return self._majority.find_first(self._find_family(ask)) == ask.case_no

    def _judge_missing_file(self, ask: Ask, failure: Failure) -> FaultKind | None:
        """Return the kind of a missing file that the tested revision has: it was lost where the
        tests ran."""
        launch = self._hooks.find_launch(ask.case_no)
        for missing in find_missing_files(failure):
            path = missing.replace("\\", "/")
            for name, repository in self._hooks.workspace.repositories.items():
                tested = self._hooks.workspace.find_tested(name, launch)
                for match in repository.find_files(path, tested)[:1]:
                    if "/" in match.path and path.endswith(f"/{match.path}"):
                        return judge_by_missing_file(match.path)
        return None

    def _judge_new_line(
        self, ask: Ask, kind: FaultKind, innermost: tuple[Repo, StackLocation] | None
    ) -> FaultKind:
        """Clear the environment if the failing line is newer than the last pass."""
        if innermost is None or kind.category != "infra":
            return kind
        repo, spot = innermost
        launch = self._hooks.find_launch(ask.case_no)
        commit = self._hooks.workspace.find_new_writer(
            repo.name, launch, spot.path, spot.line, self.find_range(ask, repo.name)
        )
        return judge_by_new_line(kind, spot, commit)

    @cached_property
    def _majority(self) -> MajorityVote:
        return MajorityVote(self._hooks.iterate_views())

    def _find_innermost(self, ask: Ask, failure: Failure) -> tuple[Repo, StackLocation] | None:
        """Return the repository in which the stack is deepest, and the location."""
        found = [
            (spot.depth, name, spot)
            for name in self._hooks.workspace.repositories
            for spot in self.locate_frames(ask, failure, name)
        ]
        if not found:
            return None
        _, name, spot = min(found, key=lambda each: (each[0], -each[2].shared, each[1]))
        return self._hooks.workspace.repositories[name].repo, spot

    def find_candidate_repos(
        self, ask: Ask, failure: Failure, category: str, sureness: float
    ) -> list[RepoCandidate]:
        """Return repositories worth a look. A stack that stays inside the tests does not rule out
        the product, so repositories declared for it are candidates too."""
        repositories = self._hooks.workspace.repositories
        found = {name: self.locate_frames(ask, failure, name) for name in repositories}
        by_frames = [
            choose_by_stack(one.repo, found[name], category, sureness)
            for name, one in repositories.items()
        ]
        inside = any(not spot.is_test for spots in found.values() for spot in spots)
        if inside or category == "automation":
            return rank_repos(by_frames)
        fitting = [choose_by_purpose(one.repo, category) for one in repositories.values()]
        return rank_repos(fitting if any(fitting) else by_frames)

    def find_repos(
        self, ask: Ask, failure: Failure, category: str, sureness: float
    ) -> list[RepoCandidate]:
        """Return repositories that may hold the cause, likeliest first; `sureness` is that of the
        kind."""
        leads = self.find_leads(ask, failure)
        repos = [one.repo for one in self._hooks.workspace.repositories.values()]
        places: list[RepoCandidate | None] = []
        for name, one in self._hooks.workspace.repositories.items():
            places.append(
                choose_by_stack(
                    one.repo, self.locate_frames(ask, failure, name), category, sureness
                )
            )
            places.append(choose_by_changes(one.repo, leads, category, sureness))
            places.append(choose_by_name(one.repo, repos, failure, category, sureness))
            places.append(choose_by_purpose(one.repo, category))
        return rank_repos(places)

    def locate_frames(self, ask: Ask, failure: Failure, name: str) -> list[StackLocation]:
        if self._located[0] != ask.case_no:
            self._located = (ask.case_no, {})
        found = self._located[1]
        repository = self._hooks.workspace.repositories.get(name)
        if repository is not None and name not in found:
            tested = self._hooks.workspace.find_tested(name, self._hooks.find_launch(ask.case_no))
            found[name] = locate_frames(failure, repository, tested)
        return found.get(name, [])

    def find_leads(self, ask: Ask, failure: Failure) -> Sequence[CulpritLead]:
        """Return the suspect commits of all repositories, ranked together with the evidence of the
        run's other families."""
        if ask.case_no not in self._leads:
            case_id = ask.case.case_id if ask.case else ""
            own = self._look_alone(ask.case_no, case_id, failure)
            others = [
                self._look_alone(other.case_no, other.case_id, other.failure)
                for other in self._representatives
                if other.case_id != case_id
                and other.family != self._find_family(ask)
                and not is_one_test(failure, other.failure)
            ]
            found = self._add_only_commit(ask, weigh_with_others(own, others))
            _keep_newest(self._leads, ask.case_no, found)
        return self._leads[ask.case_no]

    def _look_alone(self, case_no: int, case_id: str, failure: Failure) -> list[CulpritLead]:
        """Return the suspects by this failure alone."""
        if case_no not in self._alone:
            launch = self._hooks.find_launch(case_no)
            spans = self._hooks.find_ranges(case_id) if case_id else {}
            workspace = self._hooks.workspace
            ranges = [
                CommitRange(
                    repository,
                    workspace.list_new_commits(repository, launch, spans.get(name)),
                    workspace.find_tested(name, launch),
                )
                for name, repository in workspace.repositories.items()
            ]
            _keep_newest(self._alone, case_no, rank_commits(failure, ranges))
        return self._alone[case_no]

    def _add_only_commit(self, ask: Ask, leads: Sequence[CulpritLead]) -> list[CulpritLead]:
        """Raise the only commit of a sure range: a test that passed before it and fails on it needs
        no other evidence."""
        new = {name: self.list_commits(ask, name) for name in self._hooks.workspace.repositories}
        only = [(name, commit) for name, commits in new.items() for commit in commits]
        if len(only) != 1:
            return list(leads)
        name, commit = only[0]
        found = self.find_range(ask, name)
        if found is None or found.kind != "last-pass":
            return list(leads)
        path = commit.files[0].path if commit.files else ""
        lead = next(iter(leads), None) or CulpritLead(name, commit, 0.0, (), path)
        score = _ONLY if found.confidence == "high" else _ONLY - 0.15
        why = "the only commit between its last pass and its first failure"
        return [
            msgspec.structs.replace(
                lead, score=max(lead.score, score), why=(why, *lead.why), is_inert=False
            )
        ]

    def _find_family(self, ask: Ask) -> str:
        return str(ask.case.input.get("family") or ask.case.case_id) if ask.case else ""

    @cached_property
    def _representatives(self) -> list["_Representative"]:
        """Return the first case of each of the largest families whose cause may be a commit."""
        sizes, first = self._hooks.count_families()
        able = (family for family in first if self._may_be_brought(first[family]))
        chosen = heapq.nsmallest(_MOST_ASKED, able, key=lambda each: (-sizes[each], first[each]))
        family_of = {first[family]: family for family in chosen}
        return [
            _Representative(
                family_of[view.case_no],
                view.case_no,
                view.case_id,
                decode_failure(view.case_id, view.input),
            )
            for view in self._hooks.iterate_views(family_of)
        ]

    def _may_be_brought(self, case_no: int) -> bool:
        kind = self._majority.find_kind(case_no)
        return kind is None or kind.category not in _NOBODYS or kind.confidence < SURE_KIND_SCORE

    def find_range(self, ask: Ask, name: str) -> TestRange | None:
        """Return a test's range in a repository by the history of its results."""
        return self._hooks.find_ranges(ask.case.case_id).get(name) if ask.case else None

    def is_unsteady(self, ask: Ask) -> bool:
        """Return True if the test recently passed and failed on one source, so that nobody is
        accused."""
        ranges = self._hooks.find_ranges(ask.case.case_id) if ask.case else {}
        return any(found.kind == "unsteady" for found in ranges.values())

    def list_commits(self, ask: Ask, name: str) -> list[Commit]:
        """Return the commits of a repository that may have caused a failure."""
        repository = self._hooks.workspace.repositories.get(name)
        if repository is None:
            return []
        launch = self._hooks.find_launch(ask.case_no)
        return self._hooks.workspace.list_new_commits(
            repository, launch, self.find_range(ask, name)
        )

    def list_suspects(self, cause: Rca) -> tuple[Suspect, ...]:
        """Return the suspects of a cause's own investigation."""
        return read_investigated_suspects(self._hooks.connection, cause.case_no)


def is_one_test(one: Failure, other: Failure) -> bool:
    """Return True if one test contains the other: a parent that fails with its subtest is no second
    witness."""
    names = sorted((one.test_name, other.test_name), key=len)
    return one.class_name == other.class_name and names[1].startswith(f"{names[0]}/")


_MOST_KEPT = 200


def _keep_newest(
    kept: dict[int, list[CulpritLead]], case_no: int, found: list[CulpritLead]
) -> None:
    kept[case_no] = found
    if len(kept) > _MOST_KEPT:
        del kept[next(iter(kept))]


_ONLY = 0.85
"""The chance of the only commit in a sure range; the memory may have missed a flip."""
