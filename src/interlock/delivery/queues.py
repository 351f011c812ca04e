"""Cases that wait although it is their turn: for an expert, for another task, for a file.

A wait that nobody can end is ended: no task waits for one that waits itself.
"""

from collections.abc import Callable, Iterable

import msgspec


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
