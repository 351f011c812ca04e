"""A delivery as its reports show it: per task what was done, by whom, observed and decided.

Built from the journal; reports and summaries use these records and nothing else.
"""

import msgspec

from interlock_delivery.checks.claims import AgentClaim, ClaimComparison


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
    """What the circuit calls this decision in logs, if it has a name for it."""
    said: str = ""
    refused: tuple[str, ...] = ()
    """Answers to the same ask that were not taken, and why."""
    tokens: int = 0
    money: float = 0.0


class CheckEvidence(msgspec.Struct, frozen=True, kw_only=True):
    """One check that we ran: when, where, and how it came out."""

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
    """A claim, whose it is, and at which look it was compared."""

    agent: str
    role: str
    step: str
    attempt: int
    claim: AgentClaim


class NeedsHuman(msgspec.Struct, frozen=True, kw_only=True):
    """Something that only a human can settle, and how."""

    task_id: str
    sentence: str
    commands: tuple[str, ...] = ()


class TaskReport(msgspec.Struct, frozen=True, kw_only=True):
    """All that is known of one task."""

    task_id: str
    title: str = ""
    phase: str = ""
    word: str
    """complete, at work, asks, waits, blocked, failed or skipped."""
    end: str = ""
    step: str = ""
    why: str = ""
    attempts: int = 0
    """How often its author was asked."""
    dispatches: int = 0
    question_id: int = 0
    question: str = ""
    author: str = ""
    summary: str = ""
    changed: tuple[str, ...] = ()
    commit: str = ""
    """By which the published branch has it."""
    tree: str = ""
    """Where its work lies, as far as it came."""
    moves: tuple[Move, ...] = ()
    proofs: tuple[CheckEvidence, ...] = ()
    claims: tuple[AgentStatement, ...] = ()
    weakened_tests: tuple[str, ...] = ()
    violations: tuple[str, ...] = ()
    tokens: int = 0
    money: float = 0.0
    seconds: float = 0.0

    @property
    def last(self) -> Move | None:
        return self.moves[-1] if self.moves else None


class DeliveryReport(msgspec.Struct, frozen=True, kw_only=True):
    """A whole run."""

    run_id: int
    title: str
    outcome: str
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
    """The task that repairs what stops all others."""
    tasks: tuple[TaskReport, ...] = ()
    accounts: tuple[ClaimComparison, ...] = ()
    needs: tuple[NeedsHuman, ...] = ()
    notes: tuple[str, ...] = ()

    def count_tasks(self, *words: str) -> int:
        return sum(task.word in words for task in self.tasks)

    @property
    def is_merged(self) -> bool:
        """Whether the branch has something of this run."""
        return any(task.commit for task in self.tasks)
