"""Decide which cases of a run may be dispatched now.

A Schedule knows dependencies between cases, places per role, holds and priorities. Small facts keep
it up to date (a case waits, its dispatch is out, answered, the case ended); ready() only reads it,
and its cost depends on how many cases may go, not on how many wait.
"""

from bisect import bisect_left, insort
from collections.abc import Collection, Iterable, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from heapq import merge
from itertools import islice

import msgspec

from interlock.engine.circuit import HUMAN, Role
from interlock.system.errors import StateError

_MAX_NAMED = 10
_Place = tuple[int, int, int, int, str]
"""The order of waiting: role's rank, case's priority, number of dependents, arrival, case id."""


class Budget(msgspec.Struct, frozen=True, omit_defaults=True):
    """The limits of a run; None is unlimited. `seconds` are wall time while the run is active."""

    dispatches: int | None = None
    tokens: int | None = None
    money: float | None = None
    seconds: float | None = None


NO_LIMITS = Budget()


class Spent(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """The cost of a run so far."""

    dispatches: int = 0
    tokens: int = 0
    money: float = 0.0
    seconds: float = 0.0


def compute_shares(budget: Budget, spent: Spent) -> dict[str, float]:
    """Return the spent share of each limited resource: 1.0 is all."""
    parts: dict[str, float] = {}
    for name in Budget.__struct_fields__:
        limit = getattr(budget, name)
        if limit is not None:
            parts[name] = getattr(spent, name) / limit if limit > 0 else 1.0
    return parts


def count_dispatches_left(budget: Budget, spent: Spent) -> int | None:
    """Return the dispatches the budget still allows: 0 at any limit, None if unlimited."""
    if any(part >= 1.0 for part in compute_shares(budget, spent).values()):
        return 0
    return None if budget.dispatches is None else budget.dispatches - spent.dispatches


def check_dependencies(after: Mapping[str, Iterable[str]]) -> None:
    """Raise StateError if cases wait for each other in a circle, or for a missing one."""
    for case_id, needs in after.items():
        for need in needs:
            if need not in after:
                raise StateError(f"case {case_id!r} comes after {need!r}, which is not in the file")
    try:
        TopologicalSorter(after).prepare()
    except CycleError as error:
        raise StateError(_describe_cycle(error.args[1], after)) from None


def _describe_cycle(cycle: Sequence[str], after: Iterable[str]) -> str:
    """Return the circle, beginning with the case that comes first in the file.

    graphlib lists it backwards, and names its first member twice.
    """
    members = [*reversed(cycle)][:-1]
    places = {case_id: place for place, case_id in enumerate(members)}
    first = next(places[case_id] for case_id in after if case_id in places)
    circle = [*members[first:], *members[: first + 1]]
    if len(circle) > _MAX_NAMED:
        circle = [*circle[: _MAX_NAMED // 2], "…", *circle[-_MAX_NAMED // 2 :]]
    return f"these cases wait for each other: {' after '.join(circle)}"


class Schedule:
    """The moving cases of a run: waiting for a place, dispatched, or held."""

    def __init__(
        self,
        roles: Mapping[str, Role],
        places: int | None = None,
        by_hand: Collection[str] = frozenset({HUMAN}),
        unplaced: Collection[str] = frozenset(),
    ) -> None:
        self.roles = roles
        self.places = places
        self.by_hand = by_hand
        self.unplaced = unplaced
        """Roles of our own programs, which take no place from an agent."""
        self.waiting: dict[str, list[_Place]] = {name: [] for name in roles}
        self.out: dict[str, int] = dict.fromkeys(roles, 0)
        self.holds: dict[str, str] = {}
        self.parked: dict[str, str] = {}
        self._role_out: dict[str, str] = {}
        self._place: dict[str, tuple[str, _Place]] = {}
        self._needs: dict[str, set[str]] = {}
        self._dependents: dict[str, list[str]] = {}
        self._priority: dict[str, int] = {}
        self._arrivals = 0
        self.busy = 0
        """Dispatches out with agents and programs, without those answered by hand."""
        self.taken = 0
        """Places taken by agents."""

    def add(self, case_id: str, priority: int = 0, needs: Iterable[str] = ()) -> None:
        """Add a case; the cases it `needs` must end healthy before it starts."""
        self._priority[case_id] = priority
        if wanted := set(needs):
            self._needs[case_id] = wanted
        for need in wanted:
            self._dependents.setdefault(need, []).append(case_id)

    def change(self, case_id: str, priority: int, needs: Iterable[str]) -> None:
        """Change a case's rank, and its needs unless it was dispatched already."""
        self._priority[case_id] = priority
        if case_id not in self.parked and case_id not in self._place:
            return
        for need in self._needs.pop(case_id, set()):
            self._dependents[need].remove(case_id)
        role = self.parked.pop(case_id, "") or self._withdraw(case_id)
        self.add(case_id, priority, needs)
        self.enqueue(case_id, role)

    def _withdraw(self, case_id: str) -> str:
        role, place = self._place.pop(case_id)
        del self.waiting[role][bisect_left(self.waiting[role], place)]
        return role

    def enqueue(self, case_id: str, role: str) -> None:
        """Queue the case for a dispatch of that role."""
        if self._needs.get(case_id):
            self.parked[case_id] = role
            return
        self._arrivals += 1
        weight = len(self._dependents.get(case_id, ()))
        rank = self.roles[role].priority
        place = (-rank, -self._priority[case_id], -weight, self._arrivals, case_id)
        self._place[case_id] = (role, place)
        insort(self.waiting[role], place)

    def mark_sent(self, case_id: str, role: str) -> None:
        """Note that the case's dispatch is out."""
        if case_id in self._place:
            self._withdraw(case_id)
        self._role_out[case_id] = role
        self.out[role] += 1
        self.busy += role not in self.by_hand
        self.taken += self._takes_place(role)

    def mark_answered(self, case_id: str) -> None:
        """Note that the case's dispatch is settled, and free its place."""
        role = self._role_out.pop(case_id, None)
        if role is not None:
            self.out[role] -= 1
            self.busy -= role not in self.by_hand
            self.taken -= self._takes_place(role)

    def _takes_place(self, role: str) -> bool:
        return role not in self.by_hand and role not in self.unplaced

    def mark_ended(self, case_id: str, healthy: bool) -> None:
        """End the case: a healthy end releases those that need it, any other blocks them."""
        for name in [name for name, holder in self.holds.items() if holder == case_id]:
            del self.holds[name]
        if not healthy:
            return
        for dependent in self._dependents.get(case_id, ()):
            needs = self._needs[dependent]
            needs.discard(case_id)
            if not needs and dependent in self.parked:
                self.enqueue(dependent, self.parked.pop(dependent))

    def hold(self, name: str, case_id: str) -> None:
        """Dispatch only this case until the hold is released."""
        self.holds.setdefault(name, case_id)

    def release(self, name: str) -> None:
        self.holds.pop(name, None)

    def list_holders(self, role: str) -> list[_Place]:
        """Return the cases that hold others back and wait for that role."""
        found = [self._place[case_id] for case_id in {*self.holds.values()} & self._place.keys()]
        return sorted(place for queue, place in found if queue == role)

    def count_awaited(self) -> int:
        """Return the number of dispatches that a person must answer."""
        return sum(self.out.get(role, 0) for role in self.by_hand)

    def is_idle(self) -> bool:
        """Return True if nothing waits for a place and nothing is out, not even with a human."""
        return not self._place and not self._role_out


def ready(
    suite: Schedule, left: int | None = None, closed: Collection[str] = frozenset()
) -> list[str]:
    """Return the cases that may be dispatched now, in order.

    `left` is the budget's limit, `closed` are roles that take nothing at the moment. Questions to
    humans cost nothing.
    """
    names = [name for name, queue in suite.waiting.items() if queue and name not in closed]
    if not names:
        return []
    asked = HUMAN in names and HUMAN in suite.by_hand
    human = _list_allowed(suite, HUMAN, None) if asked else []
    by_hand = _merge_queues(suite, [n for n in names if n in suite.by_hand and n != HUMAN], left)
    left = None if left is None else left - len(by_hand)
    ours = _merge_queues(suite, [name for name in names if name in suite.unplaced], left)
    left = None if left is None else left - len(ours)
    free = None if suite.places is None else max(0, suite.places - suite.taken)
    agents = [name for name in names if name not in suite.by_hand and name not in suite.unplaced]
    chosen = [*human, *by_hand, *ours, *_merge_queues(suite, agents, _find_smaller(free, left))]
    return [place[-1] for place in chosen]


def _merge_queues(suite: Schedule, names: Sequence[str], most: int | None) -> list[_Place]:
    """Return the first cases that wait for these roles, within each role's places."""
    if not names:
        return []
    queues = [
        _list_allowed(suite, name, _find_smaller(most, _count_free(suite, suite.roles[name])))
        for name in names
    ]
    if len(queues) == 1:
        return queues[0]
    return list(islice(merge(*queues), most))


def _count_free(suite: Schedule, role: Role) -> int | None:
    return None if role.slots is None else max(0, role.slots - suite.out[role.name])


def _find_smaller(one: int | None, other: int | None) -> int | None:
    return one if other is None else other if one is None else min(one, other)


def _list_allowed(suite: Schedule, role: str, most: int | None) -> list[_Place]:
    queue = suite.list_holders(role) if suite.holds else suite.waiting.get(role, [])
    return queue[:most]
