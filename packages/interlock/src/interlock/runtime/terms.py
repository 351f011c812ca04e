"""The record of everything a run is worked on with, beside its journal, its carriers and its clock.

`RunTerms` says how many work at once, what the work may cost, for whom it waits and who is told;
`judge_answer` is how the loop reads answers, for carriers whose agents learn at once what is wrong.
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
from interlock.runtime.application import CaseHooks, DefaultHooks
from interlock.runtime.budget import BudgetQuestion
from interlock.signals.batch import Briefing


class RunCounts(msgspec.Struct):
    """How a run stands, in numbers, for whoever watches it."""

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
    """Dispatches that wait for the end of a rate limit."""
    limited_until: float = 0.0
    """When the first account goes on again; 0 if none rests."""
    problem: str = ""
    """Why the run stopped by itself, and what to do: an agent cannot be asked as things are."""


def _ignore_counts(_counts: RunCounts, _spent: Spent) -> None:
    return None


def _keep_briefing(briefing: Briefing) -> Briefing:
    return briefing


class RunTerms(msgspec.Struct, frozen=True, kw_only=True):
    """How a run is worked on."""

    circuit: Circuit
    roles: Mapping[str, Role] = {}
    """The circuit's roles with the slots that a user gave them; empty for those of the circuit."""
    parallel: int | None = None
    """How many dispatches are out at once; None for any number."""
    by_hand: Collection[str] = frozenset({HUMAN})
    """The roles whose answers come by a later command."""
    unplaced: Collection[str] = frozenset()
    """The roles that take no place."""
    budget: BudgetQuestion | None = None
    hooks: CaseHooks = msgspec.field(default_factory=DefaultHooks)
    wait_for_humans: bool = False
    wait_for_limits: bool = True
    pauses: Sequence[Pause] = ()
    """The rate limits that earlier sessions met."""
    run_at: float = 0.0
    """When the run was begun."""
    tell: Tell = ignore_notification
    watch: Callable[[RunCounts, Spent], None] = _ignore_counts
    """Called after every turn."""
    enrich: Callable[[Briefing], Briefing] = _keep_briefing

    def build_schedule(self) -> Schedule:
        """Return a schedule without any cases."""
        roles = self.roles or self.circuit.roles
        return Schedule(roles, self.parallel, self.by_hand, self.unplaced)

    def judge_answer(self, ask: Ask, reply: Reply) -> RefusedAnswer | None:
        """Return why the loop would take this answer as unreadable; None if it would not."""
        found = decode_answer(reply, self.circuit.steps[ask.step], ask.case_id, ask.execution)
        if (
            not isinstance(found, RefusedAnswer)
            and found.name not in FAILURES
            and ask.case is not None
        ):
            found = self.hooks.check_answer(ask.case_no, ask.case, found)
        return found if isinstance(found, RefusedAnswer) else None
