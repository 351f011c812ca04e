"""Cases one after another: each is brought to its end before the next one begins.

So knowledge grows from case to case, as it does over days. Knows whose turn it is; all else is the
application's that it stands before.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from interlock.agents.carrier import ExecutionContext
from interlock.engine.case import OPEN, Case, Decision, Refused, Signal
from interlock.journal.journal import Effect
from interlock.journal.runs import NewCase
from interlock.runtime.application import CaseHooks


class SequentialCases:
    """An application that holds all cases back but the first that is not over."""

    def __init__(self, application: CaseHooks, waiting: Sequence[str]) -> None:
        self._own = application
        self._waiting = dict.fromkeys(waiting)
        self._turn = next(iter(self._waiting), "")

    def premises(self, case_no: int, case: Case, dispatch_id: int) -> ExecutionContext:
        return self._own.premises(case_no, case, dispatch_id)

    def facts(self, case_no: int, case: Case, premises: ExecutionContext) -> Mapping[str, Any]:
        return self._own.facts(case_no, case, premises)

    def examine(self, case_no: int, case: Case, signal: Signal) -> Signal | Refused:
        return self._own.examine(case_no, case, signal)

    def effects(
        self, case_no: int, case: Case, decision: Decision, data: Mapping[str, Any], by: str
    ) -> Sequence[Effect]:
        return self._own.effects(case_no, case, decision, data, by)

    def held(self, case_no: int, case: Case) -> bool:
        held = self._own.held(case_no, case)
        if case.status != OPEN:
            self._waiting.pop(case.case_id, None)
        return held or case.case_id != self._turn

    def let_go(self) -> Iterable[str]:
        yield from self._own.let_go()
        first = next(iter(self._waiting), "")
        if first and first != self._turn:
            self._turn = first
            yield first

    def news(self) -> Iterable[NewCase]:
        return self._own.news()

    def notes(self) -> Iterable[str]:
        return self._own.notes()
