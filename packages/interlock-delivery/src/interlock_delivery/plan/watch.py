"""Read the plan again when it is edited, during a run or between two sessions.

An edited plan with errors changes nothing and is reported once. A task that was removed from the
file stays in the run.
"""

from collections.abc import Callable, Collection, Iterable
from pathlib import Path

import msgspec

from interlock.journal.runs import NewCase
from interlock.system.errors import InterlockError, SourceError
from interlock.system.files import save_file
from interlock_delivery.config import DeliveryConfig
from interlock_delivery.plan import read_plan
from interlock_delivery.plan.check import check_plan, has_errors
from interlock_delivery.plan.plan import Plan, Task, count_dependents
from interlock_delivery.plan.tables import add_project_checks

_STORED = "plan.json"
_POLL_SECONDS = 1.0
"""The seconds between two looks at the file."""


def load_usable_plan(config: DeliveryConfig) -> Plan:
    """Return the plan with the project's checks; raise SourceError with its first error."""
    plan = add_project_checks(read_plan(Path(config.plan)), config.checks, config.environments)
    findings = check_plan(plan, allow_untestable=config.allow_untestable)
    if has_errors(findings):
        first = next(each for each in findings if each.level == "error")
        place = f"{config.plan}:{first.line}" if first.line else config.plan
        raise SourceError(
            f"{place}: {first.sentence}; 'interlock plan check {config.plan}' shows everything"
        )
    return plan


def build_cases(plan: Plan) -> list[NewCase]:
    """Return a case for each task; tasks that many others wait for get a higher rank."""
    ranks = count_dependents(plan)
    return [_build_case(task, ranks[task.id]) for task in plan.tasks]


def _build_case(task: Task, rank: int) -> NewCase:
    input_ = {"id": task.id, "title": task.title, "phase": task.phase}
    return NewCase(task.id, input_, rank, task.blocked_by)


class PlanWatch:
    """Watches the plan's file for changes."""

    def __init__(
        self,
        config: DeliveryConfig,
        plan: Plan,
        known: Iterable[NewCase],
        now: Callable[[], float],
        note: Callable[[str], None],
    ) -> None:
        self._config = config
        self._note = note
        cases = tuple(known)
        self.plan = self._keep_removed_tasks(
            plan, _load_stored_plan(config), {each.case_id for each in cases}
        )
        """The plan in force."""
        self._first = _find_changed_cases(self.plan, cases)
        self._now = now
        self._read_at = now()
        self._file_state = _read_file_state(Path(config.plan))

    def new_cases(self) -> list[NewCase]:
        """Return the cases of tasks that are new or were edited."""
        first, self._first = self._first, []
        if first or self._now() - self._read_at < _POLL_SECONDS:
            return first
        self._read_at = self._now()
        state = _read_file_state(Path(self._config.plan))
        if state == self._file_state:
            return []
        self._file_state = state
        try:
            plan = load_usable_plan(self._config)
        except InterlockError as error:
            self._note(
                f"the edited plan cannot be used, so the earlier one stays in force: {error}"
            )
            return []
        before = self.plan
        self.plan = self._keep_removed_tasks(plan, before, {task.id for task in before.tasks})
        changed = _index_task_texts(self.plan).items() - _index_task_texts(before).items()
        return [case for case in build_cases(self.plan) if case.case_id in dict(changed)]

    def _keep_removed_tasks(self, plan: Plan, before: Plan, known: Collection[str]) -> Plan:
        """Return the plan with the tasks that the run has and the file does not."""
        gone = {*known} - {task.id for task in plan.tasks}
        kept = tuple(task for task in before.tasks if task.id in gone)
        if kept:
            names = ", ".join(sorted(task.id for task in kept))
            self._note(
                f"{names}: no longer in the plan, but part of this run, which continues with it"
            )
            plan = msgspec.structs.replace(plan, tasks=(*plan.tasks, *kept))
        _store_plan(self._config, plan)
        return plan


def _index_task_texts(plan: Plan) -> dict[str, Task]:
    """Return the tasks by id, ignoring their lines in the file."""
    return {task.id: msgspec.structs.replace(task, line=0) for task in plan.tasks}


def _store_plan(config: DeliveryConfig, plan: Plan) -> None:
    save_file(Path(config.home) / _STORED, msgspec.json.encode(plan))


def _load_stored_plan(config: DeliveryConfig) -> Plan:
    """Return the plan that was last in force, or an empty one at the start."""
    try:
        return msgspec.json.decode((Path(config.home) / _STORED).read_bytes(), type=Plan)
    except FileNotFoundError:
        return Plan()
    except (OSError, msgspec.MsgspecError) as error:
        raise SourceError(f"{config.home}/{_STORED} cannot be read ({error}); remove it") from None


def _find_changed_cases(plan: Plan, known: Iterable[NewCase]) -> list[NewCase]:
    """Return the cases that differ from those of the run."""
    there = {each.case_id: each for each in known}
    return [case for case in build_cases(plan) if there.get(case.case_id) != case]


def _read_file_state(path: Path) -> tuple[int, int, int]:
    """Return a value that changes when the file does."""
    try:
        found = path.stat()
    except OSError:
        return 0, 0, 0
    return found.st_mtime_ns, found.st_size, found.st_ino
