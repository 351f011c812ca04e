"""The carrier `program`: our own code answers what it can, another carrier gets the rest.

The program is a function from an ask to an answer, or to nothing. It runs at once, in this process.
What it leaves goes on together, so that a carrier of batches gets one batch.
"""

import sys
from collections.abc import Callable, Sequence

import msgspec

from interlock.agents.carrier import (
    Ask,
    Carrier,
    Deliver,
    HasCapacity,
    KeepsAnswers,
    Reply,
    SharesAccount,
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
