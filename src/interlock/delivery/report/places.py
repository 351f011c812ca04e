"""Where the tasks of a delivery stand, each as one word and why; and the word for all of them.

Pure: rows of cases in, words out. Refuses to know how anything is shown.
"""

from collections import deque
from collections.abc import Iterable, Mapping
from typing import Literal

import msgspec

from interlock.delivery.steps import COMPLETE
from interlock.engine.case import OPEN
from interlock.engine.circuit import HUMAN
from interlock.journal.turns import CaseProgress

Word = Literal["complete", "at work", "asks", "waits", "blocked", "failed"]
Outcome = Literal["RUNNING", "REMEDIATING", "PAUSED", "COMPLETE", "PARTIAL", "FAILED", "HALTED"]


class TaskState(msgspec.Struct, frozen=True):
    """One task."""

    word: Word
    why: str = ""


def places(stands: Iterable[CaseProgress]) -> dict[str, TaskState]:
    """A place for each task, in their order."""
    rows = {each.case_id: each for each in stands}
    dead = _dead(rows)
    return {name: _place(each, rows, dead) for name, each in rows.items()}


def outcome(status: str, ends: Mapping[str, int], *, is_held: bool = False) -> Outcome:
    """The word for how a delivery stands; `status` is its run's, or `interrupted`."""
    if ends.get("HALTED"):
        return "HALTED"
    if status == "done":
        return "COMPLETE"
    if status == "unhealthy":
        return "PARTIAL" if ends.get(COMPLETE) else "FAILED"
    if status == "running":
        return "REMEDIATING" if is_held else "RUNNING"
    return "PAUSED"


def _dead(rows: Mapping[str, CaseProgress]) -> dict[str, str]:
    """The open tasks that can never start, each with the one that is in its way."""
    after: dict[str, list[str]] = {}
    for name, each in rows.items():
        for need in each.needs if each.status == OPEN else ():
            after.setdefault(need, []).append(name)
    found: dict[str, str] = {}
    queue = deque(name for name, each in rows.items() if _is_bad(each))
    while queue:
        before = queue.popleft()
        for name in after.get(before, ()):
            if name not in found:
                found[name] = before
                queue.append(name)
    return found


def _is_bad(stand: CaseProgress) -> bool:
    return stand.status != OPEN and stand.end != COMPLETE


def _place(
    stand: CaseProgress, rows: Mapping[str, CaseProgress], dead: Mapping[str, str]
) -> TaskState:
    if stand.status != OPEN:
        good = stand.end == COMPLETE
        return TaskState("complete" if good else "failed", stand.end or stand.status.upper())
    if stand.dispatch_id:
        return TaskState(
            "asks" if stand.role == HUMAN else "at work", f"waits for the {stand.role}"
        )
    if stand.case_id in dead:
        need = dead[stand.case_id]
        before = rows[need]
        how = before.end or ("blocked" if before.status == OPEN else before.status)
        return TaskState("blocked", f"comes after {need}, which is {how}")
    first = next((need for need in stand.needs if _is_open(rows.get(need))), "")
    return TaskState("waits", f"comes after {first}" if first else "waits for its turn")


def _is_open(stand: CaseProgress | None) -> bool:
    return stand is not None and stand.status == OPEN
