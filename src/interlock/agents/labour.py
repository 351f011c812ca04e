"""The carrier `labour`: our own code that takes its time answers an ask.

Like a program it is a function from an ask to an answer, but one that waits for others: commands
that run, files that are copied. What is not needed any more is cancelled. Refuses to know the work.
"""

from collections.abc import Awaitable, Callable, Sequence

from interlock.agents.carrier import Ask, Deliver, Reply
from interlock.agents.errands import TaskSet
from interlock.engine.circuit import CRASH
from interlock.system.errors import InterlockError

Labour = Callable[[Ask], Awaitable[Reply]]
"""The answer to an ask, after some work. Done twice for the same ask, it must do no harm."""


class AsyncHandler:
    """A carrier whose answers are worked for, each in a task of its own."""

    def __init__(self, labour: Labour, leave: Callable[[], None] = lambda: None) -> None:
        """`leave` is called when no work is under way any more and none will be."""
        self._labour = labour
        self._leave = leave
        self._errands = TaskSet(self._work)
        self._deliver: Deliver

    def start(self, deliver: Deliver) -> None:
        self._deliver = deliver

    def send(self, asks: Sequence[Ask]) -> None:
        self._errands.begin(asks)

    def settled(self, dispatch_id: int, error: str = "") -> None:
        self._errands.drop(dispatch_id)

    async def close(self) -> None:
        await self._errands.end()
        self._leave()

    async def _work(self, ask: Ask) -> None:
        try:
            reply = await self._labour(ask)
        except (InterlockError, OSError) as error:
            reply = Reply(ask.dispatch_id, failure=CRASH, reason=str(error))
        except Exception as error:  # a fault of ours costs this attempt, not the whole night
            reason = f"a fault in Interlock itself: {type(error).__name__}: {error}"
            reply = Reply(ask.dispatch_id, failure=CRASH, reason=reason)
        self._deliver(reply)
