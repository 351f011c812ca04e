"""The hooks of the circuit `delivery`: where its agents work, what they are told, who waits.

Stands between the loop and the task environment. Everything is decided by the circuit's rules; the
hooks find what the rules need, and remember what they led to.
"""

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from interlock.carriers.contract import NO_CONTEXT, Ask, ExecutionContext
from interlock.engine.case import OPEN, Case, Decision, RefusedAnswer, Signal
from interlock.engine.circuit import HUMAN, UNREADABLE, Circuit
from interlock.journal.connection import Connection
from interlock.journal.journal import Effect
from interlock.journal.runs import NewCase, load_decisions, load_holds
from interlock.system.clock import Clock
from interlock.system.errors import SourceError
from interlock_delivery import steps
from interlock_delivery.handlers import CheckHandler, DeliveryHandlers
from interlock_delivery.inspection import TaskEnvironment, TreeInspection
from interlock_delivery.merging import MergeHandler
from interlock_delivery.parameters import build_parameters
from interlock_delivery.plan.watch import PlanWatch
from interlock_delivery.queues import (
    CONFLICT,
    FREE,
    REASSIGN,
    WAIT,
    WaitQueues,
    decide_handling,
    describe_handling,
    find_named_task,
    update_holders,
)
from interlock_delivery.task_context import (
    ExpertFiles,
    PastDecision,
    TaskContextBuilder,
    find_last_answer,
    is_expert_name,
    list_unanswered,
    requested_expert,
)
from interlock_delivery.worktrees.diff import Diff
from interlock_delivery.worktrees.snapshot import covers, may_overlap
from interlock_delivery.worktrees.tree import TaskTree

_CATEGORY: Final = re.compile(r"^Category:[ \t]*([A-Za-z_ -]+?)[ \t]*$", re.MULTILINE)
_CATEGORIES: Final = ("missing_info", "out_of_scope", "infrastructure", "blocked_by_dependency")
_BLOCKED: Final = ("INFRA_BLOCKED", "AUDIT_BLOCKED")


class DeliveryHooks:
    """What the circuit `delivery` needs while a run of it is worked on."""

    def __init__(
        self,
        connection: Connection,
        run_id: int,
        circuit: Circuit,
        environment: TaskEnvironment,
        watch: PlanWatch,
        clock: Clock,
        notes: list[str],
    ) -> None:
        config = environment.config
        self.environment = environment
        self._notes = notes
        notes.extend(environment.workspace.notes)
        self.experts = ExpertFiles(
            Path(config.source) / config.work.experts, environment.made_experts, config.work.experts
        )
        inspection = TreeInspection(environment, clock)
        merging = MergeHandler(
            environment, inspection, self._list_idle, self._list_waiting_for, notes.append
        )
        self._checking = CheckHandler(
            environment, inspection, merging, self._list_reported, self._list_declared
        )
        self.handlers = DeliveryHandlers(environment, clock, merging, self._checking, inspection)
        self._contexts = TaskContextBuilder(environment, self._checking, self.experts)
        self._queues = WaitQueues(config.work.per_expert, self._list_active)
        self._connection = connection
        self._circuit = circuit
        self._tags = steps.read_rule_tags(circuit)
        self._watch = watch
        self._histories: dict[int, list[PastDecision]] = {}
        self._assigned: dict[int, set[str]] = {}
        self._cases: dict[str, Case] = {}
        self._numbers: dict[str, int] = {}
        self._dispatched: set[str] = set()
        self._ends: dict[str, str] = {}
        self._holders = dict(load_holds(connection, circuit, run_id))

    # Where an agent works, and what it is told

    def context_for(self, case_no: int, case: Case, dispatch_id: int) -> ExecutionContext:
        self._note_dispatch(case_no, case)
        step = self._circuit.steps[case.step]
        if step.role in steps.PROGRAMS or step.role == HUMAN:
            return NO_CONTEXT
        tree = self._find_tree(case)
        if case.step == steps.IMPLEMENT:
            self._hand_over(case_no, case, tree, dispatch_id)
        config = self.environment.config
        mark = f"{config.secret}:{dispatch_id}".encode()
        is_consulted = case.step == steps.CONSULT
        return ExecutionContext(
            folder=str(tree.folder),
            variables=tree.environment(self.environment.ports_of(case_no)),
            nonce=hashlib.blake2b(mark, digest_size=8).hexdigest(),
            strict=config.strict_signals,
            writes=step.role in steps.WRITERS,
            request_id=f"{case.case_id}-x{case.visits.get(case.step, 1)}" if is_consulted else "",
        )

    def _find_tree(self, case: Case) -> TaskTree:
        """The tree of the step; experts and those who make them see that of whoever asked."""
        is_expert = case.step in (steps.CONSULT, steps.RECRUIT) and case.stack
        return self.environment.tree_of(case.case_id, case.stack[-1] if is_expert else case.step)

    def find_tree_of(self, ask: Ask) -> TaskTree:
        """The tree in which the agent of an open dispatch works."""
        if ask.case is None:
            raise SourceError(f"step {ask.step} of {ask.case_id} has no case")
        return self._find_tree(ask.case)

    def _hand_over(self, case_no: int, case: Case, tree: TaskTree, dispatch_id: int) -> None:
        """A developer goes on from the work as it was judged: what was done to it since is undone.
        After a restart the same dispatch goes out again; what differs then is the developer's own.
        """
        if tree.record.dispatch_id == dispatch_id:
            return
        history = self._history(case_no)
        if history and history[-1].decision.step in (steps.REVIEW, steps.AUDIT):
            sha = str(find_last_answer(history, steps.CHECK, steps.PROVE).get("snapshot", ""))
            if sha and not tree.is_unchanged(sha):
                tree.restore(sha)
                self._notes.append(
                    f"{case.case_id}: its files were changed while it was being judged; "
                    "they were put back"
                )
        tree.set_dispatch(dispatch_id)

    def prompt_values(
        self, case_no: int, case: Case, execution: ExecutionContext
    ) -> Mapping[str, Any]:
        role = self._circuit.steps[case.step].role
        if role in steps.PROGRAMS:
            return {}
        history = self._history(case_no)
        notices = self._list_notices(case, history)
        context = self._contexts.build(case, role, history, execution, notices)
        return build_parameters(case=case, role=role, context=context)

    def _list_notices(self, case: Case, history: Sequence[PastDecision]) -> list[str]:
        """What became of the last thing that the agent reported."""
        last = history[-1] if history else None
        if last is None or last.decision.step != case.step:
            return []
        if last.decision.signal == CONFLICT and last.answer.get("handling"):
            return [describe_handling(last.answer, self._ends)]
        waited_for = str(last.answer.get("waits_for", ""))
        if waited_for in self._ends:
            return [f"Task `{waited_for}`, which you waited for, is {self._ends[waited_for]}."]
        if last.decision.signal == UNREADABLE and case.step != steps.RECRUIT:
            notice = (
                "Your last answer had no usable signal. If your work is done, send its signal "
                f"again. If not: Say where you stand with CHECKPOINT: {case.case_id}, and go on."
            )
            return [notice]
        return []

    # What came back

    def check_answer(self, case_no: int, case: Case, signal: Signal) -> Signal | RefusedAnswer:
        if signal.name in _BLOCKED or case.step in (steps.CHECK, steps.PROVE):
            return _add_data(signal, under_repair=self._is_under_repair(case))
        match signal.name:
            case "TASK_INCOMPLETE":
                return self._check_incomplete(case, signal)
            case "EXPERT_REQUEST":
                wanted = str(signal.data.get("target_agent", ""))
                if not is_expert_name(wanted):
                    sentence = f"{wanted!r} is no name of an expert: use letters, digits, - and _."
                    return RefusedAnswer("Malformed", sentence)
                return _add_data(signal, expert_known=self.experts.has(wanted))
            case "EXPERT_CREATED":
                return self._check_created(case, signal)
            case "FILE CONFLICT":
                return self._check_conflict(case, signal)
            case "REVIEW_PASSED" | "AUDIT_PASSED" | "HEALTH_AUDIT: HEALTHY":
                return self._check_verdict(case_no, case, signal)
        return signal

    def _check_verdict(self, case_no: int, case: Case, signal: Signal) -> Signal | RefusedAnswer:
        """A judge who passes the work says something about every finding that asks for it."""
        role, text = self._circuit.steps[case.step].role, str(signal.data.get("text", ""))
        open_findings = list_unanswered(self._history(case_no), role, text)
        if not open_findings:
            return signal
        return RefusedAnswer(
            "Malformed",
            "Your verdict does not answer these findings: " + "; ".join(open_findings) + ". Name "
            "the file of each in your sections and say why it is right, or fail the work.",
        )

    def _check_incomplete(self, case: Case, signal: Signal) -> Signal:
        """What keeps the developer from finishing: as the message says in a line of its own, or a
        task that its blocker names."""
        found = _CATEGORY.search(str(signal.data.get("text", "")))
        word = found[1].lower().replace("-", "_").replace(" ", "_") if found else ""
        category = word if word in _CATEGORIES else "unknown"
        waits_for = ""
        if category in ("unknown", "blocked_by_dependency"):
            texts = (str(signal.data.get(name, "")) for name in ("blocker", "needed"))
            others = [name for name in self._cases if name != case.case_id]
            waits_for = find_named_task("\n".join(texts), others)
        if waits_for:
            category = "blocked_by_dependency"
        repair = category == "infrastructure" and self._is_under_repair(case)
        return _add_data(signal, category=category, waits_for=waits_for, under_repair=repair)

    def _check_created(self, case: Case, signal: Signal) -> Signal | RefusedAnswer:
        wanted = requested_expert(case)
        if signal.subject != wanted:
            return RefusedAnswer("WrongTask", f"The expert that is wanted is {wanted}.")
        folder = self._find_tree(case).folder
        self.experts.adopt(wanted, folder / self.experts.seed_path(wanted))
        if not self.experts.has(wanted):
            place = self.experts.seed_path(wanted)
            return RefusedAnswer(
                "Malformed", f"Write the expert's text to {place} first, then say so."
            )
        return signal

    def _check_conflict(self, case: Case, signal: Signal) -> Signal:
        path = str(signal.subject or "")
        holder = self._find_holder(case, path, str(signal.data.get("assigned_to", "")))
        can_wait = str(signal.data.get("can_wait", ""))
        handling = decide_handling(holder, can_wait, self._comes_later(holder, case.case_id))
        return _add_data(signal, path=path, holder=holder, handling=handling)

    def _comes_later(self, name: str, case_id: str) -> bool:
        """Whether a task has not begun and cannot before this one is over: it is held back, and
        will be for this one's files, or it depends on this one."""
        if name not in self._cases or self._cases[name].step != steps.PREPARE:
            return False
        if self._queues.is_waiting(name):
            return True
        found, waiting = {name}, [name]
        while waiting:
            task = self.environment.tasks.get(waiting.pop())
            new = [each for each in task.blocked_by if each not in found] if task else []
            found.update(new)
            waiting += new
        return case_id in found

    def _find_holder(self, case: Case, path: str, named: str) -> str:
        """The open task that has declared the file, has changed it, or is named as its holder."""
        full = f"{self.environment.workspace.source.prefix}{path}"
        others = [name for name in self._cases if name != case.case_id]
        declared = self._list_declared()
        for name in others:
            recorded = self._checking.diffs.get(name, Diff())
            if full in recorded.paths or covers(declared.get(name, ()), path):
                return name
        if named in others:
            return named
        at_work = (name for name in others if self._cases[name].step != steps.PREPARE)
        for name in at_work:
            if self.environment.tree_of(name, steps.IMPLEMENT).has_changed(full):
                return name
        return ""

    def effects(
        self, case_no: int, case: Case, decision: Decision, data: Mapping[str, Any], by: str
    ) -> Sequence[Effect]:
        self._history(case_no).append(self._build_past(case_no, decision, data))
        self._dispatched.discard(case.case_id)
        update_holders(self._holders, case.case_id, decision)
        if case.step == steps.CONSULT:
            self._queues.leave_expert(case.case_id)
        return ()

    def _is_under_repair(self, case: Case) -> bool:
        """Whether another case repairs the infrastructure already."""
        return any(holder != case.case_id for holder in self._holders.values())

    # Who waits

    def must_wait(self, case_no: int, case: Case) -> bool:
        self._numbers[case.case_id] = case_no
        if case.status != OPEN:
            self._cases.pop(case.case_id, None)
            self._histories.pop(case_no, None)
            self._checking.diffs.pop(case.case_id, None)
            self._queues.end(case.case_id)
            self._ends[case.case_id] = case.end or case.status
            return False
        self._cases[case.case_id] = case
        if case.step == steps.PREPARE:
            return self._must_wait_for_files(case.case_id)
        if case.step == steps.CONSULT:
            return self._queues.ask_expert(case.case_id, requested_expert(case))
        history = self._history(case_no)
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

    def _must_wait_for_files(self, case_id: str) -> bool:
        """Whether an active task has declared the same files: it goes first."""
        declared = self._list_declared()
        files = declared.get(case_id, ())
        for name in self._list_active() if files else ():
            if name != case_id and may_overlap(files, declared.get(name, ())):
                self._queues.wait_for(case_id, name)
                return True
        return False

    def released_cases(self) -> Iterable[str]:
        released = self._queues.release(lambda name: name in self._cases)
        return [
            name
            for name in released
            # Another task may have got the same files meanwhile.
            if self._cases[name].step != steps.PREPARE or not self._must_wait_for_files(name)
        ]

    def new_cases(self) -> Iterable[NewCase]:
        found = self._watch.new_cases()
        if self._watch.plan is not self.environment.plan:
            self.environment.set_plan(self._watch.plan)
        return found

    def notes(self) -> Iterable[str]:
        return self._notes

    def _note_dispatch(self, case_no: int, case: Case) -> None:
        """Also after a restart, when what was out goes out again."""
        self._cases[case.case_id], self._numbers[case.case_id] = case, case_no
        self._dispatched.add(case.case_id)
        self._history(case_no)
        if case.step == steps.CONSULT:
            self._queues.resume_expert(case.case_id, requested_expert(case))

    def _list_idle(self) -> dict[str, str]:
        """Open tasks in whose trees nobody works, and where each stands, detours left out."""
        return {
            name: case.stack[0] if case.stack else case.step
            for name, case in self._cases.items()
            if name not in self._dispatched and case.step != steps.PREPARE
        }

    def _list_waiting_for(self, task: str) -> dict[str, str]:
        """Idle tasks that wait for this one, and where each stands."""
        waiting = {*self._queues.list_waiting_for(task)}
        return {name: step for name, step in self._list_idle().items() if name in waiting}

    def _list_active(self) -> Iterable[str]:
        """Open cases that can end somebody's wait: neither waiting themselves nor with a human."""
        complete = {name for name, end in self._ends.items() if end == steps.COMPLETE}
        for name, case in self._cases.items():
            task = self.environment.tasks.get(name)
            is_ready = task is None or {*task.blocked_by} <= complete
            if is_ready and case.step not in steps.GATES and not self._queues.is_waiting(name):
                yield name

    def _list_declared(self) -> dict[str, tuple[str, ...]]:
        """The files of open tasks: those they declared, and those they were given later."""
        tasks = self.environment.tasks
        return {
            name: (*tasks[name].target_files, *self._assigned.get(self._numbers[name], ()))
            for name in self._cases
            if name in tasks
        }

    def _list_reported(self, case_id: str) -> frozenset[str]:
        """The files that a task reported as in conflict: it was told to go on with them."""
        return frozenset(
            str(past.answer.get("path", ""))
            for past in self._history(self._numbers[case_id])
            if past.decision.signal == CONFLICT
        )

    def _history(self, case_no: int) -> list[PastDecision]:
        """The decisions about a case so far, this turn's included."""
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


def _add_data(signal: Signal, **more: Any) -> Signal:
    return msgspec.structs.replace(signal, data={**signal.data, **more})
