"""Collects the report of a delivery from its journal and its baselines.

Reads only what is committed, so it can be called while the run is active. What agents wrote is
unbounded; what is kept of it here is not.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec
from sqlalchemy import Connection

from interlock.delivery import steps
from interlock.delivery.checks.baseline import read_baseline
from interlock.delivery.checks.claims import AgentClaim, count_claims
from interlock.delivery.checks.records import CheckResult
from interlock.delivery.report.board import TaskState, assess_tasks, delivery_outcome, name_agent
from interlock.delivery.report.records import (
    AgentStatement,
    CheckEvidence,
    DeliveryReport,
    Move,
    NeedsHuman,
    TaskReport,
)
from interlock.delivery.terms import DeliveryConfig
from interlock.delivery.worktrees.names import folder_name
from interlock.delivery.worktrees.tree import TREES
from interlock.engine.case import Decision
from interlock.engine.circuit import FAILURES, HUMAN, Circuit
from interlock.journal.history import DispatchRecord, list_cases, list_dispatches, sum_costs
from interlock.journal.runs import NewCase, Run, load_holds, load_inputs
from interlock.system.errors import InterlockError

_MOST_SAID: Final = 2_000
_MOST_OUTPUT: Final = 3_000
_SAYS: Final = (
    "summary",
    "question",
    "blocker",
    "decision",
    "problem",
    "recommendation",
    "text",
)
"""The parts of an answer that tell what it comes to, the best one first."""
_ASKS: Final = ("question", "blocker", "problem", "summary", "reason", "text")


def is_inspection(turn: DispatchRecord) -> bool:
    return turn.decision is not None and turn.decision.signal == "artifact"


def is_merge(turn: DispatchRecord) -> bool:
    return (
        turn.step == steps.MERGE and is_inspection(turn) and turn.answer.get("outcome") == "merged"
    )


def find_last_answer(turns: Sequence[DispatchRecord], step: str, signal: str) -> Mapping[str, Any]:
    for turn in reversed(turns):
        if turn.step == step and turn.decision and turn.decision.signal == signal:
            found: Mapping[str, Any] = turn.answer
            return found
    return {}


def find_question(turns: Sequence[DispatchRecord]) -> str:
    """What was asked, in the words of the one who asked; else why a human is needed."""
    asked = turns[-2] if len(turns) > 1 else None
    if asked is None or asked.decision is None:
        return ""
    answer = asked.answer if isinstance(asked.answer, Mapping) else {}
    for name in _ASKS:
        if found := flatten_text(answer.get(name)):
            return found
    return flatten_text(asked.decision.adds.get("reason"))


def summarize_answer(signal: str, answer: Any) -> str:
    if not isinstance(answer, Mapping):
        return ""
    if signal in FAILURES:
        return flatten_text(answer.get("reason"))
    for name in _SAYS:
        if found := flatten_text(answer.get(name)):
            more = flatten_text(answer.get("text")) if name == "decision" else ""
            return f"{found}: {more}" if more else found
    return ""


def flatten_text(value: Any) -> str:
    """A section as plain text, whatever the parser made of it."""
    if isinstance(value, str):
        return value.strip()[:_MOST_SAID]
    if isinstance(value, list):
        return "; ".join(flatten_text(each) for each in value if each)[:_MOST_SAID]
    if isinstance(value, Mapping):
        return " ".join(flatten_text(each) for each in value.values() if each)[:_MOST_SAID]
    return "" if value is None else str(value)


def read_evidence(looked: Iterable[DispatchRecord]) -> Iterator[CheckEvidence]:
    for turn in looked:
        for row in turn.answer.get("results", ()):
            yield CheckEvidence(
                stage=turn.step.lower().replace("_", " "),
                attempt=turn.attempt,
                check=str(row.get("check", "")),
                environment=str(row.get("environment", "")),
                passed=bool(row.get("passed")),
                exit_code=row.get("exit_code"),
                tests=row.get("tests"),
                seconds=float(row.get("seconds") or 0.0),
                note=str(row.get("note", "")),
                output=str(row.get("output", "")),
            )


def build_evidence(result: CheckResult, stage: str) -> CheckEvidence:
    return CheckEvidence(
        stage=stage,
        attempt=1,
        check=result.check,
        environment=result.environment,
        passed=result.passed,
        exit_code=result.exit_code,
        tests=result.test_count,
        seconds=result.seconds,
        note=result.note,
        output="" if result.passed else result.output_tail[-_MOST_OUTPUT:],
    )


_BASELINES: Final = "baselines"
_BEFORE, _AFTER = "baseline", "merge"


class ReportCollector:
    """What is known of a run beside its journal."""

    def __init__(
        self,
        run: Run,
        circuit: Circuit,
        terms: DeliveryConfig,
        agents: Mapping[str, str],
        status: str,
    ) -> None:
        """`agents` are the words of those who play the roles, '' all others; `status` is the
        run's, or `interrupted` for one that runs without a process."""
        self._run = run
        self._circuit = circuit
        self._terms = terms
        self._agents = agents
        self._status = status

    def collect(
        self, connection: Connection, now: float, title: str = "", notes: Iterable[str] = ()
    ) -> DeliveryReport:
        run, terms = self._run, self._terms
        stands = list_cases(connection, run.run_id)
        stood = assess_tasks(stands)
        holds = load_holds(connection, self._circuit, run.run_id)
        costs = sum_costs(connection, run.run_id)
        given = {each.case_id: each for each in load_inputs(connection, run.run_id)}
        turns = _group_by_case(list_dispatches(connection, run_id=run.run_id))
        tasks = tuple(
            self._collect_task(
                each.case_id,
                stood[each.case_id],
                given[each.case_id],
                turns.get(each.case_id, []),
                costs.get(each.case_id, (0, 0.0)),
            )
            for each in stands
        )
        ends = Counter(each.end or each.status for each in stands)
        said = ((each.agent, each.role, each.claim) for task in tasks for each in task.claims)
        bases = (str(turn.answer.get("base", "")) for turn in _first_answers(turns) if turn.answer)
        return DeliveryReport(
            run_id=run.run_id,
            title=title or Path(terms.plan).name,
            outcome=delivery_outcome(self._status, ends, is_held=bool(holds)),
            plan=terms.plan,
            source=terms.source,
            branch=f"interlock/{terms.slug}",
            base=next(bases, ""),
            home=terms.home,
            made_at=now,
            began=run.created_at,
            dispatches=run.spent.dispatches,
            tokens=run.spent.tokens,
            money=run.spent.money,
            seconds=run.spent.seconds,
            repairing=next(iter(holds.values()), ""),
            tasks=tasks,
            accounts=count_claims(said),
            needs=tuple(self._list_needs(tasks)),
            notes=tuple(dict.fromkeys(notes)),
        )

    def _collect_task(
        self,
        task_id: str,
        place: TaskState,
        given: NewCase,
        turns: Sequence[DispatchRecord],
        cost: tuple[int, float],
    ) -> TaskReport:
        moves = tuple(self._build_move(turn, turn.decision) for turn in turns if turn.decision)
        open_turn = next((turn for turn in turns if turn.decision is None), None)
        asks = open_turn if open_turn and open_turn.role == HUMAN else None
        looked = [turn for turn in turns if turn.step in steps.CLAIMED and is_inspection(turn)]
        last = looked[-1].answer if looked else {}
        written = find_last_answer(turns, steps.IMPLEMENT, "READY_FOR_REVIEW")
        merged: Mapping[str, Any] = next(
            (turn.answer for turn in reversed(turns) if is_merge(turn)), {}
        )
        end = place.why if place.word in ("complete", "failed") else ""
        return TaskReport(
            task_id=task_id,
            title=str(given.input.get("title", "")),
            phase=str(given.input.get("phase", "")),
            word=place.word,
            end=end,
            step=turns[-1].step if turns else "",
            why=moves[-1].why if end and moves else place.why,
            attempts=sum(turn.step == steps.IMPLEMENT for turn in turns),
            dispatches=sum(turn.role != HUMAN for turn in turns),
            question_id=asks.dispatch_id if asks else 0,
            question=find_question(turns) if asks else "",
            author=self._name_agent("developer") if written else "",
            summary=flatten_text(written.get("summary")),
            changed=tuple(map(str, last.get("changed", ()))),
            commit=str(merged.get("commit", "")),
            tree=str(Path(self._terms.home) / TREES / folder_name(task_id)) if turns else "",
            moves=moves,
            proofs=(*self._read_before(turns), *read_evidence(looked), *self._read_after(merged)),
            claims=tuple(self._collect_claims(looked)),
            tells=tuple(map(str, last.get("tells", ()))),
            violations=tuple(
                dict.fromkeys(str(each) for t in looked for each in t.answer.get("violations", ()))
            ),
            tokens=cost[0],
            money=cost[1],
            seconds=sum(move.seconds for move in moves if move.role != HUMAN),
        )

    def _build_move(self, turn: DispatchRecord, decision: Decision) -> Move:
        rule = self._circuit.find_rule(decision.rule) or self._circuit.otherwise
        why = decision.reason or (rule.why if rule else "")
        answered = turn.answered_at or turn.sent_at
        return Move(
            at=answered,
            seconds=max(0.0, answered - turn.sent_at),
            step=turn.step,
            attempt=turn.attempt,
            role=turn.role,
            agent=turn.answered_by or self._name_agent(turn.role),
            signal=decision.signal,
            rule=decision.rule,
            to=decision.to or decision.status,
            why=why,
            said=summarize_answer(decision.signal, turn.answer),
            refused=tuple(f"{each.reason}: {each.sentence}" for each in turn.refused),
            tokens=turn.usage.tokens,
            money=turn.usage.money,
        )

    def _name_agent(self, role: str) -> str:
        return name_agent(role, self._agents)

    def _collect_claims(self, looked: Iterable[DispatchRecord]) -> Iterator[AgentStatement]:
        for turn in looked:
            role = self._circuit.steps[steps.CLAIMED[turn.step][0]].role
            for each in turn.answer.get("claims", ()):
                claim = msgspec.convert(each, AgentClaim)
                yield AgentStatement(
                    agent=self._name_agent(role),
                    role=role,
                    step=turn.step,
                    attempt=turn.attempt,
                    claim=claim,
                )

    def _read_before(self, turns: Sequence[DispatchRecord]) -> Iterator[CheckEvidence]:
        """How the checks stood where the task began."""
        base = next(
            (
                str(t.answer.get("base", ""))
                for t in reversed(turns)
                if t.step == steps.PREPARE and is_inspection(t)
            ),
            "",
        )
        yield from self._read_baseline(base, _BEFORE)

    def _read_after(self, merged: Mapping[str, Any]) -> Iterator[CheckEvidence]:
        """How they came out on top of the merge branch, as it was merged."""
        yield from self._read_baseline(str(merged.get("commit", "")), _AFTER)

    def _read_baseline(self, commit: str, stage: str) -> Iterator[CheckEvidence]:
        try:
            rows = read_baseline(Path(self._terms.home) / _BASELINES, commit).rows if commit else ()
        except InterlockError:
            return
        for row in sorted(rows, key=lambda each: each.result.pair):
            yield build_evidence(row.result, stage)

    def _list_needs(self, tasks: Iterable[TaskReport]) -> Iterator[NeedsHuman]:
        run_id = self._run.run_id
        for task in tasks:
            if task.question_id:
                number = task.question_id
                yield NeedsHuman(
                    task_id=task.task_id,
                    sentence=task.question,
                    commands=list_answer_commands(self._circuit, task.step, number),
                )
            elif task.word == "failed" and task.end != "SKIPPED":
                last = task.moves[-1].said.split("\n")[0] if task.moves else ""
                because = f" ({last})" if last else ""
                yield NeedsHuman(
                    task_id=task.task_id,
                    sentence=f"{task.end} at {task.step}: {task.why}{because}",
                    commands=(f"interlock explain {task.task_id} --run {run_id}",),
                )


def list_answer_commands(circuit: Circuit, step: str, question_id: int) -> tuple[str, ...]:
    """The commands that answer a question at a gate, one for each decision it takes."""
    fields = circuit.steps[step].shape.fields
    words = fields["decision"].choices if "decision" in fields else None
    return tuple(
        f"interlock answer {question_id} {word}" + (' -m "…"' if word == "answer" else "")
        for word in words or ()
    )


def _group_by_case(rows: Iterable[DispatchRecord]) -> dict[str, list[DispatchRecord]]:
    found: dict[str, list[DispatchRecord]] = {}
    for row in rows:
        found.setdefault(row.case_id, []).append(row)
    return found


def _first_answers(turns: Mapping[str, Sequence[DispatchRecord]]) -> Iterator[DispatchRecord]:
    for each in turns.values():
        yield from each[:1]
