"""What an application adds to the loop, beyond its circuit: the loop knows it only by this.

A circuit needs none: `Plain` adds nothing. One that keeps tables of its own, fills its prompts from
them or checks answers against the world brings an application.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

from interlock.agents.carrier import NO_PREMISES, ExecutionContext
from interlock.engine.case import Case, Decision, Refused, Signal
from interlock.journal.journal import Effect
from interlock.journal.runs import NewCase


class CaseHooks(Protocol):
    """Code that belongs to one circuit. Cases are told apart by their number in the database."""

    def premises(self, case_no: int, case: Case, dispatch_id: int) -> ExecutionContext:
        """Where the agent of a dispatch works, and what its answer must name. Asked again after a
        restart, it says the same."""

    def facts(self, case_no: int, case: Case, premises: ExecutionContext) -> Mapping[str, Any]:
        """More names for the prompt of the step where the case stands."""

    def examine(self, case_no: int, case: Case, signal: Signal) -> Signal | Refused:
        """The signal as the rules shall see it, or why it is none."""

    def effects(
        self, case_no: int, case: Case, decision: Decision, data: Mapping[str, Any], by: str
    ) -> Sequence[Effect]:
        """What the decision changes in the application's tables; `case` is as it was before, `by`
        the human who answered."""

    def held(self, case_no: int, case: Case) -> bool:
        """Whether an open case must wait although nothing in the plan is in its way. Asked once
        each time it comes to a step; a case that is over is told here, too."""

    def let_go(self) -> Iterable[str]:
        """The held cases that need not wait any more."""

    def news(self) -> Iterable[NewCase]:
        """Cases that join the run, and open ones as they are to be from now on."""

    def notes(self) -> Iterable[str]:
        """What the user should know when a sitting is over."""


class DefaultApplication:
    """The application of a circuit that has none."""

    def premises(self, case_no: int, case: Case, dispatch_id: int) -> ExecutionContext:
        return NO_PREMISES

    def facts(self, case_no: int, case: Case, premises: ExecutionContext) -> Mapping[str, Any]:
        return {}

    def examine(self, case_no: int, case: Case, signal: Signal) -> Signal | Refused:
        return signal

    def effects(
        self, case_no: int, case: Case, decision: Decision, data: Mapping[str, Any], by: str
    ) -> Sequence[Effect]:
        return ()

    def held(self, case_no: int, case: Case) -> bool:
        return False

    def let_go(self) -> Iterable[str]:
        return ()

    def news(self) -> Iterable[NewCase]:
        return ()

    def notes(self) -> Iterable[str]:
        return ()
