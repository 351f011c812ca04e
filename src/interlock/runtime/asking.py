"""Asking: a case at a step becomes a dispatch, with a number of its own and its prompt filled.

Knows how an ask is made, anew or from the journal. Refuses to know whether it may go out.
"""

from collections.abc import Mapping

from interlock.agents.carrier import Ask, ExecutionContext
from interlock.engine.case import Case
from interlock.engine.circuit import Circuit
from interlock.journal.journal import Journal, NewDispatch
from interlock.journal.runs import OpenDispatch
from interlock.runtime.application import CaseHooks
from interlock.runtime.prompt import fill
from interlock.system.errors import CircuitError


class DispatchFactory:
    """Makes asks for the cases of a run; `numbers` are those of its cases in the database."""

    def __init__(
        self,
        journal: Journal,
        circuit: Circuit,
        application: CaseHooks,
        numbers: Mapping[str, int],
    ) -> None:
        self._journal = journal
        self._circuit = circuit
        self._application = application
        self._numbers = numbers

    def open(self, case: Case, at: float) -> tuple[Ask, NewDispatch, str]:
        """A new dispatch for the case's step; with the reason if its prompt cannot be filled."""
        step = self._circuit.steps[case.step]
        dispatch_id = self._journal.new_dispatch_id()
        number = self._numbers[case.case_id]
        premises = self._application.premises(number, case, dispatch_id)
        prompt, problem = self._prompt(number, case, premises)
        ask = Ask(
            *(dispatch_id, self._journal.run_id, case.case_id, step.name, case.attempt),
            *(step.role, prompt, number, at, case),
            language=step.language,
            premises=premises,
        )
        new = NewDispatch(
            dispatch_id, ask.case_no, ask.step, ask.attempt, ask.role, prompt, step.gate
        )
        return ask, new, problem

    def again(self, dispatch: OpenDispatch, case: Case) -> Ask:
        """The ask of a dispatch that was sent, or about to be, when an earlier sitting ended."""
        number, dispatch_id = self._numbers[dispatch.case_id], dispatch.dispatch_id
        return Ask(
            *(dispatch_id, self._journal.run_id, dispatch.case_id, dispatch.step),
            *(dispatch.attempt, dispatch.role, dispatch.prompt, number),
            *(dispatch.at, case),
            language=self._circuit.steps[dispatch.step].language,
            premises=self._application.premises(number, case, dispatch_id),
        )

    def _prompt(self, case_no: int, case: Case, premises: ExecutionContext) -> tuple[str, str]:
        """The filled prompt, or why it cannot be filled."""
        try:
            facts = self._application.facts(case_no, case, premises)
            return fill(self._circuit, case, facts), ""
        except CircuitError as error:
            return "", str(error)
