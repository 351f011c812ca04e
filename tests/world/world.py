"""A folder with a database in it, and runs worked on under a fake clock."""

import asyncio
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import cast

import msgspec

from interlock.carriers.contract import Carrier
from interlock.carriers.human import HumanAnswer, HumanCarrier, write_answer
from interlock.carriers.script import ScriptAgent, read_script
from interlock.engine.circuit import HUMAN, Circuit
from interlock.engine.circuit_file import read_circuit
from interlock.engine.schedule import Budget
from interlock.journal.address import DatabaseAddress
from interlock.journal.audit import Fault, audit
from interlock.journal.connection import Connection
from interlock.journal.database import open_reader, open_writer
from interlock.journal.events import Notification
from interlock.journal.history import compute_digest, list_cases, list_lines, list_refusals
from interlock.journal.journal import Journal
from interlock.journal.mailbox import Mailbox
from interlock.journal.ownership import Ownership, own_run
from interlock.journal.runs import (
    NewCase,
    NewRun,
    Run,
    RunStatus,
    begin_run,
    find_run,
)
from interlock.journal.usage import (
    find_last_inquiry,
    list_newest_pauses,
    sum_day_usage,
    sum_role_usage,
)
from interlock.runtime.application import (
    CaseHooks,
    DefaultHooks,
    Pace,
    find_application,
    list_applications,
)
from interlock.runtime.budget import (
    BUDGET_INQUIRY,
    BudgetLimits,
    BudgetQuestion,
    BudgetUsage,
    RunBudget,
    read_limits,
)
from interlock.runtime.loop import RunLoop
from interlock.runtime.terms import RunCounts, RunTerms
from interlock.system.time import Day
from tests.world.clock import FakeClock, drive
from tests.world.sample_circuit import GOOD_SCRIPT, PAPER


def hours(at: float) -> Day:
    """Days of this world are short: an hour each."""
    begins = at // 3600 * 3600
    return Day(f"hour {begins:.0f}", begins, begins + 3600)


class World:
    """One database, one circuit, one clock."""

    def __init__(self, folder: Path, text: str = PAPER, db: DatabaseAddress | None = None) -> None:
        self.db = folder / "interlock.db"
        self._address = db
        self.answers = Mailbox(self.address, "answers")
        self.text = text
        self.circuit = read_circuit(text, "test.yaml").circuit
        self.clock = FakeClock()
        self.tally = RunCounts()
        self.notices: list[Notification] = []

    @property
    def address(self) -> DatabaseAddress:
        """Where the journal is: the SQLite file, unless another was given."""
        return self._address or self.db

    def begin(self, *cases: NewCase | str) -> int:
        many = [NewCase(each, {"id": each}) if isinstance(each, str) else each for each in cases]
        with open_writer(self.address) as connection:
            new = NewRun(
                circuit=self.circuit,
                text=self.text,
                source="test",
                fingerprint="mark",
                options={},
                at=self.clock.time,
            )
            return begin_run(connection, new, many)

    def work(
        self,
        helpers: str = GOOD_SCRIPT,
        *,
        run_id: int = 1,
        budget: Budget | str | None = None,
        patient: bool = True,
        places: int | None = None,
        slots: Mapping[str, int] | None = None,
        inbox: bool = False,
        wait: bool = False,
        at_rest: Iterable[Callable[[RunLoop], None]] = (),
        carriers: Mapping[str, Carrier] | None = None,
        application: CaseHooks | None = None,
        pace: Pace | None = None,
        statement: Callable[[str], None] | None = None,
        pages: int | None = None,
    ) -> RunStatus:
        """One session. With `inbox`, questions go to a human, else to the script too;
        `statement` is told everything that SQLite is about to run, `pages` are all it has."""
        agent = ScriptAgent(read_script(helpers, "crew.yaml"), self.clock)
        crews: dict[str, Carrier] = dict.fromkeys(self.circuit.roles, agent)
        if inbox:
            crews[HUMAN] = HumanCarrier(self.answers, self.clock)
        crews |= carriers or {}
        roles = {
            name: msgspec.structs.replace(role, slots=(slots or {}).get(name, role.slots))
            for name, role in self.circuit.roles.items()
        }

        async def work(connection: Connection, owned: Ownership) -> RunStatus:
            found = find_run(connection, run_id)
            loop = RunLoop(
                Journal(connection, run_id, ownership=owned),
                RunTerms(
                    circuit=self.circuit,
                    roles=roles,
                    parallel=places,
                    budget=self._budget_question(connection, found, budget, inbox=inbox),
                    wait_for_humans=wait,
                    wait_for_limits=patient,
                    hooks=application or DefaultHooks(),
                    pace=pace or Pace(),
                    pauses=list_newest_pauses(connection),
                    tell=self.notices.append,
                ),
                crews,
                self.clock,
            )
            loop.restore(connection)
            self.tally = loop.counts
            return await drive(loop.run(), self.clock, [partial(thing, loop) for thing in at_rest])

        try:
            with open_writer(self.address) as connection:
                if statement is not None:
                    cast(sqlite3.Connection, connection.raw).set_trace_callback(statement)
                if pages is not None:
                    cast(sqlite3.Connection, connection.raw).execute(
                        f"pragma max_page_count={pages}"
                    )
                with own_run(connection, run_id) as owned:
                    return asyncio.run(work(connection, owned))
        finally:
            self.clock.forget_timers()

    def _budget_question(
        self, connection: Connection, run: Run, budget: Budget | str | None, *, inbox: bool
    ) -> BudgetQuestion:
        """Limits for the run as a record, or all kinds in words; what was raised goes before."""
        spending = BudgetUsage(
            run.spent,
            sum_role_usage(connection, run.run_id),
            sum_day_usage(connection, *hours(self.clock.time)),
        )
        given = dict(
            pair.split("=") for pair in (budget if isinstance(budget, str) else "").split()
        )
        words = {**given, **run.options.get("budget", {})}
        limits = BudgetLimits(budget) if isinstance(budget, Budget) else read_limits(words)
        return BudgetQuestion(
            RunBudget(limits, spending, self.clock.time, hours),
            words,
            HumanCarrier(self.answers, self.clock) if inbox else None,
            find_last_inquiry(connection, run.run_id, BUDGET_INQUIRY),
        )

    def answer(self, question_id: int, decision: str, **more: object) -> None:
        data = {"decision": decision, **more}
        write_answer(self.answers, HumanAnswer(question_id, "ann", data))

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        with open_reader(self.address) as connection:
            yield connection

    def story(self, run_id: int = 1) -> list[str]:
        """Every decision in order: `case step#attempt signal rule`."""
        with self.reading() as connection:
            return [
                f"{line.case_id} {line.decision.step}#{line.decision.attempt}"
                f" {line.decision.signal} {line.decision.rule}"
                for line in list_lines(connection, run_id, 0)
            ]

    def ends(self, run_id: int = 1) -> dict[str, str]:
        with self.reading() as connection:
            return {
                line.case_id: line.state.end or line.status
                for line in list_cases(connection, run_id)
            }

    def refused(self, run_id: int = 1) -> list[str]:
        with self.reading() as connection:
            return [line.reason for line in list_refusals(connection, run_id)]

    def run(self, run_id: int = 1) -> Run:
        with self.reading() as connection:
            return find_run(connection, run_id)

    def digest(self, run_id: int = 1) -> str:
        with self.reading() as connection:
            return compute_digest(connection, run_id)

    def faults(self) -> list[Fault]:
        rules = {name: find_application(name).audits for name in list_applications()}
        with self.reading() as connection:
            return audit(connection, self.circuit_of, rules)

    def rows(self, query: str) -> list[tuple[object, ...]]:
        with self.reading() as connection:
            return connection.raw.execute(query).fetchall()

    @staticmethod
    def circuit_of(run: Run) -> Circuit:
        return read_circuit(run.text, "test.yaml").circuit
