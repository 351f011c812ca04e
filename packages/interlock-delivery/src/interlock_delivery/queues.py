"""Cases that wait although it is their turn: for an expert, for another task, for a file. Pure.

A wait that nobody can end is ended: no task waits for one that waits itself. A FILE CONFLICT that
can wait is queued until the holder is over. One that cannot is settled at once: the file goes to
whoever asks if its holder comes later anyway, otherwise both change it and the merge brings their
work together. A file that nobody holds is free.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import msgspec

from interlock.engine.case import OPEN, Decision
from interlock.runtime.fence import clean_foreign_text


class WaitReason(msgspec.Struct, frozen=True):
    """Why a case waits: for an expert's time, or for one task, or any other, to be over."""

    expert: str = ""
    task: str = ""


class WaitQueues:
    """The cases that are held back, and when they are released."""

    def __init__(self, per_expert: int, list_active: Callable[[], Iterable[str]]) -> None:
        """`list_active` names the cases that can end somebody's wait."""
        self._per_expert = per_expert
        self._list_active = list_active
        self._waiting: dict[str, WaitReason] = {}
        self._asking: dict[str, str] = {}
        self._ended = 0
        self._since: dict[str, int] = {}

    def ask_expert(self, case_id: str, name: str) -> bool:
        """The case wants that expert's time; whether it must wait for it."""
        if self._is_free(name):
            self._asking[case_id] = name
            return False
        self._waiting[case_id] = WaitReason(expert=name)
        return True

    def resume_expert(self, case_id: str, name: str) -> None:
        """Its question is with the expert already, as after a restart."""
        self._asking[case_id] = name

    def leave_expert(self, case_id: str) -> None:
        self._asking.pop(case_id, None)

    def wait_for(self, case_id: str, task: str = "") -> None:
        """Until that task is over, or any other if none is named."""
        self._waiting[case_id] = WaitReason(task=task)
        self._since[case_id] = self._ended

    def end(self, case_id: str) -> None:
        self._ended += 1
        self._waiting.pop(case_id, None)
        self.leave_expert(case_id)

    def is_waiting(self, case_id: str) -> bool:
        return case_id in self._waiting

    def list_waiting_for(self, task: str) -> list[str]:
        """The cases that are released when this task is over."""
        return [
            case_id
            for case_id, reason in self._waiting.items()
            if not reason.expert and reason.task in ("", task)
        ]

    def release(self, is_open: Callable[[str], bool]) -> list[str]:
        """The cases that need not wait any more."""
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
    """Of each hold the case that has it, after a decision about a case."""
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
    """`holder` is the open task that has the file, if any; `comes_later` says that it has not
    begun and will not before whoever reports the conflict is over."""
    if not holder:
        return FREE
    if can_wait.strip().upper().startswith("YES"):
        return WAIT
    return REASSIGN if comes_later else MERGE


def describe_handling(answer: Mapping[str, Any], ends: Mapping[str, str]) -> str:
    """What the one who reported the conflict is told; `ends` says how tasks ended."""
    path = clean_foreign_text(str(answer["path"])).replace("`", "")[:_MOST_PATH]
    holder = str(answer.get("holder", ""))
    both = (
        f"Task `{holder}` has `{path}` too. Change what you need and nothing else in it; "
        "the merge brings both together, and whoever comes second sees what does not fit."
    )
    match answer["handling"]:
        case "free":
            return f"No other task has `{path}`: go on and change it."
        case "reassign":
            return (
                f"`{path}` is yours now; task `{holder}`, which has not begun, waits for you. "
                "Go on and change it."
            )
        case "wait" if holder in ends:
            merged = "Its work is in your folder. " if ends[holder] == "COMPLETE" else ""
            return (
                f"`{path}` is free now: task `{holder}` is {ends[holder]}. "
                f"{merged}Go on and change it."
            )
        case "wait":
            return f"You cannot wait for `{path}`, since nobody can go on before you. {both}"
    return both


def find_named_task(text: str, names: Iterable[str]) -> str:
    """The task that a blocker says must come first: `a1 must be done first`, `needs task a1`."""
    for name in sorted(names, key=len, reverse=True):
        word = rf"(?<![\w/#.-])[`'\"]?{re.escape(name)}[`'\"]?(?![\w/#-]|\.\w)"
        precedes = rf"(?i:task|after|until|wait\w* for|depends on|blocked by)\s+{word}"
        follows = rf"{word}\s+(?i:must|has to|have to|needs to|should|is not|isn't|first|comes)\b"
        if re.search(f"{precedes}|{follows}", text):
            return name
    return ""
