"""Keep the open tasks of a run: their steps, the decisions about them, and who waits for whom.

The hooks record every turn here; the handlers of checks and merges read it. After a restart the
object fills again from the journal, as its cases are dispatched or looked at.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from interlock.engine.case import OPEN, Case, Decision
from interlock.engine.circuit import Circuit
from interlock.journal.connection import Connection
from interlock.journal.runs import load_decisions, load_holds
from interlock_delivery import steps
from interlock_delivery.inspection import TaskEnvironment
from interlock_delivery.queues import (
    CONFLICT,
    FREE,
    REASSIGN,
    WAIT,
    WaitQueues,
    update_holders,
)
from interlock_delivery.worktrees.diff import Diff
from interlock_delivery.worktrees.snapshot import covers, may_overlap
from interlock_delivery.worktrees.tree import TaskTree


class PastDecision(msgspec.Struct, frozen=True):
    """A decision about a case, with the answer it was made on and the tags of its rule."""

    decision: Decision
    answer: Mapping[str, Any]
    tags: Mapping[str, str] = {}


def requested_expert(case: Case) -> str:
    """Return the expert that the interrupted step asked for last, or "" if it asked for none."""
    asker = case.stack[-1] if case.stack else ""
    answer = case.answers.get(asker, {})
    return str(answer.get("target_agent", "")) if isinstance(answer, Mapping) else ""


class OpenTasks:
    """The state that the hooks and the handlers of one run share."""

    def __init__(
        self, connection: Connection, run_id: int, circuit: Circuit, environment: TaskEnvironment
    ) -> None:
        self.cases: dict[str, Case] = {}
        self.ends: dict[str, str] = {}
        """The end of each task that is over."""
        self._connection = connection
        self._environment = environment
        self._tags = steps.read_rule_tags(circuit)
        self._holders = dict(load_holds(connection, circuit, run_id))
        self._queues = WaitQueues(environment.config.work.per_expert, self._list_active)
        self._numbers: dict[str, int] = {}
        self._histories: dict[int, list[PastDecision]] = {}
        self._assigned: dict[int, set[str]] = {}
        self._dispatched: set[str] = set()
        self._diffs: dict[str, tuple[tuple[str, str], Diff]] = {}

    def record_dispatch(self, case_no: int, case: Case) -> None:
        """Record that an agent works on the case; also after a restart, for what is sent again."""
        self.cases[case.case_id], self._numbers[case.case_id] = case, case_no
        self._dispatched.add(case.case_id)
        self.history(case_no)
        if case.step == steps.CONSULT:
            self._queues.resume_expert(case.case_id, requested_expert(case))

    def record_decision(
        self, case_no: int, case: Case, decision: Decision, answer: Mapping[str, Any]
    ) -> None:
        self.history(case_no).append(self._build_past(case_no, decision, answer))
        self._dispatched.discard(case.case_id)
        update_holders(self._holders, case.case_id, decision)
        if case.step == steps.CONSULT:
            self._queues.leave_expert(case.case_id)

    def history(self, case_no: int) -> list[PastDecision]:
        """Return the decisions about a case so far, including this turn's."""
        if case_no not in self._histories:
            self._histories[case_no] = [
                self._build_past(case_no, decision, answer)
                for decision, answer in load_decisions(self._connection, case_no)
            ]
        return self._histories[case_no]

    def _build_past(
        self, case_no: int, decision: Decision, answer: Mapping[str, Any]
    ) -> PastDecision:
        if decision.signal == CONFLICT and answer.get("handling") in (FREE, REASSIGN):
            self._assigned.setdefault(case_no, set()).add(str(answer.get("path", "")))
        return PastDecision(decision, answer, self._tags.get(decision.rule, {}))

    def must_wait(self, case_no: int, case: Case) -> bool:
        """Record a case's current step, and return True if it must wait before it."""
        self._numbers[case.case_id] = case_no
        if case.status != OPEN:
            self._close(case_no, case)
            return False
        self.cases[case.case_id] = case
        if case.step == steps.PREPARE:
            return self._must_wait_for_files(case.case_id)
        if case.step == steps.CONSULT:
            return self._queues.ask_expert(case.case_id, requested_expert(case))
        history = self.history(case_no)
        last = history[-1] if history else None
        if last is None or case.step not in (steps.IMPLEMENT, steps.REMEDIATE):
            return False
        waits = last.tags.get(steps.WAITS)
        if waits == steps.ANY:
            self._queues.wait_for(case.case_id, str(last.answer.get("waits_for", "")))
            return True
        if waits == steps.HOLDER and last.answer.get("handling") == WAIT:
            self._queues.wait_for(case.case_id, str(last.answer["holder"]))
            return True
        return False

    def _close(self, case_no: int, case: Case) -> None:
        self.cases.pop(case.case_id, None)
        self._histories.pop(case_no, None)
        self._diffs.pop(case.case_id, None)
        self._queues.end(case.case_id)
        self.ends[case.case_id] = case.end or case.status

    def _must_wait_for_files(self, case_id: str) -> bool:
        """Make a task wait if an active one declared the same files."""
        declared = self.list_declared()
        files = declared.get(case_id, ())
        for name in self._list_active() if files else ():
            if name != case_id and may_overlap(files, declared.get(name, ())):
                self._queues.wait_for(case_id, name)
                return True
        return False

    def release(self) -> list[str]:
        """Return the cases that need not wait any more."""
        return [
            name
            for name in self._queues.release(lambda name: name in self.cases)
            # Another task may have got the same files meanwhile.
            if self.cases[name].step != steps.PREPARE or not self._must_wait_for_files(name)
        ]

    def is_under_repair(self, case: Case) -> bool:
        """Return True if another case repairs the infrastructure already."""
        return any(holder != case.case_id for holder in self._holders.values())

    def is_later(self, name: str, case_id: str) -> bool:
        """Return True if task `name` has not begun and cannot begin before `case_id` is over.

        It is held back and will wait for this task's files, or it depends on this task.
        """
        if name not in self.cases or self.cases[name].step != steps.PREPARE:
            return False
        if self._queues.is_waiting(name):
            return True
        found, waiting = {name}, [name]
        while waiting:
            task = self._environment.tasks.get(waiting.pop())
            new = [each for each in task.blocked_by if each not in found] if task else []
            found.update(new)
            waiting += new
        return case_id in found

    def find_holder(self, case: Case, path: str, named: str) -> str:
        """Return the open task that declared or changed a file, else `named` if it is open."""
        full = f"{self._environment.workspace.source.prefix}{path}"
        others = [name for name in self.cases if name != case.case_id]
        declared = self.list_declared()
        for name in others:
            diff = self.last_diff(name) or Diff()
            if full in diff.paths or covers(declared.get(name, ()), path):
                return name
        if named in others:
            return named
        at_work = (name for name in others if self.cases[name].step != steps.PREPARE)
        for name in at_work:
            if self._environment.tree_of(name, steps.IMPLEMENT).has_changed(full):
                return name
        return ""

    def list_idle(self) -> dict[str, str]:
        """Return the step of each open task in whose tree nobody works, ignoring detours."""
        return {
            name: case.stack[0] if case.stack else case.step
            for name, case in self.cases.items()
            if name not in self._dispatched and case.step != steps.PREPARE
        }

    def list_waiting_for(self, task: str) -> dict[str, str]:
        """Return the idle tasks that wait for this one, with the step of each."""
        waiting = {*self._queues.list_waiting_for(task)}
        return {name: step for name, step in self.list_idle().items() if name in waiting}

    def _list_active(self) -> Iterator[str]:
        """Yield the cases that can end a wait: not waiting, and not with a human."""
        complete = {name for name, end in self.ends.items() if end == steps.COMPLETE}
        for name, case in self.cases.items():
            task = self._environment.tasks.get(name)
            is_ready = task is None or {*task.blocked_by} <= complete
            if is_ready and case.step not in steps.GATES and not self._queues.is_waiting(name):
                yield name

    def list_declared(self) -> dict[str, tuple[str, ...]]:
        """Return the files of each open task: declared, or assigned after a conflict."""
        tasks = self._environment.tasks
        return {
            name: (*tasks[name].target_files, *self._assigned.get(self._numbers[name], ()))
            for name in self.cases
            if name in tasks
        }

    def list_reported(self, case_id: str) -> frozenset[str]:
        """Return the files that a task reported as in conflict, which it may change."""
        return frozenset(
            str(past.answer.get("path", ""))
            for past in self.history(self._numbers[case_id])
            if past.decision.signal == CONFLICT
        )

    def read_diff(self, case_id: str, tree: TaskTree, base: str, sha: str) -> Diff:
        """Return what changed between two commits of a task's work, and keep it as the last."""
        known = self._diffs.get(case_id)
        if known is None or known[0] != (base, sha):
            known = self._diffs[case_id] = ((base, sha), tree.diff(base, sha))
        return known[1]

    def last_diff(self, case_id: str) -> Diff | None:
        """Return the change that was read last for a task, or None after a restart."""
        known = self._diffs.get(case_id)
        return known[1] if known else None
