"""The hooks of the circuit `rca`: facts, guards, effects and families, over one connection.

They connect the loop, which knows nothing of an analysis, with this package's tables: they fetch
what a decision needs, and carry out its rule's effect.
"""

import secrets
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cached_property, partial
from typing import Any

import msgspec

from interlock.api.manual import REVIEWED_BY
from interlock.carriers.contract import NO_CONTEXT, Checkout, ExecutionContext
from interlock.engine.case import ENDED, OPEN, STUCK, Case, Decision, RefusedAnswer, Signal
from interlock.engine.circuit import ARTIFACT, Circuit
from interlock.journal.connection import Connection
from interlock.journal.journal import Effect
from interlock.runtime.application import DefaultHooks
from interlock.runtime.prompts import list_names
from interlock.system.text import format_line
from interlock_rca.analyst.similarity import Traits, compare_failures
from interlock_rca.check_answer import check_answer, list_selected_repos
from interlock_rca.config import RcaConfig
from interlock_rca.effects import check_effects, list_effects
from interlock_rca.families import FamilyQueue
from interlock_rca.intake import decode_failure
from interlock_rca.knowledge.reproductions import load_reproductions, name_family
from interlock_rca.knowledge.suites import (
    CasePosition,
    CaseView,
    find_position,
    find_suite,
    iterate_case_views,
)
from interlock_rca.knowledge.writer import apply_effect
from interlock_rca.prompt_data.parameters import PromptDataReader
from interlock_rca.prompt_data.subject import PARAMETER_NAMES
from interlock_rca.records import Launch, TestRange, unite_ranges
from interlock_rca.steps import F2, F3, F5, F6, LINKED
from interlock_rca.taxonomy import TAXONOMY
from interlock_rca.test_names import name_failed_test
from interlock_rca.workspace import CheckoutSet

_traits = msgspec.json.Decoder(Traits).decode
_SOMEBODY = "whoever was asked"
"""The reviewer's name if no human is named: the answer came over a carrier other than the inbox."""


class CaseOrder(msgspec.Struct, frozen=True, kw_only=True):
    """Which cases of a run are worked on, and which wait for others."""

    families: bool = False
    """Investigate one case of each family for the others."""
    phases: bool = False
    """Triage all cases before any is investigated."""
    only: Collection[int] | None = None
    """The numbers of the cases to work on; all if None."""


class PromptReaders(msgspec.Struct, frozen=True, kw_only=True):
    """Who reads the prompt of each step."""

    prompted: Callable[[str], bool] = lambda _step: True
    """Return True if anybody reads the step's prompt."""
    elsewhere: Callable[[str], bool] = lambda _step: False
    """Return True if it is read on another host."""


class RcaHooks(DefaultHooks):
    """The hooks of the circuit `rca` for one run."""

    def __init__(
        self,
        connection: Connection,
        run_id: int,
        circuit: Circuit,
        config: RcaConfig,
        *,
        order: CaseOrder = CaseOrder(),  # noqa: B008 - frozen
        readers: PromptReaders = PromptReaders(),  # noqa: B008 - frozen
        fence: Callable[[], str] = lambda: secrets.token_hex(6),
    ) -> None:
        check_effects(circuit)
        self.config = config
        self.connection = connection
        self.workspace = CheckoutSet(config)
        self.taxonomy = TAXONOMY.with_codes(config.codes)
        self.prompt_data = PromptDataReader(connection, self.workspace, self.taxonomy)
        self._run_id = run_id
        self._family_of: dict[str, str] = {}
        self._test_of: dict[str, str] = {}
        views: list[CaseView] = []
        for view in self.iterate_views():
            self._family_of[view.case_id] = str(view.input.get("family", ""))
            if config.ranges:
                failure = decode_failure(view.case_id, view.input)
                self._test_of[view.case_id] = name_failed_test(failure)
            views.append(msgspec.structs.replace(view, input={}, features=""))
        self.number_of = {view.case_id: view.case_no for view in views}
        self._order = order
        self._sizes = Counter(self._family_of.values())
        active = [
            view
            for view in views
            if order.only is None or view.case_no in order.only or _is_past_investigation(view)
        ]
        family_of = (
            self._family_of if order.families else {view.case_id: view.case_id for view in views}
        )
        queue = (
            FamilyQueue(family_of, together=config.review == "dispatch")
            if order.families or order.phases
            else None
        )
        self.families = _restore_queue(queue, active) if queue else None
        self._circuit = circuit
        self._read_names: dict[str, Collection[str]] = {}
        self._launch_of: dict[int, Launch | None] = {}
        self._readers = readers
        self._fence = fence
        self._proven: Collection[str] | None = None
        self._to_prove: set[str] = set()

    def context_for(self, case_no: int, case: Case, dispatch_id: int) -> ExecutionContext:
        """Return the tested checkouts of repositories with a remote, for an agent on another host;
        its prompt names those."""
        if not self._readers.elsewhere(case.step):
            return NO_CONTEXT
        found = self.workspace.list_checkouts(self.find_launch(case_no))
        return ExecutionContext(
            checkouts=tuple(
                Checkout(remote=each.remote, commit=each.commit, folder=each.path)
                for each in found
                if each.remote and each.commit
            )
        )

    def hold_unproven(self) -> None:
        """Hold cases back from review until their tests were run. The caller runs them when nothing
        else is left to do, and then works on the run again."""
        suite = find_suite(self.connection, run_id=self._run_id)
        self._proven = load_reproductions(self.connection, suite.suite_id) if suite else ()

    def find_ranges(self, case_id: str) -> dict[str, TestRange]:
        """Return by repository the range in which a case broke: the tightest that the steady tests
        of its family agree on, else its own."""
        found: dict[str, TestRange] = {}
        for repo, ranges in self.config.ranges.items():
            own = ranges.get(self._test_of.get(case_id, ""))
            if own is not None:
                found[repo] = self._find_family_range(case_id, own, ranges)
        return found

    def _find_family_range(
        self, case_id: str, own: TestRange, ranges: Mapping[str, TestRange]
    ) -> TestRange:
        family = self._family_of.get(case_id, "")
        if not family or not self._order.families:
            return own
        tests = {self._test_of[name] for name in self._members[family]}
        return unite_ranges([ranges[test] for test in sorted(tests) if test in ranges]) or own

    @cached_property
    def _members(self) -> Mapping[str, Sequence[str]]:
        """Return the cases of each family."""
        found: dict[str, list[str]] = {}
        for case_id, family in self._family_of.items():
            found.setdefault(family, []).append(case_id)
        return found

    def iterate_views(self, only: Collection[int] | None = None) -> Iterable[CaseView]:
        """Yield the suite's cases in order, one at a time: all, or those with these numbers."""
        suite = find_suite(self.connection, run_id=self._run_id)
        return iterate_case_views(self.connection, suite.suite_id, only) if suite else ()

    def count_families(self) -> tuple[Mapping[str, int], Mapping[str, int]]:
        """Return the size of each family and the number of its first case. A case without a family
        is its own."""
        sizes: Counter[str] = Counter()
        first: dict[str, int] = {}
        for case_id, family in self._family_of.items():
            sizes[family or case_id] += 1
            first.setdefault(family or case_id, self.number_of[case_id])
        return sizes, first

    def count_family(self, case_id: str) -> int:
        """Return the size of a case's family, itself included."""
        return self._sizes.get(self._family_of.get(case_id, ""), 1)

    def find_position(self, case_no: int) -> CasePosition | None:
        return find_position(self.connection, case_no)

    def find_launch(self, case_no: int) -> Launch | None:
        """Return a case's launch, cached because it is asked for many times."""
        if case_no not in self._launch_of:
            self._launch_of[case_no] = self.prompt_data.read_launch(self.find_position(case_no))
        return self._launch_of[case_no]

    def prompt_values(
        self, case_no: int, case: Case, context: ExecutionContext
    ) -> Mapping[str, Any]:
        if not self._readers.prompted(case.step):
            return {}
        current = msgspec.structs.replace(case, context=_add_current_repo(case.context))
        failure, place = decode_failure(case.case_id, case.input), self.find_position(case_no)
        ranges = self.find_ranges(case.case_id)
        return self.prompt_data.read_parameters(
            current, failure, place, self._fence(), ranges, self._list_read_names(case.step)
        )

    def _list_read_names(self, step: str) -> Collection[str]:
        """Return the parameters that a step's prompt reads, so that others need not be built."""
        if step not in self._read_names:
            template = self._circuit.steps[step].prompt
            self._read_names[step] = list_names(template) if template else {*PARAMETER_NAMES}
        return self._read_names[step]

    def check_answer(self, case_no: int, case: Case, signal: Signal) -> Signal | RefusedAnswer:
        if signal.name == LINKED:
            return self._check_linked(case_no, case, signal)
        if signal.name != ARTIFACT:
            return signal
        failure = decode_failure(case.case_id, case.input)

        def check(refs: Sequence[str]) -> Sequence[Any]:
            return self.workspace.check_evidence(refs, self.find_launch(case_no), failure.log)

        found = check_answer(case, signal.data, check, self.taxonomy)
        if found.refused:
            return RefusedAnswer("Malformed", found.refused)
        return msgspec.structs.replace(signal, data=found.data)

    def find_takeover(self, case_no: int, case: Case, other: str = "") -> dict[str, Any] | None:
        """Return the data of the signal `linked` if another case of the family, or `other`, was
        investigated for this one on its first arrival at the investigation."""
        if self.families is None or case.step not in (F2, F3) or _count_visits(case.visits) != 1:
            return None
        own = self.find_position(case_no)
        for name in self.families.list_investigated(case.case_id):
            found = self.find_position(self.number_of[name]) if other in ("", name) else None
            if own and found and found.rca_id:
                alike = compare_failures(_traits(own.features), _traits(found.features))
                return {
                    "representative": name,
                    "linked_rca_id": found.rca_id,
                    "confidence": alike.score,
                    "reasoning": f"of one family with {name}: {alike.why}",
                }
        return None

    def _check_linked(self, case_no: int, case: Case, signal: Signal) -> Signal | RefusedAnswer:
        """Refuse `linked` unless Interlock itself found the family; no agent can claim one."""
        other = signal.data.get("representative")
        found = (
            self.find_takeover(case_no, case, other) if other and isinstance(other, str) else None
        )
        if found is None:
            return RefusedAnswer("WrongRole", f"{LINKED!r} is said by Interlock, not by an agent.")
        return msgspec.structs.replace(signal, data=found)

    def effects(
        self, case_no: int, case: Case, decision: Decision, data: Mapping[str, Any], by: str
    ) -> Sequence[Effect]:
        by = by or format_line(str(data.get(REVIEWED_BY, "")), 80) or _SOMEBODY
        found = list_effects(self._circuit, case, decision, data, by, self.taxonomy)
        return [partial(apply_effect, case_no, effect) for effect in found]

    def must_wait(self, case_no: int, case: Case) -> bool:
        if self._order.only is not None and case_no not in self._order.only:
            return True
        if self._is_unproven(case_no, case):
            self._to_prove.add(case.case_id)
        if self.families is None:
            return case.case_id in self._to_prove
        healthy = case.status != ENDED or self._circuit.ends[case.end]
        first = _count_visits(case.visits) == 1
        held = self.families.must_wait(case, first=first, healthy=healthy and case.status != STUCK)
        return held or case.case_id in self._to_prove

    def _is_unproven(self, case_no: int, case: Case) -> bool:
        """Return True if its test must be run before the review."""
        if self._proven is None or case.status != OPEN or case.step != F5:
            return False
        own = self.find_position(case_no)
        family = self._family_of.get(case.case_id) or case.case_id
        return name_family(own.rca_id if own else None, family) not in self._proven

    def released_cases(self) -> Iterable[str]:
        free = self.families.release_cases() if self.families else ()
        return [case_id for case_id in free if case_id not in self._to_prove]

    def notes(self) -> Iterable[str]:
        return self.workspace.list_problems()


def _restore_queue(families: FamilyQueue, views: Sequence[CaseView]) -> FamilyQueue:
    """Restore every case from the journal."""
    for view in views:
        visits = _count_visits(view.visits)
        started = view.asked or view.step not in (F2, F3) or visits > 1
        families.restore(view.case_id, view.step, view.status, worked=visits > 0 and started)
    return families


def _is_past_investigation(view: CaseView) -> bool:
    """Return True if a resting case may represent others, having been investigated."""
    return view.status != OPEN or view.step in (F5, F6)


def _count_visits(visits: Mapping[str, int]) -> int:
    """Return how often a case came to its investigation."""
    return visits.get(F2, 0) + visits.get(F3, 0)


def _add_current_repo(context: Mapping[str, Any]) -> dict[str, Any]:
    """Add the repository that the next dispatch is about, if there are several."""
    repos = list_selected_repos(context)
    done = len(context.get("findings", ()))
    current = {**context, "selected_repos": repos} if repos else dict(context)
    if len(repos) > 1 and done < len(repos):
        current |= {"repo": repos[done], "repos_left": repos[done + 1 :]}
    return current
