"""Suites of failed tests, worked on with the shipped circuit `rca` and its real application.

Agents are scripts or our own analyst; time stands still. `told` makes a failure in a few words.
"""

import asyncio
import sqlite3
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any, cast

import msgspec

from interlock.carriers.contract import Carrier
from interlock.carriers.human import HumanAnswer, HumanCarrier, write_answer
from interlock.carriers.script import ScriptAgent, read_script
from interlock.engine.circuit import HUMAN, Circuit
from interlock.engine.schedule import Budget
from interlock.journal.address import DatabaseAddress
from interlock.journal.connection import Connection
from interlock.journal.database import open_writer
from interlock.journal.journal import Journal
from interlock.journal.runs import NewRun, Run, RunStatus, find_run
from interlock.runtime.application import RunSetup
from interlock.runtime.budget import BudgetLimits, BudgetQuestion, BudgetUsage, RunBudget
from interlock.runtime.circuits import Bundle, find_circuit
from interlock.runtime.loop import RunLoop
from interlock.runtime.session import RunSession
from interlock.runtime.terms import RunTerms
from interlock_rca.application import BuiltinAnalystRole, Rca
from interlock_rca.config import RcaConfig
from interlock_rca.findings import read_findings
from interlock_rca.intake import KnownFailures, make_arrivals
from interlock_rca.knowledge.intake import NewSuite, OpenedSuite, begin_suite, extend_suite
from interlock_rca.knowledge.suites import (
    SuiteCase,
    find_suite,
    iterate_case_views,
    list_suite_cases,
)
from interlock_rca.records import Failure, Findings, Launch
from interlock_rca.sources.read import SourceLaunch
from interlock_rca.steps import F0, F1, F2, F3, F4, F5, F6
from tests.world.clock import drive
from tests.world.world import World

Answers = dict[str, Any]
"""By step: an answer, a behaviour of the script, or a list of behaviours."""

NEW = {"match": False, "confidence": 0.0, "reasoning": "nothing like it is known"}
PRODUCT = {
    "symptom_category": "product",
    "severity": "high",
    "defect_type_hypothesis": "pb001",
    "candidate_repos": ["boat"],
    "skip_investigation": False,
}
CAUSE = {
    "rca_message": "Keel.weigh() counts the anchor twice since the ballast was moved",
    "defect_type": "pb001",
    "component": "boat/keel",
    "convergence_score": 0.9,
    "evidence_refs": ["boat:keel.py:3"],
}
OWN = {"is_duplicate": False, "confidence": 0.1, "reasoning": "no other"}
APPROVE = {"decision": "approve"}
DRAFT = {"summary": "the anchor is counted twice", "description": "see above"}
GOOD: Answers = {F0: NEW, F1: PRODUCT, F3: CAUSE, F4: OWN, F5: APPROVE, F6: DRAFT}
GOOD[F2] = {"selected_repos": [{"name": "boat", "reason": "it floats"}]}


def write_script(answers: Mapping[str, Any] = GOOD, **cases: Mapping[str, Any]) -> str:
    """A script: the same answers for every case, others for some."""
    table = {"*": {**GOOD, **answers}, **cases}
    scripted = {
        case_id: {step: _behaviours(result) for step, result in steps.items()}
        for case_id, steps in table.items()
    }
    return msgspec.json.encode(scripted).decode()


def _behaviours(result: Any) -> Any:
    if isinstance(result, list):
        return [_behaviours(each) for each in result]
    known = {"answer", "signal", "raw", "crash", "silent", "delay"}
    return result if result and set(result) <= known else {"answer": result}


def make_failure(name: str, message: str = "", **more: Any) -> Failure:
    """A failure that looks like no other of another name, unless its message says so."""
    given = {"test_name": name, "class_name": f"yard.{name.title()}", "job": "yard"}
    return Failure(id=name, message=message or f"{name} sank in the {name} basin", **given | more)


def launch(*failures: Failure, launch_id: str = "L1", **more: Any) -> SourceLaunch:
    given = {"name": "nightly", "version": "1.0"}
    return SourceLaunch(Launch(launch_id=launch_id, **given | more), list(failures), [])


class AnalysisWorld(World):
    """A database, the shipped circuit, a clock."""

    def __init__(
        self, folder: Path, db: DatabaseAddress | None = None, **thresholds: float
    ) -> None:
        super().__init__(folder, db=db)
        self.bundle = find_circuit("rca", folder)
        self.text = msgspec.json.encode(self.bundle).decode()
        self.thresholds = thresholds
        self.circuit = self.bundle.open().circuit.with_thresholds(thresholds)

    def take_in(self, *intakes: SourceLaunch, name: str = "suite") -> OpenedSuite:
        with open_writer(self.address) as connection:
            run = NewRun(
                circuit=self.circuit,
                text=self.text,
                source=name,
                fingerprint=name,
                options={"thresholds": self.thresholds},
                at=self.clock.time,
            )
            return begin_suite(connection, NewSuite(run=run, name=name), make_arrivals(intakes))

    def add(self, *intakes: SourceLaunch, suite_id: int = 1) -> list[int]:
        """What is new in these, for a suite that is there."""
        with open_writer(self.address) as connection:
            known = [
                KnownFailures(look.input["content"], look.features, look.input["family"])
                for look in iterate_case_views(connection, suite_id)
            ]
            new = make_arrivals(intakes, known)
            return extend_suite(connection, self.circuit, suite_id, new, self.clock.time)

    def work_on(
        self,
        script: str | None = None,
        terms: RcaConfig = RcaConfig(),  # noqa: B008 - frozen
        *,
        run_id: int = 1,
        bench: bool = False,
        wait: bool = False,
        only: Collection[int] | None = None,
        budget: Budget | None = None,
        carriers: Mapping[str, Carrier] | None = None,
        statement: Callable[[str], None] | None = None,
        meet: Callable[[RunSetup], None] = lambda _staff: None,
    ) -> RunStatus:
        """One sitting: with that script, or else with the built-in analyst. With `desk`, F5 goes
        to the human desk, else to the script too; `wait` for it as long as it takes."""
        agent = self._agent(script)
        crews: dict[str, Carrier] = dict.fromkeys(self.circuit.roles, agent)
        if bench or script is None:
            crews[HUMAN] = HumanCarrier(self.answers, self.clock)
        crews |= carriers or {}

        async def run_session(connection: Connection) -> RunStatus:
            run = find_run(connection, run_id)
            ours = Rca("rca").set_up_run(
                connection,
                run,
                self.circuit,
                crews,
                msgspec.to_builtins(terms),
                clock=self.clock,
                only=only,
            )
            meet(ours)
            limits, usage = BudgetLimits(budget or Budget()), BudgetUsage(run.spent)
            found = RunSession(
                RunLoop(
                    Journal(connection, run.run_id),
                    RunTerms(
                        circuit=ours.circuit,
                        budget=BudgetQuestion(RunBudget(limits, usage, self.clock.time)),
                        hooks=ours.hooks,
                        wait_for_humans=wait,
                    ),
                    ours.carriers,
                    self.clock,
                ),
                connection,
            )
            self.tally = found.counts
            return await drive(found.run(), self.clock)

        try:
            with open_writer(self.address) as connection:
                cast(sqlite3.Connection, connection.raw).set_trace_callback(statement)
                return asyncio.run(run_session(connection))
        finally:
            self.clock.forget_timers()

    def _agent(self, script: str | None) -> Carrier:
        return (
            BuiltinAnalystRole()
            if script is None
            else ScriptAgent(read_script(script, "crew"), self.clock)
        )

    def say(self, question_id: int, **data: Any) -> None:
        """Ann answers a question."""
        write_answer(self.answers, HumanAnswer(question_id, "ann", data))

    def questions(self) -> dict[str, int]:
        """The open question of each case."""
        rows = self.rows(
            "select e.case_id, q.question_id from cases e join questions q"
            " on q.question_id = e.dispatch_id where q.answered_at is null order by 2"
        )
        return {str(case_id): int(str(number)) for case_id, number in rows}

    def cases(self, suite_id: int = 1) -> dict[str, SuiteCase]:
        with self.reading() as connection:
            return {each.case_id: each for each in list_suite_cases(connection, suite_id)}

    def statuses(self, suite_id: int = 1) -> dict[str, str]:
        return {each.case_id: each.status for each in self.cases(suite_id).values()}

    def findings(self, terms: RcaConfig = RcaConfig(), suite_id: int = 1) -> Findings:  # noqa: B008
        with self.reading() as connection:
            suite = find_suite(connection, suite_id=suite_id)
            assert suite is not None
            return read_findings(
                connection, suite, self.circuit, terms, at=self.clock.time, agent="script"
            )

    def rules(self, case_id: str = "C1", run_id: int = 1) -> list[str]:
        """The rules a case took, in order."""
        lines = (line.split() for line in self.story(run_id))
        return [words[3] for words in lines if words[0] == case_id]

    def open_rcas(self) -> dict[int, int]:
        """How many open root causes each case has of its own."""
        found = self.rows("select case_no, count(*) from rcas where status = 'open' group by 1")
        return {int(str(case_no)): int(str(count)) for case_no, count in found}

    @staticmethod
    def circuit_of(run: Run) -> Circuit:
        thresholds = run.options.get("thresholds", {})
        return msgspec.json.decode(run.text, type=Bundle).open().circuit.with_thresholds(thresholds)
