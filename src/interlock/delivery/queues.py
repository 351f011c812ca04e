"""Who waits although it is their turn: for an expert, for another task, for a file.

Knows which tasks are open and at work. A wait that nobody can end is ended: no task waits for one
that waits itself. Refuses to know dispatches.
"""

from collections.abc import Callable, Iterable

import msgspec


class WaitReason(msgspec.Struct, frozen=True):
    """Why a case waits: for an expert's time, or for one task or any other to be over."""

    expert: str = ""
    task: str = ""


class WaitQueues:
    """The cases that are held back, and when they are let go."""

    def __init__(self, per_expert: int, at_work: Callable[[], Iterable[str]]) -> None:
        self._per_expert = per_expert
        self._at_work = at_work
        self._waiting: dict[str, WaitReason] = {}
        self._asking: dict[str, str] = {}
        self._ended = 0
        self._since: dict[str, int] = {}

    def ask_expert(self, case_id: str, name: str) -> bool:
        """The case wants that expert's time; whether it must wait for it."""
        if self._free(name):
            self._asking[case_id] = name
            return False
        self._waiting[case_id] = WaitReason(expert=name)
        return True

    def at_expert(self, case_id: str, name: str) -> None:
        """Its question is with the expert already."""
        self._asking[case_id] = name

    def leave_expert(self, case_id: str) -> None:
        self._asking.pop(case_id, None)

    def wait_for(self, case_id: str, task: str = "") -> None:
        """Until that task is over, or any other if none is named."""
        self._waiting[case_id] = WaitReason(task=task)
        self._since[case_id] = self._ended

    def over(self, case_id: str) -> None:
        self._ended += 1
        self._waiting.pop(case_id, None)
        self.leave_expert(case_id)

    def is_waiting(self, case_id: str) -> bool:
        return case_id in self._waiting

    def let_go(self, is_open: Callable[[str], bool]) -> list[str]:
        gone: list[str] = []
        for case_id, why in list(self._waiting.items()):
            if why.expert:
                if self._free(why.expert):
                    self._asking[case_id] = why.expert
                    gone.append(case_id)
                    del self._waiting[case_id]
            elif self._is_settled(case_id, why, is_open):
                gone.append(case_id)
                del self._waiting[case_id]
        if not gone and not any(True for _ in self._at_work()):
            gone = [case_id for case_id, why in self._waiting.items() if not why.expert]
            for case_id in gone:
                del self._waiting[case_id]
        return gone

    def _is_settled(self, case_id: str, why: WaitReason, is_open: Callable[[str], bool]) -> bool:
        if why.task:
            return not is_open(why.task)
        return self._ended > self._since[case_id]

    def _free(self, name: str) -> bool:
        return sum(each == name for each in self._asking.values()) < self._per_expert
