"""The plan as it is now: edited while a run is worked on, and read again.

Knows the file, how often it is looked at, and what differs. A plan that cannot be used changes
nothing, and that is told once. Refuses to know what becomes of a task that changed.
"""

from collections.abc import Callable, Iterable
from pathlib import Path

import msgspec

from interlock.apps.delivery.plan import Plan, Task
from interlock.apps.delivery.plan_check import check_plan, has_errors
from interlock.apps.delivery.plan_checks import with_project
from interlock.apps.delivery.plan_graph import dependents
from interlock.core.errors import InterlockError, SourceError
from interlock.foreman.terms import Terms
from interlock.sources.plan import read_plan
from interlock.store.runs import NewCase

_PATIENCE = 1.0
"""Seconds between two looks at the file."""


def usable_plan(terms: Terms) -> Plan:
    """The plan with the project's checks; SourceError with its first error if it has one."""
    plan = with_project(read_plan(Path(terms.plan)), terms.checks, terms.environments)
    findings = check_plan(plan, allow_untestable=terms.allow_untestable)
    if has_errors(findings):
        first = next(each for each in findings if each.level == "error")
        place = f"{terms.plan}:{first.line}" if first.line else terms.plan
        raise SourceError(
            f"{place}: {first.sentence}; 'interlock plan check {terms.plan}' shows everything"
        )
    return plan


def cases_of(plan: Plan) -> list[NewCase]:
    """A case for each task; one on which many others wait goes first."""
    ranks = dependents(plan)
    return [_case(task, ranks[task.id]) for task in plan.tasks]


def _case(task: Task, rank: int) -> NewCase:
    input_ = {"id": task.id, "title": task.title, "phase": task.phase}
    return NewCase(task.id, input_, rank, task.blocked_by)


class PlanWatch:
    """Looks at the plan's file now and then."""

    def __init__(
        self,
        terms: Terms,
        plan: Plan,
        known: Iterable[NewCase],
        now: Callable[[], float],
        note: Callable[[str], None],
    ) -> None:
        self.plan = plan
        """The plan that counts now. `known` are the cases the run has of it."""
        self._first = _unlike(plan, known)
        self._terms = terms
        self._now = now
        self._note = note
        self._looked = now()
        self._mark = _mark(Path(terms.plan))

    def news(self) -> list[NewCase]:
        """The cases of tasks that are new or say something else; nothing most of the time."""
        first, self._first = self._first, []
        if first or self._now() - self._looked < _PATIENCE:
            return first
        self._looked = self._now()
        mark = _mark(Path(self._terms.plan))
        if mark == self._mark:
            return []
        self._mark = mark
        try:
            plan = usable_plan(self._terms)
        except InterlockError as error:
            self._note(f"the plan was edited and cannot be used, the one before counts: {error}")
            return []
        before, self.plan = self.plan, plan
        return self._differing(before, plan)

    def _differing(self, before: Plan, after: Plan) -> list[NewCase]:
        known = {task.id: msgspec.structs.replace(task, line=0) for task in before.tasks}
        gone = known.keys() - {task.id for task in after.tasks}
        if gone:
            names = ", ".join(sorted(gone))
            self._note(f"{names}: not in the plan any more; what was begun is finished")
            kept = tuple(task for task in before.tasks if task.id in gone)
            self.plan = msgspec.structs.replace(after, tasks=(*after.tasks, *kept))
        changed = {
            task.id
            for task in after.tasks
            if known.get(task.id) != msgspec.structs.replace(task, line=0)
        }
        return [case for case in cases_of(self.plan) if case.case_id in changed]


def _unlike(plan: Plan, known: Iterable[NewCase]) -> list[NewCase]:
    """The cases that the plan asks for and the run does not have so."""
    there = {each.case_id: each for each in known}
    return [case for case in cases_of(plan) if there.get(case.case_id) != case]


def _mark(path: Path) -> tuple[int, int, int]:
    """Changes when the file does."""
    try:
        found = path.stat()
    except OSError:
        return 0, 0, 0
    return found.st_mtime_ns, found.st_size, found.st_ino
