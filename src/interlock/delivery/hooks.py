"""The application of the circuit `delivery`: where its agents work, what they are told, who waits.

Stands between the loop and the task environment. Everything is decided by the circuit's rules; this
finds what they need, and remembers what they led to.
"""

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec
from sqlalchemy import Connection

from interlock.agents.carrier import NO_CONTEXT, Clock, ExecutionContext
from interlock.delivery import steps, task_context
from interlock.delivery.handlers import CheckHandler, DeliveryHandlers
from interlock.delivery.inspection import TaskEnvironment, TreeInspection
from interlock.delivery.merging import MergeHandler
from interlock.delivery.parameters import build_parameters
from interlock.delivery.plan.watch import PlanWatch
from interlock.delivery.queues import WaitQueues
from interlock.delivery.rule_tags import ANY, HOLDER, WAITS, read_rule_tags
from interlock.delivery.task_context import (
    ExpertFiles,
    PastDecision,
    TaskContextBuilder,
    is_expert_name,
    requested_expert,
)
from interlock.delivery.worktrees.diff import Diff
from interlock.delivery.worktrees.snapshot import covers, may_overlap
from interlock.delivery.worktrees.tree import TaskTree
from interlock.engine.case import OPEN, Case, Decision, RefusedAnswer, Signal
from interlock.engine.circuit import HUMAN, Circuit
from interlock.journal.journal import Effect
from interlock.journal.runs import NewCase, load_decisions, load_holds

_CATEGORY: Final = re.compile(r"^Category:[ \t]*([A-Za-z_ -]+?)[ \t]*$", re.MULTILINE)
_CATEGORIES: Final = ("missing_info", "out_of_scope", "infrastructure", "blocked_by_dependency")
_CONFLICT: Final = "FILE CONFLICT"
_BLOCKED: Final = ("INFRA_BLOCKED", "AUDIT_BLOCKED")


class DeliveryHooks:
    """What the circuit `delivery` needs while a run of it is worked on."""

    def __init__(
        self,
        connection: Connection,
        run_id: int,
        circuit: Circuit,
        ground: TaskEnvironment,
        watch: PlanWatch,
        clock: Clock,
        told: list[str],
    ) -> None:
        terms = ground.terms
        self.ground = ground
        self.told = told
        told.extend(ground.workspace.notes)
        self.experts = ExpertFiles(Path(terms.source) / terms.work.experts, ground.made_experts)
        inspection = TreeInspection(ground, clock)
        merging = MergeHandler(ground, inspection, self._idle, self.told.append)
        self.checking = CheckHandler(ground, inspection, merging, self._reported_by, self._declared)
        self.handlers = DeliveryHandlers(ground, clock, merging, self.checking, inspection)
        self._briefs = TaskContextBuilder(ground, self.checking, self.experts)
        self.queues = WaitQueues(terms.work.per_expert, self._at_work)
        self._connection = connection
        self._circuit = circuit
        self._tags = read_rule_tags(circuit)
        self._watch = watch
        self._stories: dict[int, list[PastDecision]] = {}
        self._cases: dict[str, Case] = {}
        self._numbers: dict[str, int] = {}
        self._out: set[str] = set()
        self._complete: set[str] = set()
        self._holders = dict(load_holds(connection, circuit, run_id))

    # Where an agent works, and what it is told

    def context_for(self, case_no: int, case: Case, dispatch_id: int) -> ExecutionContext:
        self._goes_out(case_no, case)
        step = self._circuit.steps[case.step]
        if step.role in steps.PROGRAMS or step.role == HUMAN:
            return NO_CONTEXT
        tree = self.ground.tree_of(case.case_id, case.step)
        self._put_back_after_judges(case_no, case, tree)
        terms = self.ground.terms
        mark = f"{terms.secret}:{dispatch_id}".encode()
        return ExecutionContext(
            folder=str(tree.folder),
            variables=tree.environment(self.ground.ports_of(case_no)),
            nonce=hashlib.blake2b(mark, digest_size=8).hexdigest(),
            strict=terms.strict_signals,
            writes=step.role in steps.WRITERS,
            request_id=_request_id(case) if case.step == steps.CONSULT else "",
        )

    def _put_back_after_judges(self, case_no: int, case: Case, tree: TaskTree) -> None:
        """A developer goes on from their own work: what a judge did to it is taken away first."""
        story = self._story(case_no)
        judged = bool(story) and story[-1].decision.step in (steps.REVIEW, steps.AUDIT)
        if case.step != steps.IMPLEMENT or not judged:
            return
        sha = str(
            task_context.find_last_answer(story, steps.CHECK, steps.PROVE).get("snapshot", "")
        )
        if sha and not tree.is_unchanged(sha):
            tree.restore(sha)
            self.told.append(
                f"{case.case_id}: a judge changed files of the work; they were put back"
            )

    def prompt_values(
        self, case_no: int, case: Case, premises: ExecutionContext
    ) -> Mapping[str, Any]:
        step = self._circuit.steps[case.step]
        if step.role in steps.PROGRAMS:
            return {}
        brief = self._briefs.build(case, self._story(case_no), premises)
        return build_parameters(case=case, role=step.role, brief=brief)

    # What came back

    def check_answer(self, case_no: int, case: Case, signal: Signal) -> Signal | RefusedAnswer:
        if signal.name in _BLOCKED or case.step in (steps.CHECK, steps.PROVE):
            return _with(signal, under_repair=self._under_repair(case))
        match signal.name:
            case "TASK_INCOMPLETE":
                category = _category(signal.data)
                repair = category == "infrastructure" and self._under_repair(case)
                return _with(signal, category=category, under_repair=repair)
            case "EXPERT_REQUEST":
                wanted = str(signal.data.get("target_agent", ""))
                if not is_expert_name(wanted):
                    sentence = f"{wanted!r} is no name of an expert: use letters, digits, - and _."
                    return RefusedAnswer("Malformed", sentence)
                return _with(signal, expert_known=self.experts.has(wanted))
            case "EXPERT_CREATED":
                return self._created(case, signal)
            case "FILE CONFLICT":
                path = str(signal.subject or "")
                return _with(signal, path=path, holder=self._holder(case, path))
        return signal

    def _created(self, case: Case, signal: Signal) -> Signal | RefusedAnswer:
        wanted = requested_expert(case)
        if signal.subject != wanted:
            return RefusedAnswer("WrongTask", f"The expert that is wanted is {wanted}.")
        if not self.experts.has(wanted):
            place = self.experts.path_for(wanted)
            return RefusedAnswer(
                "Malformed", f"Write the expert's text to {place} first, then say so."
            )
        return signal

    def _holder(self, case: Case, path: str) -> str:
        """The open task that has declared the file, or that has changed it."""
        prefix = self.ground.workspace.manifest.found.prefix
        for name, files in self._declared().items():
            seen = self.checking.diffs.get(name, Diff())
            wrote = f"{prefix}{path}" in seen.paths
            if name != case.case_id and (wrote or covers(files, path)):
                return name
        return ""

    def effects(
        self, case_no: int, case: Case, decision: Decision, data: Mapping[str, Any], by: str
    ) -> Sequence[Effect]:
        self._story(case_no).append(self._build_past(decision, data))
        self._out.discard(case.case_id)
        self._note_hold(case.case_id, decision)
        if case.step == steps.CONSULT:
            self.queues.leave_expert(case.case_id)
        return ()

    def _note_hold(self, case_id: str, decision: Decision) -> None:
        """Whether this case repairs what stops all others, as the plan keeps it."""
        if decision.hold:
            self._holders.setdefault(decision.hold, case_id)
        self._holders.pop(decision.release, None)
        if decision.status != OPEN:
            self._holders = {
                name: holder for name, holder in self._holders.items() if holder != case_id
            }

    def _under_repair(self, case: Case) -> bool:
        """Whether another case repairs the infrastructure already."""
        return any(holder != case.case_id for holder in self._holders.values())

    # Who waits

    def must_wait(self, case_no: int, case: Case) -> bool:
        self._numbers[case.case_id] = case_no
        if case.status != OPEN:
            self._cases.pop(case.case_id, None)
            self._stories.pop(case_no, None)
            self.checking.diffs.pop(case.case_id, None)
            self.queues.over(case.case_id)
            if case.end == steps.COMPLETE:
                self._complete.add(case.case_id)
            return False
        self._cases[case.case_id] = case
        if case.step == steps.PREPARE:
            return self._waits_for_files(case.case_id)
        if case.step == steps.CONSULT:
            return self.queues.ask_expert(case.case_id, requested_expert(case))
        story = self._story(case_no)
        last = story[-1] if story else None
        if last is None or case.step not in (steps.IMPLEMENT, steps.REMEDIATE):
            return False
        waits = last.tags.get(WAITS)
        if waits == ANY:
            self.queues.wait_for(case.case_id)
            return True
        if waits == HOLDER and _can_wait(last.answer):
            self.queues.wait_for(case.case_id, str(last.answer["holder"]))
            return True
        return False

    def _waits_for_files(self, case_id: str) -> bool:
        """Whether a task that can be worked on has declared the same files: it goes first."""
        files = self._declared().get(case_id, ())
        for name in self._at_work() if files else ():
            if name != case_id and may_overlap(files, self._declared().get(name, ())):
                self.queues.wait_for(case_id, name)
                return True
        return False

    def released_cases(self) -> Iterable[str]:
        return self.queues.let_go(lambda name: name in self._cases)

    def new_cases(self) -> Iterable[NewCase]:
        found = self._watch.new_cases()
        if self._watch.plan is not self.ground.plan:
            self.ground.set_plan(self._watch.plan)
        return found

    def notes(self) -> Iterable[str]:
        return self.told

    def _goes_out(self, case_no: int, case: Case) -> None:
        """Also after a restart, when what was out goes out again."""
        self._cases[case.case_id], self._numbers[case.case_id] = case, case_no
        self._out.add(case.case_id)
        if case.step == steps.CONSULT:
            self.queues.at_expert(case.case_id, requested_expert(case))

    def _idle(self) -> dict[str, str]:
        """Open tasks in whose trees nobody works, and where each stands, detours left out."""
        return {
            name: case.stack[0] if case.stack else case.step
            for name, case in self._cases.items()
            if name not in self._out and case.step != steps.PREPARE
        }

    def _at_work(self) -> Iterable[str]:
        """Open cases that can end somebody's wait: neither waiting themselves nor with a human."""
        for name, case in self._cases.items():
            task = self.ground.tasks.get(name)
            ready = task is None or {*task.blocked_by} <= self._complete
            if ready and case.step not in steps.GATES and not self.queues.is_waiting(name):
                yield name

    def _declared(self) -> dict[str, tuple[str, ...]]:
        """The files that open tasks have declared."""
        tasks = self.ground.tasks
        return {name: tasks[name].target_files for name in self._cases if name in tasks}

    def _reported_by(self, case_id: str) -> frozenset[str]:
        """The files that a task reported as in conflict: it was told to go on with them."""
        return frozenset(
            str(past.answer.get("path", ""))
            for past in self._story(self._numbers[case_id])
            if past.decision.signal == _CONFLICT
        )

    def _story(self, case_no: int) -> list[PastDecision]:
        """What became of a case so far, this turn's decisions included."""
        if case_no not in self._stories:
            self._stories[case_no] = [
                self._build_past(decision, answer)
                for decision, answer in load_decisions(self._connection, case_no)
            ]
        return self._stories[case_no]

    def _build_past(self, decision: Decision, answer: Mapping[str, Any]) -> PastDecision:
        return PastDecision(decision, answer, self._tags.get(decision.rule, {}))


def _with(signal: Signal, **more: Any) -> Signal:
    return msgspec.structs.replace(signal, data={**signal.data, **more})


def _request_id(case: Case) -> str:
    return f"{case.case_id}-x{case.visits.get(steps.CONSULT, 1)}"


def _category(data: Mapping[str, Any]) -> str:
    """What keeps the developer from finishing, where the message says so in a line of its own."""
    found = _CATEGORY.search(str(data.get("text", "")))
    word = found[1].lower().replace("-", "_").replace(" ", "_") if found else ""
    return word if word in _CATEGORIES else "unknown"


def _can_wait(answer: Mapping[str, Any]) -> bool:
    said = str(answer.get("can_wait", "")).strip().upper()
    return bool(answer.get("holder")) and said.startswith("YES")
