"""A desk whose questions stand in the checkpoint: their name, and until when an answer counts.

Knows when a review's time began: with the first asking, which the ask carries over restarts.
Refuses to know how the question travels. A question about git is not noted: it is no review, and
nobody's approval is missing because of it.
"""

from collections.abc import Callable, Sequence
from typing import Final

from interlock.agents.carrier import Ask, Carrier, Deliver
from interlock.epic.keeper import CheckpointKeeper

REVIEW: Final = "REVIEW"


class CheckpointedGate:
    """Carries what its `desk` carries, and has each review noted first."""

    def __init__(
        self,
        desk: Carrier,
        keeper: CheckpointKeeper,
        patience: float,
        name: Callable[[int], str] = str,
    ) -> None:
        self.desk = desk
        self._keeper = keeper
        self._patience = patience
        self._name = name

    def start(self, deliver: Deliver) -> None:
        self.desk.start(deliver)

    def send(self, asks: Sequence[Ask]) -> None:
        for ask in asks:
            if ask.step == REVIEW:
                due = ask.at + self._patience
                self._keeper.asked(self._name(ask.dispatch_id), ask.at, due)
        self.desk.send(asks)

    def settled(self, dispatch_id: int, error: str = "") -> None:
        self.desk.settled(dispatch_id, error)

    async def close(self) -> None:
        await self.desk.close()
