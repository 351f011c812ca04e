"""The purse of a run: what it may cost, what it has cost, and for how long it was worked on.

Knows the budget's limits and adds up. Refuses to know what was bought: the plan is told how many
dispatches are left, the journal how many seconds are to be noted.
"""

import msgspec

from interlock.core.plan import NO_LIMITS, Budget, Spent, dispatches_left


class Purse:
    """What is spent, counted on from what earlier sittings spent."""

    def __init__(self, budget: Budget | None, spent: Spent | None, now: float) -> None:
        self.spent = spent or Spent()
        self._budget = budget or NO_LIMITS
        self._since = now

    def pay(self, dispatches: int = 0, tokens: int = 0, money: float = 0.0) -> None:
        spent = self.spent
        self.spent = Spent(
            spent.dispatches + dispatches,
            spent.tokens + tokens,
            spent.money + money,
            spent.seconds,
        )

    def left(self, at: float) -> int | None:
        """How many dispatches may still go, counting the time since it was last noted."""
        if self._budget == NO_LIMITS:
            return None
        seconds = self.spent.seconds + max(0.0, at - self._since)
        return dispatches_left(self._budget, msgspec.structs.replace(self.spent, seconds=seconds))

    def seconds_to_note(self, at: float, *, now: bool) -> float:
        """Working time is noted once a second, or `now`: a row more in each commit costs more."""
        seconds = at - self._since
        if seconds < 1.0 and not now:
            return 0.0
        self._since = at
        seconds = max(0.0, seconds)
        self.spent = msgspec.structs.replace(self.spent, seconds=self.spent.seconds + seconds)
        return seconds
