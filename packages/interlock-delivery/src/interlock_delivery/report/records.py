"""The records of a delivery: what was done for each task, by whom, and what was observed.

They are built from the journal. Reports, boards and pages use these records and nothing else.
"""

from typing import Literal

import msgspec

from interlock_delivery.checks.claims import AgentClaim, ClaimComparison

Word = Literal["complete", "at work", "asks", "waits", "blocked", "failed", "skipped"]
Outcome = Literal["RUNNING", "REMEDIATING", "PAUSED", "COMPLETE", "PARTIAL", "FAILED", "HALTED"]


class Move(msgspec.Struct, frozen=True, kw_only=True):
    """One decision, and the turn that led to it."""

    at: float
    seconds: float
    step: str
    attempt: int
    role: str
    agent: str
    signal: str
    rule: str
    to: str
    why: str = ""
    event: str = ""
    """The name that the circuit gives this decision in logs."""
    said: str = ""
    refused: tuple[str, ...] = ()
    """The refused answers to the same question, each with the reason."""
    tokens: int = 0
    money: float = 0.0


class CheckEvidence(msgspec.Struct, frozen=True, kw_only=True):
    """A check that Interlock ran, and its result."""

    stage: str
    attempt: int
    check: str
    environment: str
    passed: bool
    exit_code: int | None = None
    tests: int | None = None
    seconds: float = 0.0
    note: str = ""
    output: str = ""


class AgentStatement(msgspec.Struct, frozen=True, kw_only=True):
    """A claim, the agent that made it, and the step that compared it."""

    agent: str
    role: str
    step: str
    attempt: int
    claim: AgentClaim


class NeedsHuman(msgspec.Struct, frozen=True, kw_only=True):
    """Something that only a human can settle, with the commands that do it."""

    task_id: str
    sentence: str
    commands: tuple[str, ...] = ()


class TaskRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One task as boards, pages and the HTTP API show it."""

    task_id: str
    title: str = ""
    word: Word
    why: str = ""
    step: str = ""
    role: str = ""
    """The role that is asked now, or ""."""
    agent: str = ""
    since: float = 0.0
    """When it came to its step; 0 if nobody works on it."""
    sign: float = 0.0
    """When its agent was last heard of; 0 if that is unknown."""
    standing: str = ""
    question_id: int = 0
    """The open question that a human must answer; 0 if there is none."""
    attempts: int = 0
    """The number of times its author was asked."""
    checks: int = 0
    passed: int = 0
    commit: str = ""
    """The commit that the published branch has it in."""
    tokens: int = 0
    money: float = 0.0


class TaskReport(TaskRecord, frozen=True, kw_only=True):
    """A task with its evidence, its claims and every decision about it."""

    phase: str = ""
    end: str = ""
    dispatches: int = 0
    question: str = ""
    author: str = ""
    summary: str = ""
    changed: tuple[str, ...] = ()
    tree: str = ""
    """The folder that holds its work; "" before the first turn."""
    moves: tuple[Move, ...] = ()
    proofs: tuple[CheckEvidence, ...] = ()
    claims: tuple[AgentStatement, ...] = ()
    weakened_tests: tuple[str, ...] = ()
    violations: tuple[str, ...] = ()
    seconds: float = 0.0

    @property
    def last(self) -> Move | None:
        return self.moves[-1] if self.moves else None


class DeliveryReport(msgspec.Struct, frozen=True, kw_only=True):
    """A whole delivery."""

    run_id: int
    title: str
    outcome: Outcome
    plan: str
    source: str
    branch: str
    base: str
    home: str
    made_at: float
    began: float
    dispatches: int = 0
    tokens: int = 0
    money: float = 0.0
    seconds: float = 0.0
    repairing: str = ""
    """The task that repairs the infrastructure while all others wait."""
    tasks: tuple[TaskReport, ...] = ()
    accounts: tuple[ClaimComparison, ...] = ()
    needs: tuple[NeedsHuman, ...] = ()
    notes: tuple[str, ...] = ()

    def count_tasks(self, *words: str) -> int:
        return sum(task.word in words for task in self.tasks)

    @property
    def is_merged(self) -> bool:
        """Return True if some task of the run is merged."""
        return any(task.commit for task in self.tasks)
