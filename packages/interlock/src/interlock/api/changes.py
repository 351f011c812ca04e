"""Read which runs changed in a database since the last look: one reader for all live pages."""

import time
from collections import deque
from collections.abc import Mapping
from contextlib import ExitStack
from typing import Final

import msgspec

from interlock.api.browse import count_open_questions
from interlock.carriers.registry import agents_folder
from interlock.carriers.status import AgentStatus, read_agent_status
from interlock.journal.address import DatabaseAddress
from interlock.journal.browse import (
    Position,
    list_changes,
    list_statuses,
    name_circuits,
    read_position,
)
from interlock.journal.connection import Connection
from interlock.journal.database import explain_errors, find_writers, open_reader
from interlock.journal.runs import FINISHED
from interlock.system.errors import NoDatabaseError, StoreError

_REOPEN_AFTER: Final = 5.0
"""Seconds after which the database is opened anew: it may have been moved or upgraded."""
_LOOK_ASIDE: Final = 1.0
"""Seconds between looks at what the journal does not say: processes that died, agents' health."""


class Changes(msgspec.Struct, frozen=True):
    """Everything that changed since the last look."""

    position: str
    runs: Mapping[int, str] = {}
    """The circuit of each run that changed, by the run's number."""
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
        self._told: deque[str] = deque(maxlen=4096)
        self._waiting = 0
        self._problem = ""

    def close(self) -> None:
        self._stack.close()
        self._connection = None

    def begin_anew(self) -> None:
        """Recover from a fault: the next call opens the database and reads as the first one did."""
        self.close()
        self._position = None

    def read(self) -> Changes | None:
        """Return what changed since the last call, None if nothing did. The first call returns
        only the position."""
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
        changed: set[int] = set()
        if before is None:
            self._problem = ""
            self._told.extend(mark for mark, _ in list_changes(connection, position))
            self._look_aside(connection)
        elif position.mark != before.mark:
            changed = self._list_written(connection, before) | self._look_aside(connection)
        elif time.monotonic() - self._looked_aside > _LOOK_ASIDE:
            changed = self._look_aside(connection)
        else:
            return None
        waiting, waited = count_open_questions(self._db, connection), self._waiting
        self._waiting = waiting
        if before is not None and not changed and waiting == waited:
            return None
        runs = name_circuits(connection, sorted(changed))
        return Changes(str(position), runs, waiting, fresh=before is None)

    def _list_written(self, connection: Connection, before: Position) -> set[int]:
        told = set(self._told)
        found = [each for each in list_changes(connection, before) if each[0] not in told]
        self._told.extend(mark for mark, _ in found)
        return {run_id for _, run_id in found}

    def _look_aside(self, connection: Connection) -> set[int]:
        """Return the runs whose status changed, or whose agents are in another state."""
        self._looked_aside = time.monotonic()
        writers = find_writers(self._db)
        statuses = {
            number: writers.find_status(number, status)
            for number, status in list_statuses(connection, FINISHED).items()
        }
        agents = {each.dispatch_id: each for each in read_agent_status(agents_folder(self._db))}
        found = {
            number
            for number in {*statuses, *self._statuses}
            if statuses.get(number) != self._statuses.get(number)
        }
        for number in {*agents, *self._agents}:
            old, new = self._agents.get(number), agents.get(number)
            if old is None or new is None or (old.word, old.reasons) != (new.word, new.reasons):
                found |= {each.run_id for each in (old, new) if each is not None}
        self._statuses, self._agents = statuses, agents
        return found
