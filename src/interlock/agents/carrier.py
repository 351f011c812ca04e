"""What every carrier does: take asks and hand back replies. The loop knows carriers only by this.

A carrier never decides whether a reply is good, late or forged; it hands over what came, with the
dispatch id it came for. Sending the same ask twice must be harmless: after a crash it happens.
`TaskSet` is how a carrier does work in the background without losing a failure.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol, runtime_checkable

import msgspec

from interlock.engine.case import Case, Usage
from interlock.engine.circuit import CRASH, Language, Step
from interlock.system.errors import InterlockError

MAX_ANSWER = 1024 * 1024
"""Bytes of one answer. A longer one is refused without being read to its end."""


class ExecutionContext(msgspec.Struct, frozen=True, gc=False):
    """Where the agent of an ask works, and what its answer must name, where an application says."""

    folder: str = ""
    """Its working folder; empty for the carrier's own choice."""
    variables: Mapping[str, str] = {}
    nonce: str = ""
    """What a strict answer repeats, to show that it is for this dispatch."""
    strict: bool = False
    writes: bool = False
    """Whether it is to change files in its folder: a CLI is then started so that it may."""
    request_id: str = ""
    """What an expert's answer names."""


NO_CONTEXT = ExecutionContext()


class Ask(msgspec.Struct, frozen=True, gc=False):
    """One dispatch on its way out."""

    dispatch_id: int
    run_id: int
    case_id: str
    step: str
    attempt: int
    role: str
    prompt: str
    case_no: int = 0
    """The case's number in the database, unlike its id safe as a folder's name."""
    at: float = 0.0
    """When the dispatch was opened; sent again after a restart, it keeps its time."""
    case: Case | None = None
    """The case as it stood when it was asked about, for those of our own programs that answer."""
    language: Language = "json"
    execution: ExecutionContext = NO_CONTEXT


class Reply(msgspec.Struct, frozen=True, gc=False):
    """What came back: the answer's bytes, or why there are none (a signal name and a reason).

    With `refused` the carrier itself saw that it cannot be an answer to this dispatch: that is
    journaled, the reason being the sentence for whoever wrote it, and the dispatch stays open.
    `answered_by` names the human who gave it, and is empty for an agent. `until` goes with a rate
    limit: when it ends, in seconds since the epoch, or 0 where that is not told.
    """

    dispatch_id: int
    content: bytes = b""
    failure: str = ""
    reason: str = ""
    refused: str = ""
    usage: Usage = Usage()
    answered_by: str = ""
    until: float = 0


Deliver = Callable[[Reply], None]


class Carrier(Protocol):
    """Carries asks of one or more roles."""

    def start(self, deliver: Deliver) -> None:
        """Called before the first ask, inside the running event loop; after `close`, again when
        the same program goes on with the run."""

    def send(self, asks: Sequence[Ask]) -> None:
        """Carry these out; returns at once, replies come through `deliver`."""

    def settle(self, dispatch_id: int, error: str = "") -> None:
        """The dispatch is decided, by its answer or, as `error` says, without one: stop what still
        runs for it."""

    async def close(self) -> None:
        """Stop everything that still runs and let go of what is held."""


@runtime_checkable
class HasCapacity(Protocol):
    """A carrier that takes asks only now and then, and then only so many."""

    def free_capacity(self) -> int:
        """How many it takes at this moment. Room opens when one of its dispatches is settled."""


@runtime_checkable
class SharesAccount(Protocol):
    """A carrier whose asks share a limit with others: a login, a key, a subscription."""

    def account_of(self, role: str) -> str:
        """The name of what the role's asks are charged to; empty if it has none of its own. The
        same name in another run or another process is the same account."""


@runtime_checkable
class KeepsAnswers(Protocol):
    """A carrier whose answers may lie where they are until somebody comes for them."""

    def keeps_answers(self) -> bool:
        """Whether nothing is lost if nobody waits for what is out."""


class Clock(Protocol):
    """Time, as an argument."""

    def now(self) -> float:
        """Seconds since the epoch."""

    def call_at(self, when: float, callback: Callable[[], None]) -> Callable[[], None]:
        """Call back at that time, unless the returned function is called first."""


@runtime_checkable
class HoldsTime(Protocol):
    """A clock of tests: its time does not pass while somebody works."""

    def hold(self) -> AbstractContextManager[None]:
        """Until it is left, time stands."""


@runtime_checkable
class TakesClock(Protocol):
    """A carrier that a program makes before the run's clock is known, and that is given it."""

    clock: Clock | None


@runtime_checkable
class KnowsSteps(Protocol):
    """A carrier that is given the circuit's steps before it starts: what an answer must look like,
    and how long it may take."""

    steps: Mapping[str, Step]


class TaskSet:
    """One task for each dispatch, each of which ends in a reply, whatever goes wrong.

    An error that we foresee becomes a `crash` reply with its sentence; any other one becomes a
    `crash` too and is reported to the event loop, so that no task dies silently. A dispatch that
    was dropped gets no reply any more.
    """

    def __init__(
        self,
        work: Callable[[Ask], Awaitable[Reply]],
        stop: Callable[[int], bool] = lambda _dispatch_id: False,
    ) -> None:
        """`stop` ends the work for a dispatch in order and says whether there was any to end;
        without it, or before the work began, the task is cancelled."""
        self._work = work
        self._stop = stop
        self._current: dict[int, asyncio.Task[None]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._first: asyncio.Future[object] | None = None
        self._deliver: Deliver

    def start(self, deliver: Deliver, first: Awaitable[object] | None = None) -> None:
        """From now on replies go to `deliver`. Every task waits until `first` is done; if that
        fails, each of them fails by the same error."""
        self._deliver = deliver
        self._first = None if first is None else asyncio.ensure_future(first)

    def begin(self, asks: Iterable[Ask]) -> None:
        """Work on what is not under way already."""
        for ask in asks:
            if ask.dispatch_id not in self:
                task = asyncio.get_running_loop().create_task(self._run(ask))
                self._current[ask.dispatch_id] = task
                self._tasks.add(task)
                task.add_done_callback(self._finish)

    def __contains__(self, dispatch_id: int) -> bool:
        """Whether it is under way."""
        return dispatch_id in self._current

    def drop(self, dispatch_id: int) -> None:
        """Nobody needs the reply any more."""
        task = self._current.pop(dispatch_id, None)
        if task is not None and not self._stop(dispatch_id):
            task.cancel()

    async def close(self) -> None:
        """Drop everything and wait until it is over."""
        for dispatch_id in list(self._current):
            self.drop(dispatch_id)
        first = [self._first] if self._first is not None else []
        await asyncio.gather(*first, *self._tasks, return_exceptions=True)

    async def _run(self, ask: Ask) -> None:
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - a coroutine of ours runs in a task
        try:
            if self._first is not None:
                await asyncio.shield(self._first)
            reply = await self._work(ask)
        except (InterlockError, OSError) as error:
            reply = Reply(ask.dispatch_id, failure=CRASH, reason=str(error))
        except asyncio.CancelledError as error:
            if task.cancelling():
                raise
            # Nobody cancelled us: the work itself let a cancellation escape.
            reply = _reply_to_fault(ask, error)
        except Exception as error:  # a fault of ours costs this attempt, not the whole night
            _report(error)
            reply = _reply_to_fault(ask, error)
        if self._current.get(ask.dispatch_id) is task:
            # Forgotten before it is delivered: after a rate limit the same dispatch comes again.
            del self._current[ask.dispatch_id]
            self._deliver(reply)

    def _finish(self, task: "asyncio.Task[None]") -> None:
        self._tasks.discard(task)
        report_failure(task)


def report_failure(task: "asyncio.Task[Any]") -> None:
    """The least that a task needs which nobody awaits: as its done callback, this tells the event
    loop of an error that would otherwise be lost."""
    if not task.cancelled() and (error := task.exception()) is not None:
        _report(error)


def _reply_to_fault(ask: Ask, error: BaseException) -> Reply:
    reason = f"an internal error in Interlock: {type(error).__name__}: {error}"
    return Reply(ask.dispatch_id, failure=CRASH, reason=reason)


def _report(error: BaseException) -> None:
    context = {"message": "a carrier's task failed", "exception": error}
    asyncio.get_running_loop().call_exception_handler(context)
