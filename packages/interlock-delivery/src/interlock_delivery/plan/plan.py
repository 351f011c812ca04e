"""Define a plan as records, and compute the graph of its tasks.

The graph works on broken plans too: a blocker that does not exist never ends, and of several tasks
with one id the first counts. Nothing recurses, since a plan may be one long chain.
"""

import re
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from heapq import heapify, heappop, heappush
from typing import Final, Literal

import msgspec

from interlock.signals.grammar import ID, LONGEST_ID
from interlock_delivery.checks.records import Check, Environment

Level = Literal["error", "warning"]
ID_RULE: Final = (
    f"letters, digits and . _ / # -, at most {LONGEST_ID}, starting with a letter or digit"
)
_LEGAL_ID: Final = re.compile(ID)


class PlanFinding(msgspec.Struct, frozen=True):
    """Something wrong or doubtful in a plan, and what to do about it.

    A cycle carries its `path`: each task waits for the next, the last for the first.
    """

    level: Level
    code: str
    sentence: str
    task_id: str = ""
    line: int = 0
    path: tuple[str, ...] = ()


class Phase(msgspec.Struct, frozen=True):
    """A section of the plan. It orders nothing; only `blocked_by` does."""

    id: str
    name: str = ""
    overview: str = ""
    line: int = 0

    @property
    def label(self) -> str:
        return f"Phase {self.id}: {self.name}" if self.name else f"Phase {self.id}"


class Task(msgspec.Struct, frozen=True):
    """One piece of work. `phase` is a phase's id; `blocked_by` are the tasks it waits for."""

    id: str
    title: str = ""
    phase: str = ""
    work: str = ""
    criteria: tuple[str, ...] = ()
    blocked_by: tuple[str, ...] = ()
    reading: tuple[str, ...] = ()
    environment: str = ""
    target_files: tuple[str, ...] = ()
    line: int = 0


class Plan(msgspec.Struct, frozen=True):
    """A plan as it was read. `remarks` are findings that only its text shows."""

    title: str = ""
    overview: str = ""
    phases: tuple[Phase, ...] = ()
    tasks: tuple[Task, ...] = ()
    checks: tuple[Check, ...] = ()
    environments: tuple[Environment, ...] = ()
    remarks: tuple[PlanFinding, ...] = ()


def is_legal_id(name: str) -> bool:
    """Return True if a task may have this id, by the grammar of signals."""
    return _LEGAL_ID.fullmatch(name) is not None


Blockers = Mapping[str, Sequence[str]]


def list_blockers(plan: Plan) -> dict[str, tuple[str, ...]]:
    """Return the distinct blockers of each task, in the plan's order."""
    found: dict[str, tuple[str, ...]] = {}
    for task in plan.tasks:
        found.setdefault(task.id, tuple(dict.fromkeys(task.blocked_by)))
    return found


def find_direct_dependents(waits: Blockers) -> dict[str, list[str]]:
    """Return the tasks that each task blocks directly."""
    found: dict[str, list[str]] = {name: [] for name in waits}
    for name, needed in waits.items():
        for blocker in needed:
            if blocker in found:
                found[blocker].append(name)
    return found


def find_startable(plan: Plan, done: Iterable[str] = ()) -> tuple[str, ...]:
    """Return the tasks that are not done but whose blockers all are."""
    ended = set(done)
    return tuple(
        name
        for name, needed in list_blockers(plan).items()
        if name not in ended and ended.issuperset(needed)
    )


def order_tasks(plan: Plan) -> tuple[str, ...]:
    """Return every task that can ever start, blockers first, otherwise in the plan's order."""
    return _order(list_blockers(plan))


def _order(waits: Blockers) -> tuple[str, ...]:
    place = {name: index for index, name in enumerate(waits)}
    names = list(waits)
    freed = find_direct_dependents(waits)
    left = {name: len(needed) for name, needed in waits.items()}
    free = [place[name] for name, count in left.items() if not count]
    heapify(free)
    found: list[str] = []
    while free:
        name = names[heappop(free)]
        found.append(name)
        for dependent in freed[name]:
            left[dependent] -= 1
            if not left[dependent]:
                heappush(free, place[dependent])
    return tuple(found)


def compute_rounds(plan: Plan) -> dict[str, int]:
    """Return the earliest round of each task, from 1, if all rounds take equally long.

    Tasks that can never start are left out.
    """
    waits = list_blockers(plan)
    found: dict[str, int] = {}
    for name in order_tasks(plan):
        found[name] = 1 + max((found[blocker] for blocker in waits[name]), default=0)
    return found


def count_dependents(plan: Plan) -> dict[str, int]:
    """Return the number of tasks that wait for each task, directly or not.

    The waiting tasks are the bits of one number, which keeps wide plans cheap.
    """
    waits = list_blockers(plan)
    bit = {name: 1 << index for index, name in enumerate(waits)}
    waiting = dict.fromkeys(waits, 0)
    for name in reversed(order_tasks(plan)):
        for blocker in waits[name]:
            waiting[blocker] |= waiting[name] | bit[name]
    return {name: mask.bit_count() for name, mask in waiting.items()}


def find_critical_path(plan: Plan) -> tuple[str, ...]:
    """Return the longest chain of blockers; of several, the first in the plan's order."""
    depth = compute_rounds(plan)
    if not depth:
        return ()
    waits = list_blockers(plan)
    name = max(waits, key=lambda each: depth.get(each, 0))
    chain = [name]
    while waits[name]:
        name = next(each for each in waits[name] if depth[each] == depth[name] - 1)
        chain.append(name)
    return tuple(reversed(chain))


class Cycles(msgspec.Struct, frozen=True):
    """The cycles that were found, and every task that is part of one."""

    paths: tuple[tuple[str, ...], ...]
    caught: tuple[str, ...]


def find_cycles(plan: Plan, most: int) -> Cycles:
    """Return at most `most` cycles, together showing every blocker that is part of one.

    Each is the shortest for its blocker, and a path that begins with its first task in the plan.
    """
    blockers = _keep_cyclic(list_blockers(plan))
    place = {name: index for index, name in enumerate(blockers)}
    shown: set[tuple[str, str]] = set()
    caught: set[str] = set()
    paths: list[tuple[str, ...]] = []
    for name, needed in blockers.items():
        for blocker in needed:
            if (name, blocker) in shown:
                continue
            path = [name, *_find_shortest_path(blockers, blocker, name)]
            if len(path) == 1 and blocker != name:
                continue  # between two cycles, and part of none
            shown.update(zip(path, [*path[1:], name], strict=True))
            caught.update(path)
            first = min(range(len(path)), key=lambda at: place[path[at]])
            paths.append((*path[first:], *path[:first]))
    return Cycles(tuple(paths[:most]), tuple(name for name in blockers if name in caught))


def _keep_cyclic(blockers: Blockers) -> Blockers:
    """Drop the tasks that can start, and those that only wait; keep cycles and what links them."""
    for _ in range(2):
        known = {
            name: tuple(each for each in needed if each in blockers)
            for name, needed in blockers.items()
        }
        ended = {*_order(known)}
        left = {
            name: tuple(each for each in needed if each not in ended)
            for name, needed in known.items()
            if name not in ended
        }
        blockers = find_direct_dependents(left)
    return blockers


def _find_shortest_path(blockers: Blockers, start: str, goal: str) -> list[str]:
    """Return the shortest path from start to just before goal, or [] if there is none."""
    came: dict[str, str] = {start: ""}
    queue = deque([start])
    while queue and goal not in came:
        name = queue.popleft()
        for blocker in blockers[name]:
            if blocker not in came:
                came[blocker] = name
                queue.append(blocker)
    way: list[str] = []
    name = came.get(goal, "") if goal != start else ""
    while name:
        way.append(name)
        name = came[name]
    return way[::-1]


def index_tasks(plan: Plan) -> dict[str, Task]:
    """Return the tasks by id; of several with one id, the first."""
    found: dict[str, Task] = {}
    for task in plan.tasks:
        found.setdefault(task.id, task)
    return found
