"""Decide which cases wait for an expert, another task or a file, and what ends a wait. Pure.

A wait that nobody can end is ended: no task waits for one that waits itself. A FILE CONFLICT that
can wait lasts until the holder is done. One that cannot is settled at once: the reporting task gets
the file if its holder comes later anyway; otherwise both change it and the merge combines their
work.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import msgspec

from interlock.engine.case import OPEN, Decision
from interlock.runtime.fence import clean_foreign_text


class WaitReason(msgspec.Struct, frozen=True):
    """The reason for a wait: an expert, one task, or any other task."""

    expert: str = ""
    task: str = ""


class WaitQueues:
    """The waiting cases, and what releases them."""

    def __init__(self, per_expert: int, list_active: Callable[[], Iterable[str]]) -> None:
        """Take a function that lists the cases that can end a wait."""
        self._per_expert = per_expert
        self._list_active = list_active
        self._waiting: dict[str, WaitReason] = {}
        self._asking: dict[str, str] = {}
        self._ended = 0
        self._since: dict[str, int] = {}

    def ask_expert(self, case_id: str, name: str) -> bool:
        """Claim an expert's time for a case; return True if the case must wait for it."""
        if self._is_free(name):
            self._asking[case_id] = name
            return False
        self._waiting[case_id] = WaitReason(expert=name)
        return True

    def resume_expert(self, case_id: str, name: str) -> None:
        """Record that the case's question is with the expert already, as after a restart."""
        self._asking[case_id] = name

    def leave_expert(self, case_id: str) -> None:
        self._asking.pop(case_id, None)

    def wait_for(self, case_id: str, task: str = "") -> None:
        """Make a case wait for a task, or for any other task if none is named."""
        self._waiting[case_id] = WaitReason(task=task)
        self._since[case_id] = self._ended

    def end(self, case_id: str) -> None:
        self._ended += 1
        self._waiting.pop(case_id, None)
        self.leave_expert(case_id)

    def is_waiting(self, case_id: str) -> bool:
        return case_id in self._waiting

    def list_waiting_for(self, task: str) -> list[str]:
        """Return the cases that are released when this task is over."""
        return [
            case_id
            for case_id, reason in self._waiting.items()
            if not reason.expert and reason.task in ("", task)
        ]

    def release(self, is_open: Callable[[str], bool]) -> list[str]:
        """Release and return the cases that need not wait any more."""
        released: list[str] = []
        for case_id, reason in list(self._waiting.items()):
            if reason.expert:
                is_over = self._is_free(reason.expert)
            elif reason.task:
                is_over = not is_open(reason.task)
            else:
                is_over = self._ended > self._since[case_id]
            if is_over:
                released.append(case_id)
                del self._waiting[case_id]
                if reason.expert:
                    self._asking[case_id] = reason.expert
        if not released and not any(True for _ in self._list_active()):
            released = [case_id for case_id, why in self._waiting.items() if not why.expert]
            for case_id in released:
                del self._waiting[case_id]
        return released

    def _is_free(self, name: str) -> bool:
        return sum(each == name for each in self._asking.values()) < self._per_expert


def update_holders(holders: dict[str, str], case_id: str, decision: Decision) -> None:
    """Update the case that has each hold after a decision."""
    if decision.hold:
        holders.setdefault(decision.hold, case_id)
    holders.pop(decision.release, None)
    if decision.status != OPEN:
        for name in [name for name, holder in holders.items() if holder == case_id]:
            del holders[name]


CONFLICT: Final = "FILE CONFLICT"
FREE, WAIT, MERGE, REASSIGN = "free", "wait", "merge", "reassign"
_MOST_PATH: Final = 200


def decide_handling(holder: str, can_wait: str, comes_later: bool) -> str:
    """Return how to settle a conflict.

    `holder` is the open task that has the file, if any; `comes_later` is True if it cannot begin
    before the reporting task is over.
    """
    if not holder:
        return FREE
    if can_wait.strip().upper().startswith("YES"):
        return WAIT
    return REASSIGN if comes_later else MERGE


def describe_handling(answer: Mapping[str, Any], ends: Mapping[str, str]) -> str:
    """Return the notice for the agent that reported the conflict; `ends` are the ends of tasks."""
    path = clean_foreign_text(str(answer["path"])).replace("`", "")[:_MOST_PATH]
    holder = str(answer.get("holder", ""))
    both = (
        f"Task `{holder}` has `{path}` too. Change what you need and nothing else in it; "
        "the merge combines both changes, and the second task resolves any conflict."
    )
    match answer["handling"]:
        case "free":
            return f"No other task has `{path}`: go ahead and change it."
        case "reassign":
            return (
                f"`{path}` is yours now; task `{holder}`, which has not begun, waits for you. "
                "Go ahead and change it."
            )
        case "wait" if holder in ends:
            merged = "Its work is in your folder. " if ends[holder] == "COMPLETE" else ""
            return (
                f"`{path}` is free now: task `{holder}` is {ends[holder]}. "
                f"{merged}Go ahead and change it."
            )
        case "wait":
            return f"You cannot wait for `{path}`, since all others wait for yours. {both}"
    return both


def find_named_task(text: str, names: Iterable[str]) -> str:
    """Return the task that a blocker names as a precondition: `a1 must be done first`, `needs task
    a1`.
    """
    for name in sorted(names, key=len, reverse=True):
        word = rf"(?<![\w/#.-])[`'\"]?{re.escape(name)}[`'\"]?(?![\w/#-]|\.\w)"
        precedes = rf"(?i:task|after|until|wait\w* for|depends on|blocked by)\s+{word}"
        follows = rf"{word}\s+(?i:must|has to|have to|needs to|should|is not|isn't|first|comes)\b"
        if re.search(f"{precedes}|{follows}", text):
            return name
    return ""
