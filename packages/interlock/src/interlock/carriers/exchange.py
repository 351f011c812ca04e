"""A carrier in front of one whose agents work on other hosts: files travel with the dispatch.

An application says by a `WorkExchange` which files go out with an ask and come in with its reply.
Replies that bring nothing, because they were refused or are failures, pass as they are.
"""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Protocol, TypeVar

import msgspec

from interlock.carriers.background import report_failure
from interlock.carriers.contract import Ask, Carrier, CarrierWrapper, Reply, Session
from interlock.engine.circuit import CRASH
from interlock.system.errors import InterlockError

T = TypeVar("T")


class WorkExchange(Protocol):
    """The files of dispatches. All methods block and are called in threads, one after the other for
    dispatches of the same place."""

    def name_place(self, ask: Ask) -> str:
        """Return the place that the dispatch works on."""

    def send(self, ask: Ask) -> Ask:
        """Send the files, and return the ask as workers get it; safe to repeat after a restart."""

    def take(self, ask: Ask, reply: Reply) -> Reply:
        """Take the files that came with a reply, and return it for the loop; safe to repeat."""

    def clean_up(self, ask: Ask) -> None:
        """Remove the files of a decided dispatch; any that stay do no harm."""


class ExchangeCarrier(CarrierWrapper):
    """Sends asks, and takes replies, through an exchange."""

    def __init__(self, inner: Carrier, exchange: WorkExchange) -> None:
        super().__init__(inner)
        self._exchange = exchange
        self._open: dict[int, Ask] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._turns: dict[str, asyncio.Lock] = {}

    def start(self, session: Session) -> None:
        self._deliver = session.deliver
        self.inner.start(msgspec.structs.replace(session, deliver=self._receive))

    def send(self, asks: Sequence[Ask]) -> None:
        for ask in asks:
            self._open[ask.dispatch_id] = ask
            self._begin(self._send(ask))

    def settle(self, dispatch_id: int, error: str = "") -> None:
        self.inner.settle(dispatch_id, error)
        ask = self._open.pop(dispatch_id, None)
        if ask is not None:
            self._begin(self._clean_up(ask))

    async def close(self) -> None:
        await self.inner.close()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._open.clear()

    def is_open(self, ask: Ask) -> bool:
        """Return whether the dispatch still waits for an answer to this ask."""
        return self._open.get(ask.dispatch_id) is ask

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(report_failure)

    async def _send(self, ask: Ask) -> None:
        try:
            sent = await self._do(ask, lambda: self._exchange.send(ask))
        except (InterlockError, OSError) as error:
            self._fail(ask, error)
            return
        if self.is_open(ask):
            self.inner.send([sent])

    def _receive(self, reply: Reply) -> None:
        ask = self._open.get(reply.dispatch_id)
        if ask is None or reply.pushed is None or reply.refused or reply.failure:
            self._deliver(reply)
        else:
            self._begin(self._take(ask, reply))

    async def _take(self, ask: Ask, reply: Reply) -> None:
        try:
            taken = await self._do(ask, lambda: self._exchange.take(ask, reply))
        except (InterlockError, OSError) as error:
            self._fail(ask, error)
            return
        if self.is_open(ask):
            self._deliver(taken)

    async def _clean_up(self, ask: Ask) -> None:
        try:
            await self._do(ask, lambda: self._exchange.clean_up(ask))
        except (InterlockError, OSError):
            return

    async def _do(self, ask: Ask, do: Callable[[], T]) -> T:
        async with self._turns.setdefault(self._exchange.name_place(ask), asyncio.Lock()):
            return await asyncio.to_thread(do)

    def _fail(self, ask: Ask, error: Exception) -> None:
        if self.is_open(ask):
            self._deliver(Reply(ask.dispatch_id, failure=CRASH, reason=str(error)))


def name_refs(workspace: str, ask: Ask) -> str:
    """Return how the refs of a dispatch begin on a git remote. `workspace` keeps runs of several
    databases apart, which may share a remote."""
    return f"refs/interlock/{workspace}-{ask.run_id}/{ask.case_no}/{ask.dispatch_id}"
