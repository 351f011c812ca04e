"""Read what changed in a database since the last look: one reader for all live pages."""

import time
from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from typing import Final

import msgspec

from interlock.api.browse import (
    CaseLine,
    count_open_questions,
    describe_cases,
)
from interlock.api.inspect import list_paused_dispatches
from interlock.api.work import load_circuit
from interlock.carriers.registry import agents_folder
from interlock.carriers.status import AgentStatus, read_agent_status
from interlock.engine.case import Usage
from interlock.journal.address import DatabaseAddress
from interlock.journal.browse import (
    NOTHING,
    PlaceCount,
    Position,
    count_places,
    find_case_numbers,
    find_case_rows,
    list_changed_cases,
    list_glances,
    list_statuses,
    read_position,
)
from interlock.journal.connection import Connection
from interlock.journal.database import explain_errors, find_writers, open_reader
from interlock.journal.ownership import Writers
from interlock.journal.runs import FINISHED, find_run
from interlock.journal.usage import sum_costs_of_runs
from interlock.runtime.settings import RunConfig
from interlock.system.errors import InterlockError, NoDatabaseError, StoreError

MOST_CHANGED: Final = 200
"""Changed cases that are told one by one; of more, only that there were many."""
_REOPEN_AFTER: Final = 5.0
"""Seconds after which the database is opened anew: it may have been moved or upgraded."""
_LOOK_ASIDE: Final = 1.0
"""Seconds between looks at what the journal does not say: processes that died, agents' health."""
_COUNT_AFTER: Final = 2.0
"""Seconds between additions of what a run has cost."""


class RunChange(msgspec.Struct, frozen=True):
    """The new state of a run that changed."""

    run_id: int
    circuit: str
    status: str
    cost: Usage
    changed_at: float
    places: tuple[PlaceCount, ...]
    cases: tuple[CaseLine, ...]
    """The cases that changed."""
    many: bool
    """True if more cases changed than are listed."""

    @property
    def ends(self) -> Counter[str]:
        """Return the number of cases by their end, or by their status while they are open."""
        found: Counter[str] = Counter()
        for each in self.places:
            found[each.end or each.status] += each.cases
        return found


class Changes(msgspec.Struct, frozen=True):
    """Everything written since the last look."""

    position: str
    runs: tuple[RunChange, ...] = ()
    waiting: int = 0
    """The number of questions that wait for people."""
    fresh: bool = False
    """True if what came before is unknown, so that pages must be read anew."""
    problem: str = ""
    """The reason why the database cannot be read now, if it cannot."""


class ChangeReader:
    """Looks at a database again and again. For one thread at a time."""

    def __init__(self, db: DatabaseAddress) -> None:
        self._db = db
        self._stack = ExitStack()
        self._connection: Connection | None = None
        self._opened = 0.0
        self._position: Position | None = None
        self._looked_aside = 0.0
        self._agents: Mapping[int, AgentStatus] = {}
        self._statuses: Mapping[int, str] = {}
        self._writers = Writers()
        self._moments: dict[int, float] = {}
        """The time of the last change that was reported, by run."""
        self._told: deque[str] = deque(maxlen=4096)
        self._costs: dict[int, tuple[float, Usage]] = {}
        self._ends: dict[int, Mapping[str, bool]] = {}
        self._waiting = 0
        self._problem = ""

    def close(self) -> None:
        self._stack.close()
        self._connection = None

    def begin_anew(self) -> None:
        """After a fault: the next call opens the database, and tells as the first one did."""
        self.close()
        self._position = None

    @property
    def position(self) -> str:
        """Return the position that the last look came to."""
        return str(self._position) if self._position else ""

    def read(self) -> Changes | None:
        """Return what changed since the last call, None if nothing did. The first call tells
        nothing but the position."""
        try:
            with explain_errors(self._db):  # it may go away while a connection is open
                return self._look(self._open())
        except StoreError as error:
            self.begin_anew()
            problem = "" if isinstance(error, NoDatabaseError) else str(error)
            if problem == self._problem:
                return None
            self._problem = problem
            return Changes("", problem=problem)

    def _open(self) -> Connection:
        now = time.monotonic()
        if self._connection is None or now - self._opened > _REOPEN_AFTER:
            self.close()
            self._connection = self._stack.enter_context(open_reader(self._db))
            self._opened = now
        return self._connection

    def _look(self, connection: Connection) -> Changes | None:
        position, before = read_position(connection), self._position
        self._position = position
        if before is None:
            self._problem = ""
            self._told.extend(mark for mark, *_ in list_changed_cases(connection, position))
            self._look_aside(connection)
            self._waiting = count_open_questions(self._db, connection)
            return Changes(str(position), waiting=self._waiting, fresh=True)
        moved = position.mark != before.mark
        aside = time.monotonic() - self._looked_aside > _LOOK_ASIDE
        if not moved and not aside:
            return None
        cases: dict[int, list[int]] = {}
        if moved:
            self._add_changed(connection, before, cases)
        if moved or aside:
            self._look_aside(connection, cases)
        waiting = count_open_questions(self._db, connection)
        if not cases and waiting == self._waiting:
            return None
        self._waiting = waiting
        runs = self._describe(connection, cases)
        return Changes(str(position), tuple(runs), waiting)

    def _add_changed(
        self, connection: Connection, before: Position, cases: dict[int, list[int]]
    ) -> None:
        told = set(self._told)
        for mark, run_id, case_no, at in list_changed_cases(connection, before):
            if mark not in told:
                self._told.append(mark)
                cases.setdefault(run_id, []).append(case_no)
                self._moments[run_id] = max(at, self._moments.get(run_id, 0.0))

    def _look_aside(
        self, connection: Connection, cases: dict[int, list[int]] | None = None
    ) -> None:
        """Runs whose status changed, and cases whose agents stand otherwise than before."""
        self._looked_aside = time.monotonic()
        changed = {} if cases is None else cases
        running = list_statuses(connection, FINISHED)
        self._writers = find_writers(self._db)
        statuses = {
            number: self._writers.find_status(number, status) for number, status in running.items()
        }
        for number in {*statuses, *self._statuses}:
            if statuses.get(number) != self._statuses.get(number):
                changed.setdefault(number, [])
        self._statuses = statuses
        agents = {each.dispatch_id: each for each in read_agent_status(agents_folder(self._db))}
        stirred = _find_stirred(self._agents, agents)[:MOST_CHANGED]
        self._agents = agents
        for run_id, case_no in find_case_numbers(connection, stirred):
            changed.setdefault(run_id, []).append(case_no)

    def _describe(
        self, connection: Connection, cases: Mapping[int, Sequence[int]]
    ) -> Iterable[RunChange]:
        at = time.time()
        for run_id, numbers in cases.items():
            found = list_glances(connection, limit=1, only=[run_id], brief=True)
            if not found:
                continue
            glance = found[0]
            status = self._writers.find_status(run_id, glance.status)
            some = list(dict.fromkeys(numbers))
            rows = find_case_rows(connection, some[:MOST_CHANGED])
            pauses = list_paused_dispatches(connection, run_id, at)
            config = msgspec.convert(glance.options, RunConfig)
            agents = list(self._agents.values())
            ends = self._find_ends(connection, run_id)
            yield RunChange(
                run_id=run_id,
                circuit=glance.circuit,
                status=status,
                cost=self._sum_costs(connection, run_id),
                changed_at=max(glance.changed_at, self._moments.get(run_id, 0.0)),
                places=tuple(count_places(connection, run_id)),
                cases=tuple(describe_cases(status, config, ends, rows, agents, pauses, at)),
                many=len(some) > MOST_CHANGED,
            )

    def _find_ends(self, connection: Connection, run_id: int) -> Mapping[str, bool]:
        """Return the ends of a run's circuit, which stays as it is; none if it cannot be read any
        more."""
        if run_id not in self._ends:
            self._ends[run_id] = {}
            with suppress(InterlockError, msgspec.MsgspecError):
                self._ends[run_id] = load_circuit(find_run(connection, run_id, brief=True)).ends
        return self._ends[run_id]

    def _sum_costs(self, connection: Connection, run_id: int) -> Usage:
        """Tokens and money of a run, a moment old at most."""
        now = time.monotonic()
        at, cost = self._costs.get(run_id, (0.0, NOTHING))
        if now - at > _COUNT_AFTER:
            cost = sum_costs_of_runs(connection, [run_id]).get(run_id, NOTHING)
            self._costs[run_id] = (now, cost)
        return cost


def _find_stirred(
    before: Mapping[int, AgentStatus], now: Mapping[int, AgentStatus]
) -> list[tuple[int, str]]:
    """Return the cases of agents that came, went, or stand otherwise."""
    found = []
    for number in {*before, *now}:
        one, other = before.get(number), now.get(number)
        if one is None or other is None or (one.word, one.reasons) != (other.word, other.reasons):
            each = other or one
            if each is not None:
                found.append((each.run_id, each.case_id))
    return found
