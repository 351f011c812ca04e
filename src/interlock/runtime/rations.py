"""Rations: how many asks the carriers take in one turn, where a carrier takes only so many.

Knows that roles with one carrier share its room. Most carriers take everything, and cost nothing
here.
"""

from collections.abc import Mapping

from interlock.agents.carrier import Carrier, HasCapacity


class CarrierCapacity:
    """The room that is left in this turn. Roles whose carrier has none are closed."""

    def __init__(self, carriers: Mapping[str, Carrier]) -> None:
        self.closed: set[str] = set()
        self._of = {role: each for role, each in carriers.items() if isinstance(each, HasCapacity)}
        self._left: dict[int, int] = {}

    def __bool__(self) -> bool:
        return bool(self._of)

    def deal(self) -> None:
        """A new turn: ask each carrier for its room."""
        self._left = {id(each): each.room() for each in self._of.values()}
        self._close()

    def take(self, role: str) -> bool:
        """One ask for that role, if there is room."""
        if role not in self._of:
            return True
        if role in self.closed:
            return False
        self._left[id(self._of[role])] -= 1
        self._close()
        return True

    def _close(self) -> None:
        self.closed = {role for role, each in self._of.items() if self._left[id(each)] <= 0}
