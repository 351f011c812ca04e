"""Newcomers: cases that join a run while it is worked on, and open ones that are changed.

Knows which cases a run has, also those that are over, and that what joins is written with the batch
of its turn. Refuses to know where they come from: an application brings them.
"""

from collections.abc import Callable, Iterable

import msgspec

from interlock.engine.advance import open_case
from interlock.engine.case import Case
from interlock.engine.circuit import Circuit
from interlock.engine.schedule import Schedule
from interlock.journal.journal import Journal, TurnWrites
from interlock.journal.runs import NewCase, change_case, insert_cases
from interlock.runtime.tally import RunCounts


class JoiningCases:
    """Lets cases join: into the database, the plan, and the loop's `cases` and `numbers`."""

    def __init__(
        self,
        journal: Journal,
        circuit: Circuit,
        suite: Schedule,
        cases: dict[str, Case],
        numbers: dict[str, int],
        tally: RunCounts,
        place: Callable[[Case], None],
    ) -> None:
        self._journal = journal
        self._circuit = circuit
        self._suite = suite
        self._cases = cases
        self._numbers = numbers
        self._tally = tally
        self._place = place
        self._over: dict[str, bool] = {}

    def ended(self, case_id: str, healthy: bool) -> None:
        self._over[case_id] = healthy

    def take(self, news: Iterable[NewCase], batch: TurnWrites) -> None:
        """New ones are placed, open ones changed; those that are over stay as they are."""
        new: list[NewCase] = []
        for each in news:
            if each.case_id in self._cases:
                self._change(each, batch)
            elif each.case_id not in self._numbers:
                new.append(each)
        if new:
            self._join(new, batch)

    def _change(self, new: NewCase, batch: TurnWrites) -> None:
        run_id, blobs = self._journal.run_id, self._journal.blobs
        self._journal.carry_out(lambda raw, _at: change_case(raw, run_id, new, blobs), batch.at)
        batch.joined = True
        before = self._cases[new.case_id]
        self._cases[new.case_id] = msgspec.structs.replace(before, input=new.input)
        self._suite.change(new.case_id, new.priority, self._open(new.needs))

    def _join(self, new: list[NewCase], batch: TurnWrites) -> None:
        journal, circuit = self._journal, self._circuit

        def note(some: list[tuple[int, NewCase]]) -> None:
            self._numbers.update((each.case_id, number) for number, each in some)

        journal.carry_out(
            lambda raw, _at: insert_cases(raw, circuit, journal.run_id, new, note, journal.blobs),
            batch.at,
        )
        batch.joined = True
        for each in new:
            self._suite.add(each.case_id, each.priority, self._open(each.needs))
        for each in new:
            case = open_case(circuit, each.case_id, each.input)
            self._cases[each.case_id] = case
            self._tally.cases += 1
            self._place(case)

    def _open(self, needs: Iterable[str]) -> list[str]:
        """The needs that are not met: one that ended badly never will be."""
        return [need for need in needs if not self._over.get(need)]
