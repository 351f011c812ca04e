"""The terms of a run's work: its slots, budget, hooks and listeners, beside journal and carriers.

`judge_answer` reads answers as the loop does, for carriers whose agents learn at once what is
wrong.
"""

from collections.abc import Callable, Collection, Mapping, Sequence

import msgspec

from interlock.carriers.contract import Ask, Reply
from interlock.engine.case import RefusedAnswer
from interlock.engine.circuit import FAILURES, HUMAN, Circuit, Role
from interlock.engine.schedule import Schedule, Spent
from interlock.journal.events import Tell, ignore_notification
from interlock.journal.journal import Pause
from interlock.runtime.answers import decode_answer
from interlock.runtime.application import CaseHooks, DefaultHooks, Pace
from interlock.runtime.budget import BudgetQuestion
from interlock.signals.batch import Briefing


class RunCounts(msgspec.Struct):
    """The state of a run in numbers."""

    cases: int = 0
    ended: int = 0
    unhealthy: int = 0
    stuck: int = 0
    halted: str = ""
    """The case whose end stopped the run."""
    in_flight: int = 0
    questions: int = 0
    refused: int = 0
    limited: int = 0
    """The dispatches that wait for the end of a rate limit."""
    limited_until: float = 0.0
    """The time when the first account may work again; 0 if none rests."""
    problem: str = ""
    """Why the run stopped by itself, and what to do, if an agent cannot be asked as things are."""


def _ignore_counts(_counts: RunCounts, _spent: Spent) -> None:
    return None


def _keep_briefing(briefing: Briefing) -> Briefing:
    return briefing


class RunTerms(msgspec.Struct, frozen=True, kw_only=True):
    """The terms on which a run is worked on."""

    circuit: Circuit
    roles: Mapping[str, Role] = {}
    """The circuit's roles with the user's slots; empty for the circuit's own."""
    parallel: int | None = None
    """How many dispatches are out at once; None for no limit."""
    by_hand: Collection[str] = frozenset({HUMAN})
    """The roles that are answered by a later command."""
    unplaced: Collection[str] = frozenset()
    """The roles that take no slot."""
    budget: BudgetQuestion | None = None
    hooks: CaseHooks = msgspec.field(default_factory=DefaultHooks)
    pace: Pace = msgspec.field(default_factory=Pace)
    wait_for_humans: bool = False
    wait_for_limits: bool = True
    pauses: Sequence[Pause] = ()
    """The rate limits that earlier sessions met."""
    run_at: float = 0.0
    """The time at which the run was begun."""
    tell: Tell = ignore_notification
    watch: Callable[[RunCounts, Spent], None] = _ignore_counts
    """Called after every turn."""
    enrich: Callable[[Briefing], Briefing] = _keep_briefing

    def build_schedule(self) -> Schedule:
        """Return a schedule without any cases."""
        roles = self.roles or self.circuit.roles
        return Schedule(roles, self.parallel, self.by_hand, self.unplaced)

    def judge_answer(self, ask: Ask, reply: Reply) -> RefusedAnswer | None:
        """Return why the loop would refuse this answer; None if it would not."""
        found = decode_answer(reply, self.circuit.steps[ask.step], ask.case_id, ask.execution)
        if (
            not isinstance(found, RefusedAnswer)
            and found.name not in FAILURES
            and ask.case is not None
        ):
            found = self.hooks.check_answer(ask.case_no, ask.case, found)
        return found if isinstance(found, RefusedAnswer) else None
