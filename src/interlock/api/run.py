"""A run, as programs hold it: how it stands, what happens in it, when it is settled.

The work itself goes on in a thread with an event loop of its own (`RunWork`), so that a caller may
have a loop, or none. The journal is the only thing the two share: a `Run` reads what is committed.
"""

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable, Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from sqlalchemy import Connection

from interlock.api.inspect import CaseLife
from interlock.api.work import Display, RunResult, load_circuit, work_on_run
from interlock.journal.database import reading, writer_of, writing
from interlock.journal.history import CaseSummary, JournalLine, cases_of, counts, lines_since
from interlock.journal.runs import FINISHED, find_run
from interlock.journal.runs import Run as RunRecord
from interlock.runtime.agent_pool import AgentPool
from interlock.runtime.loop import RunCounts
from interlock.runtime.session import RunSession
from interlock.runtime.settings import RunConfig
from interlock.system.errors import StateError

if TYPE_CHECKING:
    from interlock.api.project import Project

_POLL = 0.2
"""How often a run is looked at that another process works on, in seconds."""


class Event(msgspec.Struct, frozen=True):
    """One decision: what came back for a case, and where it went."""

    seq: int
    """Its place in the journal: `events(after=seq)` goes on behind it."""
    at: float
    case_id: str
    step: str
    attempt: int
    signal: str
    to: str
    """The next step or the end; empty if the case is stuck."""
    rule: str
    dispatch_id: int
    text: str
    """The same in one line."""

    def __str__(self) -> str:
        return self.text


class RunWork:
    """One process's work on a run, in a thread of its own."""

    def __init__(
        self,
        db: Path,
        begin: Callable[[Connection], tuple[RunRecord, AgentPool]],
        display: Display,
    ) -> None:
        """`begin` writes the run down, or finds it, once the database is open for writing."""
        self._db = db
        self._begin = begin
        self._display = display
        self._changed = threading.Condition()
        self._run_id: int | None = None
        self._session: RunSession | None = None
        self._stopping: bool | None = None
        self._result: RunResult | None = None
        self._error: BaseException | None = None
        self._over = False
        self._thread = threading.Thread(target=self._main, name="interlock-run", daemon=True)
        self._thread.start()

    def wait_until_begun(self) -> int:
        """The run's number, when it is written down; raises what went wrong before."""
        with self._changed:
            self._changed.wait_for(lambda: self._run_id is not None or self._over)
        if self._run_id is None:
            assert self._error is not None  # noqa: S101 - it is over without having begun
            raise self._error
        return self._run_id

    @property
    def is_over(self) -> bool:
        return self._over

    def wait_for_change(self, timeout: float) -> None:
        """Return when something was committed, the work is over, or time is up."""
        with self._changed:
            if not self._over:
                self._changed.wait(timeout)

    def result(self, timeout: float | None = None) -> RunResult:
        """How the work came out, when it is over; TimeoutError if that takes longer."""
        with self._changed:
            if not self._changed.wait_for(lambda: self._over, timeout):
                raise TimeoutError(f"run {self._run_id} is still at work after {timeout:g} s")
        if self._error is not None:
            raise self._error
        assert self._result is not None  # noqa: S101 - it is over and nothing was raised
        return self._result

    def stop(self, *, now: bool) -> None:
        """Let what is out come in and end; or end `now`. Nothing is lost either way."""
        with self._changed:
            self._stopping = now or bool(self._stopping)
            session = self._session
        if session is not None:
            session.stop_soon(now=now)

    def join(self) -> None:
        self._thread.join()

    def _main(self) -> None:
        try:
            with writing(self._db) as connection:
                run, pool = self._begin(connection)
                with self._changed:
                    self._run_id = run.run_id
                    self._changed.notify_all()
                if run.status in FINISHED:
                    self._result = _result_of(connection, run)
                else:
                    self._result = work_on_run(
                        connection,
                        run,
                        pool,
                        display=self._display,
                        started=self._started,
                        changed=self._wake,
                    )
        except BaseException as error:
            self._error = error
        finally:
            with self._changed:
                self._over = True
                self._changed.notify_all()

    def _started(self, session: RunSession) -> None:
        with self._changed:
            self._session = session
            stopping = self._stopping
        if stopping is not None:
            session.stop_soon(now=stopping)

    def _wake(self) -> None:
        with self._changed:
            self._changed.notify_all()


class Run:
    """A handle on a run. `await run` is `run.wait()` in async code."""

    def __init__(self, project: "Project", number: int, work: RunWork | None = None) -> None:
        self._project = project
        self._work = work
        self.number = number

    def __repr__(self) -> str:
        return f"<Run {self.id}: {self.status}>"

    @property
    def id(self) -> int | str:
        """What the run was started under; its number, if it was given no id."""
        return msgspec.convert(self._record().options, RunConfig).id or self.number

    @property
    def status(self) -> str:
        """As in RunResult; `running` while somebody works on it, `interrupted` if nobody does."""
        status = self._record().status
        return status if status != "running" or writer_of(self._project.db) else "interrupted"

    @property
    def counts(self) -> dict[str, int]:
        """How many cases stand where: by end, or by status while they are open."""
        with self._project.read() as connection:
            return dict(counts(connection, self.number))

    def cases(self, status: str | None = None) -> list[CaseSummary]:
        """The cases, in their order; only those `open`, `ended` or `stuck`, if one is named."""
        with self._project.read() as connection:
            found = cases_of(connection, self.number)
        return [each for each in found if status in (None, each.status)]

    def events(self, after: int = 0) -> "EventStream":
        """Every decision, from the first or `after` one; ends when the run is settled: it is over,
        or only people can move it on. An iterator, in async code an async one."""
        return EventStream(self, after)

    def wait(self, timeout: float | None = None) -> RunResult:
        """Return when the run is settled: it is over, or only people can move it on. Where people
        have answered meanwhile, the run goes on first."""
        work = self._resume_if_settled()
        if work is not None:
            return work.result(timeout)
        deadline = None if timeout is None else time.monotonic() + timeout
        while self.status == "running":
            if deadline is not None and time.monotonic() > deadline:
                raise TimeoutError(f"run {self.number} is still at work after {timeout:g} s")
            time.sleep(_POLL)
        with self._project.read() as connection:
            return _result_of(connection, find_run(connection, self.number))

    def __await__(self) -> Generator[Any, None, RunResult]:
        return asyncio.to_thread(self.wait).__await__()

    def stop(self, *, now: bool = False) -> None:
        """Stop the work in this process. What was decided is kept; `resume` goes on."""
        if self._work is None:
            raise StateError(
                f"run {self.number} is not worked on by this process; 'interlock stop' asks the "
                "one that does"
            )
        self._work.stop(now=now)
        self._work.join()

    def explain(self, case: str) -> CaseLife:
        """The life of a case of this run; print it, or read its fields."""
        return self._project.explain(case, self)

    def _record(self) -> RunRecord:
        with self._project.read() as connection:
            return find_run(connection, self.number)

    def _resume_if_settled(self) -> RunWork | None:
        """The work to wait for. One that stopped to wait for people begins again."""
        if self._work is None or not self._work.is_over:
            return self._work
        if self._work.result().status == "waiting" and self._has_answers():
            self._work = self._project.resume(self)._work  # noqa: SLF001 - another handle on it
        return self._work

    def _has_answers(self) -> bool:
        return any(each.answer_saved for each in self._project.inbox(self))

    def _read_events(self, after: int) -> tuple[list[Event], bool]:
        """The decisions behind `after`, and whether more may come without a person."""
        # Asked before reading: work that ends in between has left its decisions behind.
        busy = not self._work.is_over if self._work else self.status == "running"
        with reading(self._project.db) as connection:
            found = [_event(line) for line in lines_since(connection, self.number, after)]
        return found, busy

    def _wait_for_change(self) -> None:
        if self._work is not None:
            self._work.wait_for_change(_POLL)
        else:
            time.sleep(_POLL)


class EventStream:
    """The decisions of a run as they are committed: `for` and `async for`."""

    def __init__(self, run: Run, after: int) -> None:
        self._run = run
        self._after = after

    def __iter__(self) -> Iterator[Event]:
        while True:
            found, busy = self._run._read_events(self._after)  # noqa: SLF001 - the same module
            for event in found:
                self._after = event.seq
                yield event
            if not busy:
                return
            if not found:
                self._run._wait_for_change()  # noqa: SLF001 - the same module

    async def __aiter__(self) -> AsyncIterator[Event]:
        events = iter(self)
        while (event := await asyncio.to_thread(next, events, None)) is not None:
            yield event


def _event(line: JournalLine) -> Event:
    decision = line.decision
    target = decision.to or f"{decision.status}: {decision.reason}"
    return Event(
        seq=line.seq,
        at=line.at,
        case_id=line.case_id,
        step=decision.step,
        attempt=decision.attempt,
        signal=decision.signal,
        to=decision.to or "",
        rule=decision.rule,
        dispatch_id=line.dispatch_id,
        text=f"{line.case_id}: {decision.step} #{decision.attempt} {decision.signal} -> {target}",
    )


def _result_of(connection: Connection, run: RunRecord) -> RunResult:
    """How a run stands that nobody here works on."""
    cases = cases_of(connection, run.run_id)
    tally = RunCounts(
        cases=len(cases),
        ended=sum(each.status == "ended" for each in cases),
        stuck=sum(each.status == "stuck" for each in cases),
    )
    return RunResult(run.run_id, run.status, tally, run.spent, load_circuit(run))
