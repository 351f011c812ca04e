"""The carrier `program`: our own code answers what it can, another carrier gets the rest.

The program is a function from an ask to an answer, or to nothing. It runs at once, in this process.
What it leaves goes on together, so that a carrier of batches gets one batch.

The carrier `labour`: our own code that takes its time answers an ask.

Like a program it is a function from an ask to an answer, but one that waits for others: commands
that run, files that are copied. What is not needed any more is cancelled. Refuses to know the work.
"""

import sys
from collections.abc import Awaitable, Callable, Sequence

import msgspec

from interlock.agents.carrier import (
    Ask,
    Carrier,
    Deliver,
    HasCapacity,
    KeepsAnswers,
    Reply,
    SharesAccount,
    TaskSet,
)
from interlock.engine.circuit import CRASH
from interlock.system.errors import InterlockError

Program = Callable[[Ask], Reply | None]
"""The answer to an ask, or None if somebody else must be asked."""


class Handler:
    """A carrier whose answers are computed."""

    def __init__(self, program: Program, otherwise: Carrier | None = None) -> None:
        self.otherwise = otherwise
        self._program = program
        self._deliver: Deliver

    def start(self, deliver: Deliver) -> None:
        self._deliver = deliver
        if self.otherwise is not None:
            self.otherwise.start(deliver)

    def room(self) -> int:
        return self.otherwise.room() if isinstance(self.otherwise, HasCapacity) else sys.maxsize

    def account(self, role: str) -> str:
        return self.otherwise.account(role) if isinstance(self.otherwise, SharesAccount) else ""

    def keeps(self) -> bool:
        return self.otherwise is None or (
            isinstance(self.otherwise, KeepsAnswers) and self.otherwise.keeps()
        )

    def send(self, asks: Sequence[Ask]) -> None:
        others: list[Ask] = []
        for ask in asks:
            reply = self._reply(ask)
            if reply is None:
                others.append(ask)
            else:
                self._deliver(reply)
        if others and self.otherwise is not None:
            self.otherwise.send(others)

    def settled(self, dispatch_id: int, error: str = "") -> None:
        if self.otherwise is not None:
            self.otherwise.settled(dispatch_id, error)

    async def close(self) -> None:
        if self.otherwise is not None:
            await self.otherwise.close()

    def _reply(self, ask: Ask) -> Reply | None:
        try:
            reply = self._program(ask)
        except InterlockError as error:
            return Reply(ask.dispatch_id, failure=CRASH, reason=str(error))
        if reply is None and self.otherwise is None:
            reason = f"the program has no answer for step {ask.step}"
            return Reply(ask.dispatch_id, failure=CRASH, reason=reason)
        return reply


class PromptlessHandler(Handler):
    """A program that looks things up itself and reads no prompts."""


def answer(ask: Ask, data: object, by: str = "") -> Reply:
    """A reply with this answer."""
    return Reply(ask.dispatch_id, msgspec.json.encode(data), answered_by=by)


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
