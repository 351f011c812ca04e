"""The background work of carriers: an unexpected error in it ends its dispatches as `crash`.

`TaskCarrier` is the base of carriers that work on each ask in a task of its own. Tasks, timers and
readers inherit the context in which a carrier was called, and with it the carrier's `CarrierGuard`.
So the event loop's one exception handler, `CrashReporter`, knows whose work failed: it writes the
traceback to a file, shows the user one line, and ends the dispatches that would wait for ever.
Carriers that know which dispatch failed call `report_error`.
"""

import asyncio
import traceback
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar, copy_context
from hashlib import blake2b
from pathlib import Path
from typing import Any, Protocol

from interlock.carriers.contract import Ask, Carrier, CarrierWrapper, Reply, Session
from interlock.engine.circuit import CRASH
from interlock.system.clock import Clock
from interlock.system.errors import InterlockError
from interlock.system.files import write_file

_GUARD: ContextVar["CarrierGuard | None"] = ContextVar("interlock_carrier_guard", default=None)
_DISPATCHES = "interlock_dispatches"
_FILE = "interlock_traceback"
_NOTE = "interlock_note"


def report_error(error: BaseException, *dispatch_ids: int) -> str:
    """Report an unexpected error and end these dispatches as `crash`.

    Return the reason for the caller's own reply; it names the file of the traceback, if there is
    one.
    """
    context = {"message": "background work failed", "exception": error, _DISPATCHES: dispatch_ids}
    asyncio.get_running_loop().call_exception_handler(context)
    return _describe(error, str(context.get(_FILE, "")))


def tell_user(text: str) -> None:
    """Show the user of this run a line."""
    asyncio.get_running_loop().call_exception_handler({"message": text, _NOTE: True})


def report_failure(task: "asyncio.Task[Any]") -> None:
    """Report the error of a task that nobody awaits; used as its done callback."""
    if not task.cancelled() and (error := task.exception()) is not None:
        context = {"message": "a task failed", "exception": error}
        asyncio.get_running_loop().call_exception_handler(context)


async def wait_until(clock: Clock, when: float) -> None:
    """Return at that time; the timer ends with the waiting task."""
    over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    cancel = clock.call_at(when, lambda: None if over.done() else over.set_result(None))
    try:
        await over
    finally:
        cancel()


class Stoppable(Protocol):
    """Work that can be stopped in order."""

    def stop(self) -> None: ...


class TaskCarrier(Carrier):
    """A carrier that answers each ask in a task of its own.

    An expected error becomes a `crash` reply with its sentence; any other error becomes a `crash`
    and is reported to the event loop. A dispatch that was settled gets no reply.
    """

    def __init__(self) -> None:
        self._current: dict[int, asyncio.Task[None]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._stoppable: dict[int, Stoppable] = {}
        self._prepared: asyncio.Future[None]
        self.session: Session

    @abstractmethod
    async def answer(self, ask: Ask) -> Reply:
        """Work on an ask. Working on the same ask twice must do no harm."""

    async def prepare(self) -> None:
        """Prepare once, before the first ask. If this fails, every task fails with the same
        error."""

    def start(self, session: Session) -> None:
        super().start(session)
        self.session = session
        self._prepared = asyncio.ensure_future(self.prepare())

    def send(self, asks: Sequence[Ask]) -> None:
        for ask in asks:
            if not self.is_under_way(ask.dispatch_id):
                task = asyncio.get_running_loop().create_task(self._run(ask))
                self._current[ask.dispatch_id] = task
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)
                task.add_done_callback(report_failure)

    def settle(self, dispatch_id: int, error: str = "") -> None:
        """Stop the work on a dispatch in order if possible, else cancel its task."""
        task = self._current.pop(dispatch_id, None)
        work = self._stoppable.pop(dispatch_id, None)
        if work is not None:
            work.stop()
        elif task is not None:
            task.cancel()

    async def close(self) -> None:
        for dispatch_id in list(self._current):
            self.settle(dispatch_id)
        await asyncio.gather(self._prepared, *self._tasks, return_exceptions=True)

    def is_under_way(self, dispatch_id: int) -> bool:
        return dispatch_id in self._current

    @contextmanager
    def stoppable(self, ask: Ask, work: Stoppable) -> Iterator[None]:
        """End the dispatch by stopping `work`, not by cancelling its task, while this lasts.

        Work for a dispatch that is not needed any more is stopped at once.
        """
        if self._current.get(ask.dispatch_id) is not asyncio.current_task():
            work.stop()
        else:
            self._stoppable[ask.dispatch_id] = work
        try:
            yield
        finally:
            if self._stoppable.get(ask.dispatch_id) is work:
                del self._stoppable[ask.dispatch_id]

    async def _run(self, ask: Ask) -> None:
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - a coroutine of ours runs in a task
        try:
            await asyncio.shield(self._prepared)
            reply = await self.answer(ask)
        except (InterlockError, OSError) as error:
            reply = Reply(ask.dispatch_id, failure=CRASH, reason=str(error))
        except asyncio.CancelledError as error:
            if task.cancelling():
                raise
            # Nobody cancelled us: the work itself let a cancellation escape.
            reply = Reply(ask.dispatch_id, failure=CRASH, reason=_describe(error, ""))
        except Exception as error:  # a fault of ours costs this attempt, not the whole night
            reply = Reply(ask.dispatch_id, failure=CRASH, reason=report_error(error))
        if self._current.get(ask.dispatch_id) is task:
            # Forgotten before it is delivered: after a rate limit the same dispatch comes again.
            del self._current[ask.dispatch_id]
            self._deliver(reply)


class CarrierGuard(CarrierWrapper):
    """Call a carrier so that any failure in it, now or later, is attributed to it."""

    def __init__(self, inner: Carrier) -> None:
        super().__init__(inner)
        self._open: set[int] = set()
        self._context = copy_context()
        self._context.run(_GUARD.set, self)

    def start(self, session: Session) -> None:
        """Start the carrier; its errors are raised, because a run cannot begin without its
        carriers."""
        self._context.run(super().start, session)

    def send(self, asks: Sequence[Ask]) -> None:
        dispatch_ids = [ask.dispatch_id for ask in asks]
        self._open.update(dispatch_ids)
        try:
            self._context.run(self.inner.send, asks)
        except Exception as error:
            self._context.run(report_error, error, *dispatch_ids)

    def settle(self, dispatch_id: int, error: str = "") -> None:
        self._open.discard(dispatch_id)
        try:
            self._context.run(self.inner.settle, dispatch_id, error)
        except Exception as problem:
            self._context.run(report_error, problem)

    def fail(self, reason: str, dispatch_ids: Sequence[int] | None) -> list[int]:
        """End these dispatches, or all open ones, as `crash`; return those that were open."""
        ended = sorted(self._open if dispatch_ids is None else self._open & set(dispatch_ids))
        for dispatch_id in ended:
            self._open.discard(dispatch_id)
            self._deliver(Reply(dispatch_id, failure=CRASH, reason=reason))
        return ended


class CrashReporter:
    """The exception handler of a run's event loop."""

    def __init__(self, folder: Path | None, note: Callable[[str], None]) -> None:
        """Write tracebacks to `folder`; `note` shows the user a line."""
        self._folder = folder
        self._note = note

    @contextmanager
    def install(self) -> Iterator[None]:
        loop = asyncio.get_running_loop()
        before = loop.get_exception_handler()
        loop.set_exception_handler(self._handle)
        try:
            yield
        finally:
            loop.set_exception_handler(before)

    def _handle(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        if _NOTE in context:
            self._note(context["message"])
            return
        error = context.get("exception")
        if not isinstance(error, Exception):
            loop.default_exception_handler(context)
            return
        context[_FILE] = file = self._write_traceback(error)
        reason = _describe(error, file)
        guard = _find_guard(context)
        ended = guard.fail(reason, context.get(_DISPATCHES)) if guard else []
        ending = "".join(f"; dispatch {dispatch_id} ends as crash" for dispatch_id in ended)
        self._note(f"{reason}{ending}")

    def _write_traceback(self, error: Exception) -> str:
        """Write a traceback and return its file, once per error; return "" if it cannot be
        written."""
        if self._folder is None:
            return ""
        text = "".join(traceback.format_exception(error)).encode(errors="replace")
        path = self._folder / f"crash-{blake2b(text, digest_size=6).hexdigest()}.txt"
        with suppress(OSError):
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_file(path, text)
            return str(path)
        return ""


def _find_guard(context: dict[str, Any]) -> CarrierGuard | None:
    """Return the guard in whose context a callback ran; report functions run in that context
    already."""
    where = getattr(context.get("handle"), "_context", None)  # public only from Python 3.12 on
    found: CarrierGuard | None = _GUARD.get() if where is None else where.get(_GUARD)
    return found


def _describe(error: BaseException, file: str) -> str:
    reason = f"an internal error in Interlock: {type(error).__name__}: {error}"
    return f"{reason}; the traceback is in {file}" if file else reason
