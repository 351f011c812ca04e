"""The carrier `labour`: our own code that takes its time answers an ask.

Like a program it is a function from an ask to an answer, but one that waits for others: commands
that run, files that are copied. What is not needed any more is cancelled. Refuses to know the work.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from interlock.core.circuit import CRASH
from interlock.core.errors import InterlockError
from interlock.dispatch.carrier import Ask, Deliver, Reply

Labour = Callable[[Ask], Awaitable[Reply]]
"""The answer to an ask, after some work. Done twice for the same ask, it must do no harm."""


class LabourDesk:
    """A carrier whose answers are worked for, each in a task of its own."""

    def __init__(self, labour: Labour) -> None:
        self._labour = labour
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._deliver: Deliver

    def start(self, deliver: Deliver) -> None:
        self._deliver = deliver

    def send(self, asks: Sequence[Ask]) -> None:
        for ask in asks:
            if ask.dispatch_id not in self._tasks:
                self._tasks[ask.dispatch_id] = asyncio.create_task(self._work(ask))

    def settled(self, dispatch_id: int, error: str = "") -> None:
        task = self._tasks.pop(dispatch_id, None)
        if task is not None:
            task.cancel()

    async def close(self) -> None:
        tasks = [*self._tasks.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _work(self, ask: Ask) -> None:
        try:
            reply = await self._labour(ask)
        except (InterlockError, OSError) as error:
            reply = Reply(ask.dispatch_id, failure=CRASH, reason=str(error))
        except Exception as error:  # a fault of ours costs this attempt, not the whole night
            reason = f"a fault in Interlock itself: {type(error).__name__}: {error}"
            reply = Reply(ask.dispatch_id, failure=CRASH, reason=reason)
        self._deliver(reply)
