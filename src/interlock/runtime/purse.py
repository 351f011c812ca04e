"""The purse of a run: what it may cost, what it has cost, and for how long it was worked on.

Adds up for the run, for each role and for the day. Refuses to know what was bought: the plan is
told how many dispatches are left and which roles get none, the journal what time is to be noted.
"""

from collections.abc import Callable, Collection

from interlock.engine.schedule import NO_LIMITS, Budget, Spent, dispatches_left
from interlock.journal.journal import WorkTime
from interlock.runtime.limits import LOW, BudgetLimits, BudgetUsage, parts
from interlock.system.time import Day

_NO_LIMITS = BudgetLimits()
_NONE: frozenset[str] = frozenset()


def _one_long_day(_at: float) -> Day:
    return Day("", float("-inf"), float("inf"))


class RunBudget:
    """What is spent, counted on from what earlier sittings spent."""

    def __init__(
        self,
        limits: BudgetLimits = BudgetLimits(),  # noqa: B008 - frozen
        before: BudgetUsage = BudgetUsage(),  # noqa: B008 - frozen
        now: float = 0.0,
        day_of: Callable[[float], Day] = _one_long_day,
    ) -> None:
        self.limits = limits
        self._run = before.run
        self._roles = dict(before.roles)
        self._today = before.day
        self._day_of = day_of
        self._day = day_of(now)
        self._since = now
        self._out: dict[str, tuple[int, float]] = {}
        self._role_seconds: dict[str, float] = {}
        self._warned = {word for word, part in self.parts(now).items() if part >= LOW}

    @property
    def spent(self) -> Spent:
        """What the run has cost."""
        return self._run

    @property
    def limited(self) -> bool:
        """Whether there is any limit."""
        return self.limits != _NO_LIMITS

    @property
    def day_name(self) -> str:
        return self._day.name

    @property
    def day_ends(self) -> float:
        """When what may be spent in a day is fresh again."""
        return self._day.ends

    def raise_to(self, limits: BudgetLimits, at: float) -> None:
        """Other limits from now on."""
        self.limits = limits
        self._warned = {word for word, part in self.parts(at).items() if part >= LOW}

    def pay(self, role: str, dispatches: int = 0, tokens: int = 0, money: float = 0.0) -> None:
        cost = Spent(dispatches, tokens, money)
        self._run = _sum(self._run, cost)
        if role in self.limits.roles:
            self._roles[role] = _sum(self._roles.get(role, Spent()), cost)
        if self.limits.day != NO_LIMITS:
            self._today = _sum(self._today, cost)

    def left(self, at: float) -> int | None:
        """How many dispatches may still go, counting the time since it was last noted."""
        limits = self.limits
        if limits.run == NO_LIMITS and limits.day == NO_LIMITS:
            return None
        self._turn_page(at)
        spent = self._spending(at)
        found = (dispatches_left(limits.run, spent.run), dispatches_left(limits.day, spent.day))
        return min((each for each in found if each is not None), default=None)

    def closed(self, at: float) -> Collection[str]:
        """Roles that may not be asked any more."""
        if not self.limits.roles:
            return _NONE
        return {role for role in self.limits.roles if self._left_of(role, at) == 0}

    def parts(self, at: float) -> dict[str, float]:
        """For each limit the part of it that is spent."""
        return parts(self.limits, self._spending(at))

    def running_low(self, at: float) -> dict[str, float]:
        """The limits that have just come near their end; each is told once."""
        if not self.limited:
            return {}
        fresh = {
            word: part
            for word, part in self.parts(at).items()
            if part >= LOW and word not in self._warned
        }
        self._warned |= fresh.keys()
        return fresh

    def went_out(self, role: str, at: float) -> None:
        """An agent of that role works from now on."""
        self._count(role, 1, at)

    def came_back(self, role: str, at: float) -> None:
        self._count(role, -1, at)

    def seconds_to_note(self, at: float, *, now: bool) -> list[WorkTime]:
        """Working time is noted once a second, or `now`: a row more in each commit costs more. The
        run's own is the first."""
        seconds = at - self._since
        if seconds < 1.0 and not now:
            return []
        day = self._day.name
        self._since = at
        seconds = max(0.0, seconds)
        self._run = _sum(self._run, Spent(seconds=seconds))
        self._today = _sum(self._today, Spent(seconds=seconds))
        for role in self._out:
            self._count(role, 0, at)
        by_role, self._role_seconds = self._role_seconds, {}
        for role, spent in by_role.items():
            self._roles[role] = _sum(self._roles.get(role, Spent()), Spent(seconds=spent))
        rows = [WorkTime(day, role, spent) for role, spent in sorted(by_role.items()) if spent]
        self._turn_page(at)
        return [WorkTime(day, "", seconds), *rows]

    def _left_of(self, role: str, at: float) -> int | None:
        budget = self.limits.roles.get(role, NO_LIMITS)
        return dispatches_left(budget, self._role_spent(role, at))

    def may(self, role: str, at: float) -> bool:
        """Whether that role may be asked once more."""
        return role not in self.limits.roles or self._left_of(role, at) != 0

    def _spending(self, at: float) -> BudgetUsage:
        since = Spent(seconds=max(0.0, at - self._since))
        return BudgetUsage(
            _sum(self._run, since),
            {role: self._role_spent(role, at) for role in self.limits.roles},
            _sum(self._today, since),
        )

    def _role_spent(self, role: str, at: float) -> Spent:
        many, since = self._out.get(role, (0, at))
        unnoted = self._role_seconds.get(role, 0.0) + many * max(0.0, at - since)
        return _sum(self._roles.get(role, Spent()), Spent(seconds=unnoted))

    def _count(self, role: str, more: int, at: float) -> None:
        many, since = self._out.get(role, (0, at))
        if many:
            passed = many * max(0.0, at - since)
            self._role_seconds[role] = self._role_seconds.get(role, 0.0) + passed
        self._out[role] = (many + more, at)

    def _turn_page(self, at: float) -> None:
        """A new day begins with nothing spent."""
        if at >= self._day.ends:
            self._day = self._day_of(at)
            self._today = Spent()
            self._warned = {word for word in self._warned if not word.startswith("day.")}


def _sum(one: Spent, other: Spent) -> Spent:
    return Spent(
        one.dispatches + other.dispatches,
        one.tokens + other.tokens,
        one.money + other.money,
        one.seconds + other.seconds,
    )


def plain_purse(budget: Budget | None, spent: Spent | None, now: float) -> RunBudget:
    """A purse with limits for the run alone."""
    return RunBudget(BudgetLimits(budget or NO_LIMITS), BudgetUsage(spent or Spent()), now)
