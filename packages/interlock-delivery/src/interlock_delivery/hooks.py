"""The hooks of the circuit `delivery`: where its agents work, and what they are told.

The circuit's rules decide everything. The hooks find what the rules need, and `OpenTasks` remembers
what they led to.
"""

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from interlock.carriers.contract import NO_CONTEXT, Ask, ExecutionContext
from interlock.engine.case import Case, Decision, RefusedAnswer, Signal
from interlock.engine.circuit import HUMAN, UNREADABLE, Circuit
from interlock.journal.connection import Connection
from interlock.journal.journal import Effect
from interlock.journal.runs import NewCase
from interlock.system.clock import Clock
from interlock.system.errors import SourceError
from interlock_delivery import steps
from interlock_delivery.handlers import DeliveryHandlers
from interlock_delivery.inspection import TaskEnvironment
from interlock_delivery.open_tasks import OpenTasks, PastDecision, requested_expert
from interlock_delivery.parameters import build_parameters
from interlock_delivery.plan.watch import PlanWatch
from interlock_delivery.queues import (
    CONFLICT,
    decide_handling,
    describe_handling,
    find_named_task,
)
from interlock_delivery.task_context import (
    ExpertFiles,
    TaskContextBuilder,
    find_last_answer,
    is_expert_name,
    list_unanswered,
)
from interlock_delivery.worktrees.tree import TaskTree

_CATEGORY: Final = re.compile(r"^Category:[ \t]*([A-Za-z_ -]+?)[ \t]*$", re.MULTILINE)
_CATEGORIES: Final = ("missing_info", "out_of_scope", "infrastructure", "blocked_by_dependency")
_BLOCKED: Final = ("INFRA_BLOCKED", "AUDIT_BLOCKED")


class DeliveryHooks:
    """Serves the circuit `delivery` while a run is worked on."""

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
        work = environment.config.work
        self.environment = environment
        self._notes = notes
        notes.extend(environment.workspace.notes)
        self.experts = ExpertFiles(
            Path(environment.config.source) / work.experts, environment.made_experts, work.experts
        )
        self._tasks = OpenTasks(connection, run_id, circuit, environment)
        self.handlers = DeliveryHandlers(environment, self._tasks, clock, notes.append)
        self._contexts = TaskContextBuilder(environment, self._tasks, self.experts)
        self._circuit = circuit
        self._watch = watch

    # Before a dispatch

    def context_for(self, case_no: int, case: Case, dispatch_id: int) -> ExecutionContext:
        self._tasks.record_dispatch(case_no, case)
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
        """Return the tree of the step; experts and their makers use the asking step's."""
        is_expert = case.step in (steps.CONSULT, steps.RECRUIT) and case.stack
        return self.environment.tree_of(case.case_id, case.stack[-1] if is_expert else case.step)

    def find_tree_of(self, ask: Ask) -> TaskTree:
        """Return the tree in which the agent of an open dispatch works."""
        if ask.case is None:
            raise SourceError(f"step {ask.step} of {ask.case_id} has no case")
        return self._find_tree(ask.case)

    def _hand_over(self, case_no: int, case: Case, tree: TaskTree, dispatch_id: int) -> None:
        """Give the tree to a developer, undoing changes that were made while the work was judged.

        A dispatch that goes out again after a restart keeps its changes, which are the developer's
        own.
        """
        if tree.record.dispatch_id == dispatch_id:
            return
        history = self._tasks.history(case_no)
        if history and history[-1].decision.step in (steps.REVIEW, steps.AUDIT):
            sha = str(find_last_answer(history, steps.CHECK, steps.PROVE).get("snapshot", ""))
            if sha and not tree.is_unchanged(sha):
                tree.restore(sha)
                self._notes.append(
                    f"{case.case_id}: its files were changed while it was being judged; "
                    "they were restored"
                )
        tree.set_dispatch(dispatch_id)

    def prompt_values(
        self, case_no: int, case: Case, execution: ExecutionContext
    ) -> Mapping[str, Any]:
        role = self._circuit.steps[case.step].role
        if role in steps.PROGRAMS:
            return {}
        history = self._tasks.history(case_no)
        notices = self._list_notices(case, history)
        context = self._contexts.build(case, role, history, execution, notices)
        return build_parameters(case=case, role=role, context=context)

    def _list_notices(self, case: Case, history: Sequence[PastDecision]) -> list[str]:
        """Return what became of the agent's last report."""
        last = history[-1] if history else None
        if last is None or last.decision.step != case.step:
            return []
        if last.decision.signal == CONFLICT and last.answer.get("handling"):
            return [describe_handling(last.answer, self._tasks.ends)]
        waited_for = str(last.answer.get("waits_for", ""))
        if waited_for in self._tasks.ends:
            return [
                f"Task `{waited_for}`, which you waited for, is {self._tasks.ends[waited_for]}."
            ]
        if last.decision.signal == UNREADABLE and case.step != steps.RECRUIT:
            notice = (
                "Your last answer had no usable signal. If your work is done, send its signal "
                f"again. If not, say where you are with CHECKPOINT: {case.case_id}, and continue."
            )
            return [notice]
        return []

    # After an answer

    def check_answer(self, case_no: int, case: Case, signal: Signal) -> Signal | RefusedAnswer:
        if signal.name in _BLOCKED or case.step in (steps.CHECK, steps.PROVE):
            return _add_data(signal, under_repair=self._tasks.is_under_repair(case))
        match signal.name:
            case "TASK_INCOMPLETE":
                return self._check_incomplete(case, signal)
            case "EXPERT_REQUEST":
                wanted = str(signal.data.get("target_agent", ""))
                if not is_expert_name(wanted):
                    sentence = (
                        f"{wanted!r} cannot be the name of an expert: use letters, digits, - and _."
                    )
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
        """Refuse a passing verdict that does not mention every finding it must answer."""
        role, text = self._circuit.steps[case.step].role, str(signal.data.get("text", ""))
        open_findings = list_unanswered(self._tasks.history(case_no), role, text)
        if not open_findings:
            return signal
        return RefusedAnswer(
            "Malformed",
            "Your verdict does not answer these findings: " + "; ".join(open_findings) + ". Name "
            "the file of each in your sections and say why it is right, or fail the work.",
        )

    def _check_incomplete(self, case: Case, signal: Signal) -> Signal:
        """Add what keeps the developer from finishing: a stated category, or a task the blocker
        names.
        """
        found = _CATEGORY.search(str(signal.data.get("text", "")))
        word = found[1].lower().replace("-", "_").replace(" ", "_") if found else ""
        category = word if word in _CATEGORIES else "unknown"
        waits_for = ""
        if category in ("unknown", "blocked_by_dependency"):
            texts = (str(signal.data.get(name, "")) for name in ("blocker", "needed"))
            others = [name for name in self._tasks.cases if name != case.case_id]
            waits_for = find_named_task("\n".join(texts), others)
        if waits_for:
            category = "blocked_by_dependency"
        repair = category == "infrastructure" and self._tasks.is_under_repair(case)
        return _add_data(signal, category=category, waits_for=waits_for, under_repair=repair)

    def _check_created(self, case: Case, signal: Signal) -> Signal | RefusedAnswer:
        wanted = requested_expert(case)
        if signal.subject != wanted:
            return RefusedAnswer("WrongTask", f"The requested expert is {wanted}.")
        folder = self._find_tree(case).folder
        self.experts.adopt(wanted, folder / self.experts.seed_path(wanted))
        if not self.experts.has(wanted):
            place = self.experts.seed_path(wanted)
            return RefusedAnswer(
                "Malformed", f"Write the expert's text to {place} first, then send the signal."
            )
        return signal

    def _check_conflict(self, case: Case, signal: Signal) -> Signal:
        path = str(signal.subject or "")
        named = str(signal.data.get("assigned_to", ""))
        holder = self._tasks.find_holder(case, path, named)
        can_wait = str(signal.data.get("can_wait", ""))
        handling = decide_handling(holder, can_wait, self._tasks.is_later(holder, case.case_id))
        return _add_data(signal, path=path, holder=holder, handling=handling)

    def effects(
        self, case_no: int, case: Case, decision: Decision, data: Mapping[str, Any], by: str
    ) -> Sequence[Effect]:
        self._tasks.record_decision(case_no, case, decision, data)
        return ()

    # Waiting cases

    def must_wait(self, case_no: int, case: Case) -> bool:
        return self._tasks.must_wait(case_no, case)

    def released_cases(self) -> Iterable[str]:
        return self._tasks.release()

    def new_cases(self) -> Iterable[NewCase]:
        found = self._watch.new_cases()
        if self._watch.plan is not self.environment.plan:
            self.environment.set_plan(self._watch.plan)
        return found

    def notes(self) -> Iterable[str]:
        return self._notes


def _add_data(signal: Signal, **more: Any) -> Signal:
    return msgspec.structs.replace(signal, data={**signal.data, **more})
