"""Collect the report of a delivery from its journal and its baselines.

Only committed data is read, so a report can be made while the run is active. Texts of agents are
unbounded and are cut here.
"""

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from interlock.api.work import load_circuit
from interlock.engine.case import Decision
from interlock.engine.circuit import FAILURES, HUMAN, Circuit
from interlock.journal.connection import Connection
from interlock.journal.history import DispatchRecord, list_cases, list_dispatches, sum_costs
from interlock.journal.runs import Run, find_run, load_holds, load_inputs
from interlock.runtime.settings import RunConfig
from interlock.system.errors import InterlockError
from interlock_delivery import steps
from interlock_delivery.checks.baseline import read_baseline
from interlock_delivery.checks.claims import AgentClaim, count_claims
from interlock_delivery.checks.verdict import build_result_row
from interlock_delivery.config import DeliveryConfig
from interlock_delivery.plan import read_plan
from interlock_delivery.report.board import (
    build_records,
    count_ends,
    delivery_outcome,
    name_agent,
)
from interlock_delivery.report.records import (
    AgentStatement,
    CheckEvidence,
    DeliveryReport,
    Move,
    NeedsHuman,
    TaskRecord,
    TaskReport,
)
from interlock_delivery.start import read_config
from interlock_delivery.worktrees.names import folder_name
from interlock_delivery.worktrees.tree import TREES

_MOST_TEXT: Final = 2_000
_SUMMARY_FIELDS: Final = (
    "summary",
    "question",
    "blocker",
    "decision",
    "problem",
    "recommendation",
    "text",
)
"""The fields of an answer that can summarise it, the best one first."""
_QUESTION_FIELDS: Final = ("question", "blocker", "problem", "summary", "reason", "text")
_BASELINES: Final = "baselines"


def load_report(
    connection: Connection, run_id: int, *, notes: Iterable[str] = (), is_active: bool = True
) -> DeliveryReport:
    """Return the report of a run as it stands; a run without an active process is paused."""
    run = find_run(connection, run_id)
    config = read_config(run)
    agents = msgspec.convert(run.options, RunConfig).agents
    status = run.status if is_active or run.status != "running" else "interrupted"
    collector = ReportCollector(run, load_circuit(run), config, agents, status)
    try:
        title = read_plan(Path(config.plan)).title
    except InterlockError:
        title = ""
    return collector.collect(connection, time.time(), title, notes)


class ReportCollector:
    """Collects one run; `agents` are the configured agents by role, with "" for all others."""

    def __init__(
        self,
        run: Run,
        circuit: Circuit,
        config: DeliveryConfig,
        agents: Mapping[str, str],
        status: str,
    ) -> None:
        """Take the run's status, or `interrupted`."""
        self._run = run
        self._circuit = circuit
        self._config = config
        self._agents = agents
        self._status = status

    def collect(
        self, connection: Connection, now: float, title: str = "", notes: Iterable[str] = ()
    ) -> DeliveryReport:
        run, config = self._run, self._config
        progress = list_cases(connection, run.run_id)
        costs = sum_costs(connection, run.run_id)
        inputs = {each.case_id: each.input for each in load_inputs(connection, run.run_id)}
        titles = {name: str(given.get("title", "")) for name, given in inputs.items()}
        holds = load_holds(connection, self._circuit, run.run_id)
        turns: dict[str, list[DispatchRecord]] = {}
        for turn in list_dispatches(connection, run_id=run.run_id):
            turns.setdefault(turn.case_id, []).append(turn)
        tasks = tuple(
            self._collect_task(
                record,
                str(inputs[record.task_id].get("phase", "")),
                turns.get(record.task_id, []),
            )
            for record in build_records(progress, titles, self._agents, costs)
        )
        claims = ((each.agent, each.role, each.claim) for task in tasks for each in task.claims)
        first_turns = (turns_of[0] for turns_of in turns.values())
        bases = (str(turn.answer.get("base", "")) for turn in first_turns if turn.answer)
        return DeliveryReport(
            run_id=run.run_id,
            title=title or Path(config.plan).name,
            outcome=delivery_outcome(self._status, count_ends(progress), is_held=bool(holds)),
            plan=config.plan,
            source=config.source,
            branch=f"interlock/{config.slug}",
            base=next(bases, ""),
            home=config.home,
            made_at=now,
            began=run.created_at,
            dispatches=run.spent.dispatches,
            tokens=run.spent.tokens,
            money=run.spent.money,
            seconds=run.spent.seconds,
            repairing=next(iter(holds.values()), ""),
            tasks=tasks,
            accounts=count_claims(claims),
            needs=tuple(self._list_needs(tasks)),
            notes=tuple(dict.fromkeys(notes)),
        )

    def _collect_task(
        self, record: TaskRecord, phase: str, turns: Sequence[DispatchRecord]
    ) -> TaskReport:
        moves = tuple(self._build_move(turn, turn.decision) for turn in turns if turn.decision)
        checked = [turn for turn in turns if turn.step in steps.CLAIMED and has_artifact(turn)]
        last = checked[-1].answer if checked else {}
        written = find_last_answer(turns, steps.IMPLEMENT, "READY_FOR_REVIEW")
        merged: Mapping[str, Any] = next(
            (turn.answer for turn in reversed(turns) if is_merge(turn)), {}
        )
        commit = str(merged.get("commit", ""))
        prepared = find_last_answer(turns, steps.PREPARE, "artifact")
        proofs = (
            *self._read_baseline(str(prepared.get("base", "")), "baseline"),
            *read_evidence(checked),
            *self._read_baseline(commit, "merge"),
        )
        end = record.why if record.word in ("complete", "failed", "skipped") else ""
        tree = Path(self._config.home) / TREES / folder_name(record.task_id)
        facts = {
            **msgspec.structs.asdict(record),
            "step": turns[-1].step if turns else "",
            "why": moves[-1].why if end and moves else record.why,
            "attempts": sum(turn.step == steps.IMPLEMENT for turn in turns),
            "checks": len(proofs),
            "passed": sum(proof.passed for proof in proofs),
            "commit": commit,
        }
        return TaskReport(
            **facts,
            phase=phase,
            end=end,
            dispatches=sum(turn.role != HUMAN for turn in turns),
            question=find_question(turns) if record.question_id else "",
            author=name_agent("developer", self._agents) if written else "",
            summary=flatten_text(written.get("summary")),
            changed=tuple(map(str, last.get("changed", ()))),
            tree=str(tree) if turns else "",
            moves=moves,
            proofs=proofs,
            claims=tuple(self._collect_claims(checked)),
            weakened_tests=tuple(last.get("weakened_tests", ())),
            violations=tuple(
                dict.fromkeys(str(each) for t in checked for each in t.answer.get("violations", ()))
            ),
            seconds=sum(move.seconds for move in moves if move.role != HUMAN),
        )

    def _build_move(self, turn: DispatchRecord, decision: Decision) -> Move:
        rule = self._circuit.find_rule(decision.rule) or self._circuit.otherwise
        answered = turn.answered_at or turn.sent_at
        return Move(
            at=answered,
            seconds=max(0.0, answered - turn.sent_at),
            step=turn.step,
            attempt=turn.attempt,
            role=turn.role,
            agent=turn.answered_by or name_agent(turn.role, self._agents),
            signal=decision.signal,
            rule=decision.rule,
            to=decision.to or decision.status,
            why=decision.reason or (rule.why if rule else ""),
            event=rule.tags.get(steps.EVENT, "") if rule else "",
            said=summarize_answer(decision.signal, turn.answer),
            refused=tuple(f"{each.reason}: {each.sentence}" for each in turn.refused),
            tokens=turn.usage.tokens,
            money=turn.usage.money,
        )

    def _collect_claims(self, checked: Iterable[DispatchRecord]) -> Iterator[AgentStatement]:
        for turn in checked:
            role = self._circuit.steps[steps.CLAIMED[turn.step][0]].role
            for claim in turn.answer.get("claims", ()):
                yield AgentStatement(
                    agent=name_agent(role, self._agents),
                    role=role,
                    step=turn.step,
                    attempt=turn.attempt,
                    claim=msgspec.convert(claim, AgentClaim),
                )

    def _read_baseline(self, commit: str, stage: str) -> Iterator[CheckEvidence]:
        """Yield the results of the checks at a commit: the task's base, or the merged one."""
        folder = Path(self._config.home) / _BASELINES
        try:
            rows = read_baseline(folder, commit).rows if commit else ()
        except InterlockError:
            return
        for result in sorted((row.result for row in rows), key=lambda result: result.pair):
            yield build_evidence(stage, 1, build_result_row(result))

    def _list_needs(self, tasks: Iterable[TaskReport]) -> Iterator[NeedsHuman]:
        for task in tasks:
            if task.question_id:
                yield NeedsHuman(
                    task_id=task.task_id,
                    sentence=task.question,
                    commands=list_answer_commands(self._circuit, task.step, task.question_id),
                )
            elif task.word == "failed":
                last = task.moves[-1].said.split("\n")[0] if task.moves else ""
                because = f" ({last})" if last else ""
                yield NeedsHuman(
                    task_id=task.task_id,
                    sentence=f"{task.end} at {task.step}: {task.why}{because}",
                    commands=(f"interlock explain {task.task_id} --run {self._run.run_id}",),
                )


def has_artifact(turn: DispatchRecord) -> bool:
    return turn.decision is not None and turn.decision.signal == "artifact"


def is_merge(turn: DispatchRecord) -> bool:
    return (
        turn.step == steps.MERGE and has_artifact(turn) and turn.answer.get("outcome") == "merged"
    )


def find_last_answer(turns: Sequence[DispatchRecord], step: str, signal: str) -> Mapping[str, Any]:
    for turn in reversed(turns):
        if turn.step == step and turn.decision and turn.decision.signal == signal:
            answer: Mapping[str, Any] = turn.answer
            return answer
    return {}


def find_question(turns: Sequence[DispatchRecord]) -> str:
    """Return the question in the agent's own words, or else why a human is needed."""
    asked = turns[-2] if len(turns) > 1 else None
    if asked is None or asked.decision is None:
        return ""
    answer = asked.answer if isinstance(asked.answer, Mapping) else {}
    texts = (flatten_text(answer.get(name)) for name in _QUESTION_FIELDS)
    return next(filter(None, texts), "") or flatten_text(asked.decision.adds.get("reason"))


def summarize_answer(signal: str, answer: Any) -> str:
    if not isinstance(answer, Mapping):
        return ""
    if signal in FAILURES:
        return flatten_text(answer.get("reason"))
    for name in _SUMMARY_FIELDS:
        if text := flatten_text(answer.get(name)):
            more = flatten_text(answer.get("text")) if name == "decision" else ""
            return f"{text}: {more}" if more else text
    return ""


def flatten_text(value: Any) -> str:
    """Return a section as plain text, whatever type the parser gave it."""
    if isinstance(value, str):
        return value.strip()[:_MOST_TEXT]
    if isinstance(value, list):
        return "; ".join(flatten_text(each) for each in value if each)[:_MOST_TEXT]
    if isinstance(value, Mapping):
        return " ".join(flatten_text(each) for each in value.values() if each)[:_MOST_TEXT]
    return "" if value is None else str(value)


def read_evidence(checked: Iterable[DispatchRecord]) -> Iterator[CheckEvidence]:
    for turn in checked:
        for row in turn.answer.get("results", ()):
            yield build_evidence(turn.step.lower().replace("_", " "), turn.attempt, row)


def build_evidence(stage: str, attempt: int, row: Mapping[str, Any]) -> CheckEvidence:
    """Return the evidence in a result row of the journal."""
    return msgspec.convert({"stage": stage, "attempt": attempt, **row}, CheckEvidence)


def list_answer_commands(circuit: Circuit, step: str, question_id: int) -> tuple[str, ...]:
    """Return the commands that answer a gate's question, one for each possible decision."""
    fields = circuit.steps[step].shape.fields
    words = fields["decision"].choices if "decision" in fields else None
    return tuple(
        f"interlock answer {question_id} {word}" + (' -m "…"' if word == "answer" else "")
        for word in words or ()
    )
