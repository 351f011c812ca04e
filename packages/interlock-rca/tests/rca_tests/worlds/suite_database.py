"""A database with suites of failed tests in it; effects on them go through the journal."""

from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any

from interlock.journal.address import DatabaseAddress
from interlock.journal.connection import Connection
from interlock.journal.database import open_writer
from interlock.journal.journal import Journal, TurnWrites
from interlock.journal.runs import NewRun
from interlock_rca.effects import Correlated, Effect, Investigated, Recalled, Reviewed, Triaged
from interlock_rca.knowledge.intake import (
    Arrival,
    FailedCase,
    NewSuite,
    OpenedSuite,
    begin_suite,
)
from interlock_rca.knowledge.writer import apply_effect
from interlock_rca.records import Failure, Launch
from tests.world.world import World


def failed(name: str, fingerprint: str = "", *, launch: str = "L1", **more: Any) -> FailedCase:
    """A failure whose message is its fingerprint, if it has one."""
    failure = Failure(id=name, test_name=name, message=f"{name} broke", job="unit", launch=launch)
    return FailedCase(
        case_id=f"{launch}/{name}",
        input={"id": name},
        failure=failure,
        fingerprint=fingerprint,
        error_pattern=f"masked {fingerprint}",
        **more,
    )


def launched(
    *cases: FailedCase, version: str = "1.0", launch_id: str = "L1", **more: Any
) -> Arrival:
    return Arrival(
        launch=Launch(launch_id=launch_id, name="nightly", version=version, **more), cases=cases
    )


def triaged(**more: Any) -> Triaged:
    given: dict[str, Any] = {
        "category": "product",
        "severity": "high",
        "hypothesis": "pb001",
        "candidate_repos": ("engine", "door"),
        "skip": False,
        "clock_skew": False,
        "cascade": False,
        "notes": "",
    }
    return Triaged(**given | more)


def investigated(attempt: int = 1, **more: Any) -> Investigated:
    given: dict[str, Any] = {
        "title": f"cause {attempt}",
        "description": f"found in attempt {attempt}",
        "defect_type": "pb001",
        "category": "product",
        "component": "engine",
        "convergence_score": 0.8,
        "evidence": ({"ref": "engine:a.py:1", "verdict": "found", "why": "", "url": ""},),
    }
    return Investigated(attempt=attempt, **given | more)


def correlated(rca_id: int, *versions: str) -> Correlated:
    return Correlated(rca_id=rca_id, confidence=0.9, affected_versions=versions)


def recalled(symptom_id: int, rca_id: int, *, regression: bool = False) -> Recalled:
    return Recalled(symptom_id=symptom_id, rca_id=rca_id, regression=regression)


APPROVED = Reviewed(decision="approve", by="ann")


def overturned(description: str = "it was the door", defect_type: str = "ab001") -> Reviewed:
    return Reviewed(decision="overturn", by="ann", description=description, defect_type=defect_type)


class Inquiry(World):
    """Suites on one database."""

    def __init__(self, folder: Path, db: DatabaseAddress | None = None) -> None:
        super().__init__(folder, db=db)
        self.at = self.clock.time

    def open(self, *arrivals: Arrival, name: str = "suite") -> OpenedSuite:
        with open_writer(self.address) as connection:
            return self.open_on(connection, arrivals, name)

    def open_on(
        self, connection: Connection, arrivals: Iterable[Arrival], name: str = "suite"
    ) -> OpenedSuite:
        run = NewRun(
            circuit=self.circuit,
            text=self.text,
            source="test",
            fingerprint="mark",
            options={},
            at=self.at,
        )
        return begin_suite(connection, NewSuite(run=run, name=name), arrivals)

    def effect(self, case_no: int, *effects: Effect) -> None:
        """A second later, one batch."""
        self.at += 1.0
        with open_writer(self.address) as connection:
            journal = Journal(connection, 1)
            for each in effects:
                journal.apply_effect(partial(apply_effect, case_no, each), self.at)
            journal.commit(TurnWrites(at=self.at))

    def one(self, query: str) -> Any:
        """The only row, or its only value."""
        (row,) = self.rows(query)
        return row[0] if len(row) == 1 else row

    def case(self, case_no: int, columns: str) -> Any:
        return self.one(f"select {columns} from rca_cases where case_no = {case_no}")

    def rcas(self) -> list[tuple[object, ...]]:
        return self.rows("select rca_id, case_no, attempt, status from rcas order by rca_id")

    def change(self, statement: str) -> None:
        """What nobody's code does: straight into the tables, foreign keys on."""
        with open_writer(self.address) as connection:
            connection.raw.execute(statement)
