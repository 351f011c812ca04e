"""One round: every case is sent to an agent at most once, then it rests until the next sitting.

Stands before any application and holds cases back; our own programs and humans are no agents, so
what was sent comes in and is looked at. Refuses to know circuits.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from interlock.agents.carrier import ExecutionContext
from interlock.engine.case import OPEN, Case, Decision, Refused, Signal
from interlock.engine.circuit import Circuit
from interlock.journal.journal import Effect
from interlock.journal.runs import NewCase
from interlock.runtime.application import CaseHooks


class OneRound:
    """An application of which each case gets one agent's turn."""

    def __init__(self, inner: CaseHooks, circuit: Circuit, free: Collection[str]) -> None:
        """The roles that are `free` are asked as often as it takes."""
        self._inner = inner
        self._circuit = circuit
        self._free = free
        self._sent: set[str] = set()
        self._steps: dict[str, str] = {}

    def premises(self, case_no: int, case: Case, dispatch_id: int) -> ExecutionContext:
        if self._circuit.steps[case.step].role not in self._free:
            self._sent.add(case.case_id)
        return self._inner.premises(case_no, case, dispatch_id)

    def held(self, case_no: int, case: Case) -> bool:
        self._steps[case.case_id] = case.step
        held = self._inner.held(case_no, case)
        return held or (case.status == OPEN and self._rests(case.case_id))

    def let_go(self) -> Iterable[str]:
        return [name for name in self._inner.let_go() if not self._rests(name)]

    def _rests(self, case_id: str) -> bool:
        role = self._circuit.steps[self._steps[case_id]].role
        return case_id in self._sent and role not in self._free

    def facts(self, case_no: int, case: Case, premises: ExecutionContext) -> Mapping[str, Any]:
        return self._inner.facts(case_no, case, premises)

    def examine(self, case_no: int, case: Case, signal: Signal) -> Signal | Refused:
        return self._inner.examine(case_no, case, signal)

    def effects(
        self, case_no: int, case: Case, decision: Decision, data: Mapping[str, Any], by: str
    ) -> Sequence[Effect]:
        return self._inner.effects(case_no, case, decision, data, by)

    def news(self) -> Iterable[NewCase]:
        return self._inner.news()

    def notes(self) -> Iterable[str]:
        return self._inner.notes()
