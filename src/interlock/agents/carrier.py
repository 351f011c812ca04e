"""What every carrier does: take asks, hand back replies. The loop knows carriers only by this.

A carrier never decides whether a reply is good, late or forged; it hands over what came, with the
dispatch_id it came for. Sending the same ask twice must be harmless: after a crash it happens.

Errands: a task for each dispatch under way, begun once, cancelled when nobody needs it any more.

Knows tasks and the numbers they are for. Refuses to know what is done in them.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

import msgspec

from interlock.engine.case import Case, Usage
from interlock.engine.circuit import Language

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


NO_PREMISES = ExecutionContext()


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
    premises: ExecutionContext = NO_PREMISES


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
        """Called once, before the first ask, inside the running event loop."""

    def send(self, asks: Sequence[Ask]) -> None:
        """Carry these out; returns at once, replies come through `deliver`."""

    def settled(self, dispatch_id: int, error: str = "") -> None:
        """The dispatch is decided, by its answer or, as `error` says, without one: stop what still
        runs for it."""

    async def close(self) -> None:
        """Stop everything that still runs and let go of what is held."""


@runtime_checkable
class HasCapacity(Protocol):
    """A carrier that takes asks only now and then, and then only so many."""

    def room(self) -> int:
        """How many it takes at this moment. Room opens when one of its dispatches is settled."""


@runtime_checkable
class SharesAccount(Protocol):
    """A carrier whose asks share a limit with others: a login, a key, a subscription."""

    def account(self, role: str) -> str:
        """The name of what the role's asks are charged to; empty if it has none of its own. The
        same name in another run or another process is the same account."""


@runtime_checkable
class KeepsAnswers(Protocol):
    """A carrier whose answers may lie where they are until somebody comes for them."""

    def keeps(self) -> bool:
        """Whether nothing is lost if nobody waits for what is out."""


class Clock(Protocol):
    """Time, as an argument."""

    def now(self) -> float:
        """Seconds since the epoch."""

    def call_at(self, when: float, callback: Callable[[], None]) -> Callable[[], None]:
        """Call back at that time, unless the returned function is called first."""


class TaskSet:
    """What is under way, by the dispatch it is for."""

    def __init__(self, run: Callable[[Ask], Awaitable[None]]) -> None:
        self._run = run
        self._tasks: dict[int, asyncio.Future[None]] = {}

    def begin(self, asks: Iterable[Ask]) -> None:
        """Run what is not under way already."""
        for ask in asks:
            if ask.dispatch_id not in self._tasks:
                self._tasks[ask.dispatch_id] = asyncio.ensure_future(self._run(ask))

    def drop(self, dispatch_id: int) -> None:
        task = self._tasks.pop(dispatch_id, None)
        if task is not None:
            task.cancel()

    async def end(self, *others: Awaitable[Any]) -> None:
        """Cancel all of them, and wait until they and the `others` are over."""
        tasks = [*self._tasks.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*others, *tasks, return_exceptions=True)
