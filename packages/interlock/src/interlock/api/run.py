"""A run, as programs hold it: its status, its events, its end.

The work goes on in a thread with an event loop of its own (`RunWork`), so that a caller may have a
loop, or none. They share only the journal: a `Run` reads what is committed.
"""

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable, Generator, Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import msgspec

from interlock.api.inspect import CaseLife
from interlock.api.start import OpenRun
from interlock.api.work import Display, RunResult, SessionTerms, describe_run, work_on_run
from interlock.journal.address import DatabaseAddress, identify
from interlock.journal.connection import Connection
from interlock.journal.database import find_writers, open_writer
from interlock.journal.history import CaseSummary, JournalLine, count_ends, list_cases, list_lines
from interlock.journal.ownership import Ownership, own_run
from interlock.journal.runs import FINISHED, find_run
from interlock.journal.runs import Run as RunRecord
from interlock.runtime.session import RunSession
from interlock.runtime.settings import RunConfig
from interlock.system.errors import StateError

if TYPE_CHECKING:
    from interlock.api.project import Project

_POLL = 0.2
"""Seconds between looks at a run that another process works on."""
_FOR_PEOPLE = ("waiting", "budget")
"""The ends of work that a person's answer can continue."""


class Event(msgspec.Struct, frozen=True):
    """One decision: what came back for a case, and where the case went."""

    seq: int
    """Its place in the journal; `events(after=seq)` continues after it."""
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
    """The event in one line; `str(event)` gives the same."""

    def __str__(self) -> str:
        return self.text


class RunWork:
    """One process's work on a run, in a thread of its own."""

    def __init__(
        self,
        db: DatabaseAddress,
        opening: Callable[[Connection, Ownership | None], OpenRun],
        display: Display,
        claimed: Ownership | None = None,
        over: Callable[[], None] = lambda: None,
    ) -> None:
        """Work on the run that `opening` returns once the database is open for writing.

        A run that was `claimed` before is owned from the start. `over` is called at the end, in
        the thread.
        """
        self._db = db
        self._claimed = claimed
        self._tell_over = over
        self._opening = opening
        self._display = display
        self._changed = threading.Condition()
        self._run_id: int | None = None
        self._session: RunSession | None = None
        self._stopping: bool | None = None
        self._hand_over = False
        self._result: RunResult | None = None
        self._error: BaseException | None = None
        self._over = False
        self._thread = threading.Thread(target=self._run_thread, name="interlock-run", daemon=True)
        self._thread.start()

    def wait_until_begun(self) -> int:
        """Return the run's number once it is written; raise the error that came before."""
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

    def wait_for_end(self, timeout: float) -> None:
        """Return when the work is over, or time is up."""
        with self._changed:
            self._changed.wait_for(lambda: self._over, timeout)

    def result(self) -> RunResult:
        """Return the result of the work that is over, or raise its error."""
        if self._error is not None:
            raise self._error
        assert self._result is not None  # noqa: S101 - it is over and nothing was raised
        return self._result

    def stop(self, *, now: bool, hand_over: bool = False) -> None:
        """Let open answers come in, or end `now`. Nothing is lost either way.

        With `hand_over` other processes may take the run at once.
        """
        with self._changed:
            self._stopping = now or bool(self._stopping)
            self._hand_over = hand_over
            session = self._session
        if session is not None:
            session.stop_soon(now=now, hand_over=hand_over)

    def join(self) -> None:
        self._thread.join()

    def _run_thread(self) -> None:
        try:
            with open_writer(self._db) as connection, ExitStack() as held:
                owned = self._claimed
                if owned is not None:
                    held.enter_context(own_run(connection, owned.run_id, owned))
                run, pool, _ = self._opening(connection, owned)
                with self._changed:
                    self._run_id = run.run_id
                    self._changed.notify_all()
                if run.status in FINISHED:
                    self._result = describe_run(connection, run)
                else:
                    self._result = work_on_run(
                        connection,
                        run,
                        pool,
                        SessionTerms(started=self._take_session, changed=self._notify_change),
                        display=self._display,
                        ownership=owned,
                    )
        except BaseException as error:
            self._error = error
        finally:
            with self._changed:
                self._over = True
                self._changed.notify_all()
            self._tell_over()

    def _take_session(self, session: RunSession) -> None:
        with self._changed:
            self._session = session
            stopping = self._stopping
        if stopping is not None:
            session.stop_soon(now=stopping, hand_over=self._hand_over)

    def _notify_change(self) -> None:
        with self._changed:
            self._changed.notify_all()


class Run:
    """A handle on a run. In async code, `await run` does what `run.wait()` does.

    Handles are cheap, and all handles of a run are equal: `project.run("monday")` gives another.
    """

    def __init__(self, project: "Project", number: int) -> None:
        self._project = project
        self.number = number

    def __repr__(self) -> str:
        return f"<Run {self.id}: {self.status}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Run) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    @property
    def _key(self) -> tuple[bytes, int]:
        return (identify(self._project.db), self.number)

    @property
    def _work(self) -> RunWork | None:
        """The work on the run in this project, if there is or was any; all handles share it."""
        return self._project._works.get(self.number)  # noqa: SLF001 - a handle, nothing more

    @property
    def id(self) -> int | str:
        """The id that the run was started with; its number, if it has none."""
        return msgspec.convert(self._read_record().options, RunConfig).id or self.number

    @property
    def circuit(self) -> str:
        """The name of the run's circuit."""
        return self._read_record().circuit

    @property
    def status(self) -> str:
        """The status of the run as in `RunResult`, `running` while a process works on it, or
        `interrupted` if that process died."""
        run = self._read_record()
        return find_writers(self._project.db).find_status(run.run_id, run.status)

    @property
    def counts(self) -> dict[str, int]:
        """The number of cases by their end, or by their status while they are open."""
        with self._project.read() as connection:
            return dict(count_ends(connection, self.number))

    def cases(self, status: str | None = None) -> list[CaseSummary]:
        """Return the cases in order; with `status`, only those that are `open`, `ended` or
        `stuck`."""
        with self._project.read() as connection:
            found = list_cases(connection, self.number)
        return [each for each in found if status in (None, each.status)]

    def events(self, after: int = 0) -> "EventStream":
        """Yield every decision behind `after` as it is committed, for `for` and `async for`.

        The stream ends when the run is settled: it is over, or only people can move it on. If
        people have answered since it last stopped, it continues first.
        """
        return EventStream(self, after)

    def wait(self, timeout: float | None = None) -> RunResult:
        """Wait until the run is settled: it is over, or only people can move it on.

        If people have answered since it last stopped, it continues first. TimeoutError if it takes
        longer than `timeout` seconds; the work goes on all the same.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        self._resume_if_answered()
        while True:
            left = _POLL if deadline is None else min(_POLL, deadline - time.monotonic())
            result = self._wait_a_moment(max(left, 0))
            if result is not None:
                return result
            if deadline is not None and time.monotonic() >= deadline:
                raise TimeoutError(f"run {self.id} is still at work after {timeout:g} s")

    def __await__(self) -> Generator[Any, None, RunResult]:
        return self._wait_async().__await__()

    async def _wait_async(self) -> RunResult:
        await asyncio.to_thread(self._resume_if_answered)
        # A moment at a time: a caller who gives up leaves no thread behind that waits for ever.
        while (result := await asyncio.to_thread(self._wait_a_moment, _POLL)) is None:
            pass
        return result

    def _wait_a_moment(self, seconds: float) -> RunResult | None:
        """Return the result of the run if it is settled within these seconds."""
        work = self._work
        if work is not None:
            work.wait_for_end(seconds)
            return work.result() if work.is_over else None
        if self.status == "running":
            time.sleep(seconds)
            return None
        with self._project.read() as connection:
            return describe_run(connection, find_run(connection, self.number))

    def stop(self, *, now: bool = False) -> None:
        """Stop the work on this run once open answers have come in, or `now`. Every decision is
        kept, and `resume` continues."""
        work = self._work
        if work is None:
            raise StateError(
                f"run {self.id} is not worked on by this program; 'interlock stop' asks the one "
                "that does"
            )
        work.stop(now=now)
        work.join()

    def resume(self) -> "Run":
        """Continue this run with the agents it had. The same as `Project.resume(run)`."""
        return self._project.resume(self)

    def explain(self, case: str) -> CaseLife:
        """Return the life of a case of this run: print it, or read its fields."""
        return self._project.explain(case, self)

    def _read_record(self) -> RunRecord:
        with self._project.read() as connection:
            return find_run(connection, self.number)

    def _resume_if_answered(self) -> None:
        """Resume work that stopped for people, if they have answered."""
        work = self._work
        if work is None or not work.is_over or work.result().status not in _FOR_PEOPLE:
            return
        if any(each.answer_saved for each in self._project.inbox(self)):
            self._project.resume(self)

    def _read_events(self, after: int) -> tuple[list[Event], bool]:
        """Return the decisions behind `after`, and whether more may come without a person."""
        # Asked before reading: work that ends in between has left its decisions behind.
        work = self._work
        busy = not work.is_over if work else self.status == "running"
        with self._project.read() as connection:
            found = [_build_event(line) for line in list_lines(connection, self.number, after)]
        return found, busy

    def _raise_failure(self) -> None:
        """Raise the error that broke the work off, such as a full disk."""
        work = self._work
        if work is not None and work.is_over:
            work.result()

    def _wait_for_change(self) -> None:
        work = self._work
        if work is not None:
            work.wait_for_change(_POLL)
        else:
            time.sleep(_POLL)


class EventStream:
    """The decisions of a run as they are committed: `for` and `async for`."""

    def __init__(self, run: Run, after: int) -> None:
        self._run = run
        self._after = after

    def __iter__(self) -> Iterator[Event]:
        self._run._resume_if_answered()  # noqa: SLF001 - the same module
        busy = True
        while busy:
            found, busy = self._read()
            yield from found
            if busy and not found:
                self._run._wait_for_change()  # noqa: SLF001 - the same module
        self._run._raise_failure()  # noqa: SLF001 - the same module

    async def __aiter__(self) -> AsyncIterator[Event]:
        await asyncio.to_thread(self._run._resume_if_answered)  # noqa: SLF001 - the same module
        busy = True
        while busy:
            found, busy = await asyncio.to_thread(self._read)
            for event in found:
                yield event
            if busy and not found:
                await asyncio.to_thread(self._run._wait_for_change)  # noqa: SLF001 - as above
        self._run._raise_failure()  # noqa: SLF001 - the same module

    def _read(self) -> tuple[list[Event], bool]:
        found, busy = self._run._read_events(self._after)  # noqa: SLF001 - the same module
        self._after = found[-1].seq if found else self._after
        return found, busy


def _build_event(line: JournalLine) -> Event:
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
