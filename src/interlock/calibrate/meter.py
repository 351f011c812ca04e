"""A meter before a carrier that tells no bill: tokens are counted as bytes over four.

So a budget of tokens holds for agents that never say what they used. Knows sizes; refuses to know
what was asked or answered.
"""

from collections.abc import Sequence

import msgspec

from interlock.agents.carrier import Ask, Carrier, Deliver, Reply
from interlock.engine.case import Usage

BYTES_PER_TOKEN = 4


class Metered:
    """A carrier whose replies say what they cost, prompt and answer apart."""

    def __init__(self, carrier: Carrier) -> None:
        self._carrier = carrier
        self._asked: dict[int, int] = {}

    def start(self, deliver: Deliver) -> None:
        self._carrier.start(lambda reply: deliver(self._told(reply)))

    def send(self, asks: Sequence[Ask]) -> None:
        for ask in asks:
            self._asked[ask.dispatch_id] = len(ask.prompt.encode()) // BYTES_PER_TOKEN
        self._carrier.send(asks)

    def settled(self, dispatch_id: int, error: str = "") -> None:
        self._asked.pop(dispatch_id, None)
        self._carrier.settled(dispatch_id, error)

    async def close(self) -> None:
        await self._carrier.close()

    def _told(self, reply: Reply) -> Reply:
        asked = self._asked.get(reply.dispatch_id)
        if asked is None or reply.failure or reply.usage != Usage():
            return reply
        tokens = asked + len(reply.content) // BYTES_PER_TOKEN
        return msgspec.structs.replace(reply, usage=Usage(tokens=tokens))
